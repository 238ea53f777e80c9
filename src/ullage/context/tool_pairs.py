"""Pairs tool calls with their results, and groups messages that must stay together.

A result is paired by the call's id. If there is none (Gemini, older clients), it is paired by name and order among the
calls of the turn before. Broken histories are read as well as possible: a result may have no call, a call may have no
result, and an id may be used again in a later turn.

A seam is a place between two messages at which the earlier ones can be dropped and the later ones still make sense to
the provider. Each rule below yields a first and a last message that belong together; a seam is a place that separates
none of them. The rules use neutral messages and are the same for every format; rules for one format say so. Which
messages before a seam must stay is decided in `boundaries`.

A placeholder says which call a result came from, how large it was and how to get it back, in as few words as a model
needs. Tokens are not counted here.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, groupby, pairwise, takewhile
from json import dumps, loads
from typing import cast

from ullage.messages import Format, Media, Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown, join_texts
from ullage.tool import Json

__all__ = [
    "Answered",
    "Call",
    "Pairing",
    "gap",
    "groups",
    "is_gap",
    "is_instruction",
    "is_marked",
    "is_picture",
    "is_placeholder",
    "leading",
    "lost_in",
    "pair",
    "placeholder",
    "query_of",
    "said_in",
    "speaks",
    "split_note",
    "spoken_in",
    "text_of",
    "with_note",
]

_ID_OF_CALL = {"mcp_approval_request": "id"}
_ID_OF_RESULT = {"mcp_approval_response": "approval_request_id"}
"""Items of Responses that are paired by another key than `call_id`."""
_ASKED = ("action", "operation", "arguments")
"""Keys under which such an item has its arguments."""
_PICTURED = "computer_call"
"""An item whose result is always an image."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call:
    """A call of a history. Calls are compared by identity, since the same arguments may occur twice."""

    place: int
    """Place of its message."""
    name: str
    arguments: str
    id: str | None = None
    takes_text: bool = True
    """Whether its result may be plain text."""

    @property
    def asked(self) -> Json:
        """The parsed arguments; None if they are not JSON."""
        try:
            return cast("Json", loads(self.arguments))
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    place: int
    """Place of the result's message."""
    call: Call | None
    """The call; None if no earlier call asked for the result."""
    result: ToolResult | None = None
    """The result; None if it is of an unknown kind."""
    nth: int = 0
    """Number among the results of its message, from 0."""
    as_text: bool = False
    """Whether the message is output as text in the user's role."""


@dataclass(frozen=True, slots=True)
class Pairing:
    answered: tuple[Answered, ...]
    """Every result, in order."""
    unanswered: tuple[Call, ...]
    """Every call without a result, in order."""


def pair(messages: Sequence[Message], apart: Collection[int] = ()) -> Pairing:
    """Pair the calls of a history with their results. `apart` are places before which messages were lost: an assistant
    message there begins another turn."""
    work, before = _Work(), None
    for place, message in enumerate(messages):
        if message.role == "assistant" and (before != "assistant" or place in apart):
            work.loose.clear()
        before = message.role
        work.read(place, message)
    return Pairing(tuple(work.answered), tuple(work.unanswered))


