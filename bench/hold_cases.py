"""Hostile tool definitions, arguments and replies for `make bench-hold`: schemas, arguments, lists and rows.

Like `hold_case.py`, from the standard library alone.
"""

import json
from typing import Any

from hold_case import FIND, Case, Object, answer_ok, log_message, of_property, read_calls, rows, text_reply
from hold_more_cases import MORE_CASES


def nested(keyword: str, depth: int, width: int = 2) -> Object:
    """A choice within a choice, with distinct leaves that no string fits."""
    schema: Object = {"type": "string", "pattern": "^x$"}
    for level in range(depth):
        others = [{"type": "string", "const": f"never {level} {number}"} for number in range(width - 1)]
        schema = {keyword: [schema, *others]}
    return schema


def branching(keyword: str, levels: int, width: int = 2) -> Object:
    """Definitions that each refer to the next several times: 2 to the power of `levels` leaves."""
    definitions: Object = {
        f"d{level}": {keyword: [{"$ref": f"#/$defs/d{level + 1}"} for _ in range(width)]} for level in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "integer"}
    return of_property({"$ref": "#/$defs/d0"}, **{"$defs": definitions})


def chain(length: int) -> Object:
    definitions: Object = {f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in range(length)}
    definitions[f"d{length}"] = {"type": "integer"}
    return of_property({"$ref": "#/$defs/d0"}, **{"$defs": definitions})


def tree_of_properties(depth: int, width: int) -> Object:
    if not depth:
        return {"type": "string", "description": "A leaf of a wide tree."}
    inner = {f"p{number}": tree_of_properties(depth - 1, width) for number in range(width)}
    return {"type": "object", "properties": inner, "required": list(inner)}


def conditions(depth: int) -> Object:
    schema: Object = {"type": "string"}
    for level in range(depth):
        schema = {"if": {"minLength": level}, "then": schema, "else": schema if level < 12 else {"const": 1}}
    return schema


def deep_value(depth: int) -> Any:  # noqa: ANN401
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def stringified(layers: int, size: int) -> str:
    """JSON within JSON strings."""
    text = json.dumps({"value": "y" * size})
    for _ in range(layers):
        text = json.dumps(text)
    return text


def invisible_rows() -> Object:
    return {"rows": [{"id": at, "note": "a\u200bb\u202e" * 8} for at in range(60_000)]}


EVIL = ("^(a+)+$", "^(a|a)*$", "(x+x+)+y", "^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*$", "(.*a){20}", "\\s+$")

