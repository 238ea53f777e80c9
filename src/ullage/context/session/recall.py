"""The tool `recall`: search in messages that were compacted.

`recall` as a source of tools. It is there from the first step on, since a list of tools that changes costs a prompt
cache; as long as nothing was let go, it says so.

As many passages as fit, best first, each under a line that says where it comes from; passages that go on from one
another are shown as one. Of a first passage that is too long by itself, as much of its beginning as fits.

Passages are ranked by two things: what the query names letter for letter (ids, paths, quoted words, the whole of it),
and the words that they share with it. Who asks for nothing but a name that a call was given wants that call's result,
the latest one first and from its beginning.

Every text in it, part by part and cut at its lines, each passage with its place: which message, which tool and call,
which lines. A passage is long enough to be understood and short enough that several fit into an answer. Sizes are in
characters, since a passage is cut once and weighed for whoever asks.
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
from ullage.tool import Call, Json, JsonObject, Listing, Reply, Tool

__all__ = [
    "RECALL",
    "LetGo",
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
"""Characters of a passage: some 400 tokens."""
_OVERLAP = 100
"""Characters that two parts of one long line share, so that what stands at the cut is whole in one of them."""
_LONG_CALL = 2_000
"""Characters of a call by which its result can be found."""
_SEAM = re.compile(r"[\s,;(){}\[\]<>\"'&|]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo:
    """A message that is not before the model any more."""

    id: str
    number: int
    """In the conversation, from 1."""
    message: Message
    generation: int
    """The compaction that let it go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Some lines of a message that was let go."""

    id: str
    message: int
    """Its number in the conversation, from 1."""
    generation: int
    """The compaction that let it go."""
    speaker: str
    """The role of the message, or the name of the tool."""
    about: str
    """The call that it is the result of; empty for anything else."""
    part: int
    """Of the message, from 0."""
    first: int
    """Lines are counted from 1, in the part."""
    last: int
    of: int
    """Lines that the part has."""
    piece: int = 0
    """Of a line that is too long for one passage, from 1; 0 where no line is cut."""
    text: str


def calls_of(messages: Iterable[Message]) -> dict[str, ToolCall]:
    """The calls by their ids, to know what a result is the result of."""
    parts = (part for message in messages for part in message.parts)
    return {part.id: part for part in parts if isinstance(part, ToolCall) and part.id is not None}


def passages_of(gone: LetGo, calls: Mapping[str, ToolCall]) -> Iterator[Passage]:
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
    """Who says it, about what, and what."""
    match part:
        case ToolResult():
            call = calls.get(part.call_id or "")
            name = part.name or (call.name if call else "tool")
            return name, _written(call)[:_LONG_CALL] if call else name, "\n".join(map(_text, part.parts))
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


def _written(call: ToolCall) -> str:
    """As people write calls: `read(path="a.py")`."""
    said = (f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in _arguments(call).items())
    return f"{call.name}({', '.join(said)})"


def _arguments(call: ToolCall) -> Mapping[str, Json]:
    try:
        read: Json = json.loads(call.arguments)
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, dict):
        return cast("dict[str, Json]", read)
    return {"arguments": call.arguments} if call.arguments.strip() else {}


def _plain(value: Json) -> str:
    """A text as it is, so that its lines are lines and its quotes are quotes."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(lines: list[str]) -> Iterator[tuple[int, int, int, str]]:
    """First line, last line, which piece of a long line, and the text."""
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
"""Characters by which a line is shown that is too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    text: str
    """For the model, never over the budget."""
    passages: tuple[Passage, ...]
    """That are shown."""
    found: int
    """In all."""


def nothing(room: int, count: Callable[[str], int]) -> Recalled:
    """Where nothing was let go."""
    text = "-- nothing was let go yet: the whole conversation is still before you"
    return Recalled(text=_within(text, room, count), passages=(), found=0)


def recalled(found: Sequence[Passage], *, skip: int, limit: int, room: int, count: Callable[[str], int]) -> Recalled:
    """`found` best first; the first `skip` of them were shown before."""
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
    """As many of its first lines as fit, or of its first line as many characters."""
    lines, (line, *_) = range(1, passage.text.count("\n") + 1), passage.text.split("\n")
    heads = [
        *(line[:end] for end in range(_STEP, len(line), _STEP)),
        *("\n".join(passage.text.split("\n", end)[:end]) for end in lines),
    ]
    number = bisect_right(heads, room, key=lambda head: count(_recalled_text([replace(passage, text=head)], footer)))
    head = heads[number - 1] if number else ""
    return replace(passage, text=head, last=passage.last if passage.piece else passage.first + head.count("\n"))


def _within(text: str, room: int, count: Callable[[str], int]) -> str:
    """Where not even the last line fits, as many of its words as do."""
    words = text.split(" ")
    fitting = bisect_right(range(1, len(words)), room, key=lambda number: count(" ".join(words[:number])))
    return text if count(text) <= room else " ".join(words[:fitting])


def _footer(shown: int, found: int, skip: int) -> str:
    if not found:
        return "-- nothing that was let go has these words"
    if skip >= found:
        return f"-- there are only {found} passages"
    return f"-- {shown} of {found} passages" + (f"; skip={shown} shows more" if shown < found else "")


def _recalled_text(passages: Sequence[Passage], footer: str) -> str:
    return "\n".join([*(f"{_place(one)}\n{one.text}\n" for one in _joined(passages)), footer])


def _joined(passages: Sequence[Passage]) -> list[Passage]:
    joined: list[Passage] = []
    for passage in passages:
        if joined and _goes_on(joined[-1], passage):
            before = joined.pop()
            passage = replace(before, text=f"{before.text}\n{passage.text}", last=passage.last)  # noqa: PLW2901
        joined.append(passage)
    return joined


def _goes_on(before: Passage, passage: Passage) -> bool:
    same = (before.message, before.part) == (passage.message, passage.part)
    return same and not before.piece and not passage.piece and before.last + 1 == passage.first


def _place(passage: Passage) -> str:
    who = passage.about or passage.speaker
    short = who if len(who) <= _RECALLED_LONG_CALL else f"{who[: _RECALLED_LONG_CALL - 1]}…"
    lines = f"line {passage.first}" if passage.first == passage.last else f"lines {passage.first}–{passage.last}"
    piece = f", piece {passage.piece}" if passage.piece else ""
    return f"[message {passage.message} · {short} · {lines} of {passage.of}{piece}]"


_ROOM = 2_000
"""Tokens of a reply, where nothing is said."""
_LIMIT = 200
"""Passages of a reply."""
RECALL = Tool(
    name="recall",
    description="Search earlier messages and tool results that were let go to make room; replies with them word for "
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
    """Whoever remembers what was let go: a session, or a context that has none."""

    def recall(self, query: str, *, limit: int, room: int, count: Callable[[str], int], skip: int = 0) -> Recalled: ...


@dataclass(frozen=True, slots=True)
class RecallSource:
    """Offers `recall`."""

    memory: Recalling
    count: Callable[[str], int]
    """The tokens of a text, by the one meter. Safe between threads."""
    room: int = _ROOM
    """Tokens of a reply, where nothing is said."""

    async def tools(self) -> Listing:
        return Listing((RECALL,), revision="1")

    async def call(self, call: Call) -> Reply:
        if call.tool != RECALL.name:
            raise UnknownTool(f"no tool is called `{call.tool}`", options=(RECALL.name,))
        asked = _read(call.arguments, self.room)
        recall = partial(self.memory.recall, asked.query, limit=_LIMIT, count=self.count, skip=asked.skip)
        found = await anyio.to_thread.run_sync(partial(recall, room=asked.max_tokens))
        return Reply.text(found.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    query: str
    max_tokens: int
    skip: int


def _read(arguments: JsonObject, room: int) -> _Asked:
    unknown = next((name for name in arguments if name not in _KNOWN), None)
    if unknown is not None:
        raise InvalidArguments(f"`{unknown}` is not known", options=_KNOWN)
    query = arguments.get("query")
    if not isinstance(query, str) or not query.strip():
        raise InvalidArguments("`query` must be a text", suggestion='give {"query": "…"}', options=_KNOWN)
    most, skip = _number(arguments, "max_tokens", room, least=1), _number(arguments, "skip", 0, least=0)
    return _Asked(query=query, max_tokens=most, skip=skip)


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
"""Of the best score, that a passage must have which has nothing letter for letter."""
_QUOTED = re.compile(r"[\"'`“‘«]([^\"'`”’»]{2,200})[\"'`”’»]")
_EDGES = ".,;:!?()[]{}<>\"'`“”‘’«»"
_NAME = re.compile(r"\d|\w[_/\\.:@#=-]+\w|[a-z][A-Z]")
_LEAST, _LONGEST = 2, 500
"""Characters of a name."""


class Recollection:
    """Holds the passages of what was let go. Not for two threads at a time."""

    def __init__(self) -> None:
        self._index = LexicalIndex()
        self._held: dict[str, tuple[Passage, ...]] = {}
        """By the id of the message."""

    def hold(self, gone: Mapping[str, LetGo], around: Iterable[Message] = ()) -> None:
        """Holds these and no others. `around` are messages that were not let go and may hold the calls of results."""
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
        """Does beforehand what whoever asks first after a change would wait for."""
        self._index.ready()

    def recall(self, query: str, *, limit: int, room: int, count: Callable[[str], int], skip: int = 0) -> Recalled:
        """What was let go that is near the query, after the first `skip` passages, within so many tokens."""
        if not self._held:
            return nothing(room, count)
        return recalled(self.find(query), skip=skip, limit=limit, room=room, count=count)

    def find(self, query: str) -> tuple[Passage, ...]:
        """Best first; the same query finds the same as long as the same is held."""
        # What is quoted, words that look like somebody's identifier, and the whole where it says more than
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
        # Who gives nothing but a name and is understood does not want what only resembles it.
        near = [] if exact and named.alone else [one for one in ranked if not one.exact and one.score >= least > 0]
        found = [*exact, *near]
        return tuple(one.passage for one in sorted(found, key=_Ranked.order))


@dataclass(frozen=True, slots=True)
class _Names:
    """What a query says letter for letter."""

    names: tuple[str, ...]
    alone: bool
    """Whether it says nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranked:
    passage: Passage
    exact: int
    """For each name of the query, 2 where it stands in the passage or its call, 1 where only as part of a word."""
    called: int
    """The same for its call alone."""
    score: float
    """By words; 0 where the whole result is what is asked for."""

    @classmethod
    def of(cls, passage: Passage, named: _Names, score: float) -> "_Ranked":
        if not named.names:
            return cls(passage=passage, exact=0, called=0, score=0.0 if named.alone else score)
        about, text = passage.about.casefold(), passage.text.casefold()
        called = sum(_stands(name, about) for name in named.names)
        exact = sum(max(_stands(name, about), _stands(name, text)) for name in named.names)
        is_whole = named.alone and called == 2 * len(named.names)
        return cls(passage=passage, exact=exact, called=called, score=0.0 if is_whole else score)

    def order(self) -> tuple[float, ...]:
        passage = self.passage
        return (
            *(-self.exact, -self.called, -self.score),
            *(-passage.message, passage.part, passage.first, passage.piece),
        )


def _stands(name: str, text: str) -> int:
    """1 for a part of a word: `ORD-17` in `ORD-172` is another order."""
    if name not in text:
        return 0
    start, end = r"(?<!\w)" if name[0].isalnum() else "", r"(?!\w)" if name[-1].isalnum() else ""
    return 2 if re.search(f"{start}{re.escape(name)}{end}", text) else 1


def _is_name(word: str) -> bool:
    return bool(_NAME.search(word))
