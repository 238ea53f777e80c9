"""Reports of what was spent and saved, from the sums that are kept with the ledger's rows.

    from ullage.ledger import usage_report
    report = usage_report(database, by="day", since=date(2026, 11, 1), zone=ZoneInfo("Europe/Berlin"), prices=prices)
    for line in report.lines:                     # ordered by `line.key`
        print(line.key, line.spent.dollars, line.saved.net, line.saved.dollars)
    report.total.spent.calls

`by` is one of `GROUPS`. A `Line` has:

- `key`: the day (`2026-11-18`), Monday of the week, month (`2026-11`), session, client, project, server, tool or model
  of the line; "" where it is unknown
- `spent` (`Spent`): model calls, their tokens by kind, dollars, and what cache misses cost. Model calls are the only
  kind of entry that is money: definitions, results and history are parts of these calls
- `saved` (`Saved`): tokens by kind, `net`, and dollars. A search and a page read back are negative: they reduce what
  definitions and results had saved
- `models`: `Spent` by model
- `uses`: tool results of the line, `errors` of them, and their tokens as they passed

`principal` limits a report to one principal's rows. `recount=True` adds up the rows themselves. That is slow and
must give the same result, because the sums are written in the same transaction. Sums are kept by the hour, those of
servers and tools by the day in UTC. For other times, as in a zone that is offset by a fraction of an hour, rows are
added up as long as they are kept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Literal, NamedTuple, TypeVar, get_args

from ullage.models import Price
from ullage.store import Connection, Database

from .rows import DAY, ENTRIES_PRUNED, HOUR, KINDS, MEASURES, mark_of

__all__ = ["GROUPS", "Group", "Line", "Prices", "Report", "Saved", "Spent", "usage_report"]

Group = Literal["day", "week", "month", "session", "client", "project", "server", "tool", "model"]
GROUPS: tuple[Group, ...] = get_args(Group)
Key = TypeVar("Key")
Prices = Callable[[str], Price | None]
"""The price of a model by its name; None where it is unknown."""

_PICO = Decimal("1e-12")
_COLUMNS: Mapping[Group, str] = {
    "client": "p.client",
    "project": "p.project",
    "server": "u.server",
    "tool": "u.tool",
    "model": "u.model",
}
_OF_CALLS = ("input", "output", "cache_read", "cache_write", "reasoning", "missed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Sums of model calls. `input` includes tokens read from and written to caches, `output` includes reasoning."""

    calls: int = 0
    errors: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    missed: int = 0
    """Tokens read again without the cache although the provider had read them for the previous request."""
    picodollars: int = 0
    missed_picodollars: int = 0
    unpriced: int = 0
    """Calls whose price is unknown; they are not included in any sum of money."""
    milliseconds: float = 0.0

    @property
    def dollars(self) -> Decimal | None:
        """Cost of the calls; None if no call has a price."""
        return None if self.calls and self.unpriced == self.calls else self.picodollars * _PICO

    @property
    def missed_dollars(self) -> Decimal:
        return self.missed_picodollars * _PICO

    @property
    def tokens(self) -> int:
        return self.input + self.output


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Tokens that model requests did not carry because of Ullage, less what it added."""

    definitions: int = 0
    """Over all requests, after deducting Ullage's own tools, instructions and replies."""
    search: int = 0
    """Tokens of search replies; never above 0."""
    result: int = 0
    """Tokens of results before their budget minus tokens of results as passed on, once each."""
    page: int = 0
    """Parts of stored results that were read back; never above 0."""
    history: int = 0
    """Tokens that compactions removed from histories, once each."""
    unmeasured: int = 0
    """Number of entries whose saving is unknown."""
    dollars: Decimal | None = None
    """At list prices of the models in use: definitions and history as read from a cache, results as new input. None
    where no price is known."""

    @property
    def net(self) -> int:
        return self.definitions + self.search + self.result + self.page + self.history


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a report: the sums of a period, session, client, project, server, tool or model."""

    key: str
    spent: Spent = field(default_factory=Spent)
    saved: Saved = field(default_factory=Saved)
    models: dict[str, Spent] = field(default_factory=dict[str, Spent])
    uses: int = 0
    """Number of tool results."""
    errors: int = 0
    """Number of tool results that were errors."""
    result_tokens: int = 0
    """Tokens of tool results as they were passed on."""
    requests: int = 0
    """Number of searches and tool calls."""
    first: datetime | None = None
    """The hour of the first entry; its day in UTC if lines are servers or tools."""
    last: datetime | None = None
    """The time of the last entry."""
    client: str | None = None
    """Set if lines are sessions."""
    project: str | None = None
    """Set if lines are sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The lines of a report and their total."""

    by: Group
    since: date | None
    until: date | None
    """The first day that is not included."""
    lines: tuple[Line, ...]
    total: Line


def usage_report(  # noqa: PLR0913
    database: Database,
    *,
    by: Group = "day",
    since: date | datetime | None = None,
    until: date | datetime | None = None,
    zone: tzinfo = UTC,
    principal: str | None = None,
    prices: Prices = lambda _: None,
    recount: bool = False,
) -> Report:
    """Report what was spent and saved.

    Args:
        database: The store.
        by: What each line represents.
        since: The first day, in `zone`, or a moment; None for the beginning.
        until: The first day that is not included, or a moment; None for now.
        zone: The time zone of days, weeks and months.
        principal: Include only this principal's rows; None for all.
        prices: Prices of saved tokens, by model. The cost of calls is already in the ledger.
        recount: Add up the rows instead of the sums that are kept with them.

    Returns:
        Lines ordered by their keys; sessions ordered by their last entry.
    """
    span = _moment(since, zone), _moment(until, zone)
    asked = _Asked(by, span, principal, zone, recount=recount)
    found = database.read(lambda connection: list(_sums(connection, asked)))
    lines, total = _lines(found, _Pricing(found, prices), by)
    ordered = sorted(lines.values(), key=lambda line: (line.last or datetime.min.replace(tzinfo=UTC), line.key))
    return Report(
        by=by,
        since=None if span[0] is None else span[0].astimezone(zone).date(),
        until=None if span[1] is None else span[1].astimezone(zone).date(),
        lines=tuple(ordered if by == "session" else sorted(lines.values(), key=lambda line: line.key)),
        total=total,
    )


def _moment(when: date | datetime | None, zone: tzinfo) -> datetime | None:
    if when is None or isinstance(when, datetime):
        return when
    return datetime.combine(when, time(), zone)


@dataclass(frozen=True, slots=True)
class _Asked:
    by: Group
    span: tuple[datetime | None, datetime | None]
    principal: str | None
    zone: tzinfo
    recount: bool


class _Sum(NamedTuple):
    """The sums of one group, kind and model."""

    bucket: int | None
    name: str | None
    kind: int
    model: str | None
    client: str | None
    project: str | None
    first: int
    last: int
    values: Sequence[float]
    """In the order of `MEASURES`."""


_PLACES = {name: place for place, name in enumerate(MEASURES)}


def _sums(connection: Connection, asked: _Asked) -> Iterator[_Sum]:
    since, until = (None if one is None else one.timestamp() for one in asked.span)
    offsets = list(_offsets(connection, asked, since, until))
    if asked.by in ("server", "tool") and not asked.recount:
        yield from _sums_of_tools(connection, asked, since, until)
        return
    whole = all(one is None or one % HOUR == 0 for one in (since, until))
    pruned = mark_of(connection, ENTRIES_PRUNED)
    is_kept = pruned is None or (since is not None and since >= pruned)
    is_off = not whole or any(offset % HOUR for _, _, offset in offsets)
    rows = asked.recount or (is_off and is_kept)
    for begin, end, offset in offsets:
        if rows:
            source = _rows_source(asked, offset, connection.kind)
            yield from _grouped(connection, asked, source, (begin, end))
        else:
            hours = tuple(None if one is None else int(one // HOUR) for one in (begin, end))
            yield from _grouped(connection, asked, _sums_source(asked, offset), hours)


def _sums_of_tools(connection: Connection, asked: _Asked, since: float | None, until: float | None) -> Iterator[_Sum]:
    """Yield the sums by day in UTC, and sums of the rows themselves for the partial days at both ends."""
    first = None if since is None else -int(-since // DAY)
    last = None if until is None else int(until // DAY)
    if first is not None and last is not None and first > last:  # within one day
        yield from _grouped(connection, asked, _rows_source(asked, 0, connection.kind), (since, until))
        return
    yield from _grouped(connection, asked, _days_source(), (first, last))
    rows = _rows_source(asked, 0, connection.kind)
    if first is not None and first * DAY != since:
        yield from _grouped(connection, asked, rows, (since, first * DAY))
    if last is not None and last * DAY != until:
        yield from _grouped(connection, asked, rows, (last * DAY, until))


def _grouped(connection: Connection, asked: _Asked, source: str, span: tuple[float | None, ...]) -> Iterator[_Sum]:
    """Yield the sums of a source, with names in place of ids."""
    conditions, values = list[str](), dict[str, object]()
    for name, sign, limit in zip(("since", "until"), (">=", "<"), span, strict=True):
        if limit is not None:
            conditions.append(f"at {sign} :{name}")
            values[name] = limit
    inner = source.format(where=" AND ".join(conditions) or "1 = 1")
    who = ""
    if asked.principal is not None:
        who, values = " WHERE p.principal = :principal", values | {"principal": asked.principal}
    sums = ", ".join(f"SUM(g.{name})" for name in MEASURES)
    if asked.by == "session":
        key = "s.session, g.kind, NULL, p.client, p.project"
        joins = "JOIN ullage_sessions s ON s.id = g.session JOIN ullage_parties p ON p.id = s.party"
    else:
        key = f"{_COLUMNS.get(asked.by) or 'NULL'}, u.kind, u.model, p.client, NULL"
        joins = "JOIN ullage_subjects u ON u.id = g.subject JOIN ullage_parties p ON p.id = g.party"
    if asked.by == "session":  # one row each already
        figures, groups = ", ".join(f"g.{name}" for name in ("first", "last", *MEASURES)), ""
    else:
        figures, groups = f"MIN(g.first), MAX(g.last), {sums}", " GROUP BY 1, 2, 3, 4, 5, 6"
    query = f"SELECT g.bucket, {key}, {figures} FROM ({inner}) g {joins}{who}{groups}"
    for bucket, name, kind, model, client, project, first, last, *measures in connection.execute(query, values):
        yield _Sum(bucket, name, kind, model, client, project, int(first), int(last), measures)


def _sums_source(asked: _Asked, offset: int) -> str:
    """Return a query of the sums, aggregated by ids before names are joined to them."""
    is_session = asked.by == "session"
    table, ids = ("ullage_session_hours", "session, kind") if is_session else ("ullage_hours", "party, subject")
    bucket = f"(hour + {offset // HOUR}) / 24" if asked.by in ("day", "week", "month") else "NULL"
    sums = ", ".join(f"SUM({name}) AS {name}" for name in MEASURES)
    return (
        f"SELECT {bucket} AS bucket, {ids}, MIN(hour) AS first, MAX(hour) AS last, {sums} "
        f"FROM (SELECT hour AS at, t.* FROM {table} t) t WHERE {{where}} GROUP BY 1, 2, 3"
    )


def _days_source() -> str:
    sums = ", ".join(f"SUM({name}) AS {name}" for name in MEASURES)
    return (
        f"SELECT NULL AS bucket, party, subject, MIN(day) * 24 AS first, MAX(day) * 24 AS last, {sums} "
        "FROM (SELECT day AS at, t.* FROM ullage_tool_days t) t WHERE {where} GROUP BY 1, 2, 3"
    )


def _rows_source(asked: _Asked, offset: int, kind: str) -> str:
    """Return a query that computes the sums from the rows themselves."""
    ids = "session, kind" if asked.by == "session" else "party, subject"
    # A cast truncates in SQLite and rounds in PostgreSQL.
    whole = "CAST({} AS BIGINT)" if kind == "sqlite" else "CAST(FLOOR({}) AS BIGINT)"
    days = whole.format(f"(at + {offset}) / {DAY}")
    bucket = days if asked.by in ("day", "week", "month") else "NULL"
    sums = ", ".join(f"SUM({name}) AS {name}" for name in MEASURES)
    of_entries = {
        "entries": "1",
        "errors": "e.flags % 2",
        "cached": "(e.flags / 2) % 2",
        "tokens": "e.tokens",
        "baseline": "coalesce(e.baseline, 0)",
        "saved": "coalesce(e.saved, 0)",
        "unmeasured": "CASE WHEN e.saved IS NULL THEN 1 ELSE 0 END",
        "milliseconds": "coalesce(e.milliseconds, 0)",
    }
    of_calls = {
        "entries": "1",
        "errors": "e.flags % 2",
        "tokens": "coalesce(e.input, 0) + coalesce(e.output, 0)",
        "milliseconds": "coalesce(e.milliseconds, 0)",
        "missed_picodollars": "e.missed_picodollars",
        "unpriced": "CASE WHEN e.picodollars IS NULL THEN 1 ELSE 0 END",
    } | {name: f"coalesce(e.{name}, 0)" for name in (*_OF_CALLS, "picodollars")}
    tables = (("ullage_entries", of_entries), ("ullage_model_calls", of_calls))
    rows = " UNION ALL ".join(
        "SELECT e.time AS at, e.session, s.party, e.subject, u.kind, "
        + ", ".join(f"{measures.get(name, '0')} AS {name}" for name in MEASURES)
        + f" FROM {table} e JOIN ullage_sessions s ON s.id = e.session JOIN ullage_subjects u ON u.id = e.subject"
        for table, measures in tables
    )
    return (
        f"SELECT {bucket} AS bucket, {ids}, MIN(at) / {HOUR} AS first, MAX(at) / {HOUR} AS last, {sums} "
        f"FROM ({rows}) t WHERE {{where}} GROUP BY 1, 2, 3"
    )


def _offsets(
    connection: Connection, asked: _Asked, since: float | None, until: float | None
) -> Iterator[tuple[float | None, float | None, int]]:
    """Yield spans of time in which the zone's offset from UTC stays the same. Only days, weeks and months need them."""
    if asked.by not in ("day", "week", "month"):
        yield since, until, 0
        return
    first, last = connection.execute("SELECT MIN(hour), MAX(hour) FROM ullage_hours").one()
    if first is None:
        return
    begin = max(first * HOUR, since if since is not None else first * HOUR)
    end = min((last + 1) * HOUR, until if until is not None else (last + 1) * HOUR)
    start, offset, at = since, _offset(begin, asked.zone), begin
    while at < end:
        following = at + DAY
        if _offset(following, asked.zone) != offset:
            low, high = at, following
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(middle, asked.zone) == offset else (low, middle)
            yield start, high, offset
            start, offset = high, _offset(high, asked.zone)
        at = following
    yield start, until, offset


