import pytest

from ullage.messages.openai import read_chat, read_responses
from ullage.models import Match, ModelCard
from ullage.tokens.count import Count, Method, Weight
from ullage.tokens.rules.open_models import (
    MARK,
    braces_tool,
    compact_tool,
    lined_call,
    tagged_call,
    template_of,
    typescript,
    weigh,
)
from ullage.tool import Json


def words(text: str) -> Count:
    """A tokenizer for which a word is a token, and so is a run of line breaks at the end of one."""
    return Count.exact(len(text.split()) + text.count("\n") - text.count("\n\n"))


def match(model: str, host: str | None = None) -> Match:
    return Match(asked=model, card=ModelCard(id=model, provider="", family=""), host=host, how="id")


def weighed(body: dict[str, Json], model: str, host: str | None = None) -> Weight:
    return weigh(read_chat(body), match(model, host), words)


def user(text: Json = "two words") -> dict[str, Json]:
    return {"role": "user", "content": text}


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    ("model", "host", "frame"),
    [
        ("qwen3-4b", None, 8),
        ("qwen3.5-9b", None, 10),
        ("qwen2.5-7b-instruct", None, 29),
        ("deepseek-v4-flash", "deepseek", 4),
        ("deepseek-v4-pro", "together", 83),
        ("deepseek-v4-pro", "baseten", 5),
        ("mistral-large-2512", "mistral", 3),
        ("ministral-3b-2512", None, 3),
        ("mistral-small-2603", None, 15),
        ("mistral-small-2506", None, 3),
        ("llama-3-8b", "groq", 10),
        ("llama-3.1-8b", "groq", 35),
        ("llama-3.3-70b-instruct", "huggingface", 35),
        ("llama-3.1-8b", "nvidia", 10),
        ("gpt-oss-120b", "together", 67),
        ("gpt-oss-120b", "groq", 71),
        ("gpt-oss-20b", "baseten", 78),
        ("kimi-k2.6", None, 8),
        ("glm-4.7", None, 5),
        ("glm-5.2", None, 12),
        ("gemma-3-4b-it", "ollama", 9),
        ("gemma-4-31b-it", "cerebras", 13),
        ("mimo-v2.5", None, 247),
        ("mimo-v2.5-pro", None, 251),
        ("grok-3", "xai", 6),
    ],
)
def test_the_frame_of_one_message_is_what_its_host_was_seen_to_add(model: str, host: str | None, frame: int) -> None:
    assert weighed({"messages": [user()]}, model, host).total.tokens == 2 + frame


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    ("model", "frame"),
    [("qwen3-4b", 13), ("mistral-large-2512", 5), ("llama-3.3-70b-instruct", 35), ("deepseek-v3", 4)],
)
def test_a_system_message_has_the_frame_of_its_template(model: str, frame: int) -> None:
    body: dict[str, Json] = {"messages": [{"role": "system", "content": "two words"}, user()]}
    assert weighed(body, model).total.tokens == 4 + frame


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(("model", "frame"), [("qwen3-4b", 18), ("mistral-large-2512", 6), ("deepseek-v3", 8)])
def test_an_answer_in_between_has_the_frame_of_its_template(model: str, frame: int) -> None:
    body: dict[str, Json] = {"messages": [user(), {"role": "assistant", "content": "two words"}, user()]}
    assert weighed(body, model).total.tokens == 6 + frame


@pytest.mark.requirement("S3:overheads")
def test_two_user_messages_become_one_where_the_template_merges_them() -> None:
    request = read_chat({"messages": [user("abc"), user("de"), user("f")]})
    weight = weigh(request, match("deepseek-v4-flash"), lambda text: Count.exact(len(text)))
    assert [count.tokens for count in weight.messages] == [1 + 3, 2 + 2, 2 + 1]


