"""Structured values written in few words, and records of which values belong together.

Most tool results are records: reservations, products, files, pods. For later use, the relation of the words matters
more than the single words. An object is written as `{id=M05KNL, cabin=economy}`, objects of one shape as a table with
one head, `[flight_number, price: HAT110, 105 | HAT172, 102]`. No value is cut within a word: a single word is written
whole or left out, and long prose is shortened to its first words and `…`.

A record is a line for each call that shows which values belong together: `- get_order(order_id=W23): {status=pending,
items=[item_id, price: 77, 12.5 | 78, 3.0]}`. If room is short, older results lose first the values that identify
nothing, then deep values, then their line. A result that a later one of the same call or of the same thing replaces is
left out, so that the records show the current state.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import cast

from ullage.messages import Message, ToolResult, join_texts
from ullage.tokens import Steps
from ullage.tool import Json

from .outline_text import HEADING
from .structured_text import Kind, Line, kind_of, read_structure
from .tool_pairs import Call, is_gap, is_marked, is_placeholder, pair, split_note

__all__ = [
    "MARK",
    "Record",
    "count_objects",
    "fit_records",
    "is_name",
    "is_record",
    "names_in",
    "read_records",
    "records_of",
    "scalars",
    "words_asked",
    "write_value",
]


_DEPTH, _ROWS = 6, 1_000
"""Most levels of a value, and most items of a list, that are written."""
_PLAIN_ROWS = 3
"""Factor by which more items of a list are shown if each is a single value."""
_PROSE, _WORD = 120, 1_000
"""Most characters of prose that is shown whole, and of a single word (a link, a key). Longer prose is shortened to its
first words, a longer word is left out."""
_CODES = frozenset({Kind.CODED, Kind.CAPITALS, Kind.HASH, Kind.MAIL, Kind.DATE, Kind.LINK, Kind.PATH, Kind.FILE})
_LINE_SHOWN = 300
"""Most characters of a line of a listing that is written as it is."""
_LINE_KINDS = _CODES | {Kind.NUMBER, Kind.NAME}
"""Kinds of words that are written of a longer line."""
_STATE = re.compile(r"[A-Za-z][A-Za-z_-]{1,15}")
_NAMED = 500
"""Most values that are searched for names."""
_DELIMITER = re.compile(r"[,|={}\[\]\"]|^\s|\s$")
_SCOPES = "namespace|server|owner|repo|repository|project|branch|bucket|database|channel|region"
_SCOPE = re.compile(rf"(?:^|[_\-a-z. ])(?:{_SCOPES})s?$", re.IGNORECASE)
"""Keys whose values say what a thing belongs to."""
_NO = r"[_\-. ](?:no|nr|num)\.?$"
"""A number by a shorter name: `customer_no`, `Invoice No.`."""
_NAMING = re.compile(
    rf"(?:^|[_\-a-z. ])(?:id|number|code|key|name|{HEADING}|path|url|email|date|dob|uuid|slug|sku"
    rf"|(?:price|amount|rate|fee|cost|total|balance)(?:_[a-z]+)?|{_SCOPES})s?$|{_NO}",
    re.IGNORECASE,
)
"""Keys whose values later calls are made of."""
_STAMP = re.compile(r"(?:created|updated|modified|changed)(?:_?at|_?on)?$|timestamp", re.IGNORECASE)
"""Keys whose values say when something was recorded."""
_BARE = re.compile(
    rf"(?:^|[_\-a-z. ])(?:id|number|code|key|name|{HEADING}|path|date|dob|uuid|slug|sku|{_SCOPES})s?$|{_NO}",
    re.IGNORECASE,
)
"""Keys whose values only name a thing, or what it belongs to."""
_IDENTIFYING = re.compile(
    r"(?:^|[_\-a-z. ])(?:id|number|no|code|key|name|title|path|file|url|uri|link|email|mail|phone|date|day|time|dob"
    r"|hash|sha|ref|uuid|slug|version|branch|amount|price|cost|total|balance|status|state|type|kind|namespace|zip|user"
    r"|server|tool)s?$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Form:
    """How much of a value is written."""

    wanted: Set[str] | None
    depth: int
    rows: int
    strict: bool
    bare: bool

    def shows(self, key: str, value: Json) -> bool:
        """Return whether a plain value is written."""
        if self.wanted is None or str(value) in self.wanted:
            return True
        if self.strict and _STAMP.search(key):
            return False
        return not isinstance(value, bool) and (
            self.names(key)
            or (not self.bare and (isinstance(value, str) and " " not in value and kind_of(value) in _CODES))
        )

    def tells(self, value: Json) -> bool:
        """Return whether a value is a word that describes an object's state (`economy`, `round_trip`): short, and often
        needed."""
        return not self.bare and isinstance(value, str) and bool(_STATE.fullmatch(value))

    def names(self, key: str) -> bool:
        return bool((_BARE if self.bare else _NAMING if self.strict else _IDENTIFYING).search(key))


def is_record(value: Json) -> bool:
    """Return whether a value relates at least two others."""
    return isinstance(value, dict | list) and sum(1 for _, _ in zip(scalars(value), range(2), strict=False)) > 1


def is_name(key: str) -> bool:
    """Return whether the values of a key name a thing."""
    return _BARE.search(key) is not None


def names_in(value: Json) -> frozenset[str]:
    """Return the names in a value."""
    return frozenset(text for _, (key, text) in zip(range(_NAMED), scalars(value), strict=False) if is_name(key))


def scalars(value: Json, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text and number in a value, with its key."""
    waiting = [(key, value)]
    while waiting:
        name, one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend(reversed(one.items()))
        elif isinstance(one, list):
            waiting.extend((name, inner) for inner in reversed(one))
        elif isinstance(one, Line):
            yield from ((name, word) for word in one.words)
        elif isinstance(one, str | int | float) and not isinstance(one, bool) and str(one).strip():
            yield name, str(one)