def _offset(at: float, zone: tzinfo) -> int:
    offset = datetime.fromtimestamp(at, zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _period(by: Group, bucket: int) -> str:
    """Return the key of a day, counted from 1970 in local time; or of its week or month."""
    day = date(1970, 1, 1) + timedelta(days=int(bucket))
    if by == "week":
        day -= timedelta(days=day.weekday())
    return day.isoformat()[:7] if by == "month" else day.isoformat()


class _Pricing:
    """Prices of saved tokens in dollars: those of the model that the entry names, else of the one that the client used
    most, else of the one used most overall."""

    def __init__(self, sums: Sequence[_Sum], prices: Prices) -> None:
        self._prices = prices
        self._rates: dict[tuple[int, str | None, str | None], Decimal | None] = {}
        used: dict[str | None, dict[str, float]] = {}
        for one in sums:
            if one.kind == _MODEL and one.model:
                for client in {one.client, None}:
                    of_client = used.setdefault(client, {})
                    of_client[one.model] = of_client.get(one.model, 0) + one.values[_PLACES["input"]]
        self._most_used = {client: max(models, key=lambda name: models[name]) for client, models in used.items()}

    def dollars(self, one: _Sum) -> Decimal | None:
        saved = int(one.values[_PLACES["saved"]])
        if not saved:
            return Decimal(0)
        key = (one.kind, one.model, one.client)
        if key not in self._rates:
            self._rates[key] = self._rate(one)
        rate = self._rates[key]
        return None if rate is None else saved * rate

    def _rate(self, one: _Sum) -> Decimal | None:
        for model in (one.model, self._most_used.get(one.client), self._most_used.get(None)):
            price = None if model is None else self._prices(model)
            if price is not None and price.currency == "USD" and price.input is not None:
                is_carried = KINDS[one.kind] in ("definitions", "history")
                return price.cache_read if is_carried and price.cache_read is not None else price.input
        return None


_MODEL = KINDS.index("model")


@dataclass(slots=True)
class _Sheet:
    """A line while its sums are added up."""

    first: int
    last: int
    client: str | None
    project: str | None
    kinds: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    models: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    dollars: Decimal | None = None

    def add(self, one: _Sum, dollars: Decimal | None) -> None:
        self.first, self.last = min(self.first, one.first), max(self.last, one.last)
        _add_values(self.kinds, one.kind, one.values)
        if one.kind == _MODEL:
            if one.model is not None:
                _add_values(self.models, one.model, one.values)
        elif dollars is not None:
            self.dollars = dollars if self.dollars is None else self.dollars + dollars

    def line(self, key: str) -> Line:
        kinds = {KINDS[kind]: values for kind, values in self.kinds.items()}
        others = [values for kind, values in kinds.items() if kind != "model"]
        saved = {kind: int(values[_PLACES["saved"]]) for kind, values in kinds.items() if kind != "model"}
        result = kinds.get("result", _NONE)
        return Line(
            key=key,
            spent=_spent(kinds.get("model", _NONE)),
            saved=Saved(
                **saved, unmeasured=sum(int(one[_PLACES["unmeasured"]]) for one in others), dollars=self.dollars
            ),
            models={model: _spent(values) for model, values in sorted(self.models.items())},
            uses=int(result[_PLACES["entries"]]),
            errors=int(result[_PLACES["errors"]]),
            result_tokens=int(result[_PLACES["tokens"]]),
            requests=sum(
                int(kinds[kind][_PLACES["entries"]]) for kind in ("search", "result", "page") if kind in kinds
            ),
            first=datetime.fromtimestamp(self.first * HOUR, UTC),
            last=datetime.fromtimestamp(self.last * HOUR, UTC),
            client=self.client,
            project=self.project,
        )


def _add_values(sums: dict[Key, list[float]], key: Key, values: Sequence[float]) -> None:
    found = sums.get(key)
    if found is None:
        sums[key] = list(values)
        return
    for place, value in enumerate(values):
        if value:
            found[place] += value


_NONE = (0,) * len(MEASURES)


def _spent(values: Sequence[float]) -> Spent:
    counted = {name: int(values[_PLACES[name]]) for name in ("errors", "picodollars", "missed_picodollars", "unpriced")}
    return Spent(
        calls=int(values[_PLACES["entries"]]),
        milliseconds=float(values[_PLACES["milliseconds"]]),
        **counted,
        **{name: int(values[_PLACES[name]]) for name in _OF_CALLS},
    )


def _lines(sums: Iterable[_Sum], pricing: _Pricing, by: Group) -> tuple[dict[str, Line], Line]:
    sheets: dict[str, _Sheet] = {}
    total: _Sheet | None = None
    periods: dict[int, str] = {}
    for one in sums:
        if one.bucket is None:
            key = one.name or ""
        else:
            known = periods.get(one.bucket)
            key = periods[one.bucket] = _period(by, one.bucket) if known is None else known
        dollars = None if one.kind == _MODEL else pricing.dollars(one)
        sheet = sheets.get(key)
        if sheet is None:
            whose = (one.client, one.project) if by == "session" else (None, None)
            sheet = sheets[key] = _Sheet(one.first, one.last, *whose)
        total = total or _Sheet(one.first, one.last, None, None)
        sheet.add(one, dollars)
        total.add(one, dollars)
    lines = {key: sheet.line(key) for key, sheet in sheets.items()}
    return lines, Line(key="") if total is None else total.line("")
