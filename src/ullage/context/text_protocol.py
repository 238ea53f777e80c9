"""Tool calls and tool output of agents whose protocol is plain text.

Such agents (ReAct, SWE-agent, smolagents and their kin) have no tool calls of a provider: the assistant writes an
action in its text, and a program answers in the user's role. `text_results` finds those answers, so that they are
truncated and masked like any tool result and never taken for a request of the user's.

Recognition goes by shape, never by the name of a program. An action is an element, a labelled line, a JSON object or a
code block in the assistant's text. An answer is recognised by a frame: a label known to mark output, or a beginning or
a last line that most answers of this conversation share. Where there is no frame, only text that is plainly data is
taken for output. In doubt a message is the user's: an instruction that is dropped costs more than output that is kept.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from json import dumps, loads
from typing import Any, cast

from ullage.messages import Message, Text, ToolCall, ToolResult, join_texts

from .tool_pairs import Answered, Call, is_placeholder, spoken_in

__all__ = ["read_as_tools", "text_results"]

_MANY = 3
"""Answers that must share a frame before it counts as one."""
_EVEN_SO = 5
"""Answers that must share a frame if no action is recognised."""
_MOST = 0.5
"""Share of the answers to actions that must have it."""
_ALWAYS = 0.8
"""Share of the assistant's turns that must act before answers without a frame are judged by their form."""
_EDGE, _LEAD, _LAST = 400, 48, 60
"""Characters examined on either side of an answer, and those of a shared beginning and of a shared last line."""
_TEXT = 20_000
"""Characters of the assistant's text that are searched, counted from its end, since an action comes last."""
_PROSE = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)?")
_WORDS = 4
"""Words that make a line a sentence rather than data."""

