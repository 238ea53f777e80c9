"""Extracts identifiers (paths, URLs, ids, names) from dropped messages and ranks them.

The ledger lists the most likely identifiers, as many as fit the room. An identifier that is in the messages beside the
ledger is left out, and so is a part of one that is listed.

The ledger has a line for each name or kind that identifiers share, best first. Identifiers are separated by spaces, and
one with spaces is between backticks. Each is written exactly as it occurred.

The rank is a sum of points, similar to log-odds: what the word looks like, who said it and as what, and how long ago,
less the cost of writing it. Most points were fitted on one half of recorded sessions. The cost of length and the worth
of numbers were settled with the other half in view as well, so that only sessions of another origin are a fair test.

A word is a run of characters of file names, addresses, symbols, flags and numbers, without the punctuation around it.
Whether a word is worth keeping is decided by its rank alone.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from json import loads
from math import log, log1p

from ullage.messages import Message, Part, Text, Thinking, ToolCall, ToolResult, Unknown, join_texts
from ullage.tokens import Steps, drain
from ullage.tool import Json

from .structured_text import Kind, kind_of, read_structure
from .structured_values import (
    MARK,
    count_objects,
    fit_records,
    is_record,
    read_records,
    records_of,
    scalars,
    words_asked,
    write_value,
)
from .tool_pairs import is_marked, split_note

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
_NAME = re.compile(r"(?!- )[\w.-]{1,41}(?: [\w-]{1,20})?")
"""Names that may begin a line. They come from arbitrary JSON."""
_ITEM = re.compile(r"`([^`]+)`|(\S+)")


@dataclass(frozen=True, slots=True)
class Item:
    word: str
    label: str
    """Label of the line: the name that the word had in a call or a result, else the kind of the word."""
    rank: float = 1.0
    """Position in its line, from 0 for the first to 1."""

    @property
    def name(self) -> str | None:
        return None if self.label in _KINDS else self.label


def item_of(word: str, name: str | None) -> Item:
    return Item(word, name if name and _NAME.fullmatch(name) else _LABELS.get(kind_of(word), _OTHER))


def can_stand(word: str) -> bool:
    """Return whether a word can be written so that it can be read back."""
    return "`" not in word and word.isprintable()


def write(items: Iterable[Item]) -> str:
    """Write items, best first, as lines. The line with the best item comes first."""
    lines: dict[str, list[str]] = {}
    for item in items:
        lines.setdefault(item.label, []).append(f"`{item.word}`" if " " in item.word else item.word)
    return "\n".join(f"{label}: {' '.join(found)}" for label, found in lines.items())


def read_identifiers(text: str) -> tuple[Item, ...]:
    """Return the items of a ledger. Lines that are not in ledger format are skipped."""
    return tuple(item for line in text.split("\n") for item in _read_line(line))


def _read_line(line: str) -> Iterator[Item]:
    label, colon, rest = line.partition(": ")
    found = _ITEM.findall(rest) if colon and _NAME.fullmatch(label) else []
    for place, (quoted, plain) in enumerate(found):
        yield Item(quoted or plain, label, place / len(found))


_SLICE = 65_536
"""Characters that are read in one step: a few milliseconds."""
LONGEST = 160
"""Most characters of a candidate. A longer word is data."""
_WORD = re.compile(
    r"""https?://[^\s"'<>`\\)\]}|]+|[A-Za-z]:\\[\w\\.-]+|[$€£¥]?\d{1,3}(?:,\d{3}){1,6}(?:\.\d+)?(?![\w,])|[\w.@/:#$€£¥%+~?*-]+"""
)
_BEFORE, _AFTER = ":?*%+", ".,:;!?*-/~$@"
_NOISE = re.compile(r"^(?:\.{3,}|~(?=\d)|-(?=\d{3}))")
"""An ellipsis, a mark of an approximate number, and the sign before a line of a diff."""
_PLACE = re.compile(r"(.*[/.].*?):(\d[\d:,-]*)$")
"""A place in a file, as searches print it. File and line number count separately, not as a pair."""
_DRIVE = re.compile(r"\b[A-Za-z]:\\\w")
_WORDS_NAME = re.compile(r"(?<=[\w,] )[A-Z][^\W\d_]+")
"""A capitalised word that does not begin a sentence."""
_CAPITAL = r"[A-Z][^\W\d_]*+(?:[-'’&][^\W\d_]++)*+"
_SMALL = r"(?:(?:of|the|and|for|in|on|at|to|a|de|la|le|du|da|van|von|der|den|del|di) ){0,2}"
_PROPER = re.compile(rf"(?<!\w){_CAPITAL}(?: {_SMALL}{_CAPITAL}){{0,5}}(?: \([^()\n]{{2,30}}\))?")
_QUOTED = re.compile(
    r"""(?<!\w)(?:'([^\W_][^'"“”\n]{1,60}[\w).!?])'|"([^\W_][^"“”\n]{1,60}[\w).!?])"|“([^“”\n]{2,60})”)(?!\w)"""
)
_PAIRS = re.compile(r"(?<![\w=,./-])[\w./-]+=[\w./-]+(?:,[\w./-]+=[\w./-]+)+(?![\w=,./-])")
"""Several names with values, as label selectors are written: `app=checkout,version=blue`. Calls repeat them whole."""
_MOST_PHRASE = 6
"""Most words of a title or a name. More are a sentence."""
_JSON_VALUE = re.compile(r'"([A-Za-z_][\w.-]{0,40})"\s?:\s?(?:"([^"\n\\]{2,80})"|(-?\d[\d.]*))')
_LINE_VALUE = re.compile(
    r"""^[ \t]*(?:- )?([A-Za-z_][\w-]{1,30}(?: [\w-]{1,20})?): ([^\s'"{}\[\](),;<>][^\n'"{}\[\](),;<>]{1,58})$""",
    re.MULTILINE,
)
_MOST_WORDS = 4
"""Most words of a value of a key. More are a sentence."""