@pytest.mark.requirement("S3:overheads")
def test_the_texts_of_one_message_are_joined_as_the_host_joins_them() -> None:
    parts: Json = [{"type": "text", "text": "two words"}, {"type": "text", "text": "and three more"}]
    here = weighed({"messages": [user(parts)]}, "qwen3-4b").total.tokens
    there = weighed({"messages": [user(parts)]}, "qwen3-4b", "huggingface").total.tokens
    assert (here, there) == (8 + 4, 8 + 6)


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    "off",
    [
        {"enable_thinking": False},
        {"think": False},
        {"thinking": {"type": "disabled"}},
        {"chat_template_kwargs": {"enable_thinking": False}},
    ],
)
def test_thinking_switched_off_is_seen_in_every_spelling(off: dict[str, Json]) -> None:
    loud = weighed({"messages": [user()]}, "qwen3.8-max").total.tokens
    assert weighed({"messages": [user()], **off}, "qwen3.8-max").total.tokens < loud


def tool(name: str = "rain", **properties: Json) -> dict[str, Json]:
    schema: Json = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": "Says it.", "parameters": schema}}


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    "model", ["qwen3-4b", "deepseek-v4-pro", "mistral-large-2512", "gpt-oss-20b", "glm-5.2", "grok-4"]
)
def test_tools_cost_something_each_and_something_once(model: str) -> None:
    weight = weighed({"messages": [user()], "tools": [tool("rain"), tool("snow")]}, model)
    assert len(weight.tools) == 2
    assert all(count.tokens > 0 for count in weight.tools)
    assert weight.tools_framing.tokens > 0
    assert weight.total.method is Method.CALIBRATED


@pytest.mark.requirement("S3:overheads")
def test_tools_that_may_not_be_called_are_not_shown_but_keep_their_place() -> None:
    body: dict[str, Json] = {"messages": [user()], "tools": [tool()], "tool_choice": "none"}
    weight = weighed(body, "deepseek-v4-pro")
    assert weight.tools == (Count.exact(0),)
    assert weight.tools_framing == Count.exact(0)


@pytest.mark.requirement("S3:overheads")
def test_some_hosts_show_them_all_the_same_once_there_was_a_call() -> None:
    call: Json = {"id": "1", "type": "function", "function": {"name": "rain", "arguments": "{}"}}
    body: dict[str, Json] = {
        "messages": [
            user(),
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "yes"},
        ],
        "tools": [tool()],
        "tool_choice": "none",
    }
    assert weighed(body, "gpt-oss-20b", "groq").tools[0].tokens > 0
    assert weighed(body, "gpt-oss-20b", "cerebras").tools[0].tokens == 0


@pytest.mark.requirement("S3:overheads")
def test_a_forced_call_costs_more_on_deepseek() -> None:
    free: dict[str, Json] = {"messages": [user()], "tools": [tool()]}
    forced = weighed({**free, "tool_choice": "required"}, "deepseek-v4-pro").total.tokens
    assert forced - weighed(free, "deepseek-v4-pro").total.tokens == 7


@pytest.mark.requirement("S3:overheads")
def test_asking_for_json_costs_what_the_host_adds() -> None:
    body: dict[str, Json] = {"messages": [user()], "response_format": {"type": "json_object"}}
    assert weighed(body, "deepseek-v4-pro", "deepseek").output_schema.tokens == 20
    assert weighed(body, "gpt-oss-20b", "together").output_schema.tokens == 0
    assert weighed({**body, "response_format": {"type": "text"}}, "deepseek-v4-pro").output_schema.tokens == 0


@pytest.mark.requirement("S3:overheads")
def test_asking_for_json_switches_thinking_off_on_mistral_small() -> None:
    body: dict[str, Json] = {"messages": [user()], "response_format": {"type": "json_object"}}
    assert weighed(body, "mistral-small-2603").total.tokens == 2 + 3