def count_objects(value: Json) -> int:
    """Return the number of objects in a value that name something, including itself."""
    waiting, found = [value], 0
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict | list):
            waiting.extend(one.values() if isinstance(one, dict) else one)
        found += isinstance(one, dict) and any(not isinstance(inner, dict | list) for inner in one.values())
    return found


def write_value(  # noqa: PLR0913
    value: Json,
    *,
    wanted: Set[str] | None = None,
    depth: int = _DEPTH,
    rows: int = _ROWS,
    strict: bool = False,
    bare: bool = False,
) -> str:
    """Write a value in few words; empty if nothing is left of it.

    Args:
        value: The value. Levels below `depth` are left out.
        wanted: If given, only identifying values are written: those among `wanted` and those of keys like `id`, `name`,
            `date` or `price`. Of a list of objects, only those with a wanted value are written, if there are any.
        depth: Most levels.
        rows: Most items of a list.
        strict: Whether to write only values of keys that name a thing or its price.
        bare: Whether to write only values of keys that name a thing.
    """
    return _write_form(value, _Form(wanted, depth, rows, strict or bare, bare))


def _write_form(value: Json, form: _Form) -> str:
    if isinstance(value, dict) and form.depth:
        if _is_keyed(value):
            return _write_list([_with_key(key, cast("dict[str, Json]", one)) for key, one in value.items()], form)
        parts = (
            (key, str(inner) if form.tells(inner) else _write_under(key, inner, form)) for key, inner in value.items()
        )
        shown = [f"{key}={text}" for key, text in parts if text]
        return f"{{{', '.join(shown)}}}" if shown else ""
    if isinstance(value, list) and form.depth:
        return _write_list(value, form)
    return _write_line(value, form) if isinstance(value, Line) else _write_scalar(value)