def slices(text: str) -> Iterator[str]:
    """Yield a text in short pieces, divided at white space if possible, with escapes resolved."""
    start = 0
    while start < len(text):
        end = start + _SLICE
        if end < len(text):
            end = max(text.rfind(" ", start, end), text.rfind("\n", start, end)) + 1 or end
        yield _plain(text[start:end])
        start = end


def words(text: str) -> Counter[str]:
    """Return the words of a text with their numbers of occurrences."""
    return Counter(_WORD.findall(text))


@lru_cache(maxsize=32_768)
def candidates(word: str) -> tuple[str, ...]:
    """Return the possible identifiers in a word: usually the word without the punctuation at its ends. Call it only for
    words of at most `LONGEST` characters, since longer ones would fill the cache."""
    bare = _NOISE.sub("", word.lstrip(_BEFORE).rstrip(_AFTER))
    place = None if "://" in bare else _PLACE.match(bare)
    found = (bare,) if place is None else place.groups()
    return tuple(one for one in found if len(one) > 1 and any(map(str.isalnum, one)))


def names(text: str) -> list[str]:
    """Return capitalised words that do not begin a sentence."""
    return _WORDS_NAME.findall(text)


def phrases(text: str) -> set[str]:
    """Return titles and names of several words: between quotation marks, or capitalised."""
    quoted = (one.strip() for found in _QUOTED.findall(text) for one in found)
    return {one for one in (*_PROPER.findall(text), *quoted) if 1 < len(one.split()) <= _MOST_PHRASE}


def named_values(text: str) -> list[tuple[str, str]]:
    """Return the short values of keys, in JSON or on lines of their own. The text may be truncated."""
    found = [(name, text or number) for name, text, number in _JSON_VALUE.findall(text)] + _LINE_VALUE.findall(text)
    return [(name, value.strip()) for name, value in found if len(value.split()) <= _MOST_WORDS]