@pytest.mark.requirement("S3:overheads")
def test_reasoning_comes_back_only_with_calls() -> None:
    thought: dict[str, Json] = {"role": "assistant", "content": "fine", "reasoning_content": "one two three"}
    call: Json = {"id": "1", "type": "function", "function": {"name": "rain", "arguments": "{}"}}
    plain = weighed({"messages": [user(), thought, user()]}, "deepseek-v4-pro")
    calling = weighed({"messages": [user(), {**thought, "tool_calls": [call]}, user()]}, "deepseek-v4-pro")
    silent = weighed(
        {"messages": [user(), {"role": "assistant", "content": "fine", "tool_calls": [call]}, user()]},
        "deepseek-v4-pro",
    )
    assert plain.messages[1].tokens == 1 + 3
    assert calling.messages[1].tokens - silent.messages[1].tokens == 3 + 2


@pytest.mark.requirement("S3:overheads")
def test_the_responses_api_adds_its_own() -> None:
    chat = weighed({"messages": [user()]}, "deepseek-v4-flash", "deepseek").total.tokens
    responses = weigh(read_responses({"input": "two words"}), match("deepseek-v4-flash", "deepseek"), words)
    assert responses.total.tokens - chat == 79


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(("model", "frame"), [("qwen3-embedding-8b", 1), ("mistral-embed-2312", 2)])
def test_every_text_to_embed_has_a_frame(model: str, frame: int) -> None:
    weight = weigh(read_chat({"input": ["two words", "one more word"]}), match(model), words)
    assert [count.tokens for count in weight.messages] == [2 + frame, 3 + frame]


@pytest.mark.requirement("S3:overheads")
def test_what_a_host_may_add_on_other_days_is_in_the_band() -> None:
    total = weighed({"messages": [user()]}, "deepseek-v4-flash", "deepseek").total
    assert (total.method, total.low, total.high) == (Method.CALIBRATED, total.tokens - 1, total.tokens + 79)


@pytest.mark.requirement("S3:overheads")
def test_a_tool_on_the_hosts_side_and_media_make_an_estimate() -> None:
    image: Json = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    assert (
        weighed({"messages": [user()], "tools": [{"type": "web_search"}]}, "qwen3-4b").total.method is Method.ESTIMATED
    )
    assert weighed({"messages": [user(image)]}, "qwen3-4b").total.method is Method.ESTIMATED


@pytest.mark.requirement("S3:overheads")
def test_a_part_of_no_known_kind_makes_an_estimate() -> None:
    odd: Json = [{"type": "text", "text": "two words"}, {"type": "hologram", "blob": "x y z"}]
    for model in ("mistral-large-2512", "qwen3-4b"):
        assert weighed({"messages": [user(odd)]}, model).total.method is Method.ESTIMATED
        assert weighed({"messages": [user(), user(odd)]}, model).total.method is Method.ESTIMATED


@pytest.mark.requirement("S3:overheads")
def test_a_model_nobody_measured_gets_a_wide_band() -> None:
    total = weighed({"messages": [user()]}, "somebodys-model").total
    assert total.method is Method.CALIBRATED
    assert total.high > 10 * total.tokens


@pytest.mark.requirement("S3:overheads")
def test_an_uncertain_tokenizer_keeps_its_own_band() -> None:
    def doubtful(text: str) -> Count:
        return Count.within(len(text.split()), 0.5, Method.ESTIMATED)

    request = read_chat({"messages": [user("one two three four")]})
    assert weigh(request, match("mistral-large-2512"), doubtful).total == Count(
        tokens=7, method=Method.ESTIMATED, low=5, high=9
    )


@pytest.mark.requirement("S3:overheads")
def test_tools_and_calls_are_written_as_each_template_writes_them() -> None:
    request = read_chat(
        {
            "messages": [
                {
                    "role": "assistant",
                    "tool_calls": [{"function": {"name": "rain", "arguments": '{"city":"Oslo","days":[1]}'}}],
                }
            ],
            "tools": [
                tool(
                    city={"type": "string", "description": "Where."},
                    days={"type": "array", "items": {"type": "integer"}},
                )
            ],
        }
    )
    (call,) = request.messages[0].parts
    assert tagged_call(call).replace(MARK, "§") == (  # type: ignore[arg-type]
        "§\n<function=rain>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n[1]\n</parameter>\n</function>\n§"
    )
    assert lined_call(call).strip(MARK).split(MARK)[0] == "rain"  # type: ignore[arg-type]
    assert typescript(request.tools[0]) == (
        "// Says it.\ntype rain = (_: {\n// Where.\ncity: string,\ndays: number[],\n}) => any;\n\n"
    )
    assert braces_tool(request.tools[0]).startswith(f"{MARK}declaration:rain{{description:{MARK}Says it.{MARK},")


