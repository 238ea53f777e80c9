"""The storage format of a result: parts, units, and compressed pieces.

A result is a sequence of parts, one for each content block, and the text of each part is divided into units. It is
compressed in pieces of some thousand characters that end between units, so that one page can be read without the rest.
`result_store` stores the pieces.

The units of a JSON text that is an array, or an object that consists mostly of one array, are its records; those of any
other text are its lines. A long line is divided further: after a comma of JSON, else between words, else between
characters that do not combine, which is the only case in which a value may be split.

A block's part is its text, or the block itself as JSON. Blocks that are one JSON object each, as many servers send
lists, become one part with a record for each block. Structured content is a part of its own only if it has something
that the blocks lack.

`Scale` counts tokens for the caller's model, at the upper edge if the count is an estimate, so that a text within
the budget never exceeds it. If a client shows a limited number of characters, a text counts at least its share of
them, so that a text within the budget also fits the client.

`sample_of` takes the part of a reply from which the shape of what its tool returns is learned, at the same cost for any
reply.
"""

import json
import math
import re
import unicodedata
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, cast

from ullage.messages import Media
from ullage.table import Continued, Path, scan
from ullage.tokens import Meter, Steps
from ullage.tool import Block, Json, Reply, Structured

from ..reply_metadata import Unwritten, characters, shown, weighed

__all__ = [
    "LONGEST",
    "Content",
    "Held",
    "Kind",
    "Layout",
    "Packed",
    "Part",
    "Sample",
    "Scale",
    "Shape",
    "ValueKind",
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
    "sample_of",
    "survey",
    "text_of",
    "unpack",
    "write_shapes",
]

Kind = Literal["records", "lines", "block"]
"""A block is always a single unit."""

_LONGEST = 240
"""Most characters of a line that is not divided."""
_MOST_LINES = 2_000_000
_STRIDE = 500
"""Units found in one step."""
_COMMA = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|,', re.DOTALL)
"""Matches a JSON string, even without its end, or a comma outside strings."""
_IN_STRING = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
"""Matches the rest of a JSON string up to its end."""
_WINDOW = 65_536
"""Characters that are searched by one call, which blocks other threads."""
_JOINING = "\u200d"
_BACK = 32
"""Most characters that a boundary is moved back to keep combining characters together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The positions of a text's units."""

    kind: Kind
    spans: "array[int]"
    """Start and end of each unit, alternating."""
    body: tuple[int, int]
    """Start and end of the units; the rest of the text surrounds them."""
    path: Path = ()
    """Path of the records in the document."""
    is_json: bool = False
    """Whether the text looks like JSON."""

    def __len__(self) -> int:
        return len(self.spans) // 2

    def span(self, unit: int) -> tuple[int, int]:
        return self.spans[2 * unit], self.spans[2 * unit + 1]

    def unit(self, text: str, unit: int) -> str:
        """Return a unit of the text; a `Continued` if it is not the first of its line."""
        start, end = self.span(unit)
        is_continued = unit > 0 and self.spans[2 * unit - 1] == start
        return Continued(text[start:end]) if is_continued else text[start:end]


def survey(text: str) -> Steps[Layout]:
    """Return the layout of a text."""
    begins, ends = text[:100].lstrip()[:1], text[-100:].rstrip()[-1:]
    if begins + ends not in ("[]", "{}"):
        return (yield from lines_of(text))
    scanned = yield from scan(text)
    if scanned is None or scanned.count < 2 or not scanned.is_most_of(text):
        return (yield from lines_of(text, is_json=True))
    spans = array("q")
    for record in scanned.records(text):
        spans.extend((record.start, record.end))
        if len(spans) % (2 * _STRIDE) == 0:
            yield
    body = scanned.start + 1, scanned.end - 1
    return Layout(kind="records", spans=spans, body=body, path=scanned.path, is_json=True)


def one_unit(text: str) -> Layout:
    """Return the layout of a text that is never divided."""
    return Layout(kind="block", spans=array("q", (0, len(text))), body=(0, len(text)))


def lines_of(text: str, *, is_json: bool = False) -> Steps[Layout]:
    """Return the layout of a text by lines."""
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
    """Yield the parts of one long line."""
    for stop in _stops(text, start, end, is_json=is_json):
        while stop - start > _LONGEST:
            middle = boundary(text, start, start + _LONGEST)
            yield start, middle
            start = middle
        if stop > start:
            yield start, stop
            start = stop


def _stops(text: str, start: int, end: int, *, is_json: bool) -> Iterator[int]:
    """Yield places after commas of JSON, a line's length apart or at the next comma after that."""
    begun, last = start, start
    for stop in _commas(text, start, end) if is_json else ():
        if stop - begun > _LONGEST and last > begun:
            yield last
            begun = last
        last = stop
    if end - begun > _LONGEST and last > begun:
        yield last
    yield end