_CLOSING = re.compile(r"</([A-Za-z][\w.-]*)>")
_CHILD = re.compile(r"<(?:parameter=)?([A-Za-z][\w.-]*)(?:\s[^<>]*)?>(.*?)</(?:parameter|\1)>", re.DOTALL)
_CHILDREN = 4_000
"""Characters of an element in which its arguments are searched."""
_NAMED = re.compile(r"<[\w.-]+(?:=|\s[^<>]*?\bname=[\"']?)([\w.-]+)")
_THOUGHTS = frozenset(
    {
        *("think", "thinking", "thought", "thoughts", "reasoning", "reflection", "plan", "analysis", "scratchpad"),
        *(
            "b",
            "i",
            "em",
            "strong",
            "p",
            "ul",
            "ol",
            "li",
            "details",
            "summary",
            "br",
            "a",
            "span",
            "div",
            "sub",
            "sup",
        ),
    }
)
"""Elements that contain words and no action."""
_LABEL = re.compile(
    r"^[ \t>*_#\[-]*(?:next )?(?:action|act|tool|tool[ _]call|command|cmd|function|function[ _]call|invoke|execute|run"
    r"|aktion|befehl|werkzeug|acci[oó]n|herramienta|ação|ferramenta|outil|azione|行动|动作|工具|アクション|действие)"
    r"(?:[ _](?:name|call|to use))?[ _]?\d*[ \t*_`]*(?:[:：\]][ \t*_]*|\n[ \t]*)(?P<said>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_SHELL = re.compile(r"^(?:\$|/run|!) ?(?P<said>\S.*)\s*\Z", re.MULTILINE)
"""A command behind a prompt, as the last line."""
_INPUT = re.compile(
    r"^[ \t>*_#-]*(?:(?:action|tool|function)[ _])?(?:input|args|arguments|parameters|eingabe|entrada|行动输入|入力)"
    r"[ _]?\d*[ \t*_`]*[:：]"
    r"\s*(?P<said>.*)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_CALLED = re.compile(r"`?([A-Za-z_][\w.-]*)`?\s*([\[({])\s*(.*)", re.DOTALL)
_CLOSES = {"[": "]", "(": ")", "{": "}"}
_FENCE = re.compile(r"(?:^|\n)[ \t]*(```+|~~~+)[ \t]*([\w+.-]*)[^\n]*\n(.*?)\n?[ \t]*\1", re.DOTALL)
_KEYS = ("tool", "action", "command", "tool_name", "function", "name", "cmd")
"""Keys under which an object names what is called."""
_SEVERAL = ("commands", "actions", "tool_calls", "tools", "calls")
"""Keys under which an object has several calls."""
_SPECIAL = re.compile(r"\s*(?:```|<\|[^|<>]{1,40}\|>)\s*\Z")
"""A mark of a model's format, or the end of a code block, behind an object."""
_OUTPUT = re.compile(
    r"(?:\W*(?:the )?(?:[\w./'\"()\[\]-]+ ){0,4}?(?:observations?|outputs?|results?|responses?|stdout|stderr|returned|"
    r"exit[ _]?code|return[ _]?code)\b[^\n:>=]{0,60}[:>=])",
    re.IGNORECASE,
)
"""A label that marks output, at the beginning of an answer: `Observation 3:`, `<tool_response>`, `[read] Result:`."""
_PROMPT = re.compile(r"\S{0,40}[$#%>]")
"""A last line that is a shell prompt."""
_LEADS = re.compile(r"\W{0,3}[^\n:：>\]]{1,40}[:：>\]]")
_NUMBER = re.compile(r"\d+")
_GIVEN = re.compile(r"[\"'`(\[{][^\"'`)\]}]*[\"'`)\]}]|[\w.-]*/[\w./-]+")
"""Text that differs between answers of the same frame: quoted words, brackets, paths."""


@dataclass(frozen=True, slots=True)
class _Reply:
    """A user message that follows the assistant's."""

    place: int
    text: str
    call: Call | None
    """The action in the assistant's text; None if there is none."""
    lead: str
    opening: str
    """The label with its mark, or the whole first line."""
    last: str


def text_results(messages: Sequence[Message]) -> tuple[Answered, ...]:
    """Return the user messages that contain tool output as text, in order, each with the action that it answers."""
    replies = list(_replies(messages))
    acts = [reply for reply in replies if reply.call is not None and not is_placeholder(reply.text)]
    if not replies:
        return ()
    leads, lasts = _shared(acts, "lead"), _shared(acts, "last") | _always_shared(replies, "last")
    openings = _shared(acts, "opening") | _always_shared(replies, "opening")
    labelled = {reply.place for reply in acts if _OUTPUT.match(reply.text[:_EDGE]) or _PROMPT.fullmatch(reply.last)}
    is_labelled = len(labelled) >= _MOST * len(acts)
    spoken = sum(one.role == "assistant" for one in messages)
    acting = {reply.call.place for reply in replies if reply.call is not None}
    always = len(acting) >= max(_MANY, _ALWAYS * (spoken - 1))

    def is_output(reply: _Reply) -> bool:
        if is_placeholder(reply.text):
            return True
        if spoken_in(reply.text) is not None:
            return False
        if reply.lead in leads or reply.last in lasts or reply.opening in openings:
            return True
        if reply.call is None:
            return False
        return (is_labelled and reply.place in labelled) or (always and _is_data(reply.text))

    return tuple(
        Answered(place=reply.place, call=reply.call, result=ToolResult(parts=(Text(reply.text),)), as_text=True)
        for reply in replies
        if is_output(reply)
    )


def read_as_tools(messages: Sequence[Message], results: Sequence[Answered] | None = None) -> tuple[Message, ...]:
    """Return the messages with actions read as tool calls and the answers to them as tool results.

    The result is for analysis only; what is sent stays unchanged. Messages of other protocols are the same objects.
    `results` are the messages' `text_results`, if known already.
    """
    read = list(messages)
    for number, one in enumerate(text_results(messages) if results is None else results):
        assert one.result is not None
        identity = f"text-{number}"
        call = one.call
        if call is not None and read[call.place] is messages[call.place]:
            spoken = messages[call.place]
            made = ToolCall(name=call.name, arguments=call.arguments, id=identity)
            text = join_texts(spoken.parts)
            found = _action(text)
            rest = text if found is None else text[: found.start].rstrip()
            others = tuple(part for part in spoken.parts if not isinstance(part, Text))
            without_action = (*((Text(rest),) if rest.strip() else ()), *others)
            read[call.place] = replace(spoken, parts=(*without_action, made))
        elif call is not None:
            identity = next(part.id for part in read[call.place].parts if isinstance(part, ToolCall)) or identity
        result = replace(one.result, call_id=identity, name=call.name if call else None)
        read[one.place] = Message(role="tool", parts=(result,))
    return tuple(read)


def _replies(messages: Sequence[Message]) -> list[_Reply]:
    found, call, is_text = list[_Reply](), None, False
    for place, message in enumerate(messages):
        if message.role == "assistant":
            is_text = not any(isinstance(part, ToolCall) for part in message.parts)
            action = _action(join_texts(message.parts)) if is_text else None
            call = None if action is None else Call(place=place, name=action.name, arguments=action.arguments)
        elif message.role != "user":
            is_text = False
        elif is_text and message.parts and all(isinstance(part, Text) for part in message.parts):
            text = join_texts(message.parts)
            if text.strip():
                found.append(_Reply(place, text, call, _lead(text), _opening(text), _last(text)))
    return found


def _shared(acts: Sequence[_Reply], edge: str) -> frozenset[str]:
    """Return beginnings or last lines that are frequent enough to be a program's."""
    counted = Counter(found for reply in acts if (found := cast("str", getattr(reply, edge))))
    least = max(_MANY, _MOST * len(acts))
    return frozenset(found for found, number in counted.items() if number >= least)


def _always_shared(replies: Sequence[_Reply], edge: str) -> frozenset[str]:
    """Return the beginning or last line that nearly all answers have, whatever the assistant's actions look like: a
    person does not begin every message with the same words."""
    counted = Counter(cast("str", getattr(reply, edge)) for reply in replies)
    least = max(_EVEN_SO, _ALWAYS * len(replies))
    return frozenset(found for found, number in counted.items() if found and number >= least)


def _lead(text: str) -> str:
    """Return the label with which a text begins, without what differs between answers; empty if there is none.

    A label ends with a mark, or is a first line of a few words that is not a sentence.
    """
    found = _LEADS.match(text.lstrip()[:_LEAD])
    if found:
        return _normal(found[0])
    line, more, _ = text.strip()[:_EDGE].partition("\n")
    is_label = more and len(line) <= _LAST and line.rstrip()[-1:] not in ".!?,;"
    return _normal(" ".join(line.split()[:_MANY])) if is_label and len(line.split()) >= _MANY else ""


def _opening(text: str) -> str:
    """Return a label that ends with a mark, or a short first line of words that something follows, without what differs
    between answers; empty if there is none."""
    found = _LEADS.match(text.lstrip()[:_LEAD])
    if found:
        return _normal(found[0])
    line, more, _ = text.strip()[:_EDGE].partition("\n")
    return _normal(line) if more and len(line) <= _LAST and any(map(str.isalpha, line)) else ""


def _last(text: str) -> str:
    """Return the last line of a text if it may be a prompt or a closing mark: short, and not a sentence."""
    line = text.rstrip()[-_EDGE:].rpartition("\n")[2].strip()
    if not line or len(line) > _LAST or "\n" not in text.strip():
        return ""
    is_sentence = line[-1] in ".!?,;" or len(_PROSE.findall(line)) >= _WORDS or line[-1].isalnum()
    return "" if is_sentence else _normal(line)


def _normal(text: str) -> str:
    return _NUMBER.sub("0", _GIVEN.sub("_", text.casefold())).strip()


def _is_data(text: str) -> bool:
    """Return whether a text is clearly not a person's: JSON, or several lines of which neither the first nor the last
    nor most are sentences."""
    lines = [line for line in text[:_TEXT].splitlines() if line.strip()]
    if text.lstrip()[:1] in "{[" and isinstance(_json(text), dict | list):
        return True
    if len(lines) < _MANY:
        return False
    return not (_is_sentence(lines[0]) or _is_sentence(lines[-1])) and sum(map(_is_sentence, lines)) < len(lines) / 2


def _is_sentence(line: str) -> bool:
    words = _PROSE.findall(line)
    letters = sum(map(len, words)) + line.count(" ")
    return len(words) >= _WORDS and letters > 0.8 * len(line.strip())


@dataclass(frozen=True, slots=True)
class _Action:
    start: int
    """Position at which the action begins in the text."""
    name: str
    arguments: str
    """Arguments as JSON."""


def _action(text: str) -> _Action | None:
    """Return the last action in an assistant's text."""
    before = max(0, len(text) - _TEXT)
    said = text[before:]
    found = _object(said) or _element(said) or _labelled(said) or _fenced(said) or _typed(said)
    return None if found is None else replace(found, start=found.start + before)


def _object(text: str) -> _Action | None:
    """Return a JSON object that names a call, as the whole of a text or its end."""
    stripped = _SPECIAL.sub("", text).rstrip()
    start = stripped.find("{")
    value = _json(stripped[start:]) if start >= 0 and stripped.endswith("}") else None
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, Any]", value)
    inner = next((fields[key] for key in _KEYS if key in fields), None)
    if inner is None:
        several = next((fields[key] for key in _SEVERAL if isinstance(fields.get(key), list) and fields[key]), None)
        return None if several is None else _Action(start, "calls", dumps(several, ensure_ascii=False))
    if isinstance(inner, dict):
        named = cast("dict[str, Any]", inner)
        name = next((named[key] for key in ("name", *_KEYS) if isinstance(named.get(key), str)), "call")
        return _Action(start, str(name), dumps(named, ensure_ascii=False))
    if not isinstance(inner, str):
        return None
    given = next((cast("dict[str, Any]", one) for one in fields.values() if isinstance(one, dict)), fields)
    return _Action(start, inner, dumps(given, ensure_ascii=False))


def _element(text: str) -> _Action | None:
    """Return an element at the end of a text, or followed by only a few words."""
    closing = next(_CLOSING.finditer(text, max(0, text.rfind("</"))), None)
    if closing is None or len(_PROSE.findall(text[closing.end() :])) > 2 * _WORDS:
        return None
    tag = closing[1]
    opened = list(re.finditer(rf"<{re.escape(tag)}(?:[=\s][^<>]*)?>", text[: closing.start()]))
    if not opened or tag.casefold() in _THOUGHTS:
        return None
    opening, inner = opened[-1], text[opened[-1].end() : closing.start()].strip()
    held = _json(inner)
    if isinstance(held, dict):
        made = _object(inner)
        return _Action(opening.start(), made.name if made else tag, dumps(held, ensure_ascii=False))
    named = _NAMED.match(opening[0])
    given = {child[1]: child[2].strip() for child in _CHILD.finditer(inner[:_CHILDREN])} or {"command": inner}
    return _Action(opening.start(), named[1] if named else tag, dumps(given, ensure_ascii=False))


def _labelled(text: str) -> _Action | None:
    """Return a labelled action: `Action: search[query]`, or `Action: search` with its input on the next line."""
    found = list(_LABEL.finditer(text))
    if not found:
        return None
    last = found[-1]
    said = last["said"].strip().rstrip("*_")
    given = _INPUT.search(text, last.end())
    called = _CALLED.match(said)
    if given is not None:
        return _Action(last.start(), said.strip("`*_ "), _arguments(given["said"].strip()))
    if called is not None:
        inner = called[3].rstrip("`*_. ").removesuffix(_CLOSES[called[2]])
        return _Action(last.start(), called[1], _arguments(inner))
    name = said.split(maxsplit=1)[0].strip("`")
    return _Action(last.start(), name, dumps({"command": said.strip("`")}, ensure_ascii=False))


def _typed(text: str) -> _Action | None:
    """Return a command that the assistant types at a prompt, as the last line of a text."""
    found = _SHELL.search(text[-_CHILDREN:])
    if found is None:
        return None
    command, start = found["said"].strip(), max(0, len(text) - _CHILDREN) + found.start()
    return _Action(start, command.split(maxsplit=1)[0][:_LEAD], dumps({"command": command}, ensure_ascii=False))


def _fenced(text: str) -> _Action | None:
    """Return a code block at the end of a text, or followed by only little text."""
    found = list(_FENCE.finditer(text))
    if not found or len(_PROSE.findall(text[found[-1].end() :])) > 2 * _WORDS:
        return None
    last = found[-1]
    code = last[3].strip()
    if not code:
        return None
    name = last[2] if last[2] and last[2].casefold() not in ("text", "txt", "output") else code.split(maxsplit=1)[0]
    return _Action(last.start(), name[:_LEAD], dumps({"command": code}, ensure_ascii=False))


def _arguments(text: str) -> str:
    value = _json(text)
    return dumps(value if isinstance(value, dict) else {"input": text.strip("\"'` ")}, ensure_ascii=False)


def _json(text: str) -> Any:  # noqa: ANN401
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None
