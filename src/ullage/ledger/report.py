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
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import Any, Literal, NamedTuple, get_args

from ullage.models import Price
from ullage.store import Connection, Database
from ullage.tool import Json

from .rows import DAY, ENTRIES_PRUNED, HOUR, KINDS, MEASURES, mark_of

__all__ = [
    "GROUPS",
    "Group",
    "Line",
    "Prices",
    "Report",
    "Saved",
    "Spent",
    "program_name",
    "usage_report",
    "used_tools",
]

Group = Literal["day", "week", "month", "session", "client", "project", "server", "tool", "model"]
GROUPS: tuple[Group, ...] = get_args(Group)
Prices = Callable[[str], Price | None]
"""The price of a model by its name; None where it is unknown."""

_LOGGED_AS: Mapping[str | None, str] = {"claude": "claude-code", "gemini": "gemini-cli", "qwen-code": "qwen"}
"""Clients by the names of the profiles that `ullage install` creates, and the names of the same programs' logs."""


def program_name(client: str | None) -> str | None:
    """Return the one name under which reports show a client: what the gateway records for Claude Code is of the client
    `claude`, and the calls in its logs are of `claude-code`."""
    return _LOGGED_AS.get(client, client)


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

    def to_json(self) -> dict[str, Json]:
        return {
            "calls": self.calls,
            "inputTokens": self.input - self.cache_read - self.cache_write,
            "cacheReadTokens": self.cache_read,
            "cacheWriteTokens": self.cache_write,
            "outputTokens": self.output,
            "reasoningTokens": self.reasoning,
            "totalTokens": self.tokens,
            "dollars": None if self.dollars is None else float(self.dollars),
            "unpricedCalls": self.unpriced,
            "cacheMissTokens": self.missed,
            "cacheMissDollars": float(self.missed_dollars),
        }


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

    def to_json(self) -> dict[str, Json]:
        return {
            "netTokens": self.net,
            "definitions": self.definitions,
            "results": self.result,
            "history": self.history,
            "searches": self.search,
            "readBack": self.page,
            "unmeasured": self.unmeasured,
            "dollars": None if self.dollars is None else float(self.dollars),
        }


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

    def to_json(self) -> dict[str, Json]:
        return {
            "key": self.key,
            "client": self.client,
            "project": self.project,
            "first": None if self.first is None else self.first.isoformat(),
            "last": None if self.last is None else self.last.isoformat(),
            "spent": self.spent.to_json(),
            "models": {name: one.to_json() for name, one in self.models.items()},
            "saved": self.saved.to_json(),
            "tools": {
                "uses": self.uses,
                "errors": self.errors,
                "tokens": self.result_tokens,
                "requests": self.requests,
            },
        }


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
    is_whole = all(one is None or one.timestamp() % HOUR == 0 for one in span)
    if by == "session" and is_whole and not recount:
        lines, total = database.read(lambda connection: _session_lines(connection, asked, prices))
    else:
        found = database.read(lambda connection: list(_sums(connection, asked)))
        inputs = (
            (one.client, one.model, one.values[_PLACES["input"]]) for one in found if one.kind == _MODEL and one.model
        )
        lines, total = _lines(found, _Pricing(inputs, prices), by)
    ordered = sorted(lines.values(), key=lambda line: (line.last or datetime.min.replace(tzinfo=UTC), line.key))
    return Report(
        by=by,
        since=None if span[0] is None else span[0].astimezone(zone).date(),
        until=None if span[1] is None else span[1].astimezone(zone).date(),
        lines=tuple(ordered if by == "session" else sorted(lines.values(), key=lambda line: line.key)),
        total=total,
    )