def _commas(text: str, at: int, end: int) -> Iterator[int]:
    """Yield the places after the commas outside strings. Searches a window at a time, however long a string is."""
    is_inside = False
    while at < end:
        window = min(at + _WINDOW, end)
        if is_inside:
            stop = cast("re.Match[str]", _IN_STRING.match(text, at, window)).end()
            is_inside = text[stop : stop + 1] != '"'
            # A backslash at the end of the window is read with what follows it.
            at = stop if is_inside and stop > at else stop + 1
            continue
        for match in _COMMA.finditer(text, at, window):
            if match[0] == ",":
                yield match.end()
            elif match.end() == window < end and not _is_closed(match[0]):
                at, is_inside = match.start() + 1, True
                break
        else:
            at = window


def _is_closed(string: str) -> bool:
    """Return whether a JSON string that may be cut ends in a quote that is not escaped."""
    body = string[1:-1]
    return len(string) > 1 and string[-1] == '"' and (len(body) - len(body.rstrip("\\"))) % 2 == 0


def boundary(text: str, start: int, limit: int, *, is_json: bool = False) -> int:
    """Return the best place at or before `limit` to divide a text: after a comma of JSON, else between words, else
    between characters that do not combine."""
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
"""A text whose head counts this many times the budget exceeds it, whatever follows."""
_HEAD = 16
"""Characters for each token in that head."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Counts tokens for a caller, never too low."""

    meter: Meter
    model: str
    per_character: float = 0.0
    """Least tokens for each character: the budget divided by the characters that the client shows."""

    def weigh(self, text: str) -> Steps[int]:
        return max((yield from self.meter.steps(text, self.model)).high, self._by_length(text))

    def _by_length(self, text: str) -> int:
        return math.ceil(characters(text) * self.per_character) if self.per_character else 0

    def within(self, content: Reply | Sequence[Block], budget: int) -> Steps[int | None]:
        """Return the tokens of a reply or some blocks; None if they exceed the budget."""
        reply = content if isinstance(content, Reply) else Reply(content=tuple(content))
        by_length = 0
        for part in shown(reply):
            if isinstance(part, Media):
                continue
            text = (yield from part.text()) if isinstance(part, Unwritten) else part
            by_length += self._by_length(text)
            if by_length > budget:
                return None
            # The text's head alone may show that it exceeds the budget, so that the rest need not be counted.
            head = text[: _HEAD * max(budget, _HEAD)]
            if len(head) < len(text) and (yield from self.weigh(head)) > _SURELY * budget:
                return None
        weight = max((yield from weighed(reply, self.meter, self.model)).high, by_length)
        return weight if weight <= budget else None


