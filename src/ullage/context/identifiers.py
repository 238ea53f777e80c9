"""Extracts identifiers (paths, URLs, ids, names) from dropped messages and ranks them.

The likeliest first, as many as the room has. What stands in the messages beside the ledger needs no place in it,
and neither does a part of what is in it.

A line for each name or kind that words share, its best first; words are parted by spaces, and what has spaces itself
stands between backticks. Every word stands there as it was written.

A sum of points, in the manner of log-odds: what the word looks like, who said it and as what, how long ago; less what
it costs to write. Most points were set on one half of recorded sessions; what length costs and what a number is worth
was settled with the other half in view as well, so that only sessions of another origin are a fair test of them.

A word is a run of what file names, addresses, symbols, flags and numbers are made of, without the punctuation around
it. Whether it is worth keeping is `ranking`'s matter.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from json import loads
from math import log, log1p

from ullage.messages import Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.tokens import Steps, drain
from ullage.tool import Json

from .structured_values import (
    MARK,
    Kind,
    count_objects,
    fit_records,
    is_record,
    kind_of,
    read_records,
    read_structure,
    records_of,
    scalars,
    write_value,
)

__all__ = [
    "LONGEST",
    "Item",
    "Seen",
    "Sighting",
    "Sightings",
    "can_stand",
    "candidates",
    "count_objects",
    "identifier_steps",
    "identifiers",
    "is_record",
    "item_of",
    "named_values",
    "names",
    "phrases",
    "points",
    "read_identifiers",
    "read_structure",
    "scalars",
    "slices",
    "words",
    "write",
    "write_value",
]

_LABELS = {
    Kind.LINK: "links",
    Kind.MAIL: "addresses",
    Kind.PATH: "files",
    Kind.FILE: "files",
    Kind.DATE: "numbers",
    Kind.NUMBER: "numbers",
    Kind.HASH: "ids",
    Kind.CODED: "ids",
    Kind.PHRASE: "values",
}
_OTHER = "names"
_KINDS = frozenset({*_LABELS.values(), _OTHER})
_NAME = re.compile(r"[\w.-]{1,41}(?: [\w-]{1,20})?")
"""What may stand before a line; names come from anybody's JSON."""
_ITEM = re.compile(r"`([^`]+)`|(\S+)")


@dataclass(frozen=True, slots=True)
class Item:
    word: str
    label: str
    """Of its line: the name that it stood under in a call or a result, else what kind of word it is."""
    rank: float = 1.0
    """Where it stands in its line: from 0 for the first to 1."""

    @property
    def name(self) -> str | None:
        return None if self.label in _KINDS else self.label


def item_of(word: str, name: str | None) -> Item:
    return Item(word, name if name and _NAME.fullmatch(name) else _LABELS.get(kind_of(word), _OTHER))


def can_stand(word: str) -> bool:
    """Whether a word can be written so that it is read again."""
    return "`" not in word and word.isprintable()


def write(items: Iterable[Item]) -> str:
    """The items, best first, as lines; the line with the best of all comes first."""
    lines: dict[str, list[str]] = {}
    for item in items:
        lines.setdefault(item.label, []).append(f"`{item.word}`" if " " in item.word else item.word)
    return "\n".join(f"{label}: {' '.join(found)}" for label, found in lines.items())


def read_identifiers(text: str) -> tuple[Item, ...]:
    """The items of a ledger; a line that is none of a ledger's is passed over."""
    return tuple(item for line in text.split("\n") for item in _read_line(line))


def _read_line(line: str) -> Iterator[Item]:
    label, colon, rest = line.partition(": ")
    found = _ITEM.findall(rest) if colon and _NAME.fullmatch(label) else []
    for place, (quoted, plain) in enumerate(found):
        yield Item(quoted or plain, label, place / len(found))


