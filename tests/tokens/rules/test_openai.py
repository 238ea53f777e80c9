from collections.abc import Callable

import pytest

from ullage.messages.openai import read_chat, read_responses
from ullage.models import Match, ModelCard
from ullage.tokens.count import Count, Method, Weight
from ullage.tokens.rules.openai import weigh
from ullage.tool import Json

CLASSIC, REASONING, CHANNEL = ("gpt-4o", "gpt-4o"), ("o3", "o3"), ("gpt-5-mini", "gpt-5")
Body = dict[str, Json]


def letters(text: str) -> Count:
    """A tokenizer with a token a letter: every seam is additive, so framing stands out."""
    return Count.exact(len(text))


def chat(body: Body, model: tuple[str, str] = CLASSIC, count: Callable[[str], Count] = letters) -> Weight:
    return weigh(read_chat(body), match(*model), count)


def responses(body: Body, model: tuple[str, str] = CLASSIC, count: Callable[[str], Count] = letters) -> Weight:
    return weigh(read_responses(body), match(*model), count)


def match(name: str, family: str) -> Match:
    return Match(asked=name, card=ModelCard(id=name, provider="openai", family=family), host=None, how="id")


def said(*messages: tuple[str, str]) -> Body:
    return {"messages": [{"role": role, "content": text} for role, text in messages]}


def function(name: str, description: str | None = "Does.", **properties: Json) -> Json:
    schema: Json = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def call(name: str, arguments: str, identity: str = "c1") -> Json:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def answer(text: str, identity: str = "c1") -> Json:
    return {"role": "tool", "tool_call_id": identity, "content": text}


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    ("model", "framing"), [(CLASSIC, 3), (REASONING, 2), (CHANNEL, 2), (("gpt-3.5-turbo", "gpt-3.5"), 3)]
)
def test_a_message_costs_four_and_an_answer_two_or_three(model: tuple[str, str], framing: int) -> None:
    weight = chat(said(("system", "abc"), ("user", "de")), model)
    assert weight.framing == Count.exact(framing)
    assert weight.messages == (Count.exact(7), Count.exact(6))
    assert weight.total == Count.exact(framing + 13)


@pytest.mark.requirement("S3:overheads")
def test_an_assistants_message_has_a_channel_since_gpt_5() -> None:
    assert chat(said(("assistant", "ab")), CHANNEL).messages == (Count.exact(8),)
    assert chat(said(("assistant", "ab")), REASONING).messages == (Count.exact(6),)


@pytest.mark.requirement("S3:overheads")
def test_text_parts_are_set_one_after_the_other() -> None:
    counted: list[str] = []

    def spy(text: str) -> Count:
        counted.append(text)
        return letters(text)

    parts: Json = [{"type": "text", "text": "ab."}, {"type": "text", "text": "Cd"}]
    chat({"messages": [{"role": "user", "content": parts}]}, count=spy)
    assert "ab.Cd" in counted


@pytest.mark.requirement("S3:overheads")
def test_a_name_is_counted_with_its_colon() -> None:
    assert chat({"messages": [{"role": "user", "name": "ana", "content": "x"}]}).messages == (Count.exact(9),)


@pytest.mark.requirement("S3:overheads")
def test_empty_instructions_cost_nothing() -> None:
    assert responses({"input": "Hi", "instructions": ""}, ("gpt-4o-mini", "gpt-4o")).total == Count.exact(9)


@pytest.mark.requirement("S3:overheads")
def test_gpt_4o_over_responses_may_carry_what_the_api_added_in_its_first_months() -> None:
    found = responses({"input": "Hi"}).total
    assert (found.tokens, found.low, found.high) == (9, 9, 27)
    assert found.method is Method.CALIBRATED


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize("model", ["text-embedding-3-small", "davinci-002", "gpt-3.5-turbo-instruct"])
def test_models_without_messages_are_given_bare_texts(model: str) -> None:
    body: Body = {"input": ["abc", "de", [11, 12]]} if "embedding" in model else {"prompt": ["abcdefg"]}
    assert chat(body, (model, model)).total == Count.exact(7)


