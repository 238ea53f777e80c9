"""Token counts of requests to open models, by their chat templates.

The host fills the model's chat template and counts the result with the model's own vocabulary. A request is laid into
the template here, part by part.

A `Template` is data: the texts around a message of each role, and around tools, calls and results. Frames come from the
templates published with the models; of preambles only the length is known. Where a host differs from the model's own
template, the difference is a line in `_BY_HOST`. Every length was measured on recorded requests of that host.

Each writer makes the text of a tool or call in the prompt. `MARK` in it represents one special token, which nothing
merges with; a run of marks represents a frame of which only the length is known. Writers count nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from json import dumps, loads
from math import ceil
from typing import cast

from ullage.messages import (
    Format,
    Media,
    Message,
    Part,
    Request,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Unknown,
)
from ullage.models import Match
from ullage.tool import Json

from ..count import ZERO, Count, CountText, Method, Weight, total
from .gemini import QUOTE, braces, schema_braces
from .images import image_size, split_files
from .openai import is_stored_id

__all__ = [
    "MARK",
    "Template",
    "bare_tool",
    "braces_call",
    "braces_tool",
    "compact_tool",
    "dump_arguments",
    "elements_call",
    "escape_html",
    "framed_json",
    "function_json",
    "invoke_call",
    "json_call",
    "lined_call",
    "marked_call",
    "marks",
    "no_tool",
    "quoted_call",
    "tagged_call",
    "template_of",
    "tool_json",
    "tool_line",
    "tool_words",
    "typescript",
    "weigh",
]

MARK = QUOTE


def marks(number: int) -> str:
    return MARK * number


def _json(value: Json) -> str:
    return dumps(value, ensure_ascii=False)


def _parse_json(text: str) -> Json:
    try:
        return cast("Json", loads(text)) if text else {}
    except ValueError:
        return text


def _fields(call: ToolCall) -> Iterator[tuple[str, str]]:
    """Yield a call's arguments, text bare and anything else as JSON."""
    arguments = _parse_json(call.arguments)
    for name, value in (arguments if isinstance(arguments, dict) else {"": arguments}).items():
        yield name, value if isinstance(value, str) else _json(value)


def dump_arguments(call: ToolCall) -> str:
    """Return the arguments as `json.dumps` writes them, as a template's `tojson` does."""
    return _json(_parse_json(call.arguments))


def json_call(call: ToolCall) -> str:
    return f'{{"name": "{call.name}", "arguments": {dump_arguments(call)}}}'


def quoted_call(call: ToolCall) -> str:
    """Write for Qwen before 3.5: the JSON on a line of its own between two special tokens."""
    return f"\n{MARK}\n{json_call(call)}\n{MARK}"


def tagged_call(call: ToolCall) -> str:
    """Write for Qwen since 3.5, and its coder: an element for each function, and one for each argument."""
    inner = "".join(f"<parameter={name}>\n{value}\n</parameter>\n" for name, value in _fields(call))
    return f"{MARK}\n<function={call.name}>\n{inner}</function>\n{MARK}"


def invoke_call(call: ToolCall) -> str:
    """Write for MiniMax M2: elements named `invoke` and `parameter` between two special tokens."""
    inner = "".join(f'<parameter name="{name}">{value}</parameter>\n' for name, value in _fields(call))
    return f'\n{MARK}\n<invoke name="{call.name}">\n{inner}</invoke>\n{MARK}'


def lined_call(call: ToolCall) -> str:
    """Write for DeepSeek since 3.2: a frame of 12 tokens, and one of 13 around each argument."""
    lines = (f"{name}{marks(13)}{value}" for name, value in _fields(call))
    return marks(11) + MARK.join((call.name, *lines))


def marked_call(call: ToolCall) -> str:
    """Write for DeepSeek up to 3.1: three marks, the name and the arguments unchanged."""
    return f"{marks(3)}{call.name}{call.arguments}"


def braces_call(call: ToolCall) -> str:
    """Write for Gemma since 4, which writes tools as Gemini 3 does."""
    return f"{MARK}call:{call.name}{braces(_parse_json(call.arguments))}{MARK}"


def braces_tool(tool: ToolDefinition) -> str:
    fields: dict[str, Json] = {"description": tool.description} if tool.description else {}
    fields |= {"parameters": schema_braces(tool.schema)} if tool.schema else {}
    return f"{MARK}declaration:{tool.name}{braces(fields)}{MARK}"


def _function(tool: ToolDefinition) -> dict[str, Json]:
    described: dict[str, Json] = {} if tool.description is None else {"description": tool.description}
    # Hugging Face's old name for the parameters, `arguments`, is read by no template.
    seen = tool.schema and "arguments" not in tool.extra
    schema: dict[str, Json] = {"parameters": dict(tool.schema)} if seen else {}
    return {"name": tool.name, **described, **schema}


def function_json(tool: ToolDefinition) -> str:
    return _json(_function(tool))


def framed_json(tool: ToolDefinition) -> str:
    """Write for Llama 3 on Groq: compact, in a frame of 16 tokens."""
    return marks(16) + dumps(_function(tool), ensure_ascii=False, separators=(",", ":"))


def no_tool(_: ToolDefinition) -> str:
    """Write nothing: some templates have no place for tools, and hosts drop them."""
    return ""