@pytest.mark.requirement("S3:overheads")
def test_every_known_family_finds_a_template_of_its_own() -> None:
    names = [
        "qwen3-4b",
        "deepseek-v4-pro",
        "mistral-large-2512",
        "llama-3-8b",
        "llama-4-scout",
        "gpt-oss-20b",
        "kimi-k2",
    ]
    templates = [template_of(match(name)) for name in (*names, "glm-5.2", "gemma-4-31b-it", "grok-4", "mimo-v2.5")]
    assert len({id(template) for template in templates}) == len(templates)


def looker(name: str = "look", **properties: Json) -> dict[str, Json]:
    schema: dict[str, Json] = {"type": "object", "properties": properties, "$schema": "x", "title": "Look"}
    return {"type": "function", "function": {"name": name, "description": "It looks.", "parameters": schema}}


@pytest.mark.requirement("S3:overheads")
def test_grok_has_a_prompt_before_everybodys_only_at_its_maker() -> None:
    asked: dict[str, Json] = {"messages": [user()]}
    assert weighed(asked, "grok-4.3", "xai").total.tokens == 2 + 3 + 127
    assert weighed(asked, "grok-4.20-non-reasoning", "xai").total.tokens == 2 + 3 + 119
    assert weighed(asked, "grok-4.3", "openrouter").total.tokens == 2 + 3 + 3
    assert weighed(asked, "grok-2", "xai").total.tokens == 2 + 3 + 3


@pytest.mark.requirement("S3:overheads")
def test_grok_keeps_reasoning_behind_what_is_sent_back() -> None:
    answer: dict[str, Json] = {"role": "assistant", "content": "Yes.", "reasoning_content": "So it is."}
    with_thought = weighed({"messages": [user(), answer, user()]}, "grok-4.3", "xai").messages[1]
    assert with_thought.method is Method.ESTIMATED
    assert with_thought.high >= 450


@pytest.mark.requirement("S3:overheads")
def test_ollama_reads_a_definition_into_fields_of_its_own() -> None:
    found = compact_tool(read_chat({"messages": [], "tools": [looker(at={"type": "string", "minLength": 3})]}).tools[0])
    assert found == (
        '\n{"type": "function", "function": {"name":"look","description":"It looks.",'
        '"parameters":{"type":"object","properties":{"at":{"type":"string"}}}}}'
    )
    assert template_of(match("qwen3-8b", "ollama")).tool is compact_tool


@pytest.mark.requirement("S3:overheads")
def test_a_thinking_variant_has_the_template_of_its_own() -> None:
    thinking, plain = template_of(match("qwen3-4b-thinking-2507")), template_of(match("qwen3-4b"))
    assert thinking != plain
    assert template_of(match("Qwen3-4B-THINKING-2507")) == thinking


@pytest.mark.requirement("S3:overheads")
def test_a_model_of_eight_billion_is_not_a_version_eight() -> None:
    assert template_of(match("qwen3-8b")) == template_of(match("qwen3-14b"))
    assert template_of(match("qwen3.8-max")) != template_of(match("qwen3-8b"))


@pytest.mark.requirement("S3:overheads")
def test_zai_leaves_out_parameters_that_are_none() -> None:
    none, some = read_chat({"messages": [], "tools": [looker(), looker(at={"type": "string"})]}).tools
    writer = template_of(match("glm-4.6", "zai")).tool
    assert "parameters" not in writer(none)
    assert "parameters" in writer(some)


