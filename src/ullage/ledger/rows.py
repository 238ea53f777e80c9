"""Entries of the ledger, their rows, and the sums kept with them, written in one transaction.

Entries contain figures and names, never a prompt, an argument or a result. There is one for everything that costs
tokens; a model call has additional data.

An entry is a row of `ullage_entries`, a model call one of `ullage_model_calls`. Names are stored once, in
`ullage_parties` (principal, client, project), `ullage_sessions` and `ullage_subjects` (kind, server, tool, model).
Their ids are hashes of the names, so that processes need not coordinate numbers. Every row is added to three sums when
it is written: `ullage_hours` by party, kind and model, `ullage_session_hours` by session, kind and model called, and
`ullage_tool_days` by party and the whole subject. Reports read these.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from ullage.models import Usage
from ullage.store import Connection, in_list, moment, seconds, storable, upsert
from ullage.tokens import Method

__all__ = [
    "CALLS",
    "CALLS_PRUNED",
    "DAY",
    "DIRECTNESS",
    "ENTRIES",
    "ENTRIES_PRUNED",
    "HOUR",
    "KINDS",
    "MEASURES",
    "SUMS",
    "CallRow",
    "Entry",
    "Kind",
    "ModelUse",
    "Party",
    "Scalar",
    "Source",
    "Subject",
    "add_calls",
    "call_key",
    "call_row",
    "entry_of",
    "mark_of",
    "picodollars_of",
    "stored_call",
    "write_entries",
]

Kind = Literal["definitions", "search", "result", "page", "history", "model"]
"""
- `definitions`: tool definitions and instructions carried by requests, with the replies of searches carried again
- `search`: a search reply, which the next request carries for the first time
- `result`: a tool's result; `baseline_tokens` is its size before its budget was applied
- `page`: a part of a stored result that was read back, which reduces a saving
- `history`: messages carried to a model; `baseline_tokens` is their size before a compaction
- `model`: a model call, the only kind that costs money
"""
Source = Literal["log", "delegate", "proxy"]
"""Where a model call was observed: in a program's log, by Ullage in its own process (the delegate, or a `Context` that
was told of it), or on the way to the provider."""
DIRECTNESS: Mapping[Source, int] = {"log": 1, "delegate": 2, "proxy": 3}
"""Of two rows of one model call, the row from the more direct source is kept."""
Scalar = str | int | float | bool | None

_LONGEST = 200
"""Maximum characters of a text in `detail`: enough for a name or a reason, not for a result."""
_MOST = 20
"""Maximum number of texts and numbers in `detail`."""
_BEYOND = 2**63
"""The smallest number that is too large for a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUse:
    """The usage and the cost of a model call."""

    usage: Usage
    dollars: Decimal | None = None
    """None where the price is unknown."""
    key: str | None = None
    """The provider's response id. Without one, a call is identified by client, model, usage and time."""
    source: Source = "delegate"
    missed_tokens: int = 0
    """Tokens that the provider had already read for the previous request and that did not come from its cache."""
    missed_dollars: Decimal | None = None
    """Cost of these tokens beyond the price of reading them from the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One record of tokens that were passed on, saved or paid for."""

    time: datetime
    """A time with its zone."""
    kind: Kind
    principal: str
    session: str
    session_inferred: bool = False
    client: str | None = None
    project: str | None = None
    """The client's working folder."""
    server: str | None = None
    """The MCP server, or the provider of a model call."""
    tool: str | None = None
    model: str | None = None
    """The model that tokens were counted for, or that was called."""
    tokens: int
    """Tokens that were passed on."""
    method: Method = Method.EXACT
    """The method of counting `tokens`."""
    baseline_tokens: int | None = None
    """Tokens that would have been passed on without Ullage; None if unknown."""
    saved_tokens: int | None = None
    """May be negative; None if the baseline is unknown."""
    milliseconds: float | None = None
    is_error: bool = False
    cached: bool = False
    """Whether the result came from a cache."""
    detail: Mapping[str, Scalar] = field(default_factory=dict[str, Scalar])
    """A few more figures or short names; long texts are cut."""
    use: ModelUse | None = None
    """Set for model calls only."""

    def __post_init__(self) -> None:
        if self.time.tzinfo is None:
            raise ValueError("an entry's time must know its zone")
        if not (0 <= self.tokens < _BEYOND and 0 <= (self.baseline_tokens or 0) < _BEYOND):
            raise ValueError(f"no numbers of tokens: {self.tokens}, {self.baseline_tokens}")
        if abs(self.saved_tokens or 0) >= _BEYOND:
            raise ValueError(f"no number of tokens: {self.saved_tokens}")

    def small_detail(self) -> dict[str, Scalar]:
        """Return `detail` in the form in which it is stored."""
        few = list(self.detail.items())[:_MOST]
        return {key[:_LONGEST]: value[:_LONGEST] if isinstance(value, str) else value for key, value in few}


