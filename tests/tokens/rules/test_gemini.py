from base64 import b64encode
from textwrap import dedent

import pytest

from ullage.messages import Format, Message, Request, Text, ToolCall, ToolResult
from ullage.messages.gemini import read
from ullage.models import Match, ModelCard
from ullage.tokens.count import Count, Method, Weight
from ullage.tokens.rules.gemini import (
    QUOTE,
    braces,
    python_call,
    python_declaration,
    python_response,
    schema_braces,
    weigh,
)
from ullage.tool import Json


def letters(text: str) -> Count:
    """A tokenizer for which every character is a token."""
    return Count.exact(len(text))


def match(model: str, host: str | None = "google") -> Match:
    return Match(asked=model, card=ModelCard(id=model, provider="google", family=""), host=host, how="id")


def weighed(body: dict[str, Json], model: str = "gemini-2.5-flash", host: str | None = "google") -> Weight:
    return weigh(read(body), match(model, host), letters)


def turn(*parts: Json, role: str = "user") -> dict[str, Json]:
    return {"role": role, "parts": list(parts)}


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    "model", ["gemini-2.5-pro", "gemini-3-flash-preview", "gemini-flash-latest", "gemini-3.6-flash"]
)
def test_on_ai_studio_a_turn_costs_its_text_and_one_token(model: str) -> None:
    weight = weighed({"contents": [turn({"text": "abc"})], "systemInstruction": turn({"text": "de"})}, model)
    assert weight.system == Count.exact(3)
    assert weight.messages == (Count.exact(4),)
    assert weight.total == Count.exact(7)


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(
    ("model", "host"),
    [("gemini-2.5-pro", "google-vertex"), ("gemini-3-pro", "vertex_ai"), ("gemini-2.0-flash", "google")],
)
def test_on_vertex_and_before_2_5_a_turn_costs_its_text(model: str, host: str) -> None:
    total = weighed({"contents": [turn({"text": "abc"})]}, model, host).total
    assert total.tokens == 3
    assert total.method is Method.CALIBRATED


@pytest.mark.requirement("S3:overheads")
def test_the_weight_has_one_count_a_tool_and_a_message_in_their_order() -> None:
    request = read(
        {
            "contents": [turn({"text": "a"}), turn({"text": "bb"}, role="model")],
            "tools": [{"functionDeclarations": [{"name": "long_name"}, {"name": "f"}]}],
        }
    )
    weight = weigh(request, match("gemini-3-pro"), letters)
    assert len(weight.tools) == 2
    assert weight.tools[0].tokens - weight.tools[1].tokens == len("long_name") - len("f")
    assert [count.tokens for count in weight.messages] == [2, 3]


@pytest.mark.requirement("S3:overheads")
def test_gemini_2_5_is_shown_a_python_function() -> None:
    schema: dict[str, Json] = {
        "type": "OBJECT",
        "properties": {
            "city": {"type": "STRING", "description": "Which city."},
            "unit": {"type": "STRING", "enum": ["C", "F"], "default": "C"},
            "days": {"type": "INTEGER"},
        },
        "required": ["city"],
    }
    assert python_declaration("rain", "Will it rain?\nSays yes or no.", schema) == dedent(
        '''\
        def rain(
            city: str,
            unit: Literal['C', 'F'] = 'C',
            days: int | None = None,
        ) -> dict:
          """Will it rain?
          Says yes or no.

          Args:
            city: Which city.
            unit:\x20
            days:\x20
          """
        '''
    )


@pytest.mark.requirement("S3:overheads")
def test_gemini_2_5_is_shown_a_nested_object_as_a_dataclass() -> None:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"trips": {"type": "array", "items": {"$ref": "#/$defs/Trip"}}},
        "required": ["trips"],
        "$defs": {
            "Trip": {
                "type": "object",
                "description": "One trip.",
                "properties": {"to_city": {"type": "string"}},
                "required": ["to_city"],
            }
        },
    }
    assert python_declaration("plan_all", "", schema) == dedent(
        '''\
        @dataclasses.dataclass(kw_only=True)
        class PlanAllTrips:
          """One trip.

          Attributes:
            to_city:\x20
          """
          to_city: str


        def plan_all(
            trips: list[PlanAllTrips],
        ) -> dict:
          """

          Args:
            trips:\x20
          """
        '''
    )