def tool_json(tool: ToolDefinition) -> str:
    return _json({"type": "function", "function": _function(tool)})


def tool_line(tool: ToolDefinition) -> str:
    return "\n" + tool_json(tool)


def bare_tool(tool: ToolDefinition) -> str:
    """Write for GLM on Z.ai, which omits empty parameters."""
    return tool_json(tool if tool.schema.get("properties") else replace(tool, schema={}))


def elements_call(call: ToolCall) -> str:
    """Write for GLM: an element for each call, and two for each argument, each tag of which is a token."""
    inner = "".join(f"{MARK}{name}{MARK}\n{MARK}{value}{MARK}\n" for name, value in _fields(call))
    return f"\n{MARK}{call.name}\n{inner}{MARK}"


def compact_tool(tool: ToolDefinition) -> str:
    """Write for Ollama, which reads a definition into fields of its own, drops all others, and writes them without
    spaces."""
    named = tool.schema.get("properties")
    properties: dict[str, Json] = {
        name: _select_keys(value, ("type", "items", "description", "enum"))
        for name, value in (named if isinstance(named, dict) else {}).items()
    }
    parameters = {**_select_keys(dict(tool.schema), ("type", "$defs", "items", "required")), "properties": properties}
    described: dict[str, Json] = {"description": tool.description} if tool.description else {}
    function = dumps({"name": tool.name, **described, "parameters": parameters}, separators=(",", ":"))
    return f'\n{{"type": "function", "function": {function}}}'


def _select_keys(schema: Json, keys: tuple[str, ...]) -> dict[str, Json]:
    return {key: schema[key] for key in keys if schema.get(key)} if isinstance(schema, dict) else {}


def tool_words(tool: ToolDefinition) -> str:
    """Write for Command on Bedrock, where a definition costs little more than its words."""
    properties = tool.schema.get("properties")
    named = properties if isinstance(properties, dict) else {}
    return " ".join((tool.name, tool.description or "", *named))


def escape_html(writer: Callable[[ToolDefinition], str]) -> Callable[[ToolDefinition], str]:
    """Wrap a writer for hosts whose templates escape HTML characters, as a plain Jinja `tojson` does."""

    def write(tool: ToolDefinition) -> str:
        text = writer(tool)
        for letter, code in _HTML:
            text = text.replace(letter, code)
        return text

    return write