HOUR, DAY = 3600, 86_400
KINDS: tuple[Kind, ...] = ("definitions", "search", "result", "page", "history", "model")
MEASURES = (
    "entries",
    "errors",
    "cached",
    "tokens",
    "baseline",
    "saved",
    "unmeasured",
    "milliseconds",
    "input",
    "output",
    "cache_read",
    "cache_write",
    "reasoning",
    "missed",
    "picodollars",
    "missed_picodollars",
    "unpriced",
)
"""Columns of both sums. `unmeasured` counts entries whose saving is unknown, `unpriced` calls without a price."""
_METHODS: tuple[Method, ...] = tuple(Method)
_SOURCES: Mapping[int, Source] = {rank: source for source, rank in DIRECTNESS.items()}
_NOTHING = (0,) * len(MEASURES)
CALLS_PRUNED, ENTRIES_PRUNED = "calls_pruned", "entries_pruned"
"""Names of the marks that store the time before which rows were deleted."""
_CHUNK = 900
"""Parameters of one statement, below SQLite's limit."""

_ENTRY = ("time", "session", "subject", "tokens", "baseline", "saved", "milliseconds", "flags", "detail")
_ADD_ENTRY = f"INSERT INTO ullage_entries ({', '.join(_ENTRY)}) VALUES ({', '.join(f':{one}' for one in _ENTRY)})"
_CALL = (
    "id",
    "time",
    "session",
    "subject",
    "source",
    "input",
    "output",
    "cache_read",
    "cache_write",
    "reasoning",
    "missed",
    "picodollars",
    "missed_picodollars",
    "milliseconds",
    "flags",
    "detail",
)
_PUT_CALL = upsert("ullage_model_calls", _CALL, key="id", update={one: f"excluded.{one}" for one in _CALL[1:]})
_ADD_PARTY = upsert("ullage_parties", ("id", "principal", "client", "project"), key="id")
_ADD_SESSION = upsert("ullage_sessions", ("id", "party", "session", "inferred"), key="id")
_ADD_SUBJECT = upsert("ullage_subjects", ("id", "kind", "server", "tool", "model"), key="id")


SUMS: Mapping[str, tuple[str, ...]] = {
    "ullage_hours": ("hour", "party", "subject"),
    "ullage_session_hours": ("session", "hour", "kind", "model"),
    "ullage_tool_days": ("day", "party", "subject"),
}
"""Tables of sums, with their keys."""
_ADD = {
    table: upsert(
        table,
        (*key, *MEASURES),
        key=", ".join(key),
        update={one: f"{table}.{one} + excluded.{one}" for one in MEASURES},
    )
    for table, key in SUMS.items()
}


@lru_cache(8192)
def _id(*names: str | None) -> int:
    """Return 63 bits of the hash of some names."""
    text = "\x1f".join("\x00" if name is None else name for name in names)
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big") >> 1


def _text(name: str | None) -> str | None:
    return None if name is None else storable(name)


@dataclass(frozen=True, slots=True)
class Party:
    """The session that an entry belongs to, with its principal, client and project."""

    principal: str
    session: str
    inferred: bool = False
    client: str | None = None
    project: str | None = None

    @property
    def id(self) -> int:
        return _id(self.principal, self.client, self.project)

    @property
    def session_id(self) -> int:
        return _id(self.principal, self.session, self.client, self.project)


@dataclass(frozen=True, slots=True)
class Subject:
    """The kind, server, tool and model of an entry."""

    kind: str
    server: str | None = None
    tool: str | None = None
    model: str | None = None

    @property
    def id(self) -> int:
        return _id(self.kind, self.server, self.tool, self.model)

    @property
    def broad(self) -> "Subject":
        """The subject without server and tool."""
        return Subject(self.kind, model=self.model)


