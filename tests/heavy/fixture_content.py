"""What does the fixture server offer?

The tools, resources and prompts that the protocol's conformance suite asks for by name, as data. What they do is in
`fixture_server`.
"""

import base64
import struct
import zlib
from typing import Any

Object = dict[str, Any]


def text(words: str) -> Object:
    return {"type": "text", "text": words}


def _png() -> bytes:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


def _wav() -> bytes:
    """Eight samples of silence."""
    samples = b"\x80" * 8
    form = struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(samples)) + samples
    return b"RIFF" + struct.pack("<I", len(body)) + body


PNG = base64.b64encode(_png()).decode()
WAV = base64.b64encode(_wav()).decode()
IMAGE: Object = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO: Object = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}


def embedded(uri: str, words: str, kind: str = "text/plain") -> Object:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


NOTHING: Object = {"type": "object", "properties": {}}


def takes(**properties: Object) -> Object:
    return {"type": "object", "properties": properties, "required": list(properties)}


# Tools whose answer never differs.
PLAIN: dict[str, list[Object]] = {
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [embedded("test://embedded-resource", "This is an embedded resource content.")],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ],
    "json_schema_2020_12_tool": [text("Its schema is all there is to it.")],
}


# The keywords of JSON Schema that a listing must not lose on its way.
RICH_SCHEMA: Object = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "home", "type": "object", "properties": {"city": {"type": "string"}}}},
    "properties": {
        "address": {"$ref": "#/$defs/address"},
        "by": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"by": {"const": "phone"}}, "required": ["by"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

SCHEMAS: dict[str, Object] = {
    "json_schema_2020_12_tool": RICH_SCHEMA,
    "test_sampling": takes(prompt={"type": "string"}),
    "test_elicitation": takes(message={"type": "string"}),
    "test_header_parameter": takes(region={"type": "string", "x-mcp-header": "Region"}),
}


def elicitation(message: str, schema: Object) -> Object:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(words: str) -> Object:
    messages = [{"role": "user", "content": text(words)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 100}}


ROOTS: Object = {"method": "roots/list", "params": {}}
NAME = elicitation("What is your name?", takes(name={"type": "string"}))
CONFIRM = elicitation("Please confirm", takes(ok={"type": "boolean"}))
COLOR = elicitation("Which color do you like?", takes(color={"type": "string"}))
CONTEXT = elicitation("What context should the prompt use?", takes(context={"type": "string"}))
PERSON = takes(username={"type": "string"}, email={"type": "string"})

DEFAULTS = elicitation(
    "Check these",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
    },
)

_OPTIONS = ["option1", "option2", "option3"]
_TITLED = [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]
ENUMS = elicitation(
    "Choose",
    {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": _OPTIONS},
            "titledSingle": {"type": "string", "oneOf": _TITLED},
            "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _OPTIONS}},
            "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
        },
    },
)

# Tools that ask one thing or several at once, and answer with what they were told.
ASKING: dict[str, dict[str, Object]] = {
    "test_input_required_result_elicitation": {"user_name": NAME},
    "test_input_required_result_sampling": {"capital_question": sampling("What is the capital of France?")},
    "test_input_required_result_list_roots": {"client_roots": ROOTS},
    "test_input_required_result_request_state": {"confirm": CONFIRM},
    "test_input_required_result_tampered_state": {"confirm": CONFIRM},
    "test_input_required_result_multiple_inputs": {
        "user_name": NAME,
        "greeting": sampling("Say hello"),
        "client_roots": ROOTS,
    },
    "test_elicitation_sep1034_defaults": {"values": DEFAULTS},
    "test_elicitation_sep1330_enums": {"choices": ENUMS},
    "test_streaming_elicitation": {"user_name": NAME},
}

RESOURCES: dict[str, Object] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Nothing happens here."},
}
TEMPLATE = "test://template/{id}/data"

PROMPTS: dict[str, tuple[str, ...]] = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
WORDS = ("paris", "park", "party", "test", "tester")
