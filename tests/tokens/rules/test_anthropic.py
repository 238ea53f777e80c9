"""Does a whole request to Claude weigh what Anthropic would report?"""

from base64 import b64encode

import pytest

from ullage.messages import Format, Message, Request, Text
from ullage.messages.anthropic import read
from ullage.models import Match, ModelCard
from ullage.tokens.count import Count, Method, Weight
from ullage.tokens.rules.anthropic import weigh
from ullage.tool import Json

FAMILIES = {
    "claude-sonnet-4-0": ("claude-4", "claude_3"),
    "claude-sonnet-4-5": ("claude-4.5", "claude_3"),
    "claude-opus-4-6": ("claude-4.6", "claude_3"),
    "claude-opus-4-7": ("claude-4.7", "claude_4_7"),
    "claude-opus-5": ("claude-5", "claude_4_7"),
    "claude-new": ("claude-9", "claude_4_7"),
}
WEATHER: dict[str, Json] = {"name": "weather", "description": "Tells it.", "input_schema": {"type": "object"}}
ASK: Json = {"role": "user", "content": "one two three"}


def words(text: str) -> Count:
    """A word a token, so that a test can be checked by eye."""
    return Count.within(len(text.split()), 0.0)


def weight(model: str = "claude-sonnet-4-5", **body: Json) -> Weight:
    family, tokenizer = FAMILIES[model]
    card = ModelCard(id=model, provider="anthropic", family=family, tokenizer=tokenizer)
    return weigh(read(body), Match(asked=model, card=card, host=None, how="id"), words)


def tokens(model: str = "claude-sonnet-4-5", **body: Json) -> int:
    return weight(model, **body).total.tokens


def say(*content: Json, role: str = "user") -> Json:
    return {"role": role, "content": list(content)}


def call(**arguments: Json) -> Json:
    return {"type": "tool_use", "id": "t", "name": "weather", "input": dict(arguments)}


def result(content: Json = "mild", *, failed: bool = False) -> Json:
    return {"type": "tool_result", "tool_use_id": "t", "content": content, "is_error": failed}


@pytest.mark.requirement("S3:overheads")
def test_a_plain_prompt_is_its_text_and_seven() -> None:
    assert tokens(messages=[ASK]) == 3 + 7


@pytest.mark.requirement("S3:overheads")
def test_a_further_message_costs_three_and_a_system_prompt_its_text() -> None:
    assert tokens(messages=[ASK, say("four", role="assistant"), ASK], system="be kind") == 3 + 7 + 1 + 3 + 3 + 3 + 2


@pytest.mark.requirement("S3:overheads")
def test_the_parts_sum_to_the_whole() -> None:
    found = weight(messages=[ASK, say("four", role="assistant")], system="be kind", tools=[WEATHER])
    parts = (found.framing, found.system, *found.tools, found.tools_framing, *found.messages, found.output_schema)
    assert found.total.tokens == sum(part.tokens for part in parts)
    assert len(found.messages) == 2
    assert len(found.tools) == 1


@pytest.mark.requirement("S3:overheads")
def test_caching_effort_and_sampling_cost_nothing() -> None:
    mark: Json = {"type": "ephemeral"}
    marked: Json = {"role": "user", "content": [{"type": "text", "text": "one two three", "cache_control": mark}]}
    more = tokens(messages=[marked], temperature=0.5, output_config={"effort": "high"}, cache_control=mark)
    assert more == tokens(messages=[ASK])


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    ("model", "preamble"),
    [("claude-sonnet-4-0", 310), ("claude-sonnet-4-5", 496), ("claude-opus-4-7", 679), ("claude-opus-5", 287)],
)
def test_the_presence_of_tools_costs_a_preamble_that_depends_on_the_model(model: str, preamble: int) -> None:
    assert weight(model, messages=[ASK], tools=[WEATHER]).tools_framing.tokens == preamble
    assert weight(model, messages=[ASK]).tools_framing.tokens == 0