@pytest.mark.requirement("S3:overheads")
def test_a_schema_that_holds_itself_ends() -> None:
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}},
        "$defs": {"Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}}},
    }
    assert python_declaration("grow", "", schema).count("class ") == 5
    assert braces(schema_braces(schema))


@pytest.mark.requirement("S3:overheads")
def test_a_schema_that_multiplies_itself_is_cut_short() -> None:
    many: Json = {f"branch_{number}": {"$ref": "#/$defs/Tree"} for number in range(30)}
    schema: dict[str, Json] = {"$ref": "#/$defs/Tree", "$defs": {"Tree": {"type": "object", "properties": many}}}
    assert len(braces(schema_braces(schema))) < 5_000_000
    assert python_declaration("grow", "", {**schema, "properties": many}).count("class ") <= 4_000


@pytest.mark.requirement("S3:overheads")
def test_gemini_2_5_is_shown_calls_as_code_and_responses_with_quotes_escaped() -> None:
    assert python_call("rain", {"city": "Oslo", "days": 2}) == 'print(default_api.rain(city = "Oslo", days = 2))'
    assert python_response("rain", {"result": "it's\nwet"}) == '{"rain_response": {"result": "it\\\'s\\nwet"}}'


@pytest.mark.requirement("S3:overheads")
def test_gemini_3_is_shown_sorted_braces_with_a_token_around_each_string() -> None:
    schema = schema_braces(
        {"type": "object", "properties": {"b": {"type": ["string", "null"]}, "a": {"type": "integer"}}, "default": 1}
    )
    assert braces(schema).replace(QUOTE, '"') == (
        '{properties:{a:{type:"INTEGER"},b:{nullable:true,type:"STRING"}},type:"OBJECT"}'
    )


@pytest.mark.requirement("S3:overheads")
def test_a_schema_with_a_keyword_nobody_saw_counted_is_not_said_to_be_exact() -> None:
    def method(model: str, **schema: Json) -> Method:
        declared: Json = {"name": "f", "parameters": {"type": "object", "properties": {"x": schema}}}
        return weighed({"contents": "a", "tools": [{"functionDeclarations": [declared]}]}, model).total.method

    assert method("gemini-3-pro", type="string", enum=["a"]) is Method.EXACT
    assert method("gemini-3-pro", anyOf=[{"type": "string"}]) is Method.CALIBRATED
    assert method("gemini-2.5-pro", anyOf=[{"type": "string"}]) is Method.EXACT
    assert method("gemini-2.5-pro", anyOf=[{"const": "a"}]) is Method.CALIBRATED


@pytest.mark.requirement("S3:overheads")
def test_gemini_3_pays_two_tokens_around_a_call_and_one_around_each_string() -> None:
    body: dict[str, Json] = {"contents": [turn({"functionCall": {"name": "f", "args": {"x": "ab"}}}, role="model")]}
    assert weighed(body, "gemini-3-pro").total == Count.exact(1 + 2 + len("call:f{x:}") + 2 + len("ab"))


@pytest.mark.requirement("S3:overheads")
def test_vertex_counts_words_and_types_but_no_json_schema() -> None:
    schema: Json = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}, "required": ["city"]}
    with_parameters: Json = {"functionDeclarations": [{"name": "f", "description": "de", "parameters": schema}]}
    with_json_schema: Json = {
        "functionDeclarations": [{"name": "f", "description": "de", "parametersJsonSchema": schema}]
    }
    weights = [
        weighed({"contents": "", "tools": [tools]}, "gemini-2.5-pro", "google-vertex")
        for tools in (with_parameters, with_json_schema)
    ]
    assert [weight.total.tokens for weight in weights] == [3 + 2 + 2 * len("city"), 3]