_HTML = (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"), ("'", "\\u0027"))


def typescript(tool: ToolDefinition) -> str:
    """Write for gpt-oss: a TypeScript type with a property on each line, as in the open `harmony` format."""
    properties = tool.schema.get("properties")
    comment = "".join(f"// {line}\n" for line in (tool.description or "").split("\n"))
    if not isinstance(properties, dict) or not properties:
        return f"{comment}type {tool.name} = () => any;\n\n"
    return f"{comment}type {tool.name} = (_: {_shape(tool.schema)}) => any;\n\n"


def _shape(schema: Mapping[str, Json]) -> str:
    properties, required = schema.get("properties"), schema.get("required")
    named = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    lines = (_property(name, value, "" if name in needed else "?") for name, value in named.items())
    return "{\n" + "".join(lines) + "}"


def _property(name: str, value: Json, mark: str) -> str:
    schema = value if isinstance(value, dict) else {}
    comment = f"// {schema['description']}\n" if schema.get("description") else ""
    default = f" // default: {schema['default']}" if schema.get("default") is not None else ""
    return f"{comment}{name}{mark}: {_type(schema)},{default}\n"


def _type(schema: Mapping[str, Json]) -> str:
    values, kind, items = schema.get("enum"), schema.get("type"), schema.get("items")
    choices = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(choices, list):
        return " | ".join(_type(choice) for choice in choices if isinstance(choice, dict))
    if isinstance(values, list):
        return " | ".join(map(_json, values))
    if kind == "array":
        return (_type(items) if isinstance(items, dict) else "any") + "[]"
    if kind == "object" and schema.get("properties"):
        return _shape(schema)
    return "number" if kind == "integer" else kind if isinstance(kind, str) else "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    start: str = ""
    """Added once a request: the opening of the prompt and of the reply."""
    responses: str = ""
    """Added in the Responses API."""
    bare_responses: str = ""
    """Added in the Responses API without a system message and without tools."""
    loud: str = ""
    """Added unless thinking is switched off."""
    silent: str = ""
    """Added where thinking is switched off."""
    no_system: str = ""
    """Added in place of a missing system message."""
    system: tuple[str, str] = ("", "")
    user: tuple[str, str] = ("", "")
    assistant: tuple[str, str] = ("", "")
    result: tuple[str, str] = ("", "")
    calls: str = ""
    """Added once for a message with calls."""
    call: Callable[[ToolCall], str] = json_call
    thinking: tuple[str, str] | None = None
    """Around reasoning that is sent back with calls; without calls most templates leave it out, and all where this is
    None."""
    hidden_thoughts: int = 0
    """Most tokens of reasoning that the host may keep behind the summary sent back with a message."""
    skips_details: bool = False
    """Whether reasoning sent back as `reasoning_details` alone is left out."""
    remembers: bool = False
    """Whether reasoning without calls is shown too."""
    forgets: bool = False
    """Whether an assistant's own text up to `</think>`, and white space before what follows, is left out."""
    trims: bool = True
    """Whether white space before an answer is left out where no `</think>` is before it."""
    tools: str = ""
    """Added once where there is any tool."""
    tools_alone: str = ""
    """Added for tools without a system message: the frame of one."""
    tool: Callable[[ToolDefinition], str] = tool_json
    forced: str = ""
    """Added for a `tool_choice` of `required`."""
    hides_tools: bool = False
    """Whether tools that may not be called are certainly left out; otherwise that is only likely."""
    drops_tools: bool = False
    """Whether tools were left out at times, for reasons not visible in the request."""
    shows_all_tools: bool = False
    """Whether tools are shown where `tool_choice` is `none`, in any conversation."""
    keeps_tools: bool = False
    """Whether tools are shown where `tool_choice` is `none` and the conversation has calls."""
    json: str = ""
    """Added where JSON is requested."""
    json_silences: bool = False
    """Whether requesting JSON switches thinking off."""
    compact_schema: bool = False
    """Whether the schema of the answer is shown alone and without spaces, instead of with its name."""
    shown: str | None = None
    """Text before the schema of the answer; None where the model is not shown the schema."""
    merges: str | None = None
    """Text between two consecutive user messages where they are merged; None where they are not."""
    joint: str = ""
    """Text between the texts of one message."""
    exact: bool = True
    """Whether counts of plain conversations equal the reported ones; for tools this is not known."""
    exact_turns: bool = True
    """Whether counts of the model's own earlier answers equal the reported ones."""
    band: float = 0.04
    """The share by which requests with tools may be wrong, and plain ones too where not exact."""
    turn_slack: int = 0
    """Tokens by which a message with calls or a result may be wrong in addition: hosts frame them differently."""
    image: int = 300
    """Usual tokens of an image of unknown size; 0 where the model does not accept images."""
    less: int = 0
    more: int = 0
    """Tokens by which a request may be wrong either way, by date and region, for reasons not visible in it."""


_CHATML = Template(
    start=f"{MARK}assistant\n",
    system=(f"{MARK}system\n", f"{MARK}\n"),
    user=(f"{MARK}user\n", f"{MARK}\n"),
    assistant=(f"{MARK}assistant\n", f"{MARK}\n"),
    result=(f"{MARK}tool\n", f"{MARK}\n"),
)
_QWEN_3 = replace(
    _CHATML,
    silent=f"{MARK}\n\n{MARK}\n\n",
    result=(f"{MARK}user\n{MARK}\n", f"\n{MARK}{MARK}\n"),
    call=quoted_call,
    thinking=(f"{MARK}\n", f"\n{MARK}\n\n"),
    forgets=True,
    tools=marks(77),
    tools_alone=marks(5),
    tool=tool_line,
)
_QWEN_FIXED = replace(_QWEN_3, silent="")
_QWEN_TAGGED = replace(_QWEN_FIXED, tools=marks(205), call=tagged_call)
_QWEN_3_5 = replace(
    _QWEN_3,
    start=f"{MARK}assistant\n{MARK}\n",
    silent=f"\n{MARK}\n",
    tools=marks(197),
    call=tagged_call,
    calls=marks(4),
    exact=False,
    band=0.04,
)
_QWEN_3_8 = replace(_QWEN_3_5, loud=marks(38), more=13)
_MIMO = replace(
    _CHATML,
    user=(f"{MARK}user\n", MARK),
    system=(f"{MARK}system\n", MARK),
    result=(f"{MARK}tool\n", MARK),
    no_system=marks(240),
    silent=marks(2),
    calls=marks(10),
    call=tagged_call,
    thinking=("", ""),
    tools=marks(184),
    keeps_tools=True,
    band=0.05,
)
_DEEPSEEK = Template(
    start=marks(3),
    hides_tools=True,
    responses=marks(79),
    user=(MARK, ""),
    assistant=("", marks(3)),
    result=(marks(8), ""),
    merges="\n\n",
    tools=marks(221),
    tool=function_json,
    forced=marks(7),
    json=marks(20),
    calls=marks(14),
    call=lined_call,
    thinking=("", marks(2)),
    image=0,
    less=1,
    more=79,
)
_DEEPSEEK_3 = replace(
    _DEEPSEEK,
    tools=marks(95),
    result=(marks(2), ""),
    calls=marks(2),
    call=marked_call,
    band=0.12,
)
"""Up to V3.1, as published; DeepSeek's own API serves later versions."""
_MISTRAL = Template(
    start=MARK,
    hides_tools=True,
    system=(MARK, MARK),
    user=(MARK, MARK),
    assistant=("", MARK),
    result=(MARK, MARK),
    call=lambda call: f"{MARK}{call.name}{MARK}{dump_arguments(call)}",
    tools=marks(4),
    keeps_tools=True,
    thinking=(MARK, MARK),
    remembers=True,
)
_INST: Mapping[str, object] = {"user": (" [INST] ", " [/INST]"), "assistant": ("", MARK)}
"""The first Mistral models on other hosts: their vocabulary has no token for these words."""
_MISTRAL_REASONING = replace(_MISTRAL, loud=marks(12), json_silences=True, exact=False, less=12)
_LLAMA_3 = Template(
    start=f"{MARK}{MARK}assistant{MARK}\n\n",
    system=(f"{MARK}system{MARK}\n\n", MARK),
    user=(f"{MARK}user{MARK}\n\n", MARK),
    assistant=(f"{MARK}assistant{MARK}\n\n", MARK),
    result=(f"{MARK}ipython{MARK}\n\n", MARK),
    tools=marks(90),
    band=0.15,
    turn_slack=4,
)
_LLAMA_3_DATED = replace(_LLAMA_3, start=_LLAMA_3.start + marks(20), no_system=f"{MARK}system{MARK}\n\n{MARK}")
_LLAMA_4 = replace(_LLAMA_3, tools=marks(520), exact=False, image=700)
_GPT_OSS = Template(
    start=marks(63),
    system=(f"{MARK}developer{MARK}# Instructions\n\n", f"\n\n{MARK}"),
    user=(f"{MARK}user{MARK}", MARK),
    assistant=(f"{MARK}assistant{MARK}final{MARK}", MARK),
    result=(marks(8), MARK),
    calls=marks(4),
    call=lambda call: f"{call.name}{marks(2)}{call.arguments}",
    turn_slack=4,
    tools=marks(30),
    tool=typescript,
)
_KIMI = Template(
    start=f"{MARK}assistant{MARK}{MARK}",
    system=(f"{MARK}system{MARK}", MARK),
    user=(f"{MARK}user{MARK}", MARK),
    assistant=(f"{MARK}assistant{MARK}", MARK),
    exact=False,
    turn_slack=6,
)
_KIMI_SYSTEM = "You are Kimi, an AI assistant created by Moonshot AI."
"""The system message in the published template of Kimi K2 where the request has none; Moonshot's own API leaves it
out."""
_GLM_4 = Template(
    start=marks(4),
    system=(MARK, ""),
    user=(MARK, ""),
    assistant=(MARK, ""),
    forgets=True,
    exact_turns=False,
    thinking=(MARK, ""),
    result=(f"{MARK}\n{MARK}\n", f"\n{MARK}"),
    call=elements_call,
    turn_slack=4,
    tools=marks(90),
    band=0.08,
)
_GLM_VISION = replace(_GLM_4, start=marks(5), exact=False, less=1, more=4)
_GLM_5_2 = replace(_GLM_4, start=marks(11), tools=marks(87))
_GEMMA = Template(
    start=f"{MARK}{MARK}model\n",
    system=(f"{MARK}user\n", "\n\n"),
    user=(f"{MARK}user\n", f"{MARK}\n"),
    assistant=(f"{MARK}model\n", f"{MARK}\n"),
    call=braces_call,
    tool=braces_tool,
    band=0.1,
)
_GROK = Template(
    start=marks(127),
    bare_responses=marks(62),
    less=3,
    more=3,
    tools=marks(25),
    system=(marks(3), ""),
    user=(marks(3), ""),
    assistant=(marks(3), ""),
    result=(marks(3), ""),
    hidden_thoughts=450,
    shows_all_tools=True,
    json=marks(20),
    shown=marks(15),
    compact_schema=True,
    exact=False,
    band=0.05,
)
"""xAI adds a preamble of 124 tokens (8 fewer without reasoning, 6 fewer for some), and serves most older names with a
newer model. The first Grok models had no preamble."""
_COMMAND = Template(
    start=marks(495), system=(marks(34), ""), assistant=(marks(16), ""), tools=marks(897), exact=False, band=0.15
)
_BARE = Template(exact=False, band=0.02)
_MINIMAX = replace(
    _CHATML,
    thinking=(f"{MARK}\n", f"\n{MARK}\n\n"),
    skips_details=True,
    call=invoke_call,
    result=(f"{MARK}tool\n<response>", f"</response>{MARK}\n"),
    no_system=marks(32),
    tools=marks(92),
    exact=False,
    band=0.1,
    less=20,
    more=8,
)
"""MiniMax M2 has a default system message where the request has none, as in its published template."""
_UNKNOWN = replace(_CHATML, tools=marks(150), exact=False, band=0.3, less=8, more=200)

_BY_MODEL: tuple[tuple[str, Template], ...] = (
    (r"qwen.*embed", Template(user=("", MARK))),
    (r"tral-embed", Template(user=(MARK, MARK))),
    (r"distill-llama", replace(_DEEPSEEK, start=marks(2), merges=None, forgets=True)),
    (r"deepseek-r1-0528", replace(_DEEPSEEK_3, start=marks(5), forgets=True)),
    (
        r"deepseek-r1",
        replace(_DEEPSEEK, start=marks(2), more=2, forgets=True, trims=False, tools="", tool=no_tool),
    ),
    (r"deepseek-v3(?![.-]?[2-9])", _DEEPSEEK_3),
    (r"deepseek", _DEEPSEEK),
    (r"qwen-?3[.-]8(?!b)", _QWEN_3_8),
    (r"qwen-?3[.-][5-9](?!b)|qwen-?[4-9]", _QWEN_3_5),
    (r"qwen-?2", replace(_QWEN_FIXED, no_system=marks(21))),
    (r"qwen.*coder", _QWEN_TAGGED),
    (r"qwen.*thinking", replace(_QWEN_FIXED, start=_QWEN_3_5.start)),
    (r"qwen.*(?:vl|instruct)", _QWEN_FIXED),
    (r"qwen|qwq", _QWEN_3),
    (r"mimo.*pro", replace(_MIMO, start=_MIMO.start + marks(4))),
    (r"mimo", _MIMO),
    (r"mistral-small-2[6-9]|mistral-small(?:-latest)?\b(?!-)|magistral", _MISTRAL_REASONING),
    (r"nemo", replace(_MISTRAL, exact=False, less=2)),
    (r"m(?:is|inis)tral|voxtral|pixtral|codestral|devstral|mixtral", _MISTRAL),
    (r"llama-?4", _LLAMA_4),
    (r"llama-?3[.-][1-3](?!\d)", _LLAMA_3_DATED),
    (r"llama", _LLAMA_3),
    (r"gpt-oss", _GPT_OSS),
    (
        r"kimi-?k(?:2[.-][5-9]|[3-9])",
        replace(_KIMI, thinking=(MARK, MARK), tools=marks(28), tool=typescript, band=0.12),
    ),
    (r"kimi", _KIMI),
    (r"glm-?5[.-][2-9]|glm-?[6-9]", _GLM_5_2),
    (r"glm-?4[.-]\dv", _GLM_VISION),
    (r"glm", _GLM_4),
    (r"gemma-?[23](?!\d)", replace(_GEMMA, tool=no_tool)),
    (r"gemma", _GEMMA),
    (r"grok-[12](?!\d)|grok-3(?!-mini)", replace(_GROK, start=marks(3), tools=marks(185), more=124)),
    (r"grok-3-mini", replace(_GROK, less=124, more=62, drops_tools=True)),
    (r"grok-4-(?:1-)?fast", replace(_GROK, less=16, more=130, drops_tools=True)),
    (r"grok.*non-reasoning", replace(_GROK, start=marks(119))),
    (r"grok-(?:4[.-]20|build|code)", replace(_GROK, start=marks(121))),
    (r"grok", _GROK),
    (r"command-a-reasoning", replace(_COMMAND, start=marks(1385), more=306)),
    (r"command-(?:a|r7b)", replace(_COMMAND, more=1200)),
    (r"command", replace(_COMMAND, start=marks(66), more=130)),
    (r"minimax-?m2", _MINIMAX),
    (r"sonar", _BARE),
    (r"nova-2", replace(_BARE, tools=marks(847), band=0.2, more=12)),
    (r"nova", replace(_BARE, tools=marks(400), band=0.2, more=12)),
    (r"palmyra", replace(_BARE, band=0.2)),
    (r"compound", replace(_BARE, band=0.3, more=20_000)),
)
"""The templates by pattern; the first that matches the model's id and family is used."""

_BY_HOST: tuple[tuple[str, str, Mapping[str, object]], ...] = (
    (r"deepseek-r1(?!-distill)", r"azure|bedrock", {"start": marks(4)}),
    (r"deepseek-v3[.-]1", r"azure", {"start": marks(3), "user": (marks(4), "")}),
    (r"deepseek-r1", r"ollama", {"start": MARK}),
    (r"deepseek", r"baseten", {"start": marks(4), "json": "", "more": 0}),
    (r"deepseek", r"together", {"start": marks(82), "json": "", "joint": "\n", "keeps_tools": True, "more": 0}),
    (r"deepseek", r"huggingface|fireworks", {"joint": "\n", "more": 2}),
    (r"qwen-?3(?![.-]?[5-9])", r"ollama", {"start": _QWEN_3_5.start, "silent": ""}),
    (r"qwen", r"dashscope", {"json": marks(3)}),
    (r"qwen-?3[.-]8(?!b)", r"dashscope-us", {"loud": marks(51), "more": 0}),
    (r"qwen", r"huggingface|together", {"joint": "\n"}),
    (r"qwen.*coder", r"huggingface", {"joint": " "}),
    (r"qwen", r"huggingface|mistralrs", {"band": 0.3}),
    (r"qwen-?3(?![.-][5-9](?!b))|qwen-?2|llama-?3", r"ollama", {"tool": compact_tool, "band": 0.1}),
    (r"glm", r"zai", {"tool": bare_tool}),
    (r"mi(?:x|s)tral-(?:8x|7b)", r"together|huggingface|fireworks|ollama", {**_INST, "exact": False}),
    (r"qwen", r"llamacpp", {"shows_all_tools": True}),
    (r"llama", r"huggingface|together", {"joint": "\n"}),
    (r"llama-?3", r"nvidia", {"start": _LLAMA_3.start, "no_system": "", "tools": marks(180)}),
    (r"llama-?3", r"groq", {"tools": marks(129), "tool": escape_html(framed_json), "json": marks(16)}),
    (r"qwen", r"groq|cerebras", {"tool": escape_html(tool_line)}),
    (r"", r"cerebras", {"band": 0.1}),
    (r"kimi", r"groq", {"tool": escape_html(tool_json)}),
    (r"llama-?3[.-]\d", r"ollama", {"start": _LLAMA_3.start, "no_system": ""}),
    (r"qwen-?3(?![.-]?[5-9])", r"bedrock", {"more": 4}),
    (r"gpt-oss", r"bedrock$", {"more": 2}),
    (r"gpt-oss", r"fireworks", {"start": marks(68)}),
    (r"grok", r"openrouter|azure|vertex|bedrock", {"start": marks(3), "bare_responses": "", "more": 140}),
    (r"kimi-k2", r"groq", {"no_system": f"{MARK}system{MARK}{_KIMI_SYSTEM}{MARK}"}),
    (r"command", r"bedrock", {"start": "", "system": ("", ""), "assistant": ("", ""), "tools": "", "tool": tool_words}),
    (r"llama-?4", r"bedrock", {"tools": marks(90)}),
    (r"llama-?4", r"groq", {"tools": marks(640), "band": 0.04}),
    (
        r"gpt-oss",
        r"groq",
        {"start": marks(67), "tools": marks(26), "forced": marks(6), "json": marks(24), "shown": marks(50)},
    ),
    (r"gpt-oss", r"groq|together|baseten", {"keeps_tools": True}),
    (r"gpt-oss", r"together", {"tools": marks(32), "joint": "\n"}),
    (r"gpt-oss", r"baseten", {"start": marks(74), "tools": marks(26), "json": marks(13)}),
    (r"gpt-oss", r"cerebras", {"json": marks(26), "shown": marks(90)}),
    (r"glm-?5", r"baseten", {"start": marks(12)}),
    (r"gemma", r"^google$", {"start": "", "system": (MARK, ""), "user": (MARK, ""), "assistant": (MARK, "")}),
    (r"gemma-?4", r"cerebras", {"start": f"{MARK}{MARK}model\n{marks(4)}", "json": marks(86), "shown": marks(110)}),
)


_HIDE_SCHEMAS = ("mistral", "together", "llamacpp")
"""Hosts whose recorded counts are the same with a schema of the answer and without."""
_SCHEMA_AROUND = 60
"""Most tokens of the words around a schema."""
_UNSEEN = ("previous_response_id", "conversation", "web_search_options", "search_parameters", "plugins")
"""Settings that add to a prompt what the request does not contain."""
_UNSEEN_AT_MOST = 20_000


def template_of(match: Match) -> Template:
    """Return the template of the model's family, as its host fills it."""
    name = f"{match.card.id} {match.card.family}".lower()
    if "thinking" in match.asked.lower() and "thinking" not in name:
        name += " thinking"  # a variant whose card is its family's
    found = next((template for pattern, template in _BY_MODEL if re.search(pattern, name)), _UNKNOWN)
    for pattern, host, changes in _BY_HOST:
        if re.search(pattern, name) and re.search(host, match.host or ""):
            found = replace(found, **changes)
    return found


def weigh(request: Request, match: Match, count: CountText) -> Weight:
    thinking = request.settings.get("thinking")
    keeps_thoughts = isinstance(thinking, dict) and thinking.get("clear_thinking") is False
    host = match.host or (match.card.provider if match.card.provider == "mistral" else "")
    scale = _Scale(template_of(match), count, request.format, keeps_thoughts, host in _HIDE_SCHEMAS)
    if "prompt" in request.settings and match.host != "ollama":
        return Weight(messages=tuple(map(scale.completion, request.messages)))
    if request.settings.get("input") is True and "embed" not in match.card.id:
        return Weight(messages=tuple(map(scale.completion, request.messages)))
    tools = tuple(scale.tool(request, index) for index in range(len(request.tools)))
    frame = scale.tools_framing(request) if tools else ZERO
    if scale.template.drops_tools:
        frame, tools = _maybe_none(frame), tuple(map(_maybe_none, tools))
    if not scale.shows_tools(request):
        unsure = not scale.template.hides_tools
        shown = total((frame, *tools))
        # Most hosts leave out tools that may not be called, some do not.
        unsure_frame = Count(tokens=0, method=Method.CALIBRATED, low=0, high=shown.high) if shown.tokens else ZERO
        frame, tools = unsure_frame if unsure else ZERO, tuple(ZERO for _ in tools)
    framing = scale.framing(request)
    if any(request.settings.get(key) not in (None, False, "", []) for key in _UNSEEN):
        # Only the host knows an earlier conversation that the request names, and what a search finds.
        framing += Count(tokens=0, method=Method.ESTIMATED, low=0, high=_UNSEEN_AT_MOST)
    return Weight(
        framing=framing,
        system=total(scale.messages(request.system)),
        tools=tools,
        tools_framing=frame,
        messages=tuple(scale.messages(request.messages)),
        output_schema=scale.output_schema(request),
    )


def _maybe_none(found: Count) -> Count:
    return replace(found, method=_at_best(found.method), low=0) if found.tokens else found


def _is_silent(request: Request) -> bool:
    """Return whether the request switches thinking off, in any of the hosts' spellings."""
    settings = request.settings
    thinking, extra = settings.get("thinking"), settings.get("chat_template_kwargs")
    return (
        settings.get("enable_thinking") is False
        or settings.get("think") is False
        or settings.get("reasoning_effort") == "none"
        or (isinstance(thinking, dict) and thinking.get("type") == "disabled")
        or (isinstance(extra, dict) and extra.get("enable_thinking") is False)
    )


def _asks_for_json(request: Request) -> bool:
    asked = request.output_schema
    return isinstance(asked, dict) and asked.get("type") != "text"


def _has_system(request: Request) -> bool:
    return any(message.role in {"system", "developer"} for message in (*request.system, *request.messages))


@dataclass(frozen=True, slots=True)
class _Scale:
    template: Template
    count: CountText
    format: Format
    keeps_thoughts: bool
    hides_schema: bool = False
    """Whether the host is known not to show the model the schema of the answer."""

    def completion(self, message: Message) -> Count:
        """Weigh a text to be continued or embedded, which has no template; hosts differ by a mark or two."""
        found = self.count(self._content(message))
        return Count(tokens=found.tokens, method=_at_best(found.method), low=max(0, found.low - 2), high=found.high + 8)

    def shows_tools(self, request: Request) -> bool:
        """Return whether tools are shown: hosts leave them out where they may not be called, some only before the first
        call."""
        answered = bool(request.messages) and request.messages[-1].role == "tool"
        if self.template.shows_all_tools or request.tool_choice != "none":
            return True
        return self.template.keeps_tools and answered

    def framing(self, request: Request) -> Count:
        template = self.template
        silent = _is_silent(request) or (template.json_silences and _asks_for_json(request))
        written = template.start + (template.silent if silent else template.loud)
        written += "" if _has_system(request) else template.no_system
        if request.format is Format.OPENAI_RESPONSES:
            bare = not request.tools and not _has_system(request)
            written += template.responses + (template.bare_responses if bare else "")
        found = self._plain(self._weigh_template_text(written))
        less, more = (0, 0) if silent else (template.less, template.more)
        if not more and not less:
            return found
        low = max(0, found.low - less)
        return Count(tokens=found.tokens, method=_at_best(found.method), low=low, high=found.high + more)

    def tools_framing(self, request: Request) -> Count:
        template = self.template
        alone = "" if _has_system(request) else template.tools_alone
        forced = template.forced if request.tool_choice in ("required", "any") else ""
        return self._loosely(self._weigh_template_text(template.tools + alone + forced))

    def tool(self, request: Request, index: int) -> Count:
        tool = request.tools[index]
        if tool.hosted is not None:
            return Count(tokens=0, method=Method.ESTIMATED, low=0, high=_HOSTED_AT_MOST)
        return self._loosely(self._weigh_template_text(self.template.tool(tool)))

    def output_schema(self, request: Request) -> Count:
        asked = request.output_schema
        if not isinstance(asked, dict) or not _asks_for_json(request):
            return ZERO
        wanted = asked.get("json_schema", asked if "schema" in asked else None)
        if self.template.shown is None or not isinstance(wanted, dict):
            found = self._loosely(self._weigh_template_text(self.template.json))
            if not isinstance(wanted, dict) or self.hides_schema:
                return found
            # Most hosts enforce a schema without showing it; some add it to the prompt, with words around it.
            most = found.high + _SCHEMA_AROUND + 2 * self.count(dumps(wanted)).high
            return Count(tokens=found.tokens, method=_at_best(found.method), low=found.low, high=most)
        compact = self.template.compact_schema and "schema" in wanted
        shown = dumps(wanted["schema"], separators=(",", ":")) if compact else dumps(wanted)
        return _widen_band(self._weigh_template_text(self.template.shown + shown), 0.2)

    def messages(self, messages: tuple[Message, ...]) -> Iterator[Count]:
        """Yield one count a message. Where several become one in the prompt, a later one is what it adds: a user's
        messages where the template merges them, and the items of one answer, which the Responses API lists
        separately."""
        before = ""
        answer: tuple[Part, ...] = ()
        counted = ZERO
        for message in messages:
            mine = self._content(message) if message.role == "user" else ""
            if message.role == "assistant" and self.format is Format.OPENAI_RESPONSES:
                answer += tuple(part for part in message.parts if not is_stored_id(part))
                whole_answer = self._message(replace(message, parts=answer)) if answer else ZERO
                added = _difference(whole_answer, counted)
                yield _widen_if_unknown(message, added) + _media(message, self.template.image)
                before, counted = "", whole_answer
                continue
            answer, counted = (), ZERO
            if before and mine and self.template.merges is not None:
                whole = before + self.template.merges + mine
                added = self._plain(_difference(self.count(whole), self.count(before)))
                yield _widen_if_unknown(message, added) + _media(message, self.template.image)
                before = whole
            else:
                yield _widen_if_unknown(message, self._message(message)) + _media(message, self.template.image)
                before = mine

    def _message(self, message: Message) -> Count:
        template = self.template
        if message.role == "tool":
            return self._turn(total(self._results(message)))
        if any(isinstance(part, ToolResult) for part in message.parts):
            content = self._content(message)
            beside = self._weigh_framed(template.user[0], content, template.user[1]) if content else ZERO
            return self._turn(total(self._results(message)) + beside)
        before, after = {"user": template.user, "assistant": template.assistant}.get(message.role, template.system)
        written = [template.call(part) for part in message.parts if isinstance(part, ToolCall)]
        calls, content = template.calls + "".join(written) if written else "", self._content(message)
        thoughts = self._thoughts(message) if calls or template.remembers or self.keeps_thoughts else ""
        found = self._weigh_framed(before + thoughts, content, calls + after)
        if calls:
            found = self._turn(found)
        else:
            found = self._plain(found) if message.role != "assistant" or template.exact_turns else self._loosely(found)
        return self._beyond_summary(message, found) if template.hidden_thoughts else found

    def _beyond_summary(self, message: Message, found: Count) -> Count:
        """Weigh a message with the reasoning that its host kept, of which the request has a summary at most."""
        if not any(isinstance(part, Thinking) for part in message.parts):
            return found
        hidden = self.template.hidden_thoughts
        tokens = found.tokens + (hidden // 3 if self.format is Format.OPENAI_CHAT else 0)
        return Count(tokens=tokens, method=Method.ESTIMATED, low=found.low, high=found.high + hidden)

    def _content(self, message: Message) -> str:
        parts = (part for part in message.parts if isinstance(part, Text | Unknown))
        text = self.template.joint.join(map(_shown_text, parts))
        thought, _, said = text.rpartition("</think>")
        if not self.template.forgets or message.role != "assistant":
            return text
        return said.lstrip() if thought or self.template.trims else said

    def _thoughts(self, message: Message) -> str:
        around = self.template.thinking
        thinking = [part for part in message.parts if isinstance(part, Thinking) and part.text]
        thoughts = [part.text for part in thinking if not (part.signature and self.template.skips_details)]
        return "".join(around[0] + thought + around[1] for thought in thoughts) if around else ""

    def _results(self, message: Message) -> Iterator[Count]:
        before, after = self.template.result
        for text in _result_texts(message):
            yield self._weigh_framed(before, text, after)

    def _weigh_framed(self, before: str, text: str, after: str) -> Count:
        """Weigh a text in its frame; a long one separately from it, so that a cached count can be used."""
        if len(text) <= _SHORT:
            return self._weigh_template_text(before + text + after)
        return self._weigh_template_text(before) + self.count(text) + self._weigh_template_text(after)

    def _weigh_template_text(self, text: str) -> Count:
        """Weigh a text from a template: each mark is a token, and nothing is merged across one."""
        return Count.exact(text.count(MARK)) + total(self.count(piece) for piece in text.split(MARK) if piece)

    def _turn(self, found: Count) -> Count:
        """Weigh a message with calls or results, whose frame differs between hosts."""
        loose, slack = self._loosely(found), self.template.turn_slack
        return replace(loose, method=_at_best(loose.method), low=max(0, loose.low - slack), high=loose.high + slack)

    def _plain(self, found: Count) -> Count:
        return found if self.template.exact else self._loosely(found)

    def _loosely(self, found: Count) -> Count:
        return _widen_band(found, self.template.band)


_HOSTED_AT_MOST = 250_000
"""Tokens that a search by the host adds to the prompt, at the upper end of the band; in recorded requests up to
350,000."""
_SHORT = 2_000
_MOST_UNSEEN = 1_500
"""Most tokens of a medium that the model should not be shown."""
_LEAST_IMAGE = 10
"""Tokens of the smallest image: eight patches and a mark on either side; smaller images are scaled up."""


def _result_texts(message: Message) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, ToolResult):
            shown = (inner for inner in part.parts if isinstance(inner, Text | Unknown))
            yield "".join(map(_shown_text, shown))


def _shown_text(part: Text | Unknown) -> str:
    """Return a text, or the JSON of a part of unknown kind without its files, which `_media` weighs."""
    return part.text if isinstance(part, Text) else dumps(split_files(part.value)[0])


def _inner(message: Message) -> Iterator[Part]:
    for part in message.parts:
        yield from part.parts if isinstance(part, ToolResult) else (part,)


def _widen_if_unknown(message: Message, found: Count) -> Count:
    """Widen the band of an unknown part: it was weighed as its JSON, and how the host writes it is not known."""
    if not any(isinstance(part, Unknown) for part in _inner(message)):
        return found
    return Count(tokens=found.tokens, method=Method.ESTIMATED, low=0, high=2 * found.high)


def _media(message: Message, image: int) -> Count:
    parts = list(_inner(message))
    files = (file for part in parts if isinstance(part, Unknown) for file in split_files(part.value)[1])
    return total(_medium(media, image) for media in (*(part for part in parts if isinstance(part, Media)), *files))


def _medium(media: Media, image: int) -> Count:
    """Weigh an image by patches of 28 pixels, which most open vision models use; anything else is a guess."""
    size = image_size(media.data) if media.kind == "image" and media.data and image else None
    if size is None:
        tokens = 60 if media.kind == "audio" else image
        # A model that does not accept the medium is not shown it, and nothing is counted for it.
        return Count(tokens=tokens, method=Method.ESTIMATED, low=0, high=10 * tokens or _MOST_UNSEEN)
    patches = ceil(size[0] / 28) * ceil(size[1] / 28)
    return Count.within(min(5000, max(_LEAST_IMAGE, patches)), 0.5, Method.ESTIMATED)


def _at_best(method: Method) -> Method:
    return Method.CALIBRATED if method is Method.EXACT else method


def _widen_band(found: Count, band: float) -> Count:
    """Return the count with the template's uncertainty added to its own."""
    if not found.tokens:
        return found
    doubt = Count.within(found.tokens, band)
    low, high = found.low + doubt.low - found.tokens, found.high + doubt.high - found.tokens
    return Count(tokens=found.tokens, method=_at_best(found.method), low=max(0, low), high=high)


def _difference(whole: Count, part: Count) -> Count:
    tokens = max(0, whole.tokens - part.tokens)
    return Count(
        tokens=tokens,
        method=whole.method,
        low=min(tokens, max(0, whole.low - part.low)),
        high=max(tokens, whole.high - part.high),
    )