@pytest.mark.requirement("S3:overheads")
def test_parameters_under_hugging_faces_old_name_are_seen_by_no_template() -> None:
    function: Json = {"name": "look", "arguments": {"type": "object", "properties": {"at": {"type": "string"}}}}
    found = read_chat({"messages": [], "tools": [{"type": "function", "function": function}]}).tools[0]
    assert "properties" in found.schema
    assert "at" not in template_of(match("qwen3-4b", "huggingface")).tool(found)


@pytest.mark.requirement("S3:overheads")
def test_some_hosts_escape_apostrophes_in_definitions() -> None:
    found = read_chat({"messages": [], "tools": [looker(at={"type": "string", "description": "a person's"})]}).tools[0]
    assert "person\\u0027s" in template_of(match("qwen3-32b", "groq")).tool(found)
    assert "person's" in template_of(match("qwen3-32b", "together")).tool(found)


@pytest.mark.requirement("S3:overheads")
def test_tools_that_may_not_be_called_may_be_shown_all_the_same() -> None:
    body: dict[str, Json] = {"messages": [user()], "tools": [looker()], "tool_choice": "none"}
    hidden = weighed(body, "llama-3.3-70b", "groq")
    assert sum(count.tokens for count in hidden.tools) == 0
    assert hidden.total.method is Method.CALIBRATED
    assert hidden.total.high > hidden.total.tokens + 100
    assert weighed(body, "grok-4.3", "xai").tools[0].tokens > 0


@pytest.mark.requirement("S3:overheads")
def test_a_text_to_be_continued_has_no_template_but_on_ollama() -> None:
    assert weighed({"prompt": "two words"}, "llama-2-13b", "bedrock").total.tokens == 2
    assert weighed({"prompt": "two words"}, "llama-3-8b", "ollama").total.tokens > 2


@pytest.mark.requirement("S3:overheads")
def test_a_medium_that_no_one_sees_may_cost_nothing() -> None:
    picture: Json = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    found = weighed({"messages": [user([picture, {"type": "text", "text": "two words"}])]}, "gpt-oss-20b", "together")
    assert found.messages[0].low <= 6
    assert found.total.method is Method.ESTIMATED


@pytest.mark.requirement("S3:overheads")
def test_kimi_introduces_itself_on_groq_where_nobody_spoke_for_the_system() -> None:
    alone = weighed({"messages": [user()]}, "kimi-k2-0905-preview", "groq").framing.tokens
    led = weighed({"messages": [{"role": "system", "content": "Hm."}, user()]}, "kimi-k2-0905-preview", "groq")
    frame, introduction = 3 + 1, 10
    assert alone - led.framing.tokens == frame + introduction


def details(*texts: str) -> Json:
    return [{"type": "reasoning.text", "text": text, "signature": "s-1"} for text in texts]


CALL: dict[str, Json] = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(("model", "shown"), [("glm-5", 3), ("kimi-k2.6", 3), ("minimax-m2.5", 3)])
def test_reasoning_sent_back_is_shown_beside_calls_alone(model: str, shown: int) -> None:
    def weight(**more: Json) -> int:
        answer: dict[str, Json] = {"role": "assistant", "content": "", **more}
        return weighed({"messages": [user(), answer, user()]}, model).messages[1].tokens

    assert weight(reasoning_content="one two three") == weight()
    with_calls = weight(tool_calls=[CALL])
    assert weight(tool_calls=[CALL], reasoning_content="one two three") >= with_calls + shown


@pytest.mark.requirement("S3:overheads")
def test_reasoning_details_are_reasoning_and_no_json() -> None:
    answer: dict[str, Json] = {"role": "assistant", "content": "yes"}
    bare = weighed({"messages": [user(), answer]}, "minimax-m2.5").messages[1]
    found = weighed({"messages": [user(), {**answer, "reasoning_details": details("a b", " c")}]}, "minimax-m2.5")
    assert found.messages[1] == bare
    called: dict[str, Json] = {**answer, "tool_calls": [CALL]}
    for model, more in (("minimax-m2.5", 0), ("glm-5", 3)):
        without = weighed({"messages": [user(), called]}, model).messages[1].tokens
        beside = weighed({"messages": [user(), {**called, "reasoning_details": details("a b", " c")}]}, model)
        assert (beside.messages[1].tokens >= without + 3) is bool(more)