@pytest.mark.requirement("S3:overheads")
def test_a_model_never_recorded_has_a_wide_band_for_its_preamble() -> None:
    known = weight("claude-opus-5", messages=[ASK], tools=[WEATHER]).tools_framing
    unknown = weight("claude-new", messages=[ASK], tools=[WEATHER]).tools_framing
    assert (unknown.high - unknown.low) > 5 * (known.high - known.low)


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "weather"}])
def test_a_forced_call_costs_more(choice: Json) -> None:
    forced = tokens(messages=[ASK], tools=[WEATHER], tool_choice=choice)
    assert forced == tokens(messages=[ASK], tools=[WEATHER], tool_choice={"type": "auto"}) + 93


@pytest.mark.requirement("S3:overheads")
def test_a_tool_that_is_kept_back_costs_nothing_until_it_is_found() -> None:
    later: Json = {**WEATHER, "name": "later", "defer_loading": True}
    found: Json = [{"type": "tool_reference", "tool_name": "later"}]
    turns: list[Json] = [ASK, say(call(), role="assistant"), say(result("mild"))]
    shown = weight(messages=[*turns[:-1], say(result(found))], tools=[WEATHER, later])
    hidden = weight(messages=turns, tools=[WEATHER, later])
    assert hidden.tools[1].tokens == 0
    assert shown.messages[-1].tokens == hidden.messages[-1].tokens - 1 + shown.tools[0].tokens


@pytest.mark.requirement("S3:overheads")
def test_an_argument_weighs_as_its_plain_value_not_as_json() -> None:
    one = tokens(messages=[ASK, say(call(city="Rio de Janeiro"), role="assistant")])
    none = tokens(messages=[ASK, say(call(), role="assistant")])
    assert one - none == 16 + 1 + 3


@pytest.mark.requirement("S3:overheads")
def test_calls_side_by_side_and_failed_results_cost_more() -> None:
    single = tokens(messages=[ASK, say(call(), role="assistant"), say(result())])
    double = tokens(messages=[ASK, say(call(), call(), role="assistant"), say(result(), result())])
    failed = tokens(messages=[ASK, say(call(), role="assistant"), say(result(failed=True))])
    assert double - single == 22 + 1 + 17 + 1 + 32
    assert failed - single == 18


@pytest.mark.requirement("S3:overheads")
def test_arguments_that_are_no_json_object_are_still_weighed() -> None:
    broken: Json = {"type": "tool_use", "id": "t", "name": "weather", "input": "{one two"}
    assert tokens(messages=[say(broken, role="assistant")]) == 7 + 22 + 16 + 1 + 2


THOUGHT: Json = {"type": "thinking", "thinking": "so so so", "signature": "s" * 300}


@pytest.mark.requirement("S3:overheads")
def test_thinking_of_earlier_turns_is_dropped_where_the_model_drops_it() -> None:
    turns: list[Json] = [ASK, say(THOUGHT, {"type": "text", "text": "yes"}, role="assistant"), ASK]
    assert weight("claude-sonnet-4-5", messages=turns).messages[1].tokens == 3 + 1
    kept = weight("claude-opus-4-6", messages=turns).messages[1]
    assert kept.tokens == 3 + 1 + 20
    assert kept.method is Method.ESTIMATED


@pytest.mark.requirement("S3:overheads")
def test_thinking_stays_while_its_turn_goes_on() -> None:
    turns: list[Json] = [ASK, say(THOUGHT, call(), role="assistant"), say(result())]
    assert weight(messages=turns).messages[1].tokens == 3 + 22 + 1 + 20


@pytest.mark.requirement("S3:overheads")
def test_a_thinking_budget_costs_a_line_on_older_models_only() -> None:
    budget: Json = {"type": "enabled", "budget_tokens": 1024}
    assert tokens(messages=[ASK], thinking=budget) == tokens(messages=[ASK]) + 28
    assert tokens("claude-opus-5", messages=[ASK], thinking=budget) == tokens("claude-opus-5", messages=[ASK])


@pytest.mark.requirement("S3:overheads")
def test_a_schema_for_the_answer_costs_its_json_and_more() -> None:
    schema: Json = {"type": "json_schema", "schema": {"type": "object", "properties": {}}}
    assert weight(messages=[ASK], output_config={"format": schema}).output_schema.tokens == 84 + round(4 * 1.49)


