"""Results as records: which values belong together, in one line for each call.

A line is `- get_order(order_id=W23): {status=pending, items=[item_id, price: 77, 12.5 | 78, 3.0]}`. Where room is
short, older results lose first what identifies nothing, then what lies deep, then give up their line; a result that a
later one of the same call or of the same thing replaces is left out, so that what is written is the state.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from ullage.messages import Message, ToolResult, join_texts
from ullage.tokens import Steps
from ullage.tool import Json

from ..pairing import Call, pair
from .structure import is_name, is_record, names_in, read_structure, scalars, write_value

__all__ = ["MARK", "Record", "fit_records", "read_records", "records_of"]

MARK = "- "
"""With which a record's line begins."""
_MOST = 150
"""Records that are looked at, the newest."""
_BARE = 12
"""Of these, calls without a structured result; they are not carried further than to the next compaction."""
_NAME, _HEAD = 60, 300
"""Characters of a tool's name, and of a call that is worth a line though its result is none."""
_SHALLOW, _MANY, _FEW, _FEWER = 3, 12, 4, 3
"""Levels of a value, and items of a list, that are shown where room is short, shorter
and very short."""
_NEARLY = 0.75
"""The share of the things that a shorter line names which a longer one must name, too."""
_LEAST, _PART = 100, 6
"""Tokens that a record may always have, and the part of the room that is one's at most where they do not all fit."""
_HITS = 6
"""Values that are spoken of, from which on a record is worth no more for another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    head: str
    """The call, in words."""
    value: Json = None
    text: str = ""
    """What an earlier ledger had of it; then there is no value."""
    place: int = 0
    """Of its message, from 0; earlier ledgers lie before."""
    subject: tuple[str, str] | None = None
    """What it is about: the first key of an object, with its value, where that names something."""
    keys: int = 0
    """Of the object."""

    def lines(self, wanted: Set[str]) -> list[str]:
        """The record in ever fewer words, without repetitions."""
        if self.value is None:
            return [f"{MARK}{self.text or self.head}"]
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
        made = [f"{MARK}{self.head}: {one}" if self.head else f"{MARK}{one}" for one in self._best(shown)]
        return made or [f"{MARK}{self.head}"]

    def _best(self, shown: Iterable[str]) -> list[str]:
        """The longest first, without those that name far fewer things than a shorter one."""
        named = names_in(self.value)
        best, most = list[str](), 0
        for text in sorted({one for one in shown if one}, key=lambda one: (len(one), one)):
            names = sum(name in text for name in named)
            if names >= _NEARLY * most:
                best.append(text)
                most = max(most, names)
        return best[::-1]


def records_of(messages: Sequence[Message]) -> Steps[list[Record]]:
    """A record for each call with a structured result or with several short arguments, oldest first; of one thing, the
    newest. A step for each result."""
    read = list[Record]()
    for one in pair(messages).answered:
        if one.result is not None and (record := _record(one.call, one.result, one.place)) is not None:
            read.append(record)
        yield
    found = _newest(read)[-_MOST:]
    bare = [record.place for record in found if record.value is None][-_BARE:]
    return [record for record in found if record.value is not None or record.place in bare]


def _record(call: Call | None, result: ToolResult, place: int) -> Record | None:
    value = read_structure(join_texts(result.parts))
    head = _head(call) if call is not None else (result.name or "")[:_NAME]
    if is_record(value):
        subject, keys = None, 0
        if isinstance(value, dict):
            key, first = next(iter(value.items()))
            is_plain = isinstance(first, str | int) and not isinstance(first, bool)
            subject, keys = (key, str(first)) if is_plain and is_name(key) else None, len(value)
        return Record(head=head, value=_without(value, call), place=place, subject=subject, keys=keys)
    is_related = call is not None and is_record(call.asked) and len(head) <= _HEAD
    return Record(head=head, place=place) if is_related and not result.is_error else None


def _without(value: Json, call: Call | None) -> Json:
    """An object, or a list of them, without what the call says already, where something else is left."""
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
    """Without those that a later one replaces: the same call, the same result, or an object about the same with as many
    keys."""
    heads, subjects, left = set[str](), dict[tuple[str, str], int](), list[Record]()
    values = set[str]()
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
        left.append(record)
    return left[::-1]


def read_records(ledger: str, newer: Sequence[Record]) -> Iterator[Record]:
    """The records of an earlier ledger that no newer one replaces."""
    heads = {record.head for record in newer if record.head}
    for line in ledger.split("\n"):
        text = line.removeprefix(MARK)
        if text != line and ": " in text and text.partition("): ")[0] + ")" not in heads:
            yield Record(head="", text=text, place=-1)


def fit_records(
    records: Sequence[Record], wanted: Set[str], room: int, count: Callable[[str], int]
) -> Steps[list[str]]:
    """The lines of records within so many tokens, in their order."""
    forms = list[list[tuple[str, int]]]()
    for record in records:
        forms.append([(line, count(line) + 1) for line in record.lines(wanted)])
        yield
    worths = list[float]()
    for place, record in enumerate(records):
        worths.append(_worth(record, wanted, (place + 1) / len(records)))
        yield
    fit = _Fit(forms, room)
    if len(records) > _PART:
        fit.bound(max(_LEAST, room // _PART))
    fit.shorten()
    fit.drop(worths)
    fit.lengthen(worths)
    return [forms[place][level][0] for place, level in enumerate(fit.levels) if level is not None]


class _Fit:
    """Records in the form that each has; None for those that found no place."""

    def __init__(self, forms: Sequence[Sequence[tuple[str, int]]], room: int) -> None:
        """`forms` are the lines of each record, the longest first, with their tokens."""
        self.forms = forms
        self.levels: list[int | None] = [0] * len(forms)
        self.excess = sum(lines[0][1] for lines in forms) - room
        """Tokens that are too many."""

    def put(self, place: int, level: int | None) -> None:
        """Gives a record another form, or none."""
        now = self.levels[place]
        self.excess -= 0 if now is None else self.forms[place][now][1]
        self.excess += 0 if level is None else self.forms[place][level][1]
        self.levels[place] = level

    def bound(self, most: int) -> None:
        """Where not all fit as they are, none keeps more than its part."""
        if self.excess > 0:
            for place, lines in enumerate(self.forms):
                short = next((level for level, (_, tokens) in enumerate(lines) if tokens <= most), len(lines) - 1)
                self.put(place, short)

    def shorten(self) -> None:
        """A step for each, the oldest first, then another."""
        for level in range(1, max(map(len, self.forms), default=0)):
            for place, lines in enumerate(self.forms):
                if (self.levels[place] or 0) < level < len(lines) and self.excess > 0:
                    self.put(place, level)

    def drop(self, worths: Sequence[float]) -> None:
        for place in sorted(range(len(worths)), key=worths.__getitem__):
            if self.excess <= 0:
                break
            self.put(place, None)

    def lengthen(self, worths: Sequence[float]) -> None:
        """What was dropped may have left room for others to be longer: by a step for each, the worthiest first."""
        order = sorted(range(len(worths)), key=worths.__getitem__, reverse=True)
        grew = True
        while grew:
            grew = False
            for place in order:
                now = self.levels[place]
                if now and self.excess + self.forms[place][now - 1][1] - self.forms[place][now][1] <= 0:
                    self.put(place, now - 1)
                    grew = True


def _worth(record: Record, wanted: Set[str], age: float) -> float:
    """The newer, from 0 for the oldest to 1, and the more spoken of, the more."""
    if record.value is None:
        return age - (0.0 if record.text else 1.0)
    hits = sum(text in wanted for _, text in scalars(record.value))
    return age + min(hits, _HITS) / _HITS