@pytest.mark.requirement("S3:overheads")
def test_the_schema_of_the_answer_was_counted_only_before_2_5() -> None:
    body: dict[str, Json] = {
        "contents": "",
        "generationConfig": {"responseSchema": {"type": "STRING", "description": "a name"}},
    }
    assert weighed(body, "gemini-2.0-flash").output_schema.tokens == 1 + len("a name")
    assert weighed(body).output_schema.tokens == 0


def signature(length: int, *, first: int = 0x12) -> str:
    return b64encode(bytes([first]) + bytes(length - 1)).decode()


def thinking_body(sealed: str, *later: dict[str, Json]) -> dict[str, Json]:
    call: Json = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": sealed}
    answer: Json = {"functionResponse": {"name": "f", "response": {}}}
    return {"contents": [turn({"text": "go"}), turn(call, role="model"), turn(answer), *later]}


@pytest.mark.requirement("S3:overheads")
def test_thoughts_after_the_last_question_are_estimated_from_their_seal() -> None:
    bare = weighed(thinking_body(signature(40, first=0x73)), "gemini-3-pro").total
    thought = weighed(thinking_body(signature(1079)), "gemini-3-pro").total
    assert bare.method is Method.EXACT
    assert thought.method is Method.ESTIMATED
    assert thought.tokens - bare.tokens == 277


@pytest.mark.requirement("S3:overheads")
def test_thoughts_from_before_the_last_question_are_forgotten_until_3_6() -> None:
    body = thinking_body(signature(1079), turn({"text": "and now?"}))
    forgotten = weighed(body, "gemini-3-pro").total
    kept = weighed(body, "gemini-3.6-flash").total
    assert forgotten.method is Method.EXACT
    assert kept.tokens - forgotten.tokens == 277


@pytest.mark.requirement("S3:overheads")
def test_on_2_5_thoughts_weigh_something_only_where_they_were_streamed() -> None:
    whole = b64encode(bytes([0x0A, 100]) + bytes(100)).decode()
    streamed = b64encode(bytes([0x0A, 36]) + bytes(36) + bytes([0x0A, 114]) + bytes(114)).decode()
    bare, chunked = weighed(thinking_body(whole)).total, weighed(thinking_body(streamed)).total
    assert bare.method is Method.EXACT
    assert chunked.method is Method.ESTIMATED
    assert chunked.tokens - bare.tokens == round((36 + 114 - 2 * 34) / 4.1)


@pytest.mark.requirement("S3:overheads")
def test_a_text_file_is_counted_as_its_text() -> None:
    data: Json = {"mimeType": "text/plain", "data": b64encode(b"twelve bytes").decode()}
    assert weighed({"contents": [turn({"inlineData": data})]}).total == Count.exact(13)


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize("media_type", ["image/png", "audio/wav", "video/mp4", "application/pdf"])
@pytest.mark.parametrize("model", ["gemini-2.0-flash", "gemini-2.5-flash", "gemini-3-pro"])
def test_other_media_are_never_said_to_be_exact(media_type: str, model: str) -> None:
    total = weighed({"contents": [turn({"fileData": {"mimeType": media_type, "fileUri": "files/x"}})]}, model).total
    assert total.method is not Method.EXACT
    assert total.tokens > 1


@pytest.mark.requirement("S3:overheads")
def test_a_tool_that_google_runs_and_a_cache_make_an_estimate() -> None:
    assert weighed({"contents": "a", "tools": [{"googleSearch": {}}]}).total.method is Method.ESTIMATED
    assert weighed({"contents": "a", "cachedContent": "cachedContents/1"}).total.method is Method.ESTIMATED


@pytest.mark.requirement("S3:overheads")
def test_a_part_nobody_knows_is_an_estimate() -> None:
    part: Json = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
    assert weighed({"contents": [turn(part)]}).total.method is Method.ESTIMATED