@dataclass(slots=True)
class _Work:
    waiting: defaultdict[str, list[Call]] = field(default_factory=lambda: defaultdict[str, list[Call]](list))
    """Calls by id. An id that is used again is answered from the latest call back."""
    loose: list[Call] = field(default_factory=list[Call])
    """Calls of the latest turn that may be answered without an id."""
    answered: list[Answered] = field(default_factory=list[Answered])
    unanswered: dict[Call, None] = field(default_factory=dict[Call, None])

    def read(self, place: int, message: Message) -> None:
        nth = 0
        for part in message.parts:
            match part:
                case ToolResult():
                    call = self._answer(part.call_id, part.name)
                    self.answered.append(Answered(place=place, call=call, result=part, nth=nth))
                    nth += 1
                case ToolCall():
                    self._ask(Call(place=place, name=part.name, arguments=part.arguments, id=part.id))
                case Unknown():
                    self._read_item(place, part.value)
                case _:
                    pass

    def _read_item(self, place: int, item: Json) -> None:
        """Read an item of Responses of an unknown kind."""
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(item, dict) or not isinstance(kind, str):
            return
        answers = item.get("call_id" if kind.endswith("_output") else _ID_OF_RESULT.get(kind, ""))
        asks = item.get(_ID_OF_CALL.get(kind, "call_id"))
        if isinstance(answers, str):
            self.answered.append(Answered(place=place, call=self._answer(answers, None)))
        elif isinstance(asks, str):
            asked = dumps({key: value for key, value in item.items() if key in _ASKED})
            name, takes_text = kind.removesuffix("_call"), kind != _PICTURED
            self._ask(Call(place=place, name=name, arguments=asked, id=asks, takes_text=takes_text))

    def _ask(self, call: Call) -> None:
        self.unanswered[call] = None
        self.loose.append(call)
        if call.id is not None:
            self.waiting[call.id].append(call)

    def _answer(self, identity: str | None, name: str | None) -> Call | None:
        named = self.waiting.get(identity, []) if identity is not None else []
        call = named[-1] if named else self._in_order(identity, name)
        if call is None:
            return None
        del self.unanswered[call]
        for pending in (self.loose, self.waiting.get(call.id or "", [])):
            if call in pending:
                pending.remove(call)
        return call

    def _in_order(self, identity: str | None, name: str | None) -> Call | None:
        """Return the call for a result if either has no id: the first of that name, or the first of all."""
        able = (call for call in self.loose if identity is None or call.id is None)
        first = next(able, None)
        if first is None or first.name == name:
            return first
        return next((call for call in able if call.name == name), first)


Span = tuple[int, int]
"""Places of the first and the last of messages that belong together."""
Rule = Callable[[Sequence[Message]], Iterator[Span]]


def groups(messages: Sequence[Message], pairing: Pairing, results: Sequence[Answered] = ()) -> tuple[range, ...]:
    """Return the places of messages that can only be dropped together, in order. `results` are those that arrive as
    text."""
    inside = [0] * (len(messages) + 1)
    as_text = ((one.call.place, one.place) for one in results if one.call is not None)
    for first, last in chain(_answers(pairing), as_text, *(rule(messages) for rule in _RULES)):
        inside[first + 1] += 1
        inside[last + 1] -= 1
    seams = (place for place, spans in enumerate(accumulate(inside)) if not spans)
    return tuple(range(first, end) for first, end in pairwise(seams))


def _answers(pairing: Pairing) -> Iterator[Span]:
    """Yield the spans of calls and results: all calls of a turn and all their results, also of a provider's own tools.
    A result without a call stays behind the message before it: no tail begins with one."""
    for one in pairing.answered:
        if one.call is not None:
            yield one.call.place, one.place
        elif one.place:
            yield one.place - 1, one.place


def _items(messages: Sequence[Message]) -> Iterator[Span]:
    """Yield the spans of Responses items. An answer consists of several items: those that follow reasoning need it, and
    calls made together are answered together."""
    for role, places in groupby(range(len(messages)), key=lambda place: messages[place].role):
        said = list(places)
        if role == "assistant" and len(said) > 1 and any(_leads(messages[place]) for place in said):
            yield said[0], said[-1]


def _captions(messages: Sequence[Message]) -> Iterator[Span]:
    """Yield the spans of an image and what the user says about it, or of a result that could only be shown as a user's
    image."""
    for place, message in enumerate(messages):
        if not is_picture(message):
            continue
        if place + 1 < len(messages) and speaks(messages[place + 1]):
            yield place, place + 1
        elif place and messages[place - 1].role in ("user", "tool"):
            yield place - 1, place


def _instructions(messages: Sequence[Message]) -> Iterator[Span]:
    """Yield the spans of system messages within a history and the turn before, the only place where Anthropic accepts
    them."""
    for place in range(leading(messages) + 1, len(messages)):
        if is_instruction(messages[place]):
            yield place - 1, place