def _write_line(line: Line, form: _Form) -> str:
    """Write a line of a listing; where little is wanted, its codes, numbers and names without the words between."""
    if (form.wanted is None or not form.strict) and len(line) <= _LINE_SHOWN:
        return f'"{line}"' if _DELIMITER.search(line) else line
    wanted = form.wanted or frozenset[str]()
    kinds = _CODES if form.bare else _LINE_KINDS
    told = [word for word in line.words if word in wanted or kind_of(word) in kinds]
    return f"({' '.join(dict.fromkeys(told))})" if told else ""


def _write_scalar(value: Json) -> str:
    if value is None or isinstance(value, dict | list):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = " ".join(str(value).split())
    if len(text) > _PROSE and " " in text:
        shown = text[: _PROSE + 1].rpartition(" ")[0] or text.partition(" ")[0]
        text = f"{shown}…"
    if len(text) > _WORD:
        return ""
    return f'"{text}"' if " " in text and _DELIMITER.search(text) else text


def _write_under(key: str, value: Json, form: _Form) -> str:
    """Write the value of a key, as far as it is wanted. Plain values of keys like `prices` or `ids` are written
    completely."""
    if not isinstance(value, dict | list):
        return _write_scalar(value) if form.shows(key, value) else ""
    inner = value.values() if isinstance(value, dict) else value
    is_named = form.names(key) and not any(isinstance(one, dict | list) for one in inner)
    return _write_form(value, replace(form, wanted=None if is_named else form.wanted, depth=form.depth - 1))


def _is_keyed(held: Mapping[str, Json]) -> bool:
    """Return whether the keys are ids and the values are the objects that they name."""
    if len(held) < 2 and not any(map(str.isdigit, "".join(held))):
        return False
    inner = list(held.values())
    if not inner or not all(isinstance(one, dict) for one in inner):
        return False
    return _share_keys(inner) or all(key in cast("dict[str, Json]", one).values() for key, one in held.items())


def _with_key(key: str, held: dict[str, Json]) -> dict[str, Json]:
    name = next((name for name, value in held.items() if value == key), "key")
    return {name: key, **{other: value for other, value in held.items() if value != key}}


def _share_keys(held: Sequence[Json]) -> bool:
    keys = [set(one) for one in held if isinstance(one, dict)]
    if not keys:
        return False
    return 2 * len(keys[0].intersection(*keys)) > len(keys[0].union(*keys))


def _write_list(values: Sequence[Json], form: _Form) -> str:
    rows = list(values)
    if form.wanted is not None and len(rows) > 1 and all(isinstance(one, dict | list | Line) for one in rows):
        spoken = form.wanted
        named = [any(text in spoken for _, text in scalars(one)) for one in rows]
        # If some were mentioned and others not, the others are left out first.
        rows = [one for one, is_named in zip(rows, named, strict=True) if is_named] or rows
    is_plain = not any(isinstance(one, dict | list | Line) for one in rows)
    rows = rows[: _PLAIN_ROWS * form.rows if is_plain else form.rows]
    left = len(values) - len(rows) + (values.more if isinstance(values, _Shortened) else 0)
    more = f" (+{left} more)" if left else ""
    if len(rows) > 1 and all(isinstance(one, dict) for one in rows) and _share_keys(rows):
        table = _write_table(cast("list[dict[str, Json]]", rows), form)
        return f"[{table}]{more}" if table else ""
    texts = [text for one in rows if (text := _write_form(one, replace(form, depth=form.depth - 1)))]
    return f"[{', '.join(texts)}]{more}" if texts else ""


def _write_table(rows: Sequence[dict[str, Json]], form: _Form) -> str:
    keys = list(dict.fromkeys(key for row in rows for key in row))
    cells = {key: [_write_under(key, row.get(key), form) for row in rows] for key in keys}
    shown = [key for key in keys if any(cells[key])]
    lines = (", ".join(cells[key][place] or "-" for key in shown) for place in range(len(rows)))
    return f"{', '.join(shown)}: {' | '.join(lines)}" if shown else ""


