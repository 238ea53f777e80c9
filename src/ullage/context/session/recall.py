"""The tool `recall`: search in messages that were compacted.

`RecallSource` offers `recall` from the first step on, since a change of the tool list invalidates the prompt cache.
While nothing has been dropped, it replies so.

The reply contains as many passages as fit, best first, each under a line with its origin; adjacent passages are joined.
If the first passage alone is too long, as much of its beginning is shown as fits.

Passages are ranked by two things: names, paths and quoted words of the query that occur verbatim, and the words that
they share with the query. A query that is only a name given to a call finds that call's result, the latest one first
and from its beginning.

A passage is a run of lines of one message part, with its place: message, tool and call, and lines. A passage is long
enough to be understood and short enough that several fit into a reply. Its size is in characters, since it is cut once
and counted in tokens for each query.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, cast

import anyio.to_thread

from ullage.errors import InvalidArguments, UnknownTool
from ullage.messages import Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.search import Document, LexicalIndex
from ullage.tool import Call, Json, JsonObject, Listing, Reply, Tool, ToolSource

__all__ = [
    "RECALL",
    "DroppedMessage",
    "Passage",
    "RecallSource",
    "Recalled",
    "Recalling",
    "Recollection",
    "calls_of",
    "nothing",
    "passages_of",
    "recalled",
]

_MOST = 1_500
"""Characters of a passage: about 400 tokens."""
_OVERLAP = 100
"""Characters that two pieces of one long line share, so that a word at the cut is complete in one of them."""
_LONG_CALL = 2_000
"""Characters of a call by which its result can be found."""
_SEAM = re.compile(r"[\s,;(){}\[\]<>\"'&|]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedMessage:
    """A message that was dropped."""

    id: str
    number: int
    """Number of the message in the conversation, from 1."""
    message: Message
    generation: int
    """The compaction that dropped it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Some lines of a dropped message."""

    id: str
    message: int
    """Number of the message in the conversation, from 1."""
    generation: int
    """The compaction that dropped it."""
    speaker: str
    """Role of the message, or name of the tool."""
    about: str
    """The call that the passage is the result of; empty otherwise."""
    part: int
    """Number of the part in the message, from 0."""
    first: int
    """First line, counted from 1 in the part."""
    last: int
    of: int
    """Number of lines in the part."""
    piece: int = 0
    """Number of the piece of a line that is too long for one passage, from 1; 0 if no line is cut."""
    text: str


def calls_of(messages: Iterable[Message]) -> dict[str, ToolCall]:
    """Return the calls by id, to find the call of a result."""
    parts = (part for message in messages for part in message.parts)
    return {part.id: part for part in parts if isinstance(part, ToolCall) and part.id is not None}


def passages_of(gone: DroppedMessage, calls: Mapping[str, ToolCall]) -> Iterator[Passage]:
    for number, part in enumerate(gone.message.parts):
        speaker, about, text = _said(gone.message, part, calls)
        lines = text.removesuffix("\n").split("\n")
        for place, (first, last, piece, cut) in enumerate(_cut(lines)):
            yield Passage(
                id=f"{gone.id}:{number}:{place}",
                message=gone.number,
                generation=gone.generation,
                speaker=speaker,
                about=about,
                part=number,
                first=first,
                last=last,
                of=len(lines),
                piece=piece,
                text=cut,
            )


def _said(message: Message, part: Part, calls: Mapping[str, ToolCall]) -> tuple[str, str, str]:
    """Return speaker, call and text of a part."""
    match part:
        case ToolResult():
            call = calls.get(part.call_id or "")
            name = part.name or (call.name if call else "tool")
            # A call is written as people write it: `read(path="a.py")`.
            asked: Mapping[str, Json] = _arguments(call) if call else {}
            said = (f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in asked.items())
            about = f"{call.name}({', '.join(said)})"[:_LONG_CALL] if call else name
            return name, about, "\n".join(map(_text, part.parts))
        case _:
            return message.role, "", _text(part)


def _text(part: Part) -> str:
    match part:
        case Text() | Thinking():
            return part.text
        case ToolCall():
            return "\n".join([part.name, *(f"{name}: {_plain(value)}" for name, value in _arguments(part).items())])
        case ToolResult():
            return "\n".join(map(_text, part.parts))
        case Unknown():
            return _plain(part.value)
        case _:
            return f"[{part.kind}]"


def _arguments(call: ToolCall) -> Mapping[str, Json]:
    try:
        read: Json = json.loads(call.arguments)
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, dict):
        return cast("dict[str, Json]", read)
    return {"arguments": call.arguments} if call.arguments.strip() else {}


def _plain(value: Json) -> str:
    """Format a value for searching. Text is kept as it is, with its line breaks and quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(lines: list[str]) -> Iterator[tuple[int, int, int, str]]:
    """Yield first line, last line, number of the piece of a long line, and text."""
    start, size = 0, 0
    for at, line in enumerate(lines):
        if at > start and size + len(line) > _MOST:
            yield from _stretch(lines, start, at)
            start, size = at, 0
        size += len(line) + 1
    yield from _stretch(lines, start, len(lines))