_RULES: tuple[Rule, ...] = (_items, _captions, _instructions)


def leading(messages: Sequence[Message]) -> int:
    """Return the number of system messages before all others (OpenAI)."""
    return next((place for place, one in enumerate(messages) if not is_instruction(one)), len(messages))


def is_instruction(message: Message) -> bool:
    return message.role in ("system", "developer")


def speaks(message: Message) -> bool:
    """Return whether a message is a turn of the user's own, without results."""
    return message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts)


def is_picture(message: Message) -> bool:
    """Return whether the user shows media and writes no text."""
    if not speaks(message) or not any(isinstance(part, Media) for part in message.parts):
        return False
    return not any(isinstance(part, Text) and part.text.strip() for part in message.parts)


def _leads(message: Message) -> bool:
    """Return whether a message contains only reasoning or calls."""
    kinds = {type(part) for part in message.parts}
    return ToolCall in kinds or (Thinking in kinds and kinds <= {Thinking, Unknown})


_MARK = "removed to make room"
_MARKED = re.compile("(?:removed|let go) to make room")
"""The mark, and the wording that older sessions contain."""
_LONGEST = 1_000
"""Characters that a placeholder never has."""
_VALUE, _ARGUMENTS, _QUERY = 60, 160, 80
"""Characters that are shown of one argument, of all arguments, and of a query."""
_SPOKEN = re.compile(
    r"<(feedback|answer|user_(?:message|feedback|query|input|instructions?|reply|response|answer))>(.*?)</\1>",
    re.DOTALL,
)
"""Elements in which programs pass on what the user says."""
_ELEMENT = re.compile(
    r"<(environment_details|system[-_]reminder|additional_data|context|file_content)>.*?</\1>", re.DOTALL
)
"""Elements that programs put beside them."""
_FRAME, _FRAMED = 600, 50_000
"""Most characters around such elements, and most of the whole text: a file that contains one somewhere does not
count."""
_GAP = re.compile(r"\[… ([\d,]+) tokens ")
_WHOLE_GAP = re.compile(rf"\[… [^\n]*?{_MARKED.pattern}[^\n]* …\]")
_NOTED = re.compile(r"- \S|[\w.-]{1,41}(?: [\w-]{1,20})?: \S")
"""The beginning of a line of a note: a record, or identifiers with their label."""


def placeholder(call: Call, tokens: int, parts: Sequence[Part], *, recalls: bool) -> str:
    """Return the line that replaces the whole result of a call."""
    how = f"{_recall(query_of(call))} brings them back" if recalls and tokens else "call it again if needed"
    return f"[{_shown(call)} gave {_size(tokens, parts)}, {_MARK}; {how}]"


def is_placeholder(text: str) -> bool:
    """Return whether a text is only a placeholder, possibly with a note."""
    return text.startswith("[") and _MARKED.search(text[:_LONGEST].partition("\n")[0]) is not None


def is_marked(text: str) -> bool:
    """Return whether part of a text was dropped."""
    return _MARKED.search(text) is not None


def is_gap(text: str) -> bool:
    """Return whether a text is the mark of a gap and nothing else."""
    return _WHOLE_GAP.fullmatch(text.strip()) is not None


def gap(tokens: int, parts: Sequence[Part], query: str | None) -> str:
    """Return the text of a gap: for the middle of a long text and the media beside it, with a query if it can be
    searched."""
    how = "" if query is None else f"; {_recall(query)} brings them back"
    return f"[… {_size(tokens, parts)} {_MARK}{how} …]"


def with_note(text: str, note: str) -> str:
    """Return the text with a note behind its last gap, so that its end stays its end, or at the end of a
    placeholder."""
    gaps = list(_WHOLE_GAP.finditer(text))
    if not gaps:
        return f"{text}\n{note}"
    end = gaps[-1].end()
    return f"{text[:end]}\n{note}{text[end:]}"


