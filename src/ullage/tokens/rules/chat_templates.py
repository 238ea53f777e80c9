"""How do the open models' hosts lay out a conversation before they count it?

A template is data: the texts around a message of each role, around tools, calls and results. Frames come from the
templates published with the models; preambles are known by their length alone. Where a host differs from the model's
own template the difference is a line in `_BY_HOST`. Every length was measured on recorded requests of that host.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from ullage.messages import ToolCall, ToolDefinition
from ullage.models import Match

from .chat_writing import (
    MARK,
    bare_tool,
    braces_call,
    braces_tool,
    compact_tool,
    elements_call,
    escaped,
    framed_json,
    function_json,
    json_call,
    lined_call,
    marked_call,
    marks,
    no_tool,
    quoted_call,
    spaced,
    tagged_call,
    tool_json,
    tool_line,
    tool_words,
    typescript,
)

__all__ = ["Template", "template_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    start: str = ""
    """Once, whatever the request holds: what opens the prompt and what calls for the reply."""
    responses: str = ""
    """What more there is in the Responses API."""
    bare_responses: str = ""
    """What more there is in the Responses API without a system message and without tools."""
    loud: str = ""
    """What more there is unless thinking is switched off."""
    silent: str = ""
    """What more there is where thinking is switched off."""
    no_system: str = ""
    """What stands there when the request has no system message."""
    system: tuple[str, str] = ("", "")
    user: tuple[str, str] = ("", "")
    assistant: tuple[str, str] = ("", "")
    result: tuple[str, str] = ("", "")
    calls: str = ""
    """Once for a message with calls."""
    call: Callable[[ToolCall], str] = json_call
    thinking: tuple[str, str] | None = None
    """Around reasoning sent back with calls; without them most templates leave it out, and all where this is None."""
    hidden_thoughts: int = 0
    """How many tokens of reasoning the host may keep behind the summary that is sent back with a message."""
    remembers: bool = False
    """Whether reasoning is shown without calls too."""
    forgets: bool = False
    """Whether an assistant's own text up to `</think>`, and white space before what follows, is left out."""
    tools: str = ""
    """Once, with any tool."""
    tools_alone: str = ""
    """What more there is with tools and no system message: the frame of one."""
    tool: Callable[[ToolDefinition], str] = tool_json
    forced: str = ""
    """What a `tool_choice` of `required` adds."""
    hides_tools: bool = False
    """Whether tools that may not be called are surely left out; else that is only likely."""
    drops_tools: bool = False
    """Whether tools were left out at times, in ways that the request does not show."""
    shows_all_tools: bool = False
    """Whether tools are shown where `tool_choice` is `none`, whatever the conversation holds."""
    keeps_tools: bool = False
    """Whether tools are shown where `tool_choice` is `none` and the conversation has calls."""
    json: str = ""
    """What asking for JSON adds."""
    json_silences: bool = False
    """Whether asking for JSON switches thinking off."""
    compact_schema: bool = False
    """Whether the schema of the answer is shown alone and without spaces, instead of with its name."""
    shown: str | None = None
    """What stands before the schema of the answer; None where the model is not shown it."""
    merges: str | None = None
    """What stands between two user messages in a row, where they become one."""
    joint: str = ""
    """What stands between the texts of one message."""
    exact: bool = True
    """Whether plain conversations come out as reported; with tools nothing is promised."""
    exact_turns: bool = True
    """Whether the model's own earlier answers come out as reported."""
    band: float = 0.04
    """The share within which requests with tools lie, and plain ones too where not exact."""
    turn_slack: int = 0
    """How many tokens a message with calls or a result may be off beside that share: hosts frame them differently."""
    image: int = 300
    """What an image of unknown size costs, usually."""
    less: int = 0
    more: int = 0
    """How many tokens fewer or more it may be, by date and region, in ways that the request does not show."""


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
"""Up to V3.1, as published; DeepSeek's own API runs what came after."""
_MISTRAL = Template(
    start=MARK,
    hides_tools=True,
    system=(MARK, MARK),
    user=(MARK, MARK),
    assistant=("", MARK),
    result=(MARK, MARK),
    call=lambda call: f"{MARK}{call.name}{MARK}{spaced(call)}",
    tools=marks(4),
    keeps_tools=True,
    thinking=(MARK, MARK),
    remembers=True,
)
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
"""What the published template of Kimi K2 says where the request has no system message; Moonshot's own API does not."""
_GLM_4 = Template(
    start=marks(4),
    system=(MARK, ""),
    user=(MARK, ""),
    assistant=(MARK, ""),
    forgets=True,
    exact_turns=False,
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
"""xAI puts 124 tokens of its own before everybody's (8 fewer without reasoning, 6 fewer for some), and answers for most
older names with a newer model. The first Groks had nothing before them."""
_COMMAND = Template(
    start=marks(495), system=(marks(34), ""), assistant=(marks(16), ""), tools=marks(897), exact=False, band=0.15
)
_BARE = Template(exact=False, band=0.02)
_MINIMAX = replace(_CHATML, no_system=marks(32), tools=marks(92), exact=False, band=0.1, less=20, more=8)
"""MiniMax M2 introduces itself where the request has no system message, as its published template has it."""
_UNKNOWN = replace(_CHATML, tools=marks(150), exact=False, band=0.3, less=8, more=200)

_BY_MODEL: tuple[tuple[str, Template], ...] = (
    (r"qwen.*embed", Template(user=("", MARK))),
    (r"tral-embed", Template(user=(MARK, MARK))),
    (r"distill-llama", replace(_DEEPSEEK, start=marks(2), merges=None, forgets=True)),
    (r"deepseek-r1-0528", replace(_DEEPSEEK_3, start=marks(5), forgets=True)),
    (r"deepseek-r1", replace(_DEEPSEEK, start=marks(2), more=2, forgets=True, tools="", tool=no_tool)),
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
    (r"kimi-?k(?:2[.-][5-9]|[3-9])", replace(_KIMI, tools=marks(28), tool=typescript, band=0.12)),
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
"""The first pattern that the model's id and family hold."""

_BY_HOST: tuple[tuple[str, str, Mapping[str, object]], ...] = (
    (r"deepseek-r1(?!-)", r"azure|bedrock", {"start": marks(4)}),
    (r"deepseek-v3[.-]1", r"azure", {"start": marks(6)}),
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
    (r"qwen", r"llamacpp", {"shows_all_tools": True}),
    (r"llama", r"huggingface|together", {"joint": "\n"}),
    (r"llama-?3", r"nvidia", {"start": _LLAMA_3.start, "no_system": "", "tools": marks(180)}),
    (r"llama-?3", r"groq", {"tools": marks(129), "tool": escaped(framed_json), "json": marks(16)}),
    (r"qwen", r"groq|cerebras", {"tool": escaped(tool_line)}),
    (r"", r"cerebras", {"band": 0.1}),
    (r"kimi", r"groq", {"tool": escaped(tool_json)}),
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


def template_of(match: Match) -> Template:
    """The template of the model's family, as its host fills it."""
    name = f"{match.card.id} {match.card.family}".lower()
    if "thinking" in match.asked.lower() and "thinking" not in name:
        name += " thinking"  # a variant whose card is its family's
    found = next((template for pattern, template in _BY_MODEL if re.search(pattern, name)), _UNKNOWN)
    for pattern, host, changes in _BY_HOST:
        if re.search(pattern, name) and re.search(host, match.host or ""):
            found = replace(found, **changes)
    return found