def _plain(text: str) -> str:
    r"""Remove the escapes of JSON within JSON, so that `\nname` is not read as a name. A backslash may also belong to a
    path."""
    if "\\u" in text:
        text = _UNICODE.sub(_unescaped, text)
    if text.count("\\n") > text.count("\n") and not _DRIVE.search(text):
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    return text.replace('\\"', '"').replace("\\/", "/") if "\\" in text else text


def _unescaped(found: re.Match[str]) -> str:
    """Return the characters for which escapes stand; the escapes themselves for half a surrogate pair or a control
    character."""
    try:
        text = found[0].encode().decode("unicode-escape").encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return found[0]
    return text if text.isprintable() else found[0]


_UNICODE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
"""Letters as JSON escapes them: `Malm\\u00f6`. The same name is not escaped where a call repeats it."""
_SHORT = 80
"""Most characters of a value that is one thing, not a text."""
_BODY = 200
"""Characters from which an argument is a text with words of its own, such as code or a letter."""


class Seen:
    """Where a word was seen. The flags are combined. Plain integers, since there are many words."""

    USER = 1
    ASSISTANT = 2
    ARGUMENT = 4
    BODY = 8
    """In a long argument."""
    RESULT = 16
    TOOL = 32
    """As the name of a tool."""
    FIELD = 64
    """As the key of a value."""
    WHOLE = 128
    """As a whole argument."""
    NAMED = 256
    """As the value of a key."""
    NAME = 512
    """Capitalised without beginning a sentence."""
    EARLIER = 1024
    """In the ledger of an earlier compaction."""