def _stretch(lines: list[str], start: int, end: int) -> Iterator[tuple[int, int, int, str]]:
    text = "\n".join(lines[start:end])
    if len(text) <= _MOST:
        if text.strip():
            yield start + 1, end, 0, text
        return
    for number, piece in enumerate(_pieces(text), start=1):
        yield start + 1, end, number, piece


def _pieces(line: str) -> Iterator[str]:
    start = 0
    while start < len(line):
        end = start + _MOST
        if end < len(line):
            seams = [found.end() for found in _SEAM.finditer(line, end - 3 * _OVERLAP, end)]
            end = seams[-1] if seams else end
        yield line[start:end]
        start = end if end >= len(line) else end - _OVERLAP


_RECALLED_LONG_CALL = 120
"""Characters of a call that are shown."""
_STEP = 100
"""Characters by which the shown beginning of an overlong line grows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """Result of a search with `recall`."""

    text: str
    """Reply for the model, never over the budget."""
    passages: tuple[Passage, ...]
    """The passages in the reply."""
    found: int
    """Number of all passages found."""


def nothing(room: int, count: Callable[[str], int]) -> Recalled:
    """Reply if nothing has been dropped."""
    text = "-- nothing was removed yet: the whole conversation is still before you"
    return Recalled(text=_within(text, room, count), passages=(), found=0)


def recalled(found: Sequence[Passage], *, skip: int, limit: int, room: int, count: Callable[[str], int]) -> Recalled:
    """Make the reply from passages, best first. The first `skip` passages were shown before."""
    left = found[skip : skip + limit]

    def shown(number: int) -> str:
        return _recalled_text(left[:number], _footer(skip + number, len(found), skip))

    number = bisect_right(range(1, len(left) + 1), room, key=lambda number: count(shown(number)))
    if number or not left:
        return Recalled(text=_within(shown(number), room, count), passages=tuple(left[:number]), found=len(found))
    cut = _recalled_cut(left[0], room, count, _footer(skip + 1, len(found), skip))
    text = (
        _recalled_text([cut], _footer(skip + 1, len(found), skip))
        if cut.text
        else f"-- {room} tokens are too few to show any"
    )
    return Recalled(text=_within(text, room, count), passages=(cut,) if cut.text else (), found=len(found))


def _recalled_cut(passage: Passage, room: int, count: Callable[[str], int], footer: str) -> Passage:
    """Return the first lines of a passage that fit, or the first characters of its first line."""
    lines, (line, *_) = range(1, passage.text.count("\n") + 1), passage.text.split("\n")
    heads = [
        *(line[:end] for end in range(_STEP, len(line), _STEP)),
        *("\n".join(passage.text.split("\n", end)[:end]) for end in lines),
    ]
    number = bisect_right(heads, room, key=lambda head: count(_recalled_text([replace(passage, text=head)], footer)))
    head = heads[number - 1] if number else ""
    return replace(passage, text=head, last=passage.last if passage.piece else passage.first + head.count("\n"))


def _within(text: str, room: int, count: Callable[[str], int]) -> str:
    """Return the text, or as many of its words as fit if it is too long."""
    words = text.split(" ")
    fitting = bisect_right(range(1, len(words)), room, key=lambda number: count(" ".join(words[:number])))
    return text if count(text) <= room else " ".join(words[:fitting])


def _footer(shown: int, found: int, skip: int) -> str:
    if not found:
        return "-- nothing that was removed has these words"
    if skip >= found:
        return f"-- there are only {found} passages"
    return f"-- {shown} of {found} passages" + (f"; skip={shown} shows more" if shown < found else "")


def _recalled_text(passages: Sequence[Passage], footer: str) -> str:
    return "\n".join([*(f"{_place(one)}\n{one.text}\n" for one in _joined(passages)), footer])


def _joined(passages: Sequence[Passage]) -> list[Passage]:
    joined: list[Passage] = []
    for passage in passages:
        before = joined[-1] if joined else passage
        is_same = (before.message, before.part) == (passage.message, passage.part)
        if is_same and not before.piece and not passage.piece and before.last + 1 == passage.first:
            joined.pop()
            passage = replace(before, text=f"{before.text}\n{passage.text}", last=passage.last)  # noqa: PLW2901
        joined.append(passage)
    return joined


def _place(passage: Passage) -> str:
    who = passage.about or passage.speaker
    short = who if len(who) <= _RECALLED_LONG_CALL else f"{who[: _RECALLED_LONG_CALL - 1]}…"
    lines = f"line {passage.first}" if passage.first == passage.last else f"lines {passage.first}–{passage.last}"
    piece = f", piece {passage.piece}" if passage.piece else ""
    return f"[message {passage.message} · {short} · {lines} of {passage.of}{piece}]"


_ROOM = 2_000
"""Tokens of a reply by default."""
_LIMIT = 200
"""Most passages of a reply."""
RECALL = Tool(
    name="recall",
    description="Search earlier messages and tool results that were removed to make room; replies with them word for "
    "word. An id or a path finds them best.",
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "max_tokens": {"type": "integer"},
            "skip": {"type": "integer", "description": "Passages already seen"},
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
)
_KNOWN = ("query", "max_tokens", "skip")


class Recalling(Protocol):
    """Searches dropped messages: a session, or a context without one."""

    def recall(self, query: str, *, limit: int, room: int, count: Callable[[str], int], skip: int = 0) -> Recalled: ...


@dataclass(frozen=True, slots=True)
class RecallSource(ToolSource):
    """Offers the tool `recall`."""

    memory: Recalling
    count: Callable[[str], int]
    """Counts the tokens of a text. Thread-safe."""
    room: int = _ROOM
    """Tokens of a reply by default."""

    async def tools(self) -> Listing:
        return Listing((RECALL,), revision="1")

    async def call(self, call: Call) -> Reply:
        if call.tool != RECALL.name:
            raise UnknownTool(f"no tool is called `{call.tool}`", options=(RECALL.name,))
        unknown = next((name for name in call.arguments if name not in _KNOWN), None)
        if unknown is not None:
            raise InvalidArguments(f"`{unknown}` is not known", options=_KNOWN)
        query = call.arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            raise InvalidArguments("`query` must be a text", suggestion='give {"query": "…"}', options=_KNOWN)
        room = _number(call.arguments, "max_tokens", self.room, least=1)
        skip = _number(call.arguments, "skip", 0, least=0)
        recall = partial(self.memory.recall, query, limit=_LIMIT, room=room, count=self.count, skip=skip)
        found = await anyio.to_thread.run_sync(recall)
        return Reply.text(found.text)


def _number(arguments: JsonObject, name: str, otherwise: int, *, least: int) -> int:
    value = arguments.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidArguments(
            f"`{name}` must be a whole number from {least} on", suggestion=f"leave it out for {otherwise}"
        )
    return value


_NEAR = 0.3
"""Share of the best score that a passage without a verbatim match must have."""
_QUOTED = re.compile(r"[\"'`“‘«]([^\"'`”’»]{2,200})[\"'`”’»]")
_EDGES = ".,;:!?()[]{}<>\"'`“”‘’«»"
_NAME = re.compile(r"\d|\w[_/\\.:@#=-]+\w|[a-z][A-Z]")
_LEAST, _LONGEST = 2, 500
"""Fewest and most characters of a name."""


class Recollection:
    """The passages of dropped messages, indexed for search. Not thread-safe."""

    def __init__(self) -> None:
        self._index = LexicalIndex()
        self._held: dict[str, tuple[Passage, ...]] = {}
        """Passages by the id of their message."""

    def hold(self, gone: Mapping[str, DroppedMessage], around: Iterable[Message] = ()) -> None:
        """Keep these messages and no others. `around` are messages that were not dropped and may contain the calls of
        results."""
        for identifier in [one for one in self._held if one not in gone]:
            for passage in self._held.pop(identifier):
                self._index.remove(passage.id)
        new = [one for identifier, one in gone.items() if identifier not in self._held]
        if new:
            calls = calls_of((*(one.message for one in gone.values()), *around))
            for one in new:
                self._held[one.id] = tuple(passages_of(one, calls))
                for passage in self._held[one.id]:
                    self._index.add(
                        Document(
                            id=passage.id,
                            name="",
                            server=passage.speaker,
                            title=passage.about,
                            description=passage.text,
                        )
                    )

    def ready(self) -> None:
        """Update the index now, so that the next query need not wait for it."""
        self._index.ready()

    def recall(self, query: str, *, limit: int, room: int, count: Callable[[str], int], skip: int = 0) -> Recalled:
        """Search the dropped messages and return the passages that fit `room` tokens, without the first `skip`."""
        if not self._held:
            return nothing(room, count)
        return recalled(self.find(query), skip=skip, limit=limit, room=room, count=count)

    def find(self, query: str) -> tuple[Passage, ...]:
        """Return the passages found, best first. The result is stable while the messages do not change."""
        # Names are quoted text, words that look like identifiers, and the whole query if it contains more than
        # these.
        quoted = [found.strip() for found in _QUOTED.findall(query)]
        words = [word.strip(_EDGES) for word in _QUOTED.sub(" ", query).split()]
        names = [*quoted, *filter(_is_name, words)]
        alone = bool(names) and all(map(_is_name, filter(None, words)))
        phrase = [query.strip()] if not alone and len(words) > 1 else []
        kept = (name.casefold() for name in (*phrase, *names) if _LEAST <= len(name) <= _LONGEST)
        names = _Names(tuple(dict.fromkeys(kept)), alone)
        named, scores = names, self._index.scores(query)
        least = _NEAR * max(scores.values(), default=0.0)
        passages = (passage for held in self._held.values() for passage in held)
        ranked = [_Ranked.of(passage, named, scores.get(passage.id, 0.0)) for passage in passages]
        exact = [one for one in ranked if one.exact]
        # A query of only names with a verbatim match returns no similar passages.
        near = [] if exact and named.alone else [one for one in ranked if not one.exact and one.score >= least > 0]
        found = [*exact, *near]
        return tuple(one.passage for one in sorted(found, key=_Ranked.order))


@dataclass(frozen=True, slots=True)
class _Names:
    """The names in a query that are searched verbatim."""

    names: tuple[str, ...]
    alone: bool
    """Whether the query contains nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    passage: Passage
    exact: int
    """Sum over the query's names: 2 for a word of the passage or its call, 1 for a part of a word."""
    called: int
    """The same sum for the call alone."""
    score: float
    """Score by shared words; 0 if the query asks for the whole result."""

    @classmethod
    def of(cls, passage: Passage, named: _Names, score: float) -> "_Ranked":
        if not named.names:
            return cls(passage=passage, exact=0, called=0, score=0.0 if named.alone else score)
        about, text = passage.about.casefold(), passage.text.casefold()
        called = sum(_match_of(name, about) for name in named.names)
        exact = sum(max(_match_of(name, about), _match_of(name, text)) for name in named.names)
        is_whole = named.alone and called == 2 * len(named.names)
        return cls(passage=passage, exact=exact, called=called, score=0.0 if is_whole else score)

    def order(self) -> tuple[float, ...]:
        passage = self.passage
        return (
            *(-self.exact, -self.called, -self.score),
            *(-passage.message, passage.part, passage.first, passage.piece),
        )


def _match_of(name: str, text: str) -> int:
    """Return 2 for a whole word, 1 for a part of a word, 0 otherwise: `ORD-17` in `ORD-172` is another order."""
    if name not in text:
        return 0
    start, end = r"(?<!\w)" if name[0].isalnum() else "", r"(?!\w)" if name[-1].isalnum() else ""
    return 2 if re.search(f"{start}{re.escape(name)}{end}", text) else 1


def _is_name(word: str) -> bool:
    return bool(_NAME.search(word))
