"""A result laid out in parts and units, and kept in packed pieces.

A result is a row of parts, one a block of content; each part is text in units (`layout`). It is kept in packed
pieces of some thousand characters that end between units, so that a page is read without the rest. Where the pieces
lie is not known here.

The records of a JSON text that is an array, or an object in which one array is most of it; the lines of any other. A
long line is parted further: after a comma of JSON, else between words, else between characters that do not belong
together, which is the only place where a value may be parted. What is kept or shown of the units is decided elsewhere.

One part a block: its text where it has one, else the block itself as JSON. Blocks that are a JSON object each, as many
servers answer with a list, are one part with a record a block. Structured content is a part of its own only where it
says what the blocks do not. How parts are laid out and kept is decided elsewhere.

By the one meter, for the model that stands for the caller, at the upper edge where a count has a band: what is held to
a budget by this never exceeds it. Where a client shows only so many characters of a reply, a text weighs at least its
share of them, so that what fits the budget fits the client as well.
"""

import json
import math
import re
import unicodedata
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from ullage.messages import Media
from ullage.table import Continued, Path, Scanned, scan
from ullage.tokens import Meter, Steps
from ullage.tool import Block, Json, Reply, Structured

from ..metering import Unwritten, characters, shown, weighed

__all__ = [
    "LONGEST",
    "Content",
    "Held",
    "Kind",
    "Layout",
    "Packed",
    "Part",
    "Scale",
    "Shape",
    "are_objects",
    "boundary",
    "contents",
    "is_recodable",
    "is_repeated",
    "is_worth_recoding",
    "joined",
    "lines_of",
    "one_unit",
    "pack",
    "packed_size",
    "read_shapes",
    "survey",
    "text_of",
    "unpack",
    "write_shapes",
]

Kind = Literal["records", "lines", "block"]
"""A block is one unit, whatever it is."""