@pytest.mark.requirement("S3:overheads")
def test_tools_of_familiar_schemas_are_exact_and_their_parts_sum_up() -> None:
    weight = chat({**said(("user", "x")), "tools": [function("a"), function("bb", x={"type": "string"})]})
    assert [count.tokens for count in weight.tools] == [
        len("// Does.\ntype a = () => any;"),
        len("// Does.\ntype bb = (_: { x?: string }) => any;"),
    ]
    section = "Tools\n\n## functions\n\nnamespace functions {\n\n" + "\n\n" * 2 + "} // namespace functions"
    assert weight.tools_framing == Count.exact(len(section) + 4)


@pytest.mark.requirement("S3:overheads")
def test_tools_join_a_system_message_where_there_is_one() -> None:
    tools: list[Json] = [function("a")]
    alone = chat({**said(("user", "x")), "tools": tools}).tools_framing.tokens
    joined = chat({**said(("system", "s"), ("user", "x")), "tools": tools}).tools_framing.tokens
    assert joined == alone - 4 + len("\n\n")


@pytest.mark.requirement("S3:overheads")
def test_tools_of_other_schemas_have_a_band() -> None:
    weight = chat({**said(("user", "x")), "tools": [function("a", x={"type": "string", "pattern": "y+"})]})
    assert weight.total.method is Method.CALIBRATED
    low, high = weight.total.band or (0, 0)
    assert low < weight.total.tokens < high


@pytest.mark.requirement("S3:overheads")
def test_chats_with_gpt_5_pay_for_having_tools() -> None:
    tools: list[Json] = [function("a")]
    body: Body = {**said(("user", "x")), "tools": tools}
    plain: Body = {"input": "x", "tools": [{"type": "function", "name": "a", "description": "Does."}]}
    assert chat(body, CHANNEL).total.tokens - responses(plain, CHANNEL).total.tokens == 82


@pytest.mark.requirement("S3:overheads")
def test_a_forced_tool_opens_the_answer() -> None:
    body: Body = {**said(("user", "x")), "tools": [function("act")]}
    forced: Json = {"type": "function", "function": {"name": "act"}}
    assert chat({**body, "tool_choice": forced}).total.tokens - chat(body).total.tokens == 7 + len(".act")
    assert chat({**body, "tool_choice": "required"}).total == chat(body).total
    assert chat({**body, "tool_choice": forced}, CHANNEL).total == chat(body, CHANNEL).total


@pytest.mark.requirement("S3:overheads")
def test_a_call_is_written_without_spaces_and_its_result_under_its_name() -> None:
    body: Body = {"messages": [{"role": "assistant", "tool_calls": [call("act", '{"x": 1}')]}, answer("done")]}
    weight = chat(body)
    assert weight.messages == (
        Count.exact(7 + len(".act") + len('{"x":1}')),
        Count.exact(6 + len("act") + len("done")),
    )


@pytest.mark.requirement("S3:overheads")
def test_calls_made_at_once_are_one_call_and_one_list_of_results() -> None:
    calls: Json = [call("a", "{}", "c1"), call("b", '{"x": 1}', "c2")]
    body: Body = {"messages": [{"role": "assistant", "tool_calls": calls}, answer("one", "c1"), answer("2", "c2")]}
    uses = (
        '{"tool_uses":[{"recipient_name":"functions.a","parameters":{}},'
        '{"recipient_name":"functions.b","parameters":{"x":1}}]}'
    )
    assert sum(count.tokens for count in chat(body).messages) == 20 + len(uses) + len('["one", 2]')
    assert chat(body).messages[2].tokens == len("2")


@pytest.mark.requirement("S3:overheads")
def test_a_stored_call_costs_three_more_when_it_stands_alone() -> None:
    item: dict[str, Json] = {"type": "function_call", "call_id": "c1", "name": "a", "arguments": "{}"}
    known: dict[str, Json] = {**item, "id": "fc_1"}
    fresh, stored = responses({"input": [item]}), responses({"input": [known]})
    beside = responses({"input": [known, known]})
    assert stored.messages[0].tokens - fresh.messages[0].tokens == 3
    assert beside.messages[0].tokens == fresh.messages[0].tokens


@pytest.mark.requirement("S3:overheads")
def test_an_answer_format_is_weighed_by_what_is_shown_of_it() -> None:
    schema: Json = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    wanted: Json = {"type": "json_schema", "json_schema": {"name": "day", "schema": schema}}
    weight = chat({**said(("user", "x")), "response_format": wanted})
    shown = '# Response Formats\n\n## day\n\n{"type":"object","properties":{}}'
    assert weight.output_schema.tokens == len(shown) + 6 + len("day")
    assert weight.output_schema.method is Method.CALIBRATED