_SLICE = 65_536
"""Characters that are read at a time: a few milliseconds."""
LONGEST = 160
"""Characters of a candidate; what is longer is data and no name."""
_WORD = re.compile(
    r"""https?://[^\s"'<>`\\)\]}|]+|[A-Za-z]:\\[\w\\.-]+|[$€£¥]?\d{1,3}(?:,\d{3}){1,6}(?:\.\d+)?(?![\w,])|[\w.@/:#$€£¥%+~?*-]+"""
)
_BEFORE, _AFTER = ":?*%+", ".,:;!?*-/~$@"
_NOISE = re.compile(r"^(?:\.{3,}|~(?=\d)|-(?=\d{3}))")
"""An ellipsis, what says that a number is not exact, and the sign before a line of a difference."""
_PLACE = re.compile(r"(.*[/.].*?):(\d[\d:,-]*)$")
"""A place in a file, as searches print it: the file and the line count, not each pair of them."""
_DRIVE = re.compile(r"\b[A-Za-z]:\\\w")
_WORDS_NAME = re.compile(r"(?<=[\w,] )[A-Z][^\W\d_]+")
"""A capital that does not begin a sentence."""
_CAPITAL = r"[A-Z][^\W\d_]*+(?:[-'’&][^\W\d_]++)*+"
_SMALL = r"(?:(?:of|the|and|for|in|on|at|to|a|de|la|le|du|da|van|von|der|den|del|di) ){0,2}"
_PROPER = re.compile(rf"(?<!\w){_CAPITAL}(?: {_SMALL}{_CAPITAL}){{0,5}}(?: \([^()\n]{{2,30}}\))?")
_QUOTED = re.compile(
    r"""(?<!\w)(?:'([^\W_][^'"“”\n]{1,60}[\w).!?])'|"([^\W_][^"“”\n]{1,60}[\w).!?])"|“([^“”\n]{2,60})”)(?!\w)"""
)
_MOST_PHRASE = 6
"""Words of a title or a name; more are a sentence."""
_JSON_VALUE = re.compile(r'"([A-Za-z_][\w.-]{0,40})"\s?:\s?(?:"([^"\n\\]{2,80})"|(-?\d[\d.]*))')
_LINE_VALUE = re.compile(
    r"""^[ \t]*(?:- )?([A-Za-z_][\w-]{1,30}(?: [\w-]{1,20})?): ([^\s'"{}\[\](),;<>][^\n'"{}\[\](),;<>]{1,58})$""",
    re.MULTILINE,
)
_MOST_WORDS = 4
"""Of a value that stands under a name; more are a sentence."""


def slices(text: str) -> Iterator[str]:
    """A text in pieces that are read quickly, parted at white space where there is some; escapes are resolved."""
    start = 0
    while start < len(text):
        end = start + _SLICE
        if end < len(text):
            end = max(text.rfind(" ", start, end), text.rfind("\n", start, end)) + 1 or end
        yield _plain(text[start:end])
        start = end


def words(text: str) -> Counter[str]:
    """The words as they stand, and how often each occurs."""
    return Counter(_WORD.findall(text))


@lru_cache(maxsize=32_768)
def candidates(word: str) -> tuple[str, ...]:
    """What of a word could be an identifier: mostly itself, without the punctuation at its ends. Only for words that
    are no longer than `LONGEST`, for the others would fill the cache."""
    bare = _NOISE.sub("", word.lstrip(_BEFORE).rstrip(_AFTER))
    place = None if "://" in bare else _PLACE.match(bare)
    found = (bare,) if place is None else place.groups()
    return tuple(one for one in found if len(one) > 1 and any(map(str.isalnum, one)))


def names(text: str) -> list[str]:
    """Words that are written with a capital though they begin no sentence."""
    return _WORDS_NAME.findall(text)


def phrases(text: str) -> set[str]:
    """Titles and names of several words: between quotation marks, or written with capitals."""
    quoted = (one.strip() for found in _QUOTED.findall(text) for one in found)
    return {one for one in (*_PROPER.findall(text), *quoted) if 1 < len(one.split()) <= _MOST_PHRASE}