_LONGEST = 240
"""Characters of a line that is not parted."""
_MOST_LINES = 2_000_000
_STRIDE = 500
"""Units found before others are let in."""
_COMMA = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\Z)|,', re.DOTALL)
"""A JSON string, even where its end is cut off, or a comma that stands in none."""
_JOINING = "\u200d"
_BACK = 32
"""Characters that a boundary is moved at most for the sake of what belongs together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    kind: Kind
    spans: "array[int]"
    """Beginning and end of each unit, by turns."""
    body: tuple[int, int]
    """Where the units stand; what is before and behind surrounds them."""
    path: Path = ()
    """Where in the document the records stand."""
    is_json: bool = False
    """Whether it looks like JSON."""

    def __len__(self) -> int:
        return len(self.spans) // 2

    def span(self, unit: int) -> tuple[int, int]:
        return self.spans[2 * unit], self.spans[2 * unit + 1]

    def unit(self, text: str, unit: int) -> str:
        """One of them, of the text that was laid out; known as `Continued` where it is not the first of a line."""
        start, end = self.span(unit)
        is_continued = unit > 0 and self.spans[2 * unit - 1] == start
        return Continued(text[start:end]) if is_continued else text[start:end]


def survey(text: str) -> Steps[Layout]:
    """The layout of a text."""
    begins, ends = text[:100].lstrip()[:1], text[-100:].rstrip()[-1:]
    if begins + ends not in ("[]", "{}"):
        return (yield from lines_of(text))
    scanned = yield from scan(text)
    if scanned is None or scanned.count < 2 or not scanned.is_most_of(text):
        return (yield from lines_of(text, is_json=True))
    return (yield from _records(text, scanned))


def _records(text: str, scanned: Scanned) -> Steps[Layout]:
    spans = array("q")
    for record in scanned.records(text):
        spans.extend((record.start, record.end))
        if len(spans) % (2 * _STRIDE) == 0:
            yield
    body = scanned.start + 1, scanned.end - 1
    return Layout(kind="records", spans=spans, body=body, path=scanned.path, is_json=True)


def one_unit(text: str) -> Layout:
    """The layout of what is never parted."""
    return Layout(kind="block", spans=array("q", (0, len(text))), body=(0, len(text)))


def lines_of(text: str, *, is_json: bool = False) -> Steps[Layout]:
    spans = array("q")
    for number, span in enumerate(_line_spans(text, is_json=is_json), 1):
        spans.extend(span)
        if number % _STRIDE == 0:
            yield
    return Layout(kind="lines", spans=spans, body=(0, len(text)), is_json=is_json)


def _line_spans(text: str, *, is_json: bool) -> Iterator[tuple[int, int]]:
    # Millions of lines of a letter or two are taken several at a time.
    least = len(text) // _MOST_LINES if text.count("\n") > _MOST_LINES else 0
    start = 0
    while start < len(text):
        end = text.find("\n", start + least)
        end = len(text) if end < 0 else end
        if end - start <= _LONGEST:
            yield start, end
        else:
            yield from _parted(text, start, end, is_json=is_json)
        start = end + 1


def _parted(text: str, start: int, end: int, *, is_json: bool) -> Iterator[tuple[int, int]]:
    """One long line, in parts."""
    for stop in _stops(text, start, end, is_json=is_json):
        while stop - start > _LONGEST:
            middle = boundary(text, start, start + _LONGEST)
            yield start, middle
            start = middle
        if stop > start:
            yield start, stop
            start = stop


def _stops(text: str, start: int, end: int, *, is_json: bool) -> Iterator[int]:
    """Places behind commas of JSON, as far apart as a line may be long or as the next comma is."""
    begun, last = start, start
    for match in _COMMA.finditer(text, start, end) if is_json else ():
        if match[0] != ",":
            continue
        if match.end() - begun > _LONGEST and last > begun:
            yield last
            begun = last
        last = match.end()
    if end - begun > _LONGEST and last > begun:
        yield last
    yield end


def boundary(text: str, start: int, limit: int, *, is_json: bool = False) -> int:
    """The best place at or before `limit` to part a text in: behind a comma of JSON, else between two words, else
    between two characters that do not belong together."""
    if limit >= len(text):
        return len(text)
    commas = (match.end() for match in _COMMA.finditer(text, start, limit) if match[0] == ",") if is_json else ()
    comma = max(commas, default=start)
    if comma > start:
        return comma
    space = max(text.rfind(" ", start + 1, limit), text.rfind("\n", start + 1, limit)) + 1
    if space > start + (limit - start) // 2:
        return space
    for place in range(limit, max(start + 1, limit - _BACK), -1):
        before = text[place - 1]
        after = text[place]
        belongs = (
            _JOINING in (before, after)
            or unicodedata.combining(after) > 0
            or unicodedata.category(after) in ("Mn", "Me", "Mc")
            or "\U0001f3fb" <= after <= "\U0001f3ff"
            or ("\udc00" <= after <= "\udfff" and "\ud800" <= before <= "\udbff")
        )
        if not belongs:
            return place
    return limit


_SURELY = 2
"""A text whose head weighs this many times the budget is over it, whatever follows."""
_HEAD = 16
"""Characters a token in that head."""


@dataclass(frozen=True, slots=True)
class Scale:
    meter: Meter
    model: str
    per_character: float = 0.0
    """Tokens that a character weighs at least: the budget divided by the characters that the client shows."""

    def weigh(self, text: str) -> Steps[int]:
        return max((yield from self.meter.steps(text, self.model)).high, self._by_length(text))

    def _by_length(self, text: str) -> int:
        return math.ceil(characters(text) * self.per_character) if self.per_character else 0

    def within(self, content: Reply | Sequence[Block], budget: int) -> Steps[int | None]:
        """The weight of a reply or some blocks; None where that is more than the budget."""
        reply = content if isinstance(content, Reply) else Reply(content=tuple(content))
        by_length = 0
        for part in shown(reply):
            if isinstance(part, Media):
                continue
            text = (yield from part.text()) if isinstance(part, Unwritten) else part
            by_length += self._by_length(text)
            if by_length > budget or (yield from self._is_over(text, budget)):
                return None
        weight = max((yield from weighed(reply, self.meter, self.model)).high, by_length)
        return weight if weight <= budget else None

    def _is_over(self, text: str, budget: int) -> Steps[bool]:
        """Whether that is certain from its head, so that the rest need not be counted."""
        head = text[: _HEAD * max(budget, _HEAD)]
        return len(head) < len(text) and (yield from self.weigh(head)) > _SURELY * budget


_PIECE = 65_536
"""Characters, or one unit where that is more."""
_QUICK = 1
"""zlib's level: JSON shrinks well even so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One block's text."""

    text: str
    layout: Layout
    label: str = ""
    """What stands above it when it is shown: a resource's address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A whole result, before it is packed."""

    principal: str
    server: str
    tool: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is known of a part without reading it."""

    kind: Kind
    is_json: bool
    path: Path
    units: int
    label: str
    first: int
    """Its first unit's number among those of the whole result."""
    start: int
    """Its first piece's number. Then come, in this order: what surrounds the units before them, the units, the rest."""
    head: int
    body: int
    tail: int

    @property
    def pieces(self) -> range:
        """Those of its units."""
        return range(self.start + self.head, self.start + self.head + self.body)

    @property
    def end(self) -> int:
        """The unit after its last."""
        return self.first + self.units