@pytest.mark.requirement("S3:overheads")
def test_a_plain_answer_format_costs_nothing() -> None:
    assert chat({**said(("user", "x")), "response_format": {"type": "json_object"}}).output_schema == Count.exact(0)


@pytest.mark.requirement("S3:overheads")
def test_what_nobody_outside_can_know_is_estimated() -> None:
    sealed: Json = {"type": "reasoning", "encrypted_content": "x" * 2000}
    bodies: list[Body] = [
        {"input": "Hi", "tools": [{"type": "web_search"}]},
        {"input": "Hi", "previous_response_id": "resp_1"},
        {"input": [{"role": "user", "content": "Hi"}, sealed]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/a"}]}]},
        {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        {"input": "Hi", "reasoning": {"mode": "pro"}},
    ]
    for body in bodies:
        total = responses(body, CHANNEL).total
        assert total.method is Method.ESTIMATED
        assert total.low < total.high


@pytest.mark.requirement("S3:overheads")
def test_reasoning_from_before_the_last_question_is_not_counted() -> None:
    sealed: Json = {"type": "reasoning", "encrypted_content": "x" * 2000}
    asked: Json = {"role": "user", "content": "Hi"}
    assert responses({"input": [sealed, asked]}, CHANNEL).messages[0].tokens == 0
    assert responses({"input": [asked, sealed]}, CHANNEL).messages[1].tokens == 175


@pytest.mark.requirement("S3:overheads")
def test_sound_is_ten_tokens_a_second() -> None:
    seconds = "A" * (12_000 * 4 // 3 * 5)
    content: Json = [{"type": "input_audio", "input_audio": {"data": seconds, "format": "mp3"}}]
    assert chat({"messages": [{"role": "user", "content": content}]}).messages[0].tokens == 4 + 4 + 50


@pytest.mark.requirement("S3:overheads")
def test_a_family_never_seen_is_weighed_like_the_latest_within_a_band() -> None:
    total = chat(said(("user", "x")), ("gpt-9", "gpt-9")).total
    assert total.tokens == chat(said(("user", "x")), CHANNEL).total.tokens
    assert total.method is Method.CALIBRATED


@pytest.mark.requirement("S3:overheads")
def test_a_tokenizer_that_is_not_exact_makes_nothing_exact() -> None:
    def rough(text: str) -> Count:
        return Count.within(len(text), 0.1)

    weight = chat({**said(("system", "s"), ("user", "x")), "tools": [function("a")]}, count=rough)
    assert weight.total.method is Method.CALIBRATED
    assert weight.total.low < weight.total.tokens < weight.total.high


@pytest.mark.requirement("S3:overheads")
def test_a_search_for_tools_costs_until_all_of_them_are_loaded() -> None:
    far: dict[str, Json] = {"type": "function", "name": "far", "parameters": {}}
    tools: list[Json] = [{"type": "tool_search"}, {**far, "defer_loading": True}]
    brought: Json = {"type": "additional_tools", "tools": [far]}
    before = responses({"input": "Hi", "tools": tools}, CHANNEL)
    after = responses({"input": [brought], "tools": tools}, CHANNEL)
    assert [count.tokens for count in before.tools] == [570, 0]
    assert [count.tokens for count in after.tools] == [0, 0]
    assert after.messages[0].tokens > 86


@pytest.mark.requirement("S3:overheads")
def test_outputs_without_their_calls_tell_of_a_conversation_kept_elsewhere() -> None:
    item: Json = {"type": "function_call_output", "call_id": "c1", "output": "2"}
    alone = responses({"input": [item]}).framing.tokens
    assert responses({"input": [item], "previous_response_id": "resp_1"}).framing.tokens == alone + 50


@pytest.mark.requirement("S3:overheads")
def test_only_the_end_of_a_long_system_text_is_counted_again_with_the_tools() -> None:
    counted: list[int] = []

    def spy(text: str) -> Count:
        counted.append(len(text))
        return letters(text)

    system = "long text " * 10_000
    weight = chat({**said(("system", system)), "tools": [function("a")]}, count=spy)
    assert sum(length > 10_000 for length in counted) == 1
    assert weight.messages == (Count.exact(len(system) + 4),)


@pytest.mark.requirement("S3:overheads")
def test_a_search_the_model_need_not_make_is_weighed_as_its_definition() -> None:
    body: Body = {"input": "Hi", "tools": [{"type": "web_search"}]}
    found = responses(body).tools[0]
    assert (found.tokens, found.method) == (294, Method.ESTIMATED)
    assert found.low <= 229
    assert found.high >= 17_000


@pytest.mark.requirement("S3:overheads")
def test_a_prompt_that_openai_keeps_makes_a_request_an_estimate() -> None:
    assert responses({"prompt": {"id": "pmpt_1"}}).total.method is Method.ESTIMATED


@pytest.mark.requirement("S3:overheads")
def test_a_sound_of_unknown_length_has_a_wide_band() -> None:
    sound: Json = {"type": "input_audio", "input_audio": {"data": "not base64!", "format": "mp3"}}
    body: Body = {"messages": [{"role": "user", "content": [sound]}]}
    found = chat(body, ("gpt-4o-audio-preview", "gpt-4o")).messages[0]
    assert found.high >= 1000
    assert found.method is Method.ESTIMATED


def ask(text: str, tool: str, **more: Json) -> Body:
    return {"input": [{"role": "user", "content": text}], "tools": [{"type": tool}], **more}


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    ("text", "tool", "more", "used"),
    [
        ("What is the news today?", "web_search", {}, True),
        ("Suche im Internet nach dem Preis", "web_search", {}, True),
        ("Thanks, that will do.", "web_search", {}, False),
        ("Thanks, that will do.", "web_search", {"tool_choice": "required"}, True),
        ("What is the news today?", "web_search", {"tool_choice": "none"}, False),
        ("Draw a cat", "image_generation", {}, True),
        ("Tell me a story about a cat", "image_generation", {}, False),
    ],
)
def test_a_hosted_tool_weighs_what_it_brings_only_where_it_is_asked_for(
    text: str, tool: str, more: Body, *, used: bool
) -> None:
    found = responses(ask(text, tool, **more), CHANNEL).tools[0]
    assert (found.tokens > 1_000) is used
    assert found.low < 300
    assert found.high >= 3_000


@pytest.mark.requirement("S3:overheads")
def test_a_model_that_searched_before_is_expected_to_search_again() -> None:
    body = ask("And in winter?", "web_search")
    before: Json = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    assert responses(body, CHANNEL).tools[0].tokens < 300
    searched: Body = {**body, "input": [before, *(body["input"] if isinstance(body["input"], list) else [])]}
    assert responses(searched, CHANNEL).tools[0].tokens > 8_000


@pytest.mark.requirement("S3:overheads")
def test_search_results_that_are_not_reported_do_not_widen_the_band() -> None:
    classic = responses(ask("What is the news today?", "web_search_preview")).tools[0]
    assert classic.high <= 330
    assert responses(ask("What is the news today?", "web_search")).tools[0].tokens == 294
    assert responses(ask("Search the web for news", "web_search")).tools[0].tokens > 8_000


@pytest.mark.requirement("S3:overheads")
def test_the_output_of_a_tool_that_openai_ran_weighs() -> None:
    run: dict[str, Json] = {"type": "mcp_call", "id": "m", "server_label": "s", "name": "f", "arguments": "{}"}
    without, with_output = (
        responses({"input": ["Hi", item]}, CHANNEL).messages[1].tokens for item in (run, {**run, "output": "x" * 500})
    )
    assert 500 <= with_output - without <= 510


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize("kind", ["web_search", "web_search_preview"])
def test_a_dated_type_of_a_tool_weighs_as_the_tool(kind: str) -> None:
    plain, dated = (
        responses({"input": "Hi", "tools": [{"type": each}]}, CHANNEL).tools for each in (kind, f"{kind}_2025_08_26")
    )
    assert plain == dated


@pytest.mark.requirement("S3:overheads", "S3:method")
@pytest.mark.parametrize(
    "more",
    [{"prediction": {"type": "content", "content": "x" * 500}}, {"web_search_options": {"search_context_size": "low"}}],
)
def test_settings_that_may_add_input_leave_no_count_exact(more: dict[str, Json]) -> None:
    plain, other = (chat({**said(("user", "Hi")), **each}).total for each in ({}, more))
    assert plain.method is Method.EXACT
    assert other.method is not Method.EXACT
    assert other.tokens == plain.tokens
    assert other.high >= plain.high + 500