@pytest.mark.requirement("S3:overheads")
def test_a_document_to_be_cited_costs_once_for_all_citing() -> None:
    source: Json = {"type": "text", "media_type": "text/plain", "data": "grass is green"}
    document: dict[str, Json] = {"type": "document", "source": source, "title": "facts"}
    cited: Json = {**document, "citations": {"enabled": True}}
    assert tokens(messages=[say(document)]) == 7 + 3 + 38 + 1
    assert tokens(messages=[say(cited, cited)]) == 7 + 2 * (3 + 38 + 1) + 515


@pytest.mark.requirement("S3:overheads")
def test_an_image_weighs_by_its_area() -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (750).to_bytes(4, "big") + (200).to_bytes(4, "big") + b"\0" * 9
    source: Json = {"type": "base64", "media_type": "image/png", "data": b64encode(png).decode()}
    assert tokens(messages=[say({"type": "image", "source": source})]) == 7 + 200


@pytest.mark.requirement("S3:overheads")
def test_a_pdf_weighs_by_its_pages_as_an_estimate() -> None:
    pdf = b"%PDF-1.4 << /Type /Pages >> << /Type /Page >> << /Type/Page >>"
    source: Json = {"type": "base64", "media_type": "application/pdf", "data": b64encode(pdf).decode()}
    count = weight(messages=[say({"type": "document", "source": source})]).total
    assert count.tokens == 7 + 38 + 2 * 1600
    assert count.method is Method.ESTIMATED


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize("kind", ["web_search_20250305", "code_execution_20260120", "mcp_toolset", "never_seen_2031"])
def test_what_anthropic_runs_itself_is_estimated(kind: str) -> None:
    count = weight(messages=[ASK], tools=[{"type": kind, "name": "x"}]).tools[0]
    assert count.method is Method.ESTIMATED
    assert count.low <= count.tokens <= count.high


@pytest.mark.requirement("S3:overheads")
def test_a_remote_server_may_cost_anything() -> None:
    count = weight(messages=[ASK], mcp_servers=[{"type": "url", "url": "https://example.org"}]).total
    assert count.method is Method.ESTIMATED
    assert count.low < 20
    assert count.high > 20_000


@pytest.mark.requirement("S3:overheads")
def test_a_block_nobody_knows_weighs_as_json() -> None:
    count = weight(messages=[say({"type": "container_upload", "file_id": "f"})]).total
    assert count.tokens == 7 + 4
    assert count.method is Method.ESTIMATED


@pytest.mark.requirement("S3:overheads")
def test_a_system_message_in_openai_format_is_no_turn() -> None:
    request = Request(
        format=Format.OPENAI_CHAT,
        model=None,
        messages=(Message(role="system", parts=(Text("be kind"),)), Message(role="user", parts=(Text("one"),))),
    )
    card = ModelCard(id="claude-sonnet-4-5", provider="anthropic", family="claude-4.5", tokenizer="claude_3")
    found = weigh(request, Match(asked="x", card=card, host="openrouter", how="id"), words)
    assert found.total.tokens == 2 + 1 + 7


@pytest.mark.parametrize("model", FAMILIES)
def test_a_thinking_budget_beside_tools_is_counted_for_every_family(model: str) -> None:
    family, tokenizer = FAMILIES[model]
    card = ModelCard(id=model, provider="anthropic", family=family, tokenizer=tokenizer)
    body: dict[str, Json] = {
        "messages": [ASK],
        "tools": [WEATHER],
        "thinking": {"type": "enabled", "budget_tokens": 2000},
    }
    found = weigh(read(body), Match(asked=model, card=card, host=None, how="id"), words).framing
    assert found.method is not Method.EXACT
    assert found.high > found.tokens


@pytest.mark.requirement("S3:overheads")
def test_what_an_answer_quotes_is_not_counted_again() -> None:
    def cited(quote: str) -> int:
        citation: Json = {"type": "char_location", "cited_text": quote, "document_title": quote, "document_index": 0}
        return tokens(messages=[say({"type": "text", "text": "So", "citations": [citation]}, role="assistant")])

    assert cited("a word " * 100) == cited("a")


@pytest.mark.requirement("S3:overheads")
def test_a_document_of_unknown_source_weighs_as_its_json() -> None:
    unread: Json = {"document": {"name": "a", "source": {"unheard": "word " * 200}}}
    assert tokens(messages=[say(unread)]) > 200