@dataclass(frozen=True, slots=True)
class Packed:
    """One piece."""

    first: int
    """Number of its first unit among those of the whole result."""
    units: int
    data: bytes


def pack(parts: Sequence[Part]) -> tuple[tuple[Shape, ...], list[Packed]]:
    """Everything, in pieces; may take long."""
    shapes, pieces, first = list[Shape](), list[Packed](), 0
    for part in parts:
        begin, end = part.layout.body
        head, body, tail = (
            list(_surrounding(part.text, 0, begin, first)),
            list(_body(part, first)),
            list(_surrounding(part.text, end, len(part.text), first + len(part.layout))),
        )
        shapes.append(
            Shape(
                kind=part.layout.kind,
                is_json=part.layout.is_json,
                path=part.layout.path,
                units=len(part.layout),
                label=part.label,
                first=first,
                start=len(pieces),
                head=len(head),
                body=len(body),
                tail=len(tail),
            )
        )
        pieces += [*head, *body, *tail]
        first += len(part.layout)
    return tuple(shapes), pieces


def packed_size(pieces: Sequence[Packed]) -> int:
    return sum(len(piece.data) for piece in pieces)


def _surrounding(text: str, start: int, end: int, first: int) -> Iterator[Packed]:
    for at in range(start, end, _PIECE):
        yield Packed(first, 0, _squeezed(array("I"), text[at : min(at + _PIECE, end)]))


def _body(part: Part, first: int) -> Iterator[Packed]:
    layout, unit = part.layout, 0
    while unit < len(layout):
        begin, last = layout.span(unit)[0] if unit else layout.body[0], unit
        while last < len(layout) and (last == unit or layout.span(last)[1] - begin <= _PIECE):
            last += 1
        end = layout.span(last)[0] if last < len(layout) else layout.body[1]
        marks = array("I", (place - begin for one in range(unit, last) for place in layout.span(one)))
        yield Packed(first + unit, last - unit, _squeezed(marks, part.text[begin:end]))
        unit = last


def _squeezed(marks: "array[int]", text: str) -> bytes:
    return zlib.compress(marks.tobytes() + text.encode("utf-8", "surrogatepass"), _QUICK)


def unpack(piece: Packed) -> tuple[str, list[str]]:
    """The text of a piece, and its units, those known as `Continued` that follow another on one line."""
    data = zlib.decompress(piece.data)
    marks = array("I")
    size = 2 * piece.units * marks.itemsize
    marks.frombytes(data[:size])
    text = data[size:].decode("utf-8", "surrogatepass")
    return text, [_unit(text, marks, place) for place in range(0, len(marks), 2)]


def _unit(text: str, marks: "array[int]", place: int) -> str:
    start, end = marks[place], marks[place + 1]
    return Continued(text[start:end]) if place and marks[place - 1] == start else text[start:end]


def write_shapes(shapes: Sequence[Shape]) -> str:
    return json.dumps([asdict(shape) for shape in shapes])


_FIELDS = tuple(field.name for field in fields(Shape))


def read_shapes(said: str) -> tuple[Shape, ...]:
    return tuple(_shape(one) for one in json.loads(said))


def _shape(said: dict[str, Any]) -> Shape:
    """What this version knows of what a newer one may have written."""
    known: dict[str, Any] = {name: said[name] for name in _FIELDS}
    known["path"] = tuple(known["path"])
    return Shape(**known)


_SHORTEST = 200
"""Characters of JSON below which writing it otherwise is not worth the trouble."""
LONGEST = 1_000_000
"""Characters above which it is not tried: reading them would hold others up."""

_AT_ONCE = 200_000
"""Characters of JSON that are read by one call of the parser."""
"""Records compared before others are let in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A part of a reply, with the blocks that show it whole."""

    part: Part
    blocks: tuple[Block, ...]