def named_values(text: str) -> list[tuple[str, str]]:
    """The short values that stand under a name, in JSON or on a line of their own; the text need not be whole."""
    found = [(name, text or number) for name, text, number in _JSON_VALUE.findall(text)] + _LINE_VALUE.findall(text)
    return [(name, value.strip()) for name, value in found if len(value.split()) <= _MOST_WORDS]


def _plain(text: str) -> str:
    """Without the escapes of JSON within JSON, for `\\nname` is no name; but a backslash may be a path's own."""
    if text.count("\\n") > text.count("\n") and not _DRIVE.search(text):
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    return text.replace('\\"', '"').replace("\\/", "/") if "\\" in text else text


_SHORT = 80
"""Characters of a value that is one thing, not a text."""
_BODY = 200
"""Characters from which an argument is a text with words of its own: code to write, a letter to send."""


class Seen:
    """Where a word was seen; the places add up. Plain numbers, for there are many words."""

    USER = 1
    ASSISTANT = 2
    ARGUMENT = 4
    BODY = 8
    """In a long argument."""
    RESULT = 16
    TOOL = 32
    """As a tool's name."""
    FIELD = 64
    """As a name that values stand under."""
    WHOLE = 128
    """As the whole of an argument."""
    NAMED = 256
    """As a value under a name."""
    NAME = 512
    """With a capital though it begins no sentence."""
    EARLIER = 1024
    """In the ledger of an earlier compaction."""