@pytest.mark.requirement("S3:overheads")
def test_a_result_that_gives_only_the_id_of_its_call_has_the_name_of_that_call() -> None:
    call = Message(role="assistant", parts=(ToolCall(name="look_up", arguments="{}", id="1"),))
    named = Message(role="tool", parts=(ToolResult(name="look_up", call_id="1", parts=(Text("found"),)),))
    anonymous = Message(role="tool", parts=(ToolResult(call_id="1", parts=(Text("found"),)),))
    weights = [
        weigh(Request(format=Format.OPENAI_CHAT, model=None, messages=(call, result)), match("gemini-2.5-pro"), letters)
        for result in (named, anonymous)
    ]
    assert weights[0] == weights[1]
    assert weights[0].messages[1].tokens == 1 + len('{"look_up_response": {"result": "found"}}')


@pytest.mark.requirement("S3:overheads")
def test_an_empty_request_weighs_nothing() -> None:
    assert weighed({}).total == Count.exact(0)


@pytest.mark.requirement("S3:overheads")
def test_an_instruction_without_a_role_is_no_turn() -> None:
    body: dict[str, Json] = {"contents": [turn({"text": "abc"})], "systemInstruction": {"parts": [{"text": "de"}]}}
    assert weighed(body).system == Count.exact(2)
    assert weighed({**body, "systemInstruction": turn({"text": "de"})}).system == Count.exact(3)


@pytest.mark.requirement("S3:overheads")
def test_what_a_function_answers_with_is_a_dataclass_before_it() -> None:
    answer: dict[str, Json] = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    assert python_declaration("add", "Adds.", {}, answer) == dedent('''\
        @dataclasses.dataclass(kw_only=True)
        class AddResponse:
          """

          Attributes:
            sum:\x20
          """
          sum: int


        def add(
        ) -> AddResponse:
          """Adds.

          Args:
          """
        ''')
    assert "-> str:" in python_declaration("add", "Adds.", {}, {"type": "string"})
    assert "-> dict:" in python_declaration("add", "Adds.", {})


@pytest.mark.requirement("S3:overheads")
def test_the_order_of_properties_is_not_written_in_braces() -> None:
    schema: dict[str, Json] = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert schema_braces({**schema, "propertyOrdering": ["a"]}) == schema_braces(schema)


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize(("model", "counted"), [("gemini-3-flash-preview", False), ("gemini-3.5-flash", True)])
def test_thoughts_from_before_the_last_question_count_since_three_and_a_half(model: str, *, counted: bool) -> None:
    signature = b64encode(b"\x12" + bytes(300)).decode()
    call: Json = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": signature}
    contents: list[Json] = [turn({"text": "a"}), turn(call, role="model"), turn({"text": "b"})]
    bare: list[Json] = [turn({"text": "a"}), turn({"functionCall": {"name": "f", "args": {}}}, role="model")]
    with_thought = weighed({"contents": contents}, model).messages[1].tokens
    assert (with_thought > weighed({"contents": bare}, model).messages[1].tokens) is counted


@pytest.mark.requirement("S3:overheads")
def test_thoughts_on_vertex_may_count_or_not() -> None:
    signature = b64encode(bytes(400)).decode()
    call: Json = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": signature}
    found = weighed({"contents": [turn({"text": "a"}), turn(call, role="model")]}, "gemini-3-pro", "google-vertex")
    assert found.messages[1].high > found.messages[1].tokens + 50
    assert found.total.method is Method.ESTIMATED


@pytest.mark.requirement("S3:overheads")
def test_what_openrouter_passes_on_is_counted_as_on_vertex() -> None:
    assert weighed({"contents": [turn({"text": "abcd"})]}, "gemini-2.5-flash", "openrouter").total.tokens == 4


@pytest.mark.requirement("S3:overheads")
@pytest.mark.parametrize("kind", ["audio/mp3", "video/mp4", "application/pdf"])
def test_a_medium_behind_an_address_lies_within_what_was_recorded(kind: str) -> None:
    media: Json = {"fileData": {"mimeType": kind, "fileUri": "https://example.org/a"}}
    found = weighed({"contents": [turn(media)]}).messages[0]
    assert found.low < 250
    assert found.high >= 1000
    assert found.method is Method.ESTIMATED