class _Shortened(list["Json"]):
    """A list of which some items were left out when it was written."""

    more: int = 0
    """Number of these items."""


def _read_written(text: str) -> Json:
    """Read an object or a list as `write_value` writes it; None if it cannot be read without doubt."""
    value, end = _read_at(text, 0, _DEPTH)
    is_relation = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict) for one in value))
    return value if is_relation and end == len(text) and write_value(value) == text else None


def _read_at(text: str, start: int, depth: int) -> tuple[Json, int]:
    """Return the value that begins here, with at most `depth` levels, and its end."""
    if depth < 0:
        return None, start
    if text[start : start + 1] == "{":
        held, end = dict[str, Json](), start
        while text[end : end + 1] in ("{", ","):
            key = _KEY.match(text, end)
            if key is None:
                return None, start
            held[key[1]], end = _read_at(text, key.end(), depth - 1)
        return held, end + 1
    if text[start : start + 1] != "[":
        found = _SCALAR.match(text, start)
        return (None, start) if found is None else (found[1] if found[1] is not None else found[0], found.end())
    made, end = _Shortened(), start + 1
    head = _TABLE_HEAD.match(text, end)
    keys, end = (head[1].split(", "), head.end()) if head else (list[str](), end)
    cells = list[Json]()
    while True:
        value, end = _read_at(text, end, depth - 1)
        cells.append(None if keys and value == "-" else value)
        is_row_end = not text.startswith(", ", end)
        if not keys or is_row_end:
            made += [dict[str, Json](zip(keys, cells, strict=False))] if keys else cells
            cells = list[Json]()
        if is_row_end and not text.startswith(_ROW_GAP, end):
            break
        end += 2 if not is_row_end else len(_ROW_GAP)
    more = _MORE.match(text, end + 1)
    made.more, end = (int(more[1]), more.end()) if more else (0, end + 1)
    return made, end