def text_of(block: Block) -> str | None:
    """The text that a block is, or that the resource within it is."""
    holder = block.get("resource") if block.get("type") == "resource" else block
    if not isinstance(holder, dict) or block.get("type") not in ("text", "resource"):
        return None
    text = holder.get("text")
    return text if isinstance(text, str) else None


def contents(reply: Reply) -> Steps[tuple[Content, ...]]:
    """Every part, laid out."""
    found = list[Content]()
    together = yield from _together(reply.content)
    if together is not None:
        found.append(together)
    for block in reply.content if together is None else ():
        found.append(Content(part=(yield from _part(block)), blocks=(block,)))
    if reply.structured is not None and not (yield from is_repeated(reply)):
        text = yield from Unwritten(reply.structured.value).text()
        label = "structuredContent" if reply.content else ""
        part = Part(text=text, layout=(yield from survey(text)), label=label)
        found.append(Content(part=part, blocks=() if reply.content else ({"type": "text", "text": text},)))
    return tuple(found)


def _part(block: Block) -> Steps[Part]:
    text = text_of(block)
    if text is None:
        written = yield from Unwritten(dict(block)).text()
        return Part(text=written, layout=one_unit(written))
    resource = block.get("resource")
    label = str(resource.get("uri", "")) if isinstance(resource, dict) else ""
    return Part(text=text, layout=(yield from survey(text)), label=label)


def _together(content: Sequence[Block]) -> Steps[Content | None]:
    text = joined(content)
    layout = None if text is None else (yield from survey(text))
    if text is None or layout is None or len(layout) != len(content) or layout.kind != "records":
        return None
    return Content(part=Part(text=text, layout=layout), blocks=tuple(content))


def are_objects(content: Sequence[Block]) -> bool:
    """Whether these blocks are an object each, by their looks; `survey` then reads them."""
    return len(content) > 1 and all(block.get("type") == "text" and _is_object(text_of(block)) for block in content)


def joined(content: Sequence[Block]) -> str | None:
    """Blocks that are an object each, as one array."""
    return f"[{','.join(text_of(block) or '' for block in content)}]" if are_objects(content) else None


def _is_object(text: str | None) -> bool:
    return text is not None and text[:20].lstrip()[:1] == "{" and text[-20:].rstrip()[-1:] == "}"


def is_repeated(reply: Reply) -> Steps[bool]:
    """Whether the blocks say all that the structured content does."""
    if reply.structured is None:
        return True
    text = joined(reply.content) or (text_of(reply.content[0]) if len(reply.content) == 1 else None)
    if text is None:
        return False
    for value in _unwrapped(reply.structured):
        if (yield from _is_same(text, value)):
            return True
    return False


def _unwrapped(structured: Structured) -> Iterable[Json]:
    """Structured content must be an object, so that some servers put what they have to say under a key of it."""
    yield structured.value
    if isinstance(structured.value, dict) and set(structured.value) == {"result"}:
        yield structured.value["result"]


def _is_same(text: str, value: Json) -> Steps[bool]:
    yield
    if text == value:
        return True
    if len(text) <= _AT_ONCE:
        try:
            return json.loads(text) == value
        except (ValueError, RecursionError):
            return False
    scanned = yield from scan(text)
    if scanned is None or scanned.end - scanned.start < len(text) - _AT_ONCE:
        return False
    records, rest = _taken_out(value, scanned.path)
    if not isinstance(records, list) or len(records) != scanned.count or json.loads(scanned.rest(text)) != rest:
        return False
    for number, (record, other) in enumerate(zip(scanned.records(text), records, strict=True)):
        if record.value != other:
            return False
        if number % _STRIDE == 0:
            yield
    return True


def _taken_out(value: Json, path: Path) -> tuple[Json, Json]:
    """What stands at a path, and the value with an empty list there instead."""
    if not path:
        return value, []
    key = path[0]
    if not isinstance(value, dict) or not isinstance(key, str):
        return None, value
    taken, rest = _taken_out(value.get(key), path[1:])
    return taken, {**value, key: rest}


def is_recodable(reply: Reply) -> bool:
    """Whether there may be something to be said shorter."""
    texts = (text for block in reply.content if (text := text_of(block)) is not None)
    return not reply.content or are_objects(reply.content) or any(map(is_worth_recoding, texts))


def is_worth_recoding(text: str) -> bool:
    return _SHORTEST <= len(text) <= LONGEST and text[:20].lstrip()[:1] in ("[", "{")