@dataclass(slots=True)
class CallRow:
    """A model call as it is stored. Money is in picodollars."""

    id: int
    time: float
    party: Party
    subject: Subject
    source: int
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    missed: int = 0
    picodollars: int | None = None
    missed_picodollars: int = 0
    milliseconds: float | None = None
    flags: int = 0
    detail: str | None = None

    @property
    def rank(self) -> tuple[int, int]:
        """Rank among rows of one call, of which the highest is kept: the more direct source first, then the row that
        reports more."""
        return self.source, (self.input or 0) + (self.output or 0)

    def measures(self) -> Sequence[float]:
        """Return the values in the order of `MEASURES`."""
        return (
            1,
            self.flags & 1,
            0,
            (self.input or 0) + (self.output or 0),
            0,
            0,
            0,
            self.milliseconds or 0,
            self.input or 0,
            self.output or 0,
            self.cache_read or 0,
            self.cache_write or 0,
            self.reasoning or 0,
            self.missed,
            self.picodollars or 0,
            self.missed_picodollars,
            1 if self.picodollars is None else 0,
        )


def call_key(key: str | None, *fallback: object) -> int:
    """Return the row id of a model call: hashed from the provider's response id, else from client, model, usage and
    time."""
    if key is not None:
        return _id("call", key)
    text = "\x1f".join(map(str, fallback))  # of one row only, so not worth a place in a cache
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big") >> 1


def picodollars_of(dollars: Decimal | None) -> int | None:
    return None if dollars is None else round(dollars.scaleb(12))


@dataclass(frozen=True, slots=True)
class _Ids:
    """Ids of the names of a row."""

    party: int
    session: int
    subject: int
    broad: int
    """The subject without server and tool."""
    kind: int
    model: int
    """`broad` of a call of a model with a name, else 0."""