_KEY = re.compile(r"(?:\{|, )([^={}\[\]|]{1,200})=")
_SCALAR = re.compile(r"\"([^\n]{0,400}?)\"(?=, | \| |[}\]]|$)|(?:(?!, | \| |[}\]]).)+")
_TABLE_HEAD = re.compile(r"([^:|\[\]{}=]{1,400}): ")
_ROW_GAP = " | "
"""Text between two rows of a written list."""
MARK = "- "
"""Beginning of a record's line."""
_MOST = 150
"""Most records that are considered, the newest."""
_RECORDS_BARE = 12
"""Most of these that are calls without a structured result. They are kept for one compaction only."""
_NAME, _HEAD = 60, 300
"""Characters of a tool's name, and of a call that is worth a line even without a structured result."""
_SHALLOW, _MANY, _FEW, _FEWER = 3, 12, 4, 3
"""Levels of a value, and items of a list, that are shown if room is short, shorter and very short."""
_NEARLY = 0.75
"""Share of the things named by a shorter line that a longer one must name as well."""
_LEAST, _PART = 100, 6
"""Tokens that a record may always have, and the divisor of the room that limits a record if not all fit."""
_BRIEF = 100
"""Tokens up to which a record is short."""
_PASSED = 1.0
"""What a record is worth less if it lists what a later call passed over, or what was listed before an earlier
compaction."""
_HITS, _VALUES = 6, 25
"""Mentioned values beyond which a record is not worth more, and all values of a record up to which they count in
full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    head: str
    """The call, in words."""
    value: Json = None
    text: str = ""
    """The record in an earlier ledger. It has no value if the text cannot be read back."""
    place: int = 0
    """Place of its message, from 0. Records of earlier ledgers come before."""
    subject: tuple[str, str] | None = None
    """What the record is about: the first key of an object and its value, if that names something."""
    asked: tuple[tuple[str, str], ...] = ()
    """Values of the object that the call asked for and that name one thing, with their keys."""
    keys: int = 0
    """Number of keys of the object."""
    is_passed: bool = False
    """Whether a later call asked for one thing of the list, so that the rest was passed over."""

    @property
    def is_old_list(self) -> bool:
        """Whether the record lists what was listed before an earlier compaction."""
        return self.text.count(_ROW_GAP) > 1

    def lines(self, wanted: Set[str]) -> list[str]:
        """Return the record in ever fewer words, without repetitions."""
        text = self.text or self.head
        asked_for = _fewer_rows(text, wanted)
        if self.value is None or asked_for != text:
            # Rows that were asked for say more of an earlier list than the names in all its rows.
            return [f"{MARK}{one}" for one in dict.fromkeys((text, asked_for))]
        if isinstance(self.value, list) and all(isinstance(one, Line) for one in self.value):
            # Of a listing nothing but the lines that were mentioned says what the rest was.
            shown = (
                write_value(self.value),
                write_value(self.value, wanted=wanted),
                write_value(self.value, wanted=wanted, strict=True),
                write_value(self.value, wanted=wanted, rows=_FEW, strict=True),
                write_value(self.value, wanted=wanted, rows=_FEWER, bare=True),
            )
            return self._written(dict.fromkeys(filter(None, shown)))
        shown = (
            write_value(self.value),
            write_value(self.value, wanted=wanted),
            write_value(self.value, wanted=wanted, depth=_SHALLOW, rows=_FEW),
            write_value(self.value, wanted=wanted, rows=_FEW, strict=True),
            write_value(self.value, wanted=frozenset(), rows=_FEWER, strict=True),
            write_value(self.value, wanted=frozenset(), rows=_FEWER, depth=_SHALLOW, strict=True),
            write_value(self.value, wanted=frozenset(), depth=_SHALLOW, bare=True),
            write_value(self.value, wanted=frozenset(), rows=_MANY, depth=_SHALLOW, bare=True),
            write_value(self.value, wanted=frozenset(), rows=_FEW, bare=True),
            write_value(self.value, wanted=frozenset(), rows=_FEWER, depth=_SHALLOW, bare=True),
        )
        return self._written(self._best(shown))

    def _written(self, shown: Iterable[str]) -> list[str]:
        made = [f"{MARK}{self.head}: {one}" if self.head else f"{MARK}{one}" for one in shown]
        return made or [f"{MARK}{self.head}"]

    def _best(self, shown: Iterable[str]) -> list[str]:
        """Return the lines, longest first, without those that name far fewer things than a shorter one."""
        named = names_in(self.value)
        best, most = list[str](), 0
        for text in sorted({one for one in shown if one}, key=lambda one: (len(one), one)):
            names = sum(name in text for name in named)
            if names >= _NEARLY * most:
                best.append(text)
                most = max(most, names)
        return best[::-1]


def records_of(messages: Sequence[Message]) -> Steps[list[Record]]:
    """Make a record for each call with a structured result or with several short arguments, oldest first. For one
    thing, the newest is kept. Each result is one step."""
    read = list[Record]()
    for one in pair(messages).answered:
        if one.result is not None and (record := _record(one.call, one.result, one.place)) is not None:
            read.append(record)
        yield
    found = _newest(read)[-_MOST:]
    bare = [record.place for record in found if record.value is None][-_RECORDS_BARE:]
    return [record for record in found if record.value is not None or record.place in bare]


def _record(call: Call | None, result: ToolResult, place: int) -> Record | None:
    text = join_texts(result.parts)
    head = _head(call) if call is not None else (result.name or "")[:_NAME]
    if is_marked(text):
        text, _ = split_note(text)
        form, _, more = text.partition("\n")
        if form[:1] in ("{", "[") and form[-1:] in ("}", "]") and is_gap(more) and not is_placeholder(text):
            # An earlier compaction wrote the result in few words.
            return Record(head=head, value=_read_written(form), text=f"{head}: {form}", place=place)
    value = None if is_marked(text) else read_structure(text)
    if is_record(value):
        subject, held = None, _only_object(value)
        if isinstance(value, dict):
            key, first = next(iter(value.items()))
            is_plain = isinstance(first, str | int) and not isinstance(first, bool)
            is_subject = is_plain and (is_name(key) and key != HEADING and not _SCOPE.search(key))
            subject = (key, str(first)) if is_subject else None
        return Record(
            head=head,
            value=_without(value, call),
            place=place,
            subject=subject,
            asked=_asked_for(held, call),
            keys=len(held),
        )
    is_related = call is not None and is_record(call.asked) and len(head) <= _HEAD
    return Record(head=head, place=place) if is_related and not result.is_error else None


def _only_object(value: Json) -> Mapping[str, Json]:
    """Return the object that a value is or is a list of; empty if there are several or none."""
    if isinstance(value, list):
        return _only_object(value[0]) if len(value) == 1 else {}
    return value if isinstance(value, dict) else {}


def _asked_for(held: Mapping[str, Json], call: Call | None) -> tuple[tuple[str, str], ...]:
    asked = call.asked if call is not None and isinstance(call.asked, dict) else {}
    given = {_same_key(key): str(value) for key, value in asked.items() if isinstance(value, str | int)}
    return tuple(
        (_same_key(key), str(value))
        for key, value in held.items()
        if given.get(_same_key(key)) == str(value) and not _SCOPE.search(key)
        if is_name(key) or kind_of(str(value)) in _CODES
    )


def _same_key(key: str) -> str:
    """Return a key as different writers have it: `Order ID`, `order_id` and `orderId` are the same."""
    return "".join(filter(str.isalnum, key)).casefold()


def _without(value: Json, call: Call | None) -> Json:
    """Return an object or a list of objects without the values that the call contains, unless nothing would be left."""
    asked = None if call is None else call.asked
    if not isinstance(asked, dict):
        return value
    if isinstance(value, list):
        return [_without(one, call) if isinstance(one, dict) else one for one in value]
    if not isinstance(value, dict):
        return value
    left = {key: inner for key, inner in value.items() if key not in asked or asked[key] != inner}
    return left or value


def _head(call: Call) -> str:
    asked = call.asked
    inner = write_value(asked) if isinstance(asked, dict) else ""
    return f"{' '.join(call.name.split())[:_NAME]}({inner[1:-1]})"


def _newest(records: Sequence[Record]) -> list[Record]:
    """Remove records that a later one replaces: the same call, the same result, or an object about the same thing with
    at least as many keys. Rows of a list are replaced by a later call that asked for what they are about."""
    heads, subjects, left = set[str](), dict[tuple[str, str], int](), list[Record]()
    values, detailed = set[str](), dict[tuple[str, str], int]()
    for record in reversed(records):
        subject = record.subject
        is_newer = subject is not None and subjects.get(subject, 0) >= record.keys
        value = "" if record.value is None else write_value(record.value)
        if (record.head and record.head in heads) or is_newer or value in values:
            continue
        heads.add(record.head)
        values.update(filter(None, (value,)))
        if subject is not None:
            subjects[subject] = record.keys
        rest = _without_detailed(record.value, detailed)
        detailed.update({one: max(record.keys, detailed.get(one, 0)) for one in record.asked})
        left.append(record if rest is record.value else replace(record, value=rest, is_passed=True))
    return left[::-1]


def _without_detailed(value: Json, detailed: Mapping[tuple[str, str], int], depth: int = _SHALLOW) -> Json:
    """Return a value without those rows of its lists that are about a thing of which a later record has at least as
    many keys, but with at least one row of each list."""
    if not detailed or not depth:
        return value
    if isinstance(value, dict):
        inner = {key: _without_detailed(one, detailed, depth - 1) for key, one in value.items()}
        return inner if any(inner[key] is not one for key, one in value.items()) else value
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(one, dict) for one in value):
        return value
    rows = [
        row
        for row in cast("list[dict[str, Json]]", value)
        if not any(
            detailed.get((_same_key(key), str(one)), 0) >= len(row)
            for key, one in row.items()
            if isinstance(one, str | int)
        )
    ]
    return cast("Json", rows) if rows and len(rows) < len(value) else value


def read_records(ledger: str, newer: Sequence[Record]) -> Iterator[Record]:
    """Yield the records of an earlier ledger that no newer one replaces."""
    heads = {record.head for record in newer if record.head}
    for line in ledger.split("\n"):
        text = line.removeprefix(MARK)
        if text != line and ": " in text and text.partition("): ")[0] + ")" not in heads:
            head, _, form = text.partition("): ")
            value = _read_written(form)
            yield Record(head="" if value is None else f"{head})", value=value, text=text, place=-1)


def words_asked(ledger: str) -> set[str]:
    """Return the words of the calls whose records an earlier ledger has."""
    heads = (line.partition("): ")[0] for line in ledger.split("\n") if line.startswith(MARK))
    return {word for head in heads for word in Line(head.partition("(")[2].replace("=", " ")).words}


def _fewer_rows(text: str, wanted: Set[str]) -> str:
    """Return a record of an earlier ledger with only those rows of its table that have a wanted word, if there are
    any."""
    start, rows, depth, begun = -1, list[str](), 0, 0
    for found in _ROW_MARK.finditer(text):
        mark = found[0]
        if mark in "[{":
            depth += 1
            if start < 0 and mark == "[" and _is_table(text, found.end()):
                start, depth, begun = found.end(), 1, found.end()
        elif start >= 0 and mark == " | " and depth == 1:
            rows.append(text[begun : found.start()])
            begun = found.end()
        elif mark in "]}":
            depth -= 1
            if start >= 0 and depth == 0:
                rows.append(text[begun : found.start()])
                return _with_rows(text, (start, found.start()), rows, wanted)
    return text


def _is_table(text: str, start: int) -> bool:
    """Return whether a list that begins here has the names of columns before a colon."""
    return re.match(r"[^:|\[\]{}]{1,400}: ", text[start : start + 500]) is not None


def _with_rows(text: str, place: tuple[int, int], rows: Sequence[str], wanted: Set[str]) -> str:
    head, colon, first = rows[0].partition(": ")
    bare = [first, *rows[1:]]
    kept = [row for row in bare if any(word in wanted and _is_telling(word) for word in Line(row).words)]
    if not kept or len(kept) == len(bare):
        return text
    more, rest = _MORE.match(text, place[1] + 1), text[place[1] + 1 :]
    left = len(bare) - len(kept) + (int(more[1]) if more else 0)
    rest = rest[more.end() - place[1] - 1 :] if more else rest
    return f"{text[: place[0]]}{head}{colon}{' | '.join(kept)}] (+{left} more){rest}"


def _is_telling(word: str) -> bool:
    """Return whether a word shows which row is meant: not a word of a state, or a number so small that a call has it
    for other reasons (a page, a limit)."""
    return kind_of(word) in _LINE_KINDS and not _COUNT.fullmatch(word)


_COUNT = re.compile(r"\d{1,2}")
_ROW_MARK = re.compile(r"[\[\]{}]| \| ")
_MORE = re.compile(r" \(\+(\d+) more\)")


def fit_records(
    records: Sequence[Record], wanted: Set[str], room: int, count: Callable[[str], int]
) -> Steps[list[str]]:
    """Return the lines of records within the room, in order."""
    forms = list[list[tuple[str, int]]]()
    for record in records:
        forms.append([(line, count(line) + 1) for line in record.lines(wanted)])
        yield
    worths = list[float]()
    for place, record in enumerate(records):
        worths.append(_worth(record, wanted, (place + 1) / len(records), forms[place][0][1]))
        yield
    fit = _Fit(forms, room, [record.is_old_list for record in records])
    if len(records) > _PART:
        fit.bound(max(_LEAST, room // _PART))
    fit.shorten()
    fit.drop(worths)
    fit.lengthen(worths)
    return [forms[place][level][0] for place, level in enumerate(fit.levels) if level is not None]


class _Fit:
    """The form of each record, as an index of its lines; None for a record that is left out."""

    def __init__(self, forms: Sequence[Sequence[tuple[str, int]]], room: int, old_lists: Sequence[bool]) -> None:
        """`forms` are the lines of each record, longest first, with their tokens; `old_lists` says which records list
        what was listed before an earlier compaction."""
        self.forms = forms
        self.old_lists = old_lists
        self.levels: list[int | None] = [0] * len(forms)
        self.excess = sum(lines[0][1] for lines in forms) - room
        """Tokens above the room."""

    def put(self, place: int, level: int | None) -> None:
        """Set the form of a record; None leaves it out."""
        now = self.levels[place]
        self.excess -= 0 if now is None else self.forms[place][now][1]
        self.excess += 0 if level is None else self.forms[place][level][1]
        self.levels[place] = level

    def bound(self, most: int) -> None:
        """If not all fit as they are, limit each record to its part of the room."""
        if self.excess > 0:
            for place, lines in enumerate(self.forms):
                short = next((level for level, (_, tokens) in enumerate(lines) if tokens <= most), len(lines) - 1)
                self.put(place, short)

    def shorten(self) -> None:
        """Shorten the longest record by one step, then again, so that short ones are left whole. An older record counts
        as up to twice as long. An old list counts as twice as long again, and is left out where its shortest form is
        still the longest: otherwise such forms would take the room of what is new."""
        number = len(self.forms)

        def length(place: int, level: int) -> float:
            factor = (2 * number - place) / number * (2 if self.old_lists[place] else 1)
            return self.forms[place][level][1] * factor

        sizes = [(-length(place, level or 0), place) for place, level in enumerate(self.levels)]
        heapify(sizes)
        while sizes and self.excess > 0:
            _, place = heappop(sizes)
            level, lines = self.levels[place], self.forms[place]
            if level is not None and level + 1 < len(lines):
                self.put(place, level + 1)
                heappush(sizes, (-length(place, level + 1), place))
            elif self.old_lists[place]:
                self.put(place, None)

    def drop(self, worths: Sequence[float]) -> None:
        for place in sorted(range(len(worths)), key=worths.__getitem__):
            if self.excess <= 0:
                break
            self.put(place, None)

    def lengthen(self, worths: Sequence[float]) -> None:
        """Lengthen records by one step each, most valuable first, if dropped ones left room."""
        order = sorted(range(len(worths)), key=worths.__getitem__, reverse=True)
        grew = True
        while grew:
            grew = False
            for place in order:
                now = self.levels[place]
                if now and self.excess + self.forms[place][now - 1][1] - self.forms[place][now][1] <= 0:
                    self.put(place, now - 1)
                    grew = True


def _worth(record: Record, wanted: Set[str], age: float, tokens: int) -> float:
    """Return the worth of a record of so many tokens. It grows with `age`, from 0 for the oldest to 1, with how many
    values were mentioned, and if the record is short: details of one thing rather than a list of many."""
    if record.value is None and not record.text:
        return age - 1.0
    words = Line(record.text).words if record.value is None else [text for _, text in scalars(record.value)]
    hits = sum(text in wanted for text in words)
    mentioned = min(hits, _HITS) / _HITS * min(1.0, _VALUES / max(1, len(words)))
    return (
        age
        + mentioned
        + min(1.0, _BRIEF / max(1, tokens))
        - (_PASSED if record.is_passed or record.is_old_list else 0.0)
    )