_PIECE = 65_536
"""Characters of a piece, or one unit if that is longer."""
_QUICK = 1
"""zlib level; JSON compresses well even so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The text of one block, divided into units."""

    text: str
    layout: Layout
    label: str = ""
    """Line shown above it: a resource's address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A whole result before compression."""

    principal: str
    server: str
    tool: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The description of a part, known without reading it."""

    kind: Kind
    is_json: bool
    path: Path
    units: int
    label: str
    first: int
    """Number of its first unit in the whole result."""
    start: int
    """Number of its first piece. Its pieces are, in order: the text before the units, the units, the text after
    them."""
    head: int
    body: int
    tail: int

    @property
    def pieces(self) -> range:
        """Numbers of the pieces with its units."""
        return range(self.start + self.head, self.start + self.head + self.body)

    @property
    def end(self) -> int:
        """Number of the unit after its last."""
        return self.first + self.units


@dataclass(frozen=True, slots=True)
class Packed:
    """A compressed piece."""

    first: int
    """Number of its first unit in the whole result."""
    units: int
    data: bytes


def pack(parts: Sequence[Part]) -> tuple[tuple[Shape, ...], list[Packed]]:
    """Compress all parts into pieces; may take long."""
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
    """Return the total compressed bytes."""
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
    """Return the text of a piece, and its units; those that continue a line are `Continued`."""
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
    """Return the descriptions of parts as JSON."""
    return json.dumps([asdict(shape) for shape in shapes])


_FIELDS = tuple(field.name for field in fields(Shape))


def read_shapes(said: str) -> tuple[Shape, ...]:
    """Parse the descriptions of parts from JSON."""
    found: list[Shape] = []
    for one in json.loads(said):
        known: dict[str, Any] = {name: one[name] for name in _FIELDS}
        known["path"] = tuple(known["path"])
        found.append(Shape(**known))
    return tuple(found)


_SHORTEST = 200
"""Characters of JSON below which rewriting it saves too little."""
LONGEST = 1_000_000
"""Characters above which JSON is not rewritten, because reading it would delay other calls."""

_AT_ONCE = 200_000
"""Most characters of JSON that are parsed by one call."""
"""Records compared in one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A part of a reply, with the blocks that it represents."""

    part: Part
    blocks: tuple[Block, ...]


def text_of(block: Block) -> str | None:
    """Return the text of a block or of the resource in it; None if it has none."""
    holder = block.get("resource") if block.get("type") == "resource" else block
    if not isinstance(holder, dict) or block.get("type") not in ("text", "resource"):
        return None
    text = holder.get("text")
    return text if isinstance(text, str) else None


def contents(reply: Reply) -> Steps[tuple[Content, ...]]:
    """Return every part of a reply with its layout."""
    found = list[Content]()
    text = joined(reply.content)
    layout = None if text is None else (yield from survey(text))
    if text is None or layout is None or len(layout) != len(reply.content) or layout.kind != "records":
        together = None
    else:
        together = Content(part=Part(text=text, layout=layout), blocks=tuple(reply.content))
    # As long as the whole reply: not kept while its blocks are read one by one.
    del text, layout
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


def are_objects(content: Sequence[Block]) -> bool:
    """Return whether each block looks like a JSON object; `survey` then parses them."""
    return len(content) > 1 and all(
        block.get("type") == "text" and _looks_like(text_of(block) or "", "{", "}") for block in content
    )


def joined(content: Sequence[Block]) -> str | None:
    """Return blocks that are one object each as a single array; None for others."""
    return f"[{','.join(text_of(block) or '' for block in content)}]" if are_objects(content) else None


def _looks_like(text: str, opening: str, closing: str) -> bool:
    return text[:100].lstrip()[:1] == opening and text[-100:].rstrip()[-1:] == closing


def is_repeated(reply: Reply) -> Steps[bool]:
    """Return whether the blocks repeat all of the structured content."""
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
    """Yield the structured content and its unwrapped value, since some servers wrap a value in an object as the
    protocol requires."""
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
    """Return the value at a path, and the whole with an empty list in its place."""
    if not path:
        return value, []
    key = path[0]
    if not isinstance(value, dict) or not isinstance(key, str):
        return None, value
    taken, rest = _taken_out(value.get(key), path[1:])
    return taken, {**value, key: rest}


def is_recodable(reply: Reply) -> bool:
    """Return whether the reply may have JSON that can be shortened."""
    texts = (text for block in reply.content if (text := text_of(block)) is not None)
    return not reply.content or are_objects(reply.content) or any(map(is_worth_recoding, texts))


def is_worth_recoding(text: str) -> bool:
    return _SHORTEST <= len(text) <= LONGEST and text[:20].lstrip()[:1] in ("[", "{")


ValueKind = Literal["null", "boolean", "number", "string", "list", "object", "text", "media"]
"""`text` and `media` are replies that are not JSON."""

_SAMPLED = 12_000
"""Characters of a text that are parsed for the shape."""
_MOST_SAMPLED = 12
"""Blocks of a reply that are looked at for the shape."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What is needed of a reply to find its shape: a value, or the beginning of its text."""

    value: Json = None
    head: str | None = None
    """The beginning of a text that looks like JSON."""
    is_whole: bool = True
    """Whether `head` is the whole text."""
    kinds: frozenset[ValueKind] = frozenset()
    """Of the blocks of a reply that is not JSON."""


def sample_of(reply: Reply) -> Sample | None:
    """Return the sample of a reply, at a cost that does not grow with it; None if it has nothing."""
    if reply.structured is not None:
        return Sample(value=reply.structured.value)
    if not reply.content:
        return None
    blocks = reply.content[:_MOST_SAMPLED]
    texts = [text for block in blocks if block.get("type") == "text" and (text := text_of(block))]
    if any(block.get("type") != "text" for block in blocks):
        return Sample(kinds=frozenset({"text", "media"} if texts else {"media"}))
    if not texts:
        return None
    if len(reply.content) > 1 and all(_looks_like(text, "{", "}") for text in texts):
        # Many servers send a list as a block for each element.
        heads = [text for text in texts if len(text) <= _SAMPLED // _MOST_SAMPLED]
        return Sample(head=f"[{','.join(heads)}]")
    text = texts[0]
    if len(texts) > 1 or not (_looks_like(text, "{", "}") or _looks_like(text, "[", "]")):
        return Sample(kinds=frozenset({"text"}))
    return Sample(head=text[:_SAMPLED], is_whole=len(text) <= _SAMPLED)