def split_note(text: str) -> tuple[str, str]:
    """Return a text without the notes that `with_note` put into it, and the notes: the lines of identifiers behind a
    placeholder or a gap."""
    if is_placeholder(text):
        line, _, note = text.partition("\n")
        return line, note
    bare, notes, begun = list[str](), list[str](), 0
    for found in _WHOLE_GAP.finditer(text):
        lines = text[found.end() :].removeprefix("\n").split("\n")
        note = "\n".join(takewhile(lambda line: _NOTED.match(line) is not None, lines))
        bare.append(text[begun : found.end()])
        begun = found.end() + (1 + len(note) if note else 0)
        notes += [note] if note else []
    return "".join((*bare, text[begun:])), "\n".join(notes)


def lost_in(text: str) -> int:
    """Return the tokens that the gaps in a text stand for."""
    return sum(int(found[1].replace(",", "")) for found in _GAP.finditer(text))


def text_of(result: ToolResult, format: Format) -> str:  # noqa: A002
    """Return the text of a result. Gemini's results are objects; of one that contains only a text, that text."""
    text = join_texts(result.parts)
    held = _read(text) if format is Format.GEMINI else None
    only = next(iter(held.values())) if isinstance(held, dict) and len(held) == 1 else None
    return only if isinstance(only, str) else text


def said_in(text: str) -> str:
    """Return a query that finds a text again: its first words."""
    words = " ".join(text[: 4 * _QUERY].split())
    return words if len(words) <= _QUERY else words[:_QUERY].rsplit(" ", 1)[0]


def spoken_in(text: str) -> str | None:
    """Return what the user says in a program's answer to the model, if the answer is for that purpose.

    Cline and similar programs put an interruption, or the reply to a question, into an element of a tool's result.
    """
    said = "\n\n".join(one[2].strip() for one in _SPOKEN.finditer(text)) if len(text) <= _FRAMED else ""
    if not said.strip():
        return None
    around = _ELEMENT.sub("", _SPOKEN.sub("", text))
    return said.strip() if len(around.strip()) <= _FRAME else None


def query_of(call: Call) -> str:
    """Return a query that finds the result of a call again: its arguments; of a path, the end."""
    words, waiting = list[str](), [_read(call.arguments)]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            waiting.extend(reversed(list(one.values()) if isinstance(one, dict) else one))
        elif isinstance(one, str | int | float) and not isinstance(one, bool):
            text = " ".join(str(one).split())
            is_path = len(text) > _VALUE and " " not in text
            words.append("/".join(text.split("/")[-3:]) if is_path else text)
    return said_in(" ".join(words)) or call.name


def _recall(query: str) -> str:
    return f"recall({dumps(query, ensure_ascii=False)})"


def _size(tokens: int, parts: Sequence[Part]) -> str:
    kinds = [part.kind for part in parts if isinstance(part, Media)]
    media = [f"{kinds.count(kind)} {kind}{'s' * (kinds.count(kind) > 1)}" for kind in dict.fromkeys(kinds)]
    return " and ".join(([f"{tokens:,} tokens"] if tokens or not media else []) + media)


def _shown(call: Call) -> str:
    asked = _read(call.arguments)
    if not isinstance(asked, dict):
        return f"{call.name}({_clipped(' '.join(call.arguments.split()), _ARGUMENTS)})"
    pairs = list[str]()
    for key, value in asked.items():
        text = _written(value)
        # A long value loses its middle, since the end of a path says more than its beginning.
        pairs.append(f"{key}={text if len(text) <= _VALUE else f'{text[: _VALUE // 3]}…{text[-_VALUE // 2 :]}'}")
    return f"{call.name}({_clipped(', '.join(pairs), _ARGUMENTS)})"


def _written(value: Json) -> str:
    try:
        return dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _read(arguments: str) -> Json:
    """Parse a call's arguments. Text that is not JSON is returned as it is."""
    try:
        return cast("Json", loads(arguments))
    except (ValueError, RecursionError):
        return arguments