@dataclass(slots=True, kw_only=True)
class Sighting:
    """Changed while messages are read, and by nobody afterwards."""

    seen: int
    last: int
    """The place of the message that had it last, from 0."""
    times: int = 1
    name: str | None = None
    """Under which it stood last."""
    rank: float = 1.0
    """Where it stood in its line of an earlier ledger: from 0 for the first to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """A text of a message, and where it stands."""

    seen: int
    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Sightings:
    """Grows while messages are read."""

    found: dict[str, Sighting] = field(default_factory=dict[str, Sighting])

    def read(self, messages: Sequence[Message]) -> Steps[None]:
        for place, message in enumerate(messages):
            for said in _said(message):
                for text in slices(said.text):
                    self._read(text, said.seen, place)
                    yield
                # A short argument is one value, though it may be several words.
                whole = said.text.strip()
                if said.seen == Seen.ARGUMENT and 1 < len(whole) <= _SHORT:
                    self.add(whole, Seen.WHOLE | Seen.ARGUMENT, place, name=said.name)

    def _read(self, text: str, seen: int, place: int) -> None:
        for word, times in words(text).items():
            for one in candidates(word) if len(word) <= LONGEST else ():
                self.add(one, seen, place, times=times)
        if seen in (Seen.RESULT, Seen.USER):
            self._read_values(text, seen, place)
        if seen in (Seen.ASSISTANT, Seen.USER, Seen.RESULT):
            for phrase in phrases(text):
                self.add(phrase, seen | Seen.NAME, place)
        if seen in (Seen.ASSISTANT, Seen.USER):
            for name in names(text):
                self.add(name, Seen.NAME, place)

    def read_text(self, text: str, seen: int = Seen.EARLIER, rank: float = 1.0) -> None:
        """The words of a text that is no message."""
        for word in words(text):
            for one in candidates(word) if len(word) <= LONGEST else ():
                known = self.add(one, seen, -1)
                known.rank = min(known.rank, rank)

    def _read_values(self, text: str, seen: int, place: int) -> None:
        for name, value in named_values(text):
            self.add(value, seen | Seen.NAMED, place, name=name)
            self.add(name, Seen.FIELD, place)

    def add(self, word: str, seen: int, place: int, *, times: int = 0, name: str | None = None) -> Sighting:
        """`times` is 0 where the word was counted elsewhere."""
        known = self.found.get(word)
        if known is None:
            known = self.found[word] = Sighting(seen=seen, last=place, times=times or 1, name=name)
            return known
        known.seen |= seen
        known.last = max(known.last, place)
        known.times += times
        known.name = name or known.name
        return known


def _said(message: Message) -> Iterator[_Said]:
    speaker = Seen.ASSISTANT if message.role == "assistant" else Seen.USER
    for part in message.parts:
        yield from _said_in(part, speaker)


def _said_in(part: Part, speaker: int) -> Iterator[_Said]:
    match part:
        case Text(text) | Thinking(text=text):
            yield _Said(seen=speaker, text=text)
        case ToolCall():
            yield _Said(seen=Seen.TOOL, text=part.name)
            yield from _values(_arguments(part.arguments), Seen.ARGUMENT)
        case ToolResult():
            for inner in part.parts:
                yield from _said_in(inner, Seen.RESULT)
        case Unknown(value):
            yield from _values(value, speaker)
        case _:
            yield _Said(seen=speaker, text=part.url or "")


def _arguments(text: str) -> Json:
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return text


def _values(value: Json, seen: int) -> Iterator[_Said]:
    """The texts and numbers within a JSON value, each with the name it stands under; however deep."""
    waiting: list[tuple[str | None, Json]] = [(None, value)]
    while waiting:
        name, one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(one.items())
        elif isinstance(one, list):
            waiting.extend((name, inner) for inner in one)
        elif isinstance(one, str | int | float) and not isinstance(one, bool):
            text = str(one)
            is_body = seen == Seen.ARGUMENT and (len(text) > _BODY or "\n" in text)
            said_under = _Said(seen=Seen.BODY if is_body else seen, text=text, name=name)
            yield said_under


_FORM: Mapping[Kind, float] = {
    Kind.LINK: 1.4,
    Kind.MAIL: 1.5,
    Kind.PATH: 1.5,
    Kind.FILE: 1.3,
    Kind.DATE: 0.9,
    Kind.NUMBER: 1.2,
    Kind.HASH: 1.0,
    Kind.CODED: 2.5,
    Kind.DOTTED: 0.7,
    Kind.JOINED: 0.6,
    Kind.CAPITALS: 0.6,
    Kind.FLAG: 0.8,
    Kind.DASHED: 0.2,
    Kind.PHRASE: 0.3,
    Kind.NAME: -1.2,
    Kind.WORD: -1.2,
}
_RANKING_PLACE: Mapping[int, float] = {
    Seen.USER: 0.4,
    Seen.ASSISTANT: 0.2,
    Seen.ARGUMENT: 0.8,
    Seen.BODY: 0.2,
    Seen.WHOLE: 0.9,
    Seen.FIELD: -0.8,
    Seen.EARLIER: 1.0,
}
_ONLY_READ = -0.6
"""For what stood in results and was taken up by nobody."""
_ONCE = -0.2
_PLAIN_WHOLE = 0.6
"""For a plain word, number or phrase that was the whole of an argument."""
_IDENTIFYING = 1.0
"""For a value under a name that says that it identifies."""
_AGE = 0.8
"""Lost by what was last seen a thousand messages ago; a tenth of them costs two thirds of it."""
_RANK = 2.0
"""Lost by the last of its line in an earlier ledger, against the first."""
_DIGIT = 0.04
_LENGTH, _PATH_LENGTH = 0.8, 0.3
"""For what fills a place that shorter words could have; a path is long by its nature."""

_PLAIN = frozenset({Kind.WORD, Kind.NAME, Kind.CAPITALS, Kind.PHRASE, Kind.NUMBER})
_MEANT = Seen.ARGUMENT | Seen.NAMED | Seen.TOOL | Seen.EARLIER
_MEANT_NAME = _MEANT | Seen.NAME
"""Where a plain word stands for a thing."""
_IDENTIFIER = re.compile(
    r"(?:^|[_\-a-z ])(?:id|number|code|key|name|path|file|url|email|date|hash|sha|ref|uuid|slug|version|branch|amount"
    r"|price|total)s?$",
    re.IGNORECASE,
)


def points(word: str, sighting: Sighting, messages: int) -> float | None:
    """None for a word of everyday language."""
    kind, seen = kind_of(word), sighting.seen
    if (kind is Kind.WORD and not seen & _MEANT) or (kind is Kind.NAME and not seen & _MEANT_NAME):
        return None
    age = log1p(messages - 1 - sighting.last) / log(1000)
    total = _ONCE if sighting.times == 1 else 0.0
    if sighting.seen & Seen.WHOLE and kind in _PLAIN:
        total += _PLAIN_WHOLE
    if sighting.seen & Seen.NAMED and sighting.name is not None and _IDENTIFIER.search(sighting.name):
        total += _IDENTIFYING
    if sighting.seen & Seen.EARLIER:
        total -= _RANK * sighting.rank
    of_use = total
    length = _PATH_LENGTH if kind in (Kind.PATH, Kind.LINK) else _LENGTH
    cost = length * log(1 + len(word) / 5) - _DIGIT * sum(map(str.isdigit, word))
    return _FORM[kind] + _of_places(seen) + of_use - _AGE * age - cost


@lru_cache(maxsize=4_096)
def _of_places(seen: int) -> float:
    only_read = seen | Seen.NAMED == Seen.RESULT | Seen.NAMED
    return sum(worth for place, worth in _RANKING_PLACE.items() if place & seen) + (_ONLY_READ if only_read else 0.0)


_FULL = 0.98
"""Of the room: what is left then is not worth another count."""
_LONG = 32
"""Characters of a word or a command that is not repeated for the few that it has beside what is known."""
_EDGE = re.compile(r"[/.:]+")
_RECORDS, _ALONE, _BESIDE = 0.90, 6.0, 1.0
"""Share of the room that records may fill at most: so many times the part that the room is of what is let go, or of its
square where something else relates things: a model's summary, or results that were written in fewer words. Records take
more room than a list of the same words: where much is let go for little room, more is found in a list."""
_RECORDED = 0.2
"""Rank of a word of an earlier record, from 0 for the first of a line to 1."""
_STANDS_FOR = 20
"""Times its own size that an earlier ledger stands for."""
_CHARACTERS = 4
"""Of a token, where a text is only gauged."""
_SPOKEN = Seen.USER | Seen.ASSISTANT | Seen.ARGUMENT
"""Where a value is seen that somebody spoke of, and that was not only read."""
_BATCH = 1_000
"""Words that are looked at before others are let in."""


def identifiers(
    messages: Sequence[Message],
    *,
    room: int,
    count: Callable[[str], int],
    earlier: Sequence[str] = (),
    beside: Sequence[Message] = (),
) -> str:
    """What may be needed to the letter of messages that are let go, within `room` tokens.

    Words of `earlier` ledgers compete for a place. `beside` is what stays: what it says is not repeated.
    """
    return drain(identifier_steps(messages, room=room, count=count, earlier=earlier, beside=beside))


def identifier_steps(  # noqa: PLR0913
    messages: Sequence[Message],
    *,
    room: int,
    count: Callable[[str], int],
    earlier: Sequence[str] = (),
    beside: Sequence[Message] = (),
    alone: bool = True,
    related: Sequence[Message] | None = None,
) -> Steps[str]:
    """The same in steps of a few milliseconds. `alone` where no model has said what belongs together; `related` are the
    messages of whose results records are made, all where it is None."""
    said, staying = Sightings(), Sightings()
    yield from said.read(messages)
    yield from staying.read(beside)
    for text in earlier:
        _recall(said, text)
        yield
    records = yield from records_of(messages if related is None else related)
    records = [*(one for text in earlier for one in read_records(text, records)), *records]
    spoken = {word for found in (said.found, staying.found) for word, seen in found.items() if seen.seen & _SPOKEN}
    # About how many tokens messages have, and had of which only a ledger is left.
    texts = (part.parts if isinstance(part, ToolResult) else (part,) for one in messages for part in one.parts)
    parts = (part for inner in texts for part in inner)
    size = sum(
        len(part.text if isinstance(part, Text) else part.arguments if isinstance(part, ToolCall) else "")
        for part in parts
    )
    gauged = (size + _STANDS_FOR * sum(map(len, earlier))) // _CHARACTERS
    part = room / max(1, gauged)
    share = min(_RECORDS, _ALONE * part if alone else _BESIDE * part**2)
    lines = yield from fit_records(records, spoken, int(share * room), count)
    told = "\n".join(lines)
    for text in slices(told):
        staying.read_text(text)
        yield
    kept = yield from _with_parts(staying.found)
    ranked = yield from _ranked(said, kept, len(messages))
    left = room - (count(told) + 1 if told else 0)
    items = [
        item_of(word, said.found[word].name)
        for word in ranked[: max(0, left)]
        if not ((" " in word and word in told) or _is_repeated(word, kept))
    ]
    listed = yield from _fitted(items, left, count)  # A word has a token at least.
    return "\n".join(filter(None, (told, listed)))


def _recall(said: Sightings, ledger: str) -> None:
    """What an earlier ledger lists; of its records, each word, should the record find no place again."""
    for line in ledger.split("\n"):
        if line.startswith(MARK):
            said.read_text(line.removeprefix(MARK), Seen.EARLIER, rank=_RECORDED)
    for item in read_identifiers(ledger):
        seen = Seen.EARLIER if item.name is None else Seen.EARLIER | Seen.NAMED
        said.add(item.word, seen, -1, name=item.name).rank = item.rank


def _ranked(said: Sightings, staying: set[str], messages: int) -> Steps[list[str]]:
    scored = list[tuple[float, str]]()
    for place, (word, sighting) in enumerate(said.found.items()):
        worth = points(word, sighting, messages)
        if worth is not None and word not in staying and can_stand(word):
            scored.append((-worth, word))
        if place % _BATCH == _BATCH - 1:
            yield
    yield
    return [word for _, word in sorted(scored)]


def _fitted(items: Sequence[Item], room: int, count: Callable[[str], int]) -> Steps[str]:
    best, fits, fails, guess = "", 0, len(items) + 1, len(items)
    while fits + 1 < fails:
        yield
        text = write(_without_parts(items[:guess]))
        tokens = count(text)
        if tokens > room:
            fails = guess
        else:
            best, fits = text, guess
            if tokens > _FULL * room:
                break
        guess = min(max(guess * room // max(1, tokens), fits + 1), fails - 1)
    return best


def _without_parts(items: Sequence[Item]) -> Iterator[Item]:
    """Without what begins or ends another: a file's name where its path is there, an object where its member is."""
    parts = {part for item in items for part in _parts(item.word)}
    return (item for item in items if item.word not in parts)


def _is_repeated(word: str, kept: Set[str]) -> bool:
    """Whether a long word or command names nothing but what stands beside."""
    if len(word) < _LONG:
        return False
    if " " not in word:
        return word.startswith("./") and word[2:] in kept
    named = [one for one in word.split() if kind_of(one) not in (Kind.WORD, Kind.NAME)]
    return bool(named) and all(one in kept for one in named)


def _with_parts(words: Iterable[str]) -> Steps[set[str]]:
    found = set[str]()
    for place, word in enumerate(words):
        found.update((word, *_parts(word)))
        if place % _BATCH == _BATCH - 1:
            yield
    return found


def _parts(word: str) -> Iterator[str]:
    for edge in _EDGE.finditer(word, 1):
        yield word[: edge.start()]
        yield word[edge.start() :]
        yield word[edge.end() :]