@dataclass(slots=True, kw_only=True)
class Sighting:
    """Occurrences of a word. It is changed only while messages are read."""

    seen: int
    last: int
    """Place of the last message with the word, from 0."""
    times: int = 1
    name: str | None = None
    """The last key that the word was a value of."""
    rank: float = 1.0
    """Position in its line of an earlier ledger, from 0 for the first to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """A text of a message and where it was seen."""

    seen: int
    text: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Sightings:
    """The occurrences of all words. Grows while messages are read."""

    found: dict[str, Sighting] = field(default_factory=dict[str, Sighting])

    def read(self, messages: Sequence[Message]) -> Steps[None]:
        for place, message in enumerate(messages):
            for said in _said(message):
                for text in slices(said.text):
                    self._read(text, said.seen, place)
                    yield
                # A short argument is one value, even if it has several words.
                whole = said.text.strip()
                if said.seen == Seen.ARGUMENT and 1 < len(whole) <= _SHORT:
                    self.add(whole, Seen.WHOLE | Seen.ARGUMENT, place, name=said.name)

    def _read(self, text: str, seen: int, place: int) -> None:
        for word, times in words(text).items():
            for one in candidates(word) if len(word) <= LONGEST else ():
                self.add(one, seen, place, times=times)
        for name, value in named_values(text) if seen in (Seen.RESULT, Seen.USER) else ():
            self.add(value, seen | Seen.NAMED, place, name=name)
            self.add(name, Seen.FIELD, place)
        for pairs in _PAIRS.findall(text) if "=" in text else ():
            if len(pairs) <= _SHORT:
                self.add(pairs, seen, place)
        if seen in (Seen.ASSISTANT, Seen.USER, Seen.RESULT):
            for phrase in phrases(text):
                self.add(phrase, seen | Seen.NAME, place)
        if seen in (Seen.ASSISTANT, Seen.USER):
            for name in names(text):
                self.add(name, Seen.NAME, place)

    def read_text(self, text: str, seen: int = Seen.EARLIER, rank: float = 1.0) -> None:
        """Read the words of a text that is not a message."""
        for word in words(text):
            for one in candidates(word) if len(word) <= LONGEST else ():
                known = self.add(one, seen, -1)
                known.rank = min(known.rank, rank)

    def add(self, word: str, seen: int, place: int, *, times: int = 0, name: str | None = None) -> Sighting:
        """Record an occurrence. `times` is 0 if the word was counted elsewhere."""
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
                if isinstance(inner, Text) and is_marked(inner.text):
                    yield _Said(seen=Seen.RESULT, text=split_note(inner.text)[0])
                else:
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
    """Yield the texts and numbers in a JSON value, at any depth, each with its key."""
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
    Seen.EARLIER: 0.3,
}
_ONLY_READ = -0.6
"""Points for a word that only occurred in results and was not used afterwards."""
_NEWEST = 2
"""Newest messages, whose words are not expected to have been used."""
_ONCE = -0.2
_PLAIN_WHOLE = 0.6
"""Points for a plain word, number or phrase that was a whole argument."""
_IDENTIFYING = 1.0
"""Points for a value of a key that identifies something."""
_AGE = 0.8
"""Points lost by a word last seen a thousand messages ago. One last seen a hundred ago loses two thirds of that."""
_RANK = 2.0
"""Points lost by the last word of a line in an earlier ledger, compared with the first."""
_DIGIT = 0.04
_LENGTH, _PATH_LENGTH = 0.8, 0.3
"""Points lost by long words, which take the room of shorter ones; less for paths, which are long by nature."""

_PLAIN = frozenset({Kind.WORD, Kind.NAME, Kind.CAPITALS, Kind.PHRASE, Kind.NUMBER})
_MEANT = Seen.ARGUMENT | Seen.NAMED | Seen.TOOL | Seen.EARLIER
_MEANT_NAME = _MEANT | Seen.NAME
"""Places in which a plain word names a thing."""
_IDENTIFIER = re.compile(
    r"(?:^|[_\-a-z ])(?:id|number|code|key|name|path|file|url|email|date|hash|sha|ref|uuid|slug|version|branch|amount"
    r"|price|total)s?$",
    re.IGNORECASE,
)


def points(word: str, sighting: Sighting, messages: int) -> float | None:
    """Return the points of a word; None for a word of everyday language."""
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
    if sighting.last >= messages - _NEWEST and _is_only_read(seen):
        # Nothing came after it that could have used it.
        total -= _ONLY_READ
    of_use = total
    length = _PATH_LENGTH if kind in (Kind.PATH, Kind.LINK) else _LENGTH
    cost = length * log(1 + len(word) / 5) - _DIGIT * sum(map(str.isdigit, word))
    return _FORM[kind] + _of_places(seen) + of_use - _AGE * age - cost


@lru_cache(maxsize=4_096)
def _of_places(seen: int) -> float:
    only_read = _ONLY_READ if _is_only_read(seen) else 0.0
    return sum(worth for place, worth in _RANKING_PLACE.items() if place & seen) + only_read


def _is_only_read(seen: int) -> bool:
    return seen | Seen.NAMED == Seen.RESULT | Seen.NAMED


_FULL = 0.98
"""Share of the room that is filled. What is left is not worth another count."""
_LONG = 32
"""Characters from which a word or command is left out if it adds only a few to a known one."""
_EDGE = re.compile(r"[/.:]+")
_RECORDS, _ALONE, _BRIEF, _BESIDE = 0.90, 6.0, 2.5, 1.0
"""Largest share of the room for records, and the factors that limit it further. Without other text that relates things,
or with a summary that says next to nothing, the factor applies to the ratio of the room to the dropped text. With a
model's summary or results written in fewer words, it applies to the square of that ratio. Records take more room than a
list of the same words: if much is dropped for little room, a list contains more."""
_RECORDED = 0.2
"""Rank of a word of an earlier record, from 0 for the first of a line to 1."""
_STANDS_FOR = 20
"""Factor by which the text behind the words of an earlier ledger is larger than these. Its records stand for as much
as they are."""
_CHARACTERS = 4
"""Characters of a token in a rough estimate."""
_SPOKEN = Seen.USER | Seen.ASSISTANT | Seen.ARGUMENT
"""Places in which a value was mentioned, rather than only read in a result."""
_BATCH = 1_000
"""Words that are examined in one step."""


def identifiers(
    messages: Sequence[Message],
    *,
    room: int,
    count: Callable[[str], int],
    earlier: Sequence[str] = (),
    beside: Sequence[Message] = (),
) -> str:
    """Return the identifiers of dropped messages that may be needed verbatim.

    Args:
        messages: The dropped messages.
        room: Most tokens of the result.
        count: Counts the tokens of a text.
        earlier: Earlier ledgers, whose words compete for the room.
        beside: Messages that stay. What they contain is not repeated.
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
    brief: bool = False,
    related: Sequence[Message] | None = None,
) -> Steps[str]:
    """Return the identifiers as in `identifiers`, in steps of a few milliseconds.

    Args:
        messages: The dropped messages.
        room: Most tokens of the result.
        count: Counts the tokens of a text.
        earlier: Earlier ledgers, whose words compete for the room.
        beside: Messages that stay. What they contain is not repeated.
        alone: Whether no model's summary relates the identifiers.
        brief: Whether a model's summary relates hardly any.
        related: Messages whose results become records; None for all.
    """
    said, staying = Sightings(), Sightings()
    # Results that an earlier compaction masked or cut have notes in the form of a ledger.
    results = (part for message in messages for part in message.parts if isinstance(part, ToolResult))
    marked = (text for result in results if is_marked(text := join_texts(result.parts)))
    earlier = (*earlier, *filter(None, (split_note(text)[1] for text in marked)))
    yield from said.read(messages)
    yield from staying.read(beside)
    for text in earlier:
        # Each word of an earlier record is kept as well, in case the record finds no place.
        for line in text.split("\n"):
            if line.startswith(MARK):
                said.read_text(line.removeprefix(MARK), Seen.EARLIER, rank=_RECORDED)
        for item in read_identifiers(text):
            named = Seen.EARLIER if item.name is None else Seen.EARLIER | Seen.NAMED
            said.add(item.word, named, -1, name=item.name).rank = item.rank
        yield
    records = yield from records_of(messages if related is None else related)
    records = [*(one for text in earlier for one in read_records(text, records)), *records]
    spoken = {word for found in (said.found, staying.found) for word, seen in found.items() if seen.seen & _SPOKEN}
    spoken.update(*map(words_asked, earlier))
    # The approximate number of tokens of the messages, and of the text behind earlier ledgers.
    texts = (part.parts if isinstance(part, ToolResult) else (part,) for one in messages for part in one.parts)
    parts = (part for inner in texts for part in inner)
    size = sum(
        len(part.text if isinstance(part, Text) else part.arguments if isinstance(part, ToolCall) else "")
        for part in parts
    )
    recorded = sum(len(line) for text in earlier for line in text.split("\n") if line.startswith(MARK))
    gauged = (size + recorded + _STANDS_FOR * (sum(map(len, earlier)) - recorded)) // _CHARACTERS
    part = room / max(1, gauged)
    share = min(_RECORDS, _ALONE * part if alone else _BRIEF * part if brief else _BESIDE * part**2)
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
    listed = yield from _fitted(items, left, count)  # A word has at least one token.
    return "\n".join(filter(None, (told, listed)))


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
        # Items that begin or end another are left out: a file's name if its path is listed, or an object whose member
        # is.
        parts = {part for item in items[:guess] for part in _parts(item.word)}
        text = write(item for item in items[:guess] if item.word not in parts)
        tokens = count(text)
        if tokens > room:
            fails = guess
        else:
            best, fits = text, guess
            if tokens > _FULL * room:
                break
        guess = min(max(guess * room // max(1, tokens), fits + 1), fails - 1)
    return best


def _is_repeated(word: str, kept: Set[str]) -> bool:
    """Return whether a long word or command contains only what is listed already."""
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