CASES: tuple[Case, ...] = (
    Case(name="nothing hostile"),
    Case(name="anyOf 30 deep", schema=lambda: of_property(nested("anyOf", 30)), arguments=lambda: {"value": "no"}),
    Case(
        name="anyOf 48 deep, 40 wide",
        schema=lambda: of_property(nested("anyOf", 48, 40)),
        arguments=lambda: {"value": "no"},
    ),
    Case(name="oneOf 30 deep", schema=lambda: of_property(nested("oneOf", 30)), arguments=lambda: {"value": "no"}),
    Case(name="allOf 30 deep", schema=lambda: of_property(nested("allOf", 30)), arguments=lambda: {"value": "no"}),
    Case(
        name="not 48 deep",
        schema=lambda: of_property({"allOf": [nested("oneOf", 20, 5)], "not": nested("anyOf", 20, 5)}),
        arguments=lambda: {"value": "no"},
    ),
    Case(name="anyOf of 30 branching $refs", schema=lambda: branching("anyOf", 30), arguments=lambda: {"value": "no"}),
    Case(name="allOf of 30 branching $refs", schema=lambda: branching("allOf", 30), arguments=lambda: {"value": 3}),
    Case(name="oneOf of 30 branching $refs", schema=lambda: branching("oneOf", 30), arguments=lambda: {"value": 3}),
    Case(
        name="branching objects",
        schema=lambda: of_property(
            {"$ref": "#/$defs/d0"},
            **{
                "$defs": {
                    f"d{n}": {
                        "type": "object",
                        "properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}, "b": {"$ref": f"#/$defs/d{n + 1}"}},
                        "required": ["a", "b"],
                    }
                    for n in range(40)
                }
                | {"d40": {"type": "string"}}
            },
        ),
        arguments=lambda: {"value": {"a": 1, "b": {"a": {}, "b": {}}}},
    ),
    Case(
        name="recursive $ref",
        schema=lambda: of_property(
            {"$ref": "#/$defs/d"},
            **{
                "$defs": {
                    "d": {"anyOf": [{"$ref": "#/$defs/d"}, {"$ref": "#/$defs/e"}]},
                    "e": {"allOf": [{"$ref": "#/$defs/d"}]},
                }
            },
        ),
        arguments=lambda: {"value": 3},
    ),
    Case(
        name="recursive lists of lists",
        schema=lambda: of_property(
            {"$ref": "#/$defs/d"},
            **{
                "$defs": {
                    "d": {
                        "anyOf": [
                            {"type": "integer"},
                            {"type": "array", "items": {"$ref": "#/$defs/d"}},
                            {"type": "array", "contains": {"$ref": "#/$defs/d"}},
                        ]
                    }
                }
            },
        ),
        arguments=lambda: {"value": deep_value(80)},
    ),
    Case(name="$ref chain of 3,000", schema=lambda: chain(3_000), arguments=lambda: {"value": "no"}),
    Case(
        name="300 definitions, all to all",
        schema=lambda: of_property(
            {"$ref": "#/$defs/d0"},
            **{
                "$defs": {
                    f"d{n}": {
                        "type": "object",
                        "properties": {f"p{m}": {"$ref": f"#/$defs/d{(n * 7 + m) % 280}"} for m in range(10)},
                    }
                    for n in range(280)
                }
            },
        ),
        arguments=lambda: {"value": {"p0": {"p1": {"p2": 1}}}},
    ),
    Case(name="if/then/else tree", schema=lambda: of_property(conditions(60)), arguments=lambda: {"value": "no" * 100}),
    Case(
        name="dependentSchemas",
        schema=lambda: {
            "type": "object",
            "dependentSchemas": {
                f"k{n}": {"properties": {f"k{m}": {"type": "integer"} for m in range(60)}} for n in range(60)
            },
        },
        arguments=lambda: {f"k{n}": "no" for n in range(60)},
    ),
    Case(
        name="unevaluatedProperties",
        schema=lambda: {
            "type": "object",
            "allOf": [
                {
                    "anyOf": [{"properties": {f"k{n}{m}": {"type": "integer"}}} for n in range(40)],
                    "unevaluatedProperties": {"type": "integer"},
                }
                for m in range(40)
            ],
            "unevaluatedProperties": False,
        },
        arguments=lambda: {f"k{n}{m}": "no" for n in range(30) for m in range(30)},
    ),
    Case(
        name="unevaluatedItems",
        schema=lambda: of_property(
            {
                "type": "array",
                "anyOf": [
                    {"prefixItems": [{"type": "integer"}] * 50, "unevaluatedItems": {"type": "integer"}}
                    for m in range(40)
                ],
                "unevaluatedItems": False,
            }
        ),
        arguments=lambda: {"value": ["x"] * 1500},
    ),
    Case(
        name="contains in contains",
        schema=lambda: of_property(
            {
                "type": "array",
                "contains": {
                    "type": "array",
                    "contains": {"type": "array", "contains": {"const": 1}, "minContains": 3},
                    "minContains": 40,
                },
                "minContains": 40,
            }
        ),
        arguments=lambda: {"value": [[[0] * 40] * 40] * 40},
    ),
    Case(
        name="catastrophic pattern",
        schema=lambda: {
            "type": "object",
            "properties": {f"value{n}": {"type": "string", "pattern": one} for n, one in enumerate(EVIL)},
        },
        arguments=lambda: {f"value{n}": "a" * 60 + "!" for n in range(len(EVIL))},
    ),
    Case(
        name="catastrophic pattern, long text",
        schema=lambda: {
            "type": "object",
            "properties": {
                f"value{n}": {"type": "string", "pattern": one}
                for n, one in enumerate(
                    (*EVIL, "a*a*a*b", "a?a?a?a?a?a?a?a?a?a?a?aaaaaaaaaaa$", "\\s+$", "(?=.*x)(?=.*y).*z")
                )
            },
        },
        arguments=lambda: {f"value{n}": "a " * 90_000 for n in range(10)},
    ),
    Case(
        name="catastrophic names",
        schema=lambda: {
            "type": "object",
            "patternProperties": {one: {"type": "integer"} for one in EVIL},
            "additionalProperties": False,
        },
        arguments=lambda: {"a" * 60 + "!": 1, "b" * 190: 2},
    ),
    Case(
        name="2,000 patterns of names",
        schema=lambda: {
            "type": "object",
            "patternProperties": {f"^x{n}.*[a-z]+{n}$": {"type": "integer"} for n in range(2000)},
            "additionalProperties": False,
        },
        arguments=lambda: {f"x{n}" + "a" * 50: n for n in range(1500)},
    ),
    Case(
        name="propertyNames",
        schema=lambda: {"type": "object", "propertyNames": {"pattern": "^(a+)+$"}},
        arguments=lambda: {"a" * 40 + f"!{n}": 1 for n in range(100)},
    ),
    Case(
        name="uniqueItems of 20,000",
        schema=lambda: of_property({"type": "array", "uniqueItems": True}),
        arguments=lambda: {"value": [{"a": [n % 7, {"b": n}]} for n in range(20_000)]},
    ),
    Case(
        name="array of 100,000 numbers",
        schema=lambda: of_property({"type": "array", "items": {"type": "integer", "minimum": 1}}),
        arguments=lambda: {"value": [*range(100_000)]},
    ),
    Case(
        name="enum of 200,000",
        schema=lambda: of_property({"enum": [f"value {n}" for n in range(200_000)]}),
        arguments=lambda: {"value": "no"},
    ),
    Case(
        name="enum of large values",
        schema=lambda: of_property({"items": {"enum": [{"a": [n] * 50, "b": "x" * 100} for n in range(3000)]}}),
        arguments=lambda: {"value": [{"a": [5] * 49 + [6], "b": "x" * 100}] * 1900},
    ),
    Case(
        name="100,000 properties",
        schema=lambda: {
            "type": "object",
            "properties": {
                f"property_{n}": {"type": "string", "description": f"Property {n}."} for n in range(100_000)
            },
            "required": [f"property_{n}" for n in range(100_000)],
        },
        arguments=lambda: {"propertyX": 1},
    ),
    Case(
        name="3,000 properties, near misses",
        schema=lambda: {
            "type": "object",
            "properties": {f"property_of_number_{n}_and_more": {"type": "string"} for n in range(3_000)},
            "additionalProperties": False,
        },
        arguments=lambda: {f"property_or_numbers_{n}_and_mores": "x" for n in range(1_500)},
    ),
    Case(
        name="names of a megabyte",
        schema=lambda: {
            "type": "object",
            "properties": {letter * 1_000_000: {"type": "string"} for letter in "abc"},
            "additionalProperties": False,
        },
        arguments=lambda: {letter * 999_999: 1 for letter in "abcd"},
    ),
    Case(name="tree of 15,000 properties", schema=lambda: tree_of_properties(4, 11), arguments=lambda: {"p0": 1}),
    Case(name="tree of 3,500 properties", schema=lambda: tree_of_properties(3, 15), arguments=lambda: {"p0": 1}),
    Case(
        name="3,900 equal parts",
        schema=lambda: {
            "type": "object",
            "properties": {
                f"p{n}": {
                    "type": "object",
                    "properties": {"x": {"type": "string", "pattern": "^" + "a" * (200 + n % 50) + "$"}},
                }
                for n in range(900)
            },
        },
        arguments=lambda: {"p0": 1},
    ),
    Case(
        name="description of 5 MB",
        description=lambda: "A probe. It says:\n  - one `value` (string): the value\n" * 100_000,
        schema=lambda: of_property({"type": "string", "description": "the value " * 100_000}),
    ),
    Case(name="description without a space", description=lambda: "x" * 5_000_000),
    Case(
        name="description of spaces",
        description=lambda: " " * 199_000 + ".",
        schema=lambda: of_property({"type": "string", "description": " \n" * 90_000}),
    ),
    Case(
        name="description of marks",
        description=lambda: "<" * 3900 + "a" + "`*_#>" * 30_000,
        schema=lambda: of_property({"type": "string", "title": "Aa" * 100, "description": "\n -" * 60_000}),
    ),
    Case(
        name="multipleOf of extremes",
        schema=lambda: of_property({"type": "array", "items": {"multipleOf": 1e-300}}),
        arguments=lambda: {"value": [1e300, 1.1e-300, 10**4000] * 600},
    ),
    Case(
        name="numbers of 4,000 digits",
        schema=lambda: of_property({"type": "array", "items": {"type": "string"}}),
        arguments=lambda: {"value": [10**4000 + n for n in range(45)]},
    ),
    Case(
        name="arguments 180 deep",
        schema=lambda: of_property({"type": "array"}),
        arguments=lambda: {"value": deep_value(180)},
    ),
    Case(
        name="arguments of 10 MB, one text",
        schema=lambda: of_property({"type": "integer"}),
        arguments=lambda: {"value": 'z\\"' * 3_300_000},
        by_name=True,
    ),
    Case(
        name="arguments of 2 MB, rows",
        schema=lambda: of_property({"type": "array", "items": {"type": "object"}}),
        arguments=lambda: {"value": rows(24_000)},
        by_name=True,
    ),
    Case(
        name="arguments of 2 MB, wrong",
        schema=lambda: {
            "type": "object",
            "properties": {
                "value": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"rowId": {"type": "string"}},
                        "additionalProperties": False,
                    },
                }
            },
        },
        arguments=lambda: {"value": rows(24_000)},
    ),
    Case(
        name="JSON in strings in strings",
        schema=lambda: of_property({"type": "array", "items": {"type": "object"}}),
        arguments=lambda: {"value": [stringified(4, 1000) for _ in range(150)]},
    ),
    Case(
        name="one stringified argument of 4 MB",
        schema=lambda: of_property({"type": "array", "items": {"type": "object"}}),
        arguments=lambda: {"value": json.dumps(rows(40_000))},
    ),
    Case(
        name="50,000 tools",
        more_tools=lambda: [
            {
                "name": f"tool_{n}_does_things",
                "description": f"Does thing {n} and then some more of it.",
                "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
            }
            for n in range(50_000)
        ],
    ),
    Case(
        name="nearest of 50,000 names",
        more_tools=lambda: [
            {"name": f"tool_{n}_does_things", "inputSchema": {"type": "object"}} for n in range(50_000)
        ],
        find=(
            FIND,
            ("call_tool", {"tool_name": "hostile__tool_does_thing_x", "parameters": {}}),
            ("find_tool", {"tool_description": " ".join(f"tool_{n}_does_thing" for n in range(50))}),
        ),
    ),
    Case(
        name="2,000 tools of one name",
        more_tools=lambda: [
            {
                "name": f"probe{'_' * n}",
                "description": "A probe of the hostile server, of words and more words.",
                "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
            }
            for n in range(1, 2000)
        ],
    ),
    Case(
        name="query of 1 MB",
        find=(
            FIND,
            ("find_tool", {"tool_description": "probe the hostile " * 60_000}),
            ("find_tool", {"tool_description": "x" * 1_000_000}),
            ("find_tool", {"tool_description": "Ää-_.1" * 160_000}),
        ),
    ),
    Case(name="reply of 20 MB, rows as text", reply=lambda: text_reply(json.dumps(rows(220_000))), after=read_calls),
    Case(
        name="reply of 20 MB, rows, spaced",
        reply=lambda: text_reply(json.dumps(rows(140_000), indent=2)),
        after=read_calls,
    ),
    Case(
        name="reply of 20 MB, structured",
        reply=lambda: {"content": [], "structuredContent": {"rows": rows(220_000)}},
        after=read_calls,
    ),
    Case(
        name="reply of 20 MB, both",
        reply=lambda: {**text_reply(json.dumps({"rows": rows(100_000)})), "structuredContent": {"rows": rows(100_000)}},
        after=read_calls,
    ),
    Case(name="reply of 20 MB, one line", reply=lambda: text_reply('abc \\" ' * 3_000_000), after=read_calls),
    Case(name="reply of 20 MB, one word", reply=lambda: text_reply("a" * 20_000_000), after=read_calls),
    Case(name="reply of 3 million lines", reply=lambda: text_reply("\n" * 3_000_000), after=read_calls),
    Case(
        name="reply of nested brackets", reply=lambda: text_reply("[" * 3_000_000 + "]" * 3_000_000), after=read_calls
    ),
    Case(
        name="reply of one nested object",
        reply=lambda: text_reply(json.dumps({"a": {"b": {"c": {"d": {"e": rows(150_000)}}}}})),
        after=read_calls,
    ),
    Case(name="reply of one list in a list", reply=lambda: text_reply(json.dumps([rows(150_000)])), after=read_calls),
    Case(
        name="reply of 300,000 keys",
        reply=lambda: text_reply(json.dumps({f"key {n}": [n] for n in range(600_000)})),
        after=read_calls,
    ),
    Case(
        name="reply of 300,000 blocks",
        reply=lambda: {"content": [{"type": "text", "text": f'{{"n": {n}}}'} for n in range(300_000)]},
        after=read_calls,
    ),
    Case(
        name="reply of 100,000 unknown blocks",
        reply=lambda: {"content": [{"type": "odd", "value": n} for n in range(100_000)]},
        after=read_calls,
    ),
    Case(name="reply of a long surrogate", reply=lambda: text_reply("\ud800 abc" * 1_000_000), after=read_calls),
    Case(
        name="structured content 190 deep", reply=lambda: {"content": [], "structuredContent": {"a": deep_value(190)}}
    ),
    Case(name="structured content 10,000 deep", reply=lambda: {"content": [], "structuredContent": {"a": []}}),
    Case(
        name="reply of an image of 20 MB",
        reply=lambda: {
            "content": [{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo" + "A" * 20_000_000 + "A"}]
        },
    ),
    Case(name="reply with an error of 20 MB", reply=lambda: {**text_reply("error " * 3_500_000), "isError": True}),
    Case(name="reply with metadata of 10 MB", reply=lambda: {**answer_ok(), "_meta": {"rows": rows(100_000)}}),
    Case(
        name="numbers of a megabyte",
        reply=lambda: text_reply("[" + ",".join(["1" * 4_000] * 2_500) + "]"),
        after=read_calls,
    ),
    Case(
        name="table of 5,000 columns",
        reply=lambda: text_reply(json.dumps([{f"column {n}": n for n in range(5_000)}] * 40)),
        after=read_calls,
    ),
    Case(
        name="reply of 900 kB, odd rows",
        reply=lambda: text_reply(
            json.dumps([{f"c{at * 7 % 400}": at, f"d{at % 90}": [{"x": at}] * 3} for at in range(14_000)])
        ),
        after=read_calls,
    ),
    Case(name="structured content, invisible", reply=lambda: {"content": [], "structuredContent": invisible_rows()}),
    Case(name="text, invisible", reply=lambda: text_reply("a\u200b\u202e" * 2_000_000), after=read_calls),
    Case(name="error, invisible", reply=lambda: {**text_reply("a\u200b\u202e" * 2_000_000), "isError": True}),
    Case(
        name="2,000 links, 200 templates",
        reply=lambda: {
            "content": [
                {"type": "resource_link", "uri": f"file:///a/{at}/b/c/{at}", "name": str(at)} for at in range(2_000)
            ]
        },
        results=lambda: {
            "resources/templates/list": {
                "resourceTemplates": [
                    {"uriTemplate": f"file:///{{x}}/b/{{y}}/{at}x", "name": str(at)} for at in range(2_000)
                ]
            }
        },
        asks=(("resources/templates/list", {}),),
    ),
    Case(
        name="50,000 resources",
        results=lambda: {
            "resources/list": {
                "resources": [
                    {"uri": f"file:///a/{at}\u200b", "name": f"file {at}", "description": "A file\u200b. " * 10}
                    for at in range(50_000)
                ]
            }
        },
        asks=(("resources/list", {}), ("resources/list", {})),
    ),
    Case(
        name="resources of a megabyte",
        results=lambda: {
            "resources/list": {
                "resources": [
                    {"uri": f"file:///{at}", "name": f"file {at}", "description": "\u200b a" * 300_000}
                    for at in range(12)
                ]
            }
        },
        asks=(("resources/list", {}),),
    ),
    Case(
        name="20,000 prompts",
        results=lambda: {
            "prompts/list": {
                "prompts": [
                    {"name": f"prompt {at}", "description": "Says\u200b. " * 10, "arguments": [{"name": "a"}] * 5}
                    for at in range(20_000)
                ]
            }
        },
        asks=(("prompts/list", {}), ("prompts/list", {})),
    ),
    Case(
        name="prompt of 15 MB",
        results=lambda: {
            "prompts/list": {"prompts": [{"name": "p"}]},
            "prompts/get": {
                "messages": [{"role": "user", "content": {"type": "text", "text": "a\u200b b" * 4_000_000}}]
            },
        },
        asks=(("prompts/list", {}), ("prompts/get", {"name": "hostile__p"})),
    ),
    Case(
        name="prompt of 100,000 messages",
        results=lambda: {
            "prompts/list": {"prompts": [{"name": "p"}]},
            "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "a\u200b b"}}] * 100_000},
        },
        asks=(("prompts/list", {}), ("prompts/get", {"name": "hostile__p"})),
    ),
    Case(
        name="resource of 15 MB",
        results=lambda: {
            "resources/list": {"resources": [{"uri": "file:///a", "name": "a"}]},
            "resources/read": {"contents": [{"uri": "file:///a", "text": "a\u200b b" * 4_000_000}]},
        },
        asks=(("resources/list", {}), ("resources/read", {"uri": "file:///a"})),
    ),
    Case(
        name="binary resource of 15 MB",
        results=lambda: {
            "resources/list": {"resources": [{"uri": "file:///a", "name": "a"}]},
            "resources/read": {"contents": [{"uri": "file:///a", "blob": "QUJD" * 4_000_000}]},
        },
        asks=(("resources/list", {}), ("resources/read", {"uri": "file:///a"})),
    ),
    Case(
        name="completion of 300,000 values",
        results=lambda: {
            "prompts/list": {"prompts": [{"name": "p"}]},
            "completion/complete": {"completion": {"values": [f"value\u200b {at}" for at in range(300_000)]}},
        },
        asks=(
            ("prompts/list", {}),
            (
                "completion/complete",
                {"ref": {"type": "ref/prompt", "name": "hostile__p"}, "argument": {"name": "a", "value": "v"}},
            ),
        ),
    ),
    Case(
        name="log message of 15 MB",
        tells=lambda: [log_message("a\u200b b" * 4_000_000), log_message(rows(60_000))],
    ),
    Case(name="20,000 log messages", tells=lambda: [log_message(f"line\u200b {at}") for at in range(20_000)]),
    Case(
        name="questions of 5 MB",
        reply=lambda: {
            "resultType": "input_required",
            "inputRequests": {
                str(at): {
                    "method": "elicitation/create",
                    "params": {"message": "What\u200b? " * 40_000, "requestedSchema": {"type": "object"}},
                }
                for at in range(10)
            },
        },
    ),
    Case(
        name="protocol error of 10 MB",
        results=lambda: {
            "tools/call": {"error": {"code": -32000, "message": "no\u200b " * 2_500_000, "data": rows(9)}}
        },
    ),
    Case(
        name="protocol error, data of 10 MB",
        results=lambda: {"tools/call": {"error": {"code": -32000, "message": "no", "data": rows(100_000)}}},
    ),
    *MORE_CASES,
)