@dataclass(slots=True)
class _Sums:
    """The amounts that a batch adds to the sums."""

    tables: dict[str, dict[tuple[int, ...], list[float]]] = field(default_factory=lambda: {table: {} for table in SUMS})
    added: dict[tuple[int, _Ids], list[float]] = field(default_factory=dict[tuple[int, "_Ids"], list[float]])
    """By hour and ids, before the values are distributed to the tables."""
    known: dict[tuple[Party, Subject], _Ids] = field(default_factory=dict[tuple[Party, Subject], "_Ids"])
    parties: dict[int, Party] = field(default_factory=dict[int, Party])
    whose: dict[int, tuple[int, Party]] = field(default_factory=dict[int, tuple[int, Party]])
    """By session id."""
    subjects: dict[int, Subject] = field(default_factory=dict[int, Subject])

    def name(self, party: Party, subject: Subject) -> "_Ids":
        """Collect the names for writing, and return their ids."""
        known = self.known.get((party, subject))
        if known is not None:
            return known
        broad = subject.broad
        model = broad.id if subject.kind == "model" and subject.model is not None else 0
        ids = _Ids(party.id, party.session_id, subject.id, broad.id, KINDS.index(subject.kind), model)
        self.parties.setdefault(ids.party, party)
        self.whose.setdefault(ids.session, (ids.party, party))
        self.subjects.setdefault(ids.subject, subject)
        self.subjects.setdefault(ids.broad, broad)
        self.known[party, subject] = ids
        return ids

    def add(self, time: float, ids: "_Ids", measures: Sequence[float], sign: int = 1) -> None:
        key = int(time // HOUR), ids
        found = self.added.get(key)
        if found is None:
            found = self.added[key] = list(_NOTHING)
        for place, value in enumerate(measures):
            if value:
                found[place] += sign * value

    def _spread(self) -> None:
        """Distribute the added values to the tables, by the key of each."""
        for (hour, ids), measures in self.added.items():
            for table, key in (
                ("ullage_hours", (hour, ids.party, ids.broad)),
                ("ullage_session_hours", (ids.session, hour, ids.kind, ids.model)),
                ("ullage_tool_days", (hour // 24, ids.party, ids.subject)),
            ):
                sums = self.tables[table]
                found = sums.get(key)
                if found is None:
                    sums[key] = list(measures)
                else:
                    for place, value in enumerate(measures):
                        found[place] += value

    def write(self, connection: Connection) -> None:
        """Write the names and the sums in the order of their keys, so that two processes cannot deadlock."""
        self._spread()
        parties = [
            {
                "id": number,
                "principal": _text(one.principal),
                "client": _text(one.client),
                "project": _text(one.project),
            }
            for number, one in sorted(self.parties.items())
        ]
        sessions = [
            {"id": number, "party": party, "session": _text(one.session), "inferred": one.inferred}
            for number, (party, one) in sorted(self.whose.items(), key=lambda item: item[0])
        ]
        subjects = [
            {"id": number, "kind": KINDS.index(one.kind)}
            | {"server": _text(one.server), "tool": _text(one.tool), "model": _text(one.model)}
            for number, one in sorted(self.subjects.items())
        ]
        for statement, rows in (
            (_ADD_PARTY, parties),
            (_ADD_SESSION, sessions),
            (_ADD_SUBJECT, subjects),
        ):
            if rows:
                connection.execute(statement, rows)
        for table, names in SUMS.items():
            columns, sums = (*names, *MEASURES), sorted(self.tables[table].items())
            if sums:
                found = [dict(zip(columns, (*key, *values), strict=True)) for key, values in sums]
                connection.execute(_ADD[table], found)


def write_entries(connection: Connection, entries: Sequence[Entry]) -> None:
    """Add entries to the ledger and to its sums."""
    sums, rows, calls = _Sums(), list[dict[str, object]](), list[CallRow]()
    for entry in entries:
        if entry.kind == "model":
            calls.append(call_row(entry))
            continue
        party, subject = _names_of(entry)
        ids, time = sums.name(party, subject), seconds(entry.time)
        rows.append(
            {
                "time": time,
                "session": ids.session,
                "subject": ids.subject,
                "tokens": entry.tokens,
                "baseline": entry.baseline_tokens,
                "saved": entry.saved_tokens,
                "milliseconds": entry.milliseconds,
                "flags": _flags(entry),
                "detail": json.dumps(entry.small_detail()) if entry.detail else None,
            }
        )
        sums.add(
            time,
            ids,
            (
                1,
                entry.is_error,
                entry.cached,
                entry.tokens,
                entry.baseline_tokens or 0,
                entry.saved_tokens or 0,
                entry.saved_tokens is None,
                entry.milliseconds or 0,
            ),
        )
    if rows:
        connection.execute(_ADD_ENTRY, rows)
    _put_calls(connection, calls, sums)
    sums.write(connection)


def add_calls(connection: Connection, calls: Sequence[CallRow]) -> int:
    """Add model calls, each once. Return how many were new or more complete than the stored row."""
    sums = _Sums()
    changed = _put_calls(connection, calls, sums)
    sums.write(connection)
    return changed


def _put_calls(connection: Connection, calls: Sequence[CallRow], sums: _Sums) -> int:
    if not calls:
        return 0
    best: dict[int, CallRow] = {}
    pruned = mark_of(connection, CALLS_PRUNED) or 0
    for call in calls:
        if call.time < pruned:
            continue
        known = best.get(call.id)
        best[call.id] = call if known is None else _joined(known, call)
    earlier = _stored_calls(connection, best)
    rows = list[dict[str, object]]()
    for number, call in sorted(best.items()):
        known = earlier.get(number)
        if known is not None:
            is_more, call = call.rank > known.rank, _joined(known, call)  # noqa: PLW2901 - the one row of the call
            if call is known:
                continue
            if is_more and call.source == known.source:  # a later piece: its original time and place are kept
                call.time, call.party = known.time, known.party
            sums.add(known.time, sums.name(known.party, known.subject), known.measures(), -1)
        ids = sums.name(call.party, call.subject)
        sums.add(call.time, ids, call.measures())
        values: dict[str, object] = {name: getattr(call, name) for name in _CALL if name not in ("session", "subject")}
        rows.append({**values, "session": ids.session, "subject": ids.subject})
    if rows:
        connection.execute(_PUT_CALL, rows)
    return len(rows)


def _joined(known: CallRow, call: CallRow) -> CallRow:
    """Return the row of higher rank of a call that was seen twice.

    Of rows that say the same, `known` is kept, with the earlier time and its place: a copy, as at the beginning of a
    fork, has a later time, and may be read first.
    """
    if call.rank == known.rank and call.time < known.time:
        return replace(known, time=call.time, party=call.party)
    return call if call.rank > known.rank else known


def _stored_calls(connection: Connection, numbers: Iterable[int]) -> dict[int, CallRow]:
    found: dict[int, CallRow] = {}
    wanted = list(numbers)
    for start in range(0, len(wanted), _CHUNK):
        names, values = in_list("id", wanted[start : start + _CHUNK])
        for row in connection.execute(f"{CALLS} WHERE c.id IN {names}", values).mappings():
            found[row["id"]] = stored_call(row)
    return found


CALLS = (
    "SELECT c.*, s.session AS name, s.inferred, p.principal, p.client, p.project, u.server, u.tool, u.model "
    "FROM ullage_model_calls c JOIN ullage_sessions s ON s.id = c.session "
    "JOIN ullage_parties p ON p.id = s.party JOIN ullage_subjects u ON u.id = c.subject"
)
ENTRIES = (
    "SELECT c.*, s.session AS name, s.inferred, p.principal, p.client, p.project, u.kind, u.server, u.tool, u.model "
    "FROM ullage_entries c JOIN ullage_sessions s ON s.id = c.session "
    "JOIN ullage_parties p ON p.id = s.party JOIN ullage_subjects u ON u.id = c.subject"
)


def stored_call(row: Mapping[str, Any]) -> CallRow:
    return CallRow(
        party=Party(row["principal"], row["name"], bool(row["inferred"]), row["client"], row["project"]),
        subject=Subject("model", row["server"], row["tool"], row["model"]),
        **{name: row[name] for name in _CALL if name not in ("session", "subject")},
    )


def call_row(entry: Entry) -> CallRow:
    """Return the row of a model call's entry."""
    use = entry.use or ModelUse(usage=Usage(input=entry.tokens))
    usage, time = use.usage, seconds(entry.time)
    fallback = entry.client, entry.model, usage, time, entry.session
    party, subject = _names_of(entry)
    return CallRow(
        id=call_key(use.key, *fallback),
        time=time,
        party=party,
        subject=subject,
        source=DIRECTNESS[use.source],
        input=usage.input,
        output=usage.output,
        cache_read=usage.cache_read,
        cache_write=usage.cache_write,
        reasoning=usage.reasoning,
        missed=use.missed_tokens,
        picodollars=picodollars_of(use.dollars),
        missed_picodollars=picodollars_of(use.missed_dollars) or 0,
        milliseconds=entry.milliseconds,
        flags=_flags(entry),
        detail=json.dumps(entry.small_detail()) if entry.detail else None,
    )


def _names_of(entry: Entry) -> tuple[Party, Subject]:
    return (
        Party(entry.principal, entry.session, entry.session_inferred, entry.client, entry.project),
        Subject(entry.kind, entry.server, entry.tool, entry.model),
    )


def _flags(entry: Entry) -> int:
    return int(entry.is_error) | int(entry.cached) << 1 | _METHODS.index(entry.method) << 2


def entry_of(row: Mapping[str, Any], *, is_call: bool) -> Entry:
    """Return the entry of a row of `ENTRIES` or `CALLS`."""
    flags: int = row["flags"]
    use, tokens = None, row.get("tokens")
    number: int = KINDS.index("model") if is_call else row["kind"]
    if is_call:
        call = stored_call(row)
        tokens = (call.input or 0) + (call.output or 0)
        use = ModelUse(
            usage=Usage(
                input=call.input,
                output=call.output,
                cache_read=call.cache_read,
                cache_write=call.cache_write,
                reasoning=call.reasoning,
            ),
            dollars=None if call.picodollars is None else Decimal(call.picodollars).scaleb(-12),
            source=_SOURCES[call.source],
            missed_tokens=call.missed,
            missed_dollars=Decimal(call.missed_picodollars).scaleb(-12) if call.missed_picodollars else None,
        )
    return Entry(
        time=moment(row["time"]),
        kind=KINDS[number],
        principal=row["principal"],
        session=row["name"],
        session_inferred=bool(row["inferred"]),
        client=row["client"],
        project=row["project"],
        server=row["server"],
        tool=row["tool"],
        model=row["model"],
        tokens=tokens or 0,
        method=_METHODS[flags >> 2],
        baseline_tokens=row.get("baseline"),
        saved_tokens=row.get("saved"),
        milliseconds=row["milliseconds"],
        is_error=bool(flags & 1),
        cached=bool(flags & 2),
        detail=json.loads(row["detail"]) if row["detail"] else {},
        use=use,
    )


def mark_of(connection: Connection, name: str) -> float | None:
    """Return a moment that the ledger keeps for its own use; None if it is not set."""
    return connection.scalar("SELECT value FROM ullage_ledger_marks WHERE name = :name", {"name": name})