@pytest.mark.requirement("S3:overheads")
def test_zai_shows_earlier_reasoning_where_it_is_told_not_to_clear_it() -> None:
    body: dict[str, Json] = {"messages": [user(), {"role": "assistant", "content": "x", "reasoning_content": "a b c"}]}
    kept = weighed({**body, "thinking": {"type": "enabled", "clear_thinking": False}}, "glm-4.7", "zai")
    assert kept.messages[1].tokens >= weighed(body, "glm-4.7", "zai").messages[1].tokens + 3


@pytest.mark.requirement("S3:overheads")
def test_items_of_one_answer_are_weighed_as_one_message() -> None:
    items: list[Json] = [
        {"role": "user", "content": "two words"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "a b c"}]},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "two words"},
    ]
    model = match("deepseek-v4-flash", "deepseek")
    weight = weigh(read_responses({"input": items}), model, words)
    bare = weigh(read_responses({"input": [items[0], *items[2:]]}), model, words)
    assert len(weight.messages) == 4
    assert weight.total.tokens == bare.total.tokens


@pytest.mark.requirement("S3:overheads")
def test_a_text_to_embed_stands_in_no_frame() -> None:
    assert weighed({"input": ["two words"]}, "qwen3-1.7b", "llamacpp").total.tokens == 2


@pytest.mark.requirement("S3:overheads")
def test_white_space_before_an_answer_stays_where_the_template_does_not_trim() -> None:
    def letters(text: str) -> Count:
        return Count.exact(len(text))

    def weight(text: str, model: str) -> int:
        request = read_chat({"messages": [{"role": "assistant", "content": text}]})
        return weigh(request, match(model), letters).messages[0].tokens

    assert weight("\n\nHi", "deepseek-r1") == weight("Hi", "deepseek-r1") + 2
    assert weight("<think>x</think>\n\nHi", "deepseek-r1") == weight("Hi", "deepseek-r1")
    assert weight("\n\nHi", "glm-4.7") == weight("Hi", "glm-4.7")


@pytest.mark.requirement("S3:overheads")
def test_pictures_beside_a_message_are_pictures() -> None:
    def weight(model: str) -> Count:
        return weighed({"messages": [{**user(), "images": ["bm90aGluZw=="]}]}, model, "ollama").messages[0]

    assert weight("qwen3-vl-8b").tokens > 100
    assert weight("deepseek-r1").tokens < 10
    assert weight("deepseek-r1").high > 1_000


SCHEMA: dict[str, Json] = {"type": "json_schema", "json_schema": {"name": "o", "schema": {"type": "object"}}}


@pytest.mark.requirement("S3:method")
def test_a_schema_of_the_answer_is_exact_only_where_recorded_counts_say_so() -> None:
    body: dict[str, Json] = {"messages": [user()], "response_format": SCHEMA}
    found = weighed(body, "gpt-oss-120b").output_schema
    assert found.method is not Method.EXACT
    assert found.high > found.tokens
    assert weighed(body, "gpt-oss-120b", "together").output_schema.method is Method.EXACT


@pytest.mark.requirement("S3:method")
@pytest.mark.parametrize(
    "setting", [{"previous_response_id": "r1"}, {"web_search_options": {}}, {"plugins": [{"id": "web"}]}]
)
def test_what_only_the_host_adds_makes_a_count_an_estimate(setting: dict[str, Json]) -> None:
    body: dict[str, Json] = {"messages": [user()]}
    assert weighed(body, "gpt-oss-120b").total.method is Method.EXACT
    assert weighed(body | setting, "gpt-oss-120b").total.method is Method.ESTIMATED
    assert weighed(body | dict.fromkeys(setting), "gpt-oss-120b").total.method is Method.EXACT