def used_tools(
    database: Database,
    *,
    since: date | None = None,
    until: date | None = None,
    zone: tzinfo = UTC,
    principal: str | None = None,
) -> frozenset[tuple[str, str]]:
    """Return server and name of every tool with a result in these days, which are kept in UTC.

    `until` is the first day that is not included, and `principal` limits the rows to one principal's.
    """
    first, last = (
        None if one is None else int(datetime.combine(one, time(), zone).timestamp() // DAY) for one in (since, until)
    )
    who = "" if principal is None else " JOIN ullage_parties p ON p.id = d.party AND p.principal = :principal"
    query = (
        f"SELECT DISTINCT u.server, u.tool FROM ullage_tool_days d JOIN ullage_subjects u ON u.id = d.subject{who} "
        "WHERE u.kind = :kind AND d.day >= :first AND d.day <= :last"
    )
    values: dict[str, object] = {"kind": KINDS.index("result"), "first": first or 0}
    values |= {"last": 10**6 if last is None else last} | ({} if principal is None else {"principal": principal})
    rows = database.read(lambda connection: connection.execute(query, values).all())
    return frozenset((server, tool) for server, tool in rows)


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
    first: float
    """The hour of the first entry."""
    last: float
    values: list[float]
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
    """Yield the sums by day in UTC, and sums of the rows themselves for the partial days at both ends.

    Where these rows have been deleted, the nearest beginning of a day in UTC takes the place of an end.
    """
    pruned = mark_of(connection, ENTRIES_PRUNED) or 0.0
    since, until = (
        round(one / DAY) * DAY if one is not None and one // DAY * DAY < pruned else one for one in (since, until)
    )
    first = None if since is None else -int(-since // DAY)
    last = None if until is None else int(until // DAY)
    if first is not None and last is not None and first > last:  # within one day
        yield from _grouped(connection, asked, _rows_source(asked, 0, connection.kind), (since, until))
        return
    sums = ", ".join(f"SUM({name}) AS {name}" for name in MEASURES)
    days = (
        f"SELECT NULL AS bucket, party, subject, MIN(day) * 24 AS first, MAX(day) * 24 AS last, {sums} "
        "FROM (SELECT day AS at, t.* FROM ullage_tool_days t) t WHERE {where} GROUP BY 1, 2, 3"
    )
    yield from _grouped(connection, asked, days, (first, last))
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
        key = "s.session, g.kind, m.model, p.client, p.project"
        joins = (
            "JOIN ullage_sessions s ON s.id = g.session JOIN ullage_parties p ON p.id = s.party "
            "LEFT JOIN ullage_subjects m ON m.id = g.model"
        )
    else:
        key = f"{_COLUMNS.get(asked.by) or 'NULL'}, u.kind, u.model, p.client, NULL"
        joins = "JOIN ullage_subjects u ON u.id = g.subject JOIN ullage_parties p ON p.id = g.party"
    if asked.by == "session":  # one row each already
        figures, groups = ", ".join(f"g.{name}" for name in ("first", "last", *MEASURES)), ""
    else:
        figures, groups = f"MIN(g.first), MAX(g.last), {sums}", " GROUP BY 1, 2, 3, 4, 5, 6"
    query = f"SELECT g.bucket, {key}, {figures} FROM ({inner}) g {joins}{who}{groups}"
    for bucket, name, kind, model, client, project, first, last, *measures in connection.execute(query, values):
        key = program_name(name) if asked.by == "client" else name
        yield _Sum(bucket, key, kind, model, program_name(client), project, first, last, measures)


def _sums_source(asked: _Asked, offset: int) -> str:
    """Return a query of the sums, aggregated by ids before names are joined to them."""
    is_session = asked.by == "session"
    table = "ullage_session_hours" if is_session else "ullage_hours"
    ids, groups = ("session, kind, model", "1, 2, 3, 4") if is_session else ("party, subject", "1, 2, 3")
    bucket = f"(hour + {offset // HOUR}) / 24" if asked.by in ("day", "week", "month") else "NULL"
    sums = ", ".join(f"SUM({name}) AS {name}" for name in MEASURES)
    return (
        f"SELECT {bucket} AS bucket, {ids}, MIN(hour) AS first, MAX(hour) AS last, {sums} "
        f"FROM (SELECT hour AS at, t.* FROM {table} t) t WHERE {{where}} GROUP BY {groups}"
    )


def _rows_source(asked: _Asked, offset: int, kind: str) -> str:
    """Return a query that computes the sums from the rows themselves."""
    ids, groups = ("session, kind, model", "1, 2, 3, 4") if asked.by == "session" else ("party, subject", "1, 2, 3")
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
    tables = (("ullage_entries", "0", of_entries), ("ullage_model_calls", "e.subject", of_calls))
    rows = " UNION ALL ".join(
        f"SELECT e.time AS at, e.session, s.party, e.subject, u.kind, {model} AS model, "
        + ", ".join(f"{measures.get(name, '0')} AS {name}" for name in MEASURES)
        + f" FROM {table} e JOIN ullage_sessions s ON s.id = e.session JOIN ullage_subjects u ON u.id = e.subject"
        for table, model, measures in tables
    )
    return (
        f"SELECT {bucket} AS bucket, {ids}, MIN(at) / {HOUR} AS first, MAX(at) / {HOUR} AS last, {sums} "
        f"FROM ({rows}) t WHERE {{where}} GROUP BY {groups}"
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

    def __init__(self, inputs: Iterable[tuple[str | None, str, float]], prices: Prices) -> None:
        """Create it from the input tokens of model calls, by client and model."""
        self._prices = prices
        self._rates: dict[tuple[str, str | None, str | None], Decimal | None] = {}
        used: dict[str | None, dict[str, float]] = {}
        for client, model, tokens in inputs:
            for whose in {client, None}:
                of_client = used.setdefault(whose, {})
                of_client[model] = of_client.get(model, 0) + tokens
        self._most_used = {client: max(models, key=lambda name: models[name]) for client, models in used.items()}

    def dollars(self, kind: str, model: str | None, client: str | None, saved: int) -> Decimal | None:
        if not saved:
            return Decimal(0)
        key = (kind, model, client)
        if key not in self._rates:
            self._rates[key] = None
            for one in (model, self._most_used.get(client), self._most_used.get(None)):
                price = None if one is None else self._prices(one)
                if price is not None and price.currency == "USD" and price.input is not None:
                    is_carried = kind in ("definitions", "history") and price.cache_read is not None
                    self._rates[key] = price.cache_read if is_carried else price.input
                    break
        rate = self._rates[key]
        return None if rate is None else saved * rate


_MODEL = KINDS.index("model")
Figure = Callable[[str, str], float]
"""The sum of a measure over the entries of a kind."""


@dataclass(slots=True)
class _Sheet:
    """A line while its sums are collected."""

    sums: list[_Sum] = field(default_factory=list[_Sum])
    dollars: Decimal | None = None

    def add(self, one: _Sum, dollars: Decimal | None) -> None:
        self.sums.append(one)
        if dollars is not None:
            self.dollars = dollars if self.dollars is None else self.dollars + dollars

    def line(self, key: str) -> Line:
        kinds = _added(self.sums, lambda one: KINDS[one.kind])
        client, project = min((one.client or "", one.project or "") for one in self.sums)
        called = (one for one in self.sums if one.kind == _MODEL and one.model is not None)
        models = _added(called, lambda one: one.model or "")
        return _line(
            key,
            lambda kind, measure: kinds.get(kind, _NONE)[_PLACES[measure]],
            self.dollars,
            models={
                model: _spent(lambda _, measure, values=values: values[_PLACES[measure]])
                for model, values in sorted(models.items())
            },
            first=datetime.fromtimestamp(int(min(one.first for one in self.sums)) * HOUR, UTC),
            last=datetime.fromtimestamp(int(max(one.last for one in self.sums)) * HOUR, UTC),
            client=client or None,
            project=project or None,
        )


def _line(
    key: str,
    figure: Figure,
    dollars: Decimal | None,
    *,
    models: dict[str, Spent],
    spent: Spent | None = None,
    **named: Any,  # noqa: ANN401 - fields of `Line`
) -> Line:
    """Return a line.

    Args:
        key: What it is about.
        figure: Its sums.
        dollars: What its saved tokens cost.
        models: What each model's calls spent.
        spent: What all calls spent; None to take it from `figure`.
        named: Fields of `Line`.
    """
    others, spent = KINDS[:-1], spent or _spent(figure)
    return Line(
        key=key,
        spent=spent,
        models=models,
        saved=Saved(
            **{kind: int(figure(kind, "saved")) for kind in others},
            unmeasured=int(sum([figure(kind, "unmeasured") for kind in others])),
            dollars=dollars,
        ),
        uses=int(figure("result", "entries")),
        errors=int(figure("result", "errors")),
        result_tokens=int(figure("result", "tokens")),
        requests=int(sum([figure(kind, "entries") for kind in ("search", "result", "page")])),
        **named,
    )


def _added(sums: Iterable[_Sum], key_of: Callable[[_Sum], str]) -> dict[str, Sequence[float]]:
    """Return the values of the sums with the same key, added up."""
    found: dict[str, list[list[float]]] = {}
    for one in sums:
        found.setdefault(key_of(one), []).append(one.values)
    return {
        key: values[0] if len(values) == 1 else [sum(column) for column in zip(*values, strict=True)]
        for key, values in found.items()
    }


_NONE = (0,) * len(MEASURES)
_OF_SPENT = ("errors", "picodollars", "missed_picodollars", "unpriced", *_OF_CALLS)


def _spent(figure: Figure) -> Spent:
    return Spent(
        calls=int(figure("model", "entries")),
        milliseconds=float(figure("model", "milliseconds")),
        **{name: int(figure("model", name)) for name in _OF_SPENT},
    )


def _lines(sums: Sequence[_Sum], pricing: _Pricing, by: Group) -> tuple[dict[str, Line], Line]:
    sheets: dict[str, _Sheet] = {}
    total = _Sheet()
    periods: dict[int, str] = {}
    for one in sums:
        if one.bucket is None:
            key = one.name or ""
        else:
            known = periods.get(one.bucket)
            key = periods[one.bucket] = _period(by, one.bucket) if known is None else known
        saved = int(one.values[_PLACES["saved"]])
        dollars = None if one.kind == _MODEL else pricing.dollars(KINDS[one.kind], one.model, one.client, saved)
        sheet = sheets.get(key)
        if sheet is None:
            sheet = sheets[key] = _Sheet()
        sheet.add(one, dollars)
        total.add(one, dollars)
    lines = {key: sheet.line(key) for key, sheet in sheets.items()}
    if by != "session":
        lines = {key: replace(line, client=None, project=None) for key, line in lines.items()}
    return lines, replace(total.line(""), client=None, project=None) if sums else Line(key="")


_OF_MODEL = ("entries", "milliseconds", *_OF_SPENT)
_SESSION_FIGURES = (
    *((kind, measure) for kind in KINDS[:-1] for measure in ("entries", "saved", "unmeasured")),
    *(("result", measure) for measure in ("errors", "tokens")),
    *(("model", measure) for measure in _OF_MODEL),
)
"""What the line of a session shows. One row with a column for each is read in a third of the time that one row for each
kind takes."""
_SESSION_PLACES = {figure: place for place, figure in enumerate(_SESSION_FIGURES)}
_SAVED_PLACES = tuple((kind, _SESSION_PLACES[kind, "saved"]) for kind in KINDS[:-1])
_MODEL_PLACE = _SESSION_PLACES["model", "entries"]
"""Where the figures of `_OF_MODEL` begin."""
_NOT_BIGINT = ("milliseconds", "picodollars", "missed_picodollars")
_BY_MODEL = dict[str, Sequence[float]]
"""The sums of `_OF_MODEL` by model."""


class _SessionRow(NamedTuple):
    """The sums of one session of a client and project."""

    name: str | None
    client: str | None
    project: str | None
    first: int
    last: int
    figures: Sequence[float]
    """In the order of `_SESSION_FIGURES`."""
    models: _BY_MODEL


def _session_lines(connection: Connection, asked: _Asked, prices: Prices) -> tuple[dict[str, Line], Line]:
    """Return a line for each session, and their total, from the sums by session and hour."""
    since, until = (None if one is None else one.timestamp() for one in asked.span)
    bounds = (("since", ">=", since), ("until", "<", until))
    conditions = [f"hour {sign} :{name}" for name, sign, at in bounds if at is not None]
    values: dict[str, object] = {name: int(at // HOUR) for name, _, at in bounds if at is not None}
    where = f" WHERE {' AND '.join(conditions) or '1 = 1'}"
    who = "" if asked.principal is None else " WHERE p.principal = :principal"
    values |= {} if asked.principal is None else {"principal": asked.principal}
    sums_of = (
        (measure, f"SUM(CASE kind WHEN {KINDS.index(kind)} THEN {measure} ELSE 0 END)")
        for kind, measure in _SESSION_FIGURES
    )
    # PostgreSQL adds up whole numbers as numerics, which take far longer to read. Money may need their range.
    figures = ", ".join(
        f"{whole if measure in _NOT_BIGINT else f'CAST({whole} AS BIGINT)'} AS f{place}"
        for place, (measure, whole) in enumerate(sums_of)
    )
    called = f"CASE WHEN kind = {_MODEL} THEN model END"
    inner = (
        f"SELECT session, MIN(hour) AS first, MAX(hour) AS last, MIN({called}) AS model, MAX({called}) AS other, "
        f"{figures} FROM ullage_session_hours{where} GROUP BY session"
    )
    columns = ", ".join(f"g.f{place}" for place in range(len(_SESSION_FIGURES)))
    found = connection.execute(
        f"SELECT s.id, g.model, g.other, s.session, p.client, p.project, g.first, g.last, {columns} FROM ({inner}) g "
        f"JOIN ullage_sessions s ON s.id = g.session JOIN ullage_parties p ON p.id = s.party{who}",
        values,
    ).all()
    of_model = ", ".join(f"SUM(h.{name})" for name in _OF_MODEL)
    by_client = connection.execute(
        f"SELECT p.client, u.id, u.model, {of_model} FROM ullage_hours h JOIN ullage_parties p ON p.id = h.party "
        f"JOIN ullage_subjects u ON u.id = h.subject{where}{who.replace('WHERE', 'AND')} "
        f"AND u.kind = {_MODEL} AND u.model IS NOT NULL GROUP BY 1, 2, 3",
        values,
    ).all()
    names: dict[int, str] = {number: model for _, number, model, *_ in by_client}
    several: dict[int, _BY_MODEL] = {}
    # Most sessions call one model, of which the session's own figures are the sums.
    if any(one != other for _, one, other, *_ in found):
        parts = connection.execute(
            f"SELECT h.session, h.model, {of_model} FROM ullage_session_hours h JOIN (SELECT session FROM ({inner}) g "
            f"WHERE g.model <> g.other) x ON x.session = h.session{where} AND h.kind = {_MODEL} GROUP BY 1, 2",
            values,
        )
        for session, model, *sums in parts:
            if model in names:
                several.setdefault(session, {})[names[model]] = sums
    rows = list[_SessionRow]()
    for number, one, other, name, client, project, first, last, *sums in found:
        own: _BY_MODEL = {names[one]: sums[_MODEL_PLACE:]} if one in names else {}
        models = own if one == other else several.get(number, {})
        rows.append(_SessionRow(name, program_name(client), project, first, last, sums, models))
    inputs = ((program_name(client), model, sums[_OF_MODEL.index("input")]) for client, _, model, *sums in by_client)
    pricing, by_name = _Pricing(inputs, prices), dict[str, list[_SessionRow]]()
    for row in rows:
        by_name.setdefault(row.name or "", []).append(row)
    lines = {name: _session_line(name, of_name, pricing) for name, of_name in by_name.items()}
    if not rows:
        return lines, Line(key="")
    models = _add_by_model({model: sums} for _, _, model, *sums in by_client)
    total = _session_line("", [row._replace(models={}) for row in rows], pricing)
    return lines, replace(total, client=None, project=None, models=_spent_by_model(models))


def _add_by_model(parts: Iterable[_BY_MODEL]) -> _BY_MODEL:
    found: dict[str, list[Sequence[float]]] = {}
    for one in parts:
        for model, sums in one.items():
            found.setdefault(model, []).append(sums)
    return {
        model: sums[0] if len(sums) == 1 else [sum(column) for column in zip(*sums, strict=True)]
        for model, sums in found.items()
    }


def _spent_by_model(models: _BY_MODEL) -> dict[str, Spent]:
    return {model: _spent_of(sums) for model, sums in sorted(models.items())}


def _spent_of(sums: Sequence[float]) -> Spent:
    """Return what the sums of `_OF_MODEL` say."""
    calls, milliseconds, *others = sums
    return Spent(
        calls=int(calls),
        milliseconds=float(milliseconds),
        **dict(zip(_OF_SPENT, map(int, others), strict=True)),
    )


def _session_line(key: str, rows: Sequence[_SessionRow], pricing: _Pricing) -> Line:
    """Return the line of a session, whose name several clients or projects may share."""
    figures = rows[0].figures
    if len(rows) > 1:
        figures = [sum(column) for column in zip(*(row.figures for row in rows), strict=True)]
    client, project = min([(row.client or "", row.project or "") for row in rows])
    by_client: dict[str | None, list[_SessionRow]] = {}
    for row in rows:
        by_client.setdefault(row.client, []).append(row)
    dollars: Decimal | None = None
    for kind, place in _SAVED_PLACES:
        for client, of_client in by_client.items():
            if saved := int(sum([row.figures[place] for row in of_client])):
                value = pricing.dollars(kind, None, client, saved)
                dollars = value if dollars is None else dollars + (value or 0)
    models = rows[0].models if len(rows) == 1 else _add_by_model(row.models for row in rows)
    calls, spent = figures[_MODEL_PLACE], _spent_of(figures[_MODEL_PLACE:])
    only = next((name for name, sums in models.items() if sums[0] == calls), None)
    return _line(
        key,
        lambda kind, measure: figures[_SESSION_PLACES[kind, measure]],
        dollars,
        spent=spent,
        models=_spent_by_model(models) if only is None else {only: spent},
        first=datetime.fromtimestamp(min([row.first for row in rows]) * HOUR, UTC),
        last=datetime.fromtimestamp(max([row.last for row in rows]) * HOUR, UTC),
        client=client or None,
        project=project or None,
    )
