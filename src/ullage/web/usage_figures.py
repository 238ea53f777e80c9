"""The dashboard's figures, as JSON, from the ledger's reports and rows of one principal.

Every sum is one of `usage_report`, so a figure here is the figure of `ullage usage`. A session's window comes from its
rows: what providers reported for each call, and beside it what the same call would have carried without Ullage.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import accumulate
from typing import Literal, Protocol
from zoneinfo import ZoneInfo

from ullage.errors import InvalidArguments, UnknownResource
from ullage.ledger import Entry, Group, Line, Prices, Report, latencies, read_entries, usage_report, used_tools
from ullage.store import Database
from ullage.tool import Json

__all__ = ["LoggedCompaction", "LoggedSession", "Period", "SessionLogs", "UsageFigures"]

_MOST_DAYS = 366
_MOST_SESSIONS = 200
_DAILY, _WEEKLY = 92, 400
"""Days up to which a line of all time covers a day, or a week."""
_FALL = 0.5
"""A call whose window is smaller than this share of the one before it follows a compaction."""
_LEAST_FALL = 5_000
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Period:
    """The days that figures are about, in the viewer's time zone."""

    days: int | None
    """Number of days including today; None for all time."""
    zone: tzinfo
    today: date

    @classmethod
    def parse(cls, query: Mapping[str, str], now: datetime) -> "Period":
        """Parse `days` (a number, or `all`) and `zone` (an IANA name; UTC where this machine does not know it).

        Raises:
            InvalidArguments: The number of days is not one of 1 to 366.
        """
        word = query.get("days", "30")
        if word != "all" and not (word.isascii() and word.isdigit() and 1 <= int(word) <= _MOST_DAYS):
            raise InvalidArguments(f"`days` is a number from 1 to {_MOST_DAYS}, or `all`")
        try:
            zone: tzinfo = ZoneInfo(query.get("zone", "UTC")[:64])
        except (ValueError, OSError, KeyError):
            zone = UTC
        return cls(None if word == "all" else int(word), zone, now.astimezone(zone).date())

    @property
    def since(self) -> date | None:
        return None if self.days is None else self.today - timedelta(days=self.days - 1)

    @property
    def begin(self) -> datetime | None:
        return None if self.since is None else datetime.combine(self.since, datetime.min.time(), self.zone)

    def to_json(self) -> dict[str, Json]:
        return {
            "since": None if self.since is None else self.since.isoformat(),
            "until": self.today.isoformat(),
            "zone": str(self.zone),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCompaction:
    """A compaction that an agent program recorded in its session file."""

    at: datetime
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedSession:
    """What a session's file adds to the ledger's rows."""

    title: str | None
    window: int | None
    inputs: frozenset[int]
    """Input tokens of the calls of the conversation itself; those of subagents are not among them."""
    compactions: tuple[LoggedCompaction, ...]


class SessionLogs(Protocol):
    """Reads the session files of agent programs on this machine."""

    def find(self, session: str, principal: str) -> LoggedSession | None:
        """Return a session of this principal; None where no file has it. Blocks."""
        ...


@dataclass(frozen=True, slots=True)
class UsageFigures:
    """The figures of one store. All methods block."""

    database: Database
    prices: Prices = lambda _: None
    window_of: Callable[[str], int | None] = lambda _: None
    """The context window of a model."""
    logs: SessionLogs | None = None

    def overview(self, principal: str, period: Period) -> dict[str, Json]:
        """Return what was spent and saved, in all and by day; for all time by week or month where that is long."""
        by: Group = "day"
        report = self._report(principal, period, by)
        first, last = report.total.first, report.total.last
        if period.days is None and first is not None and last is not None and (last - first).days > _DAILY:
            by = "week" if (last - first).days <= _WEEKLY else "month"
            report = self._report(principal, period, by)
        return {
            **period.to_json(),
            "by": by,
            "lines": _lines_json(report.lines),
            "total": report.total.to_json(),
            "clients": _lines_json(self._report(principal, period, "client").lines),
        }

    def sessions(self, principal: str, period: Period) -> dict[str, Json]:
        """Return the latest sessions, newest first."""
        report = self._report(principal, period, "session")
        latest = report.lines[::-1][:_MOST_SESSIONS]
        return {**period.to_json(), "sessions": [_session_json(one) for one in latest], "all": len(report.lines)}

    def by_server(self, principal: str, period: Period) -> tuple[Report, frozenset[tuple[str, str]]]:
        """Return the report by server, and server and name of the tools that were used."""
        used = used_tools(self.database, since=period.since, zone=period.zone, principal=principal)
        return self._report(principal, period, "server"), used

    def results(self, principal: str, period: Period) -> dict[str, Json]:
        """Return the results of each tool before and after their budget; a result that was not measured counts as it
        passed, on both sides."""
        report = self._report(principal, period, "tool")
        times = latencies(self.database, by="tool", since=period.begin, principal=principal)
        lines: list[Json] = []
        for line in report.lines:
            if not line.uses and not line.saved.page:
                continue
            timed = times.get(line.key)
            lines.append(
                {
                    "tool": line.key,
                    "uses": line.uses,
                    "errors": line.errors,
                    "before": line.result_tokens + line.saved.result,
                    "after": line.result_tokens,
                    "readBack": -line.saved.page,
                    "unmeasured": line.saved.unmeasured,
                    "medianMs": None if timed is None else timed.median,
                    "p95Ms": None if timed is None else timed.p95,
                }
            )
        total = report.total
        return {
            **period.to_json(),
            "tools": lines,
            "total": {
                "uses": total.uses,
                "errors": total.errors,
                "before": total.result_tokens + total.saved.result,
                "after": total.result_tokens,
                "readBack": -total.saved.page,
            },
        }

    def models(self, principal: str, period: Period) -> dict[str, Json]:
        """Return each model's calls, tokens, cost and latency."""
        report = self._report(principal, period, "model")
        times = latencies(self.database, by="model", since=period.begin, principal=principal)
        lines: list[Json] = []
        for line in report.lines:
            if not line.spent.calls:
                continue
            timed = times.get(line.key)
            lines.append(
                {
                    "model": line.key,
                    "errors": line.spent.errors,
                    **line.spent.to_json(),
                    "timedCalls": 0 if timed is None else timed.timed,
                    "medianMs": None if timed is None else timed.median,
                    "p95Ms": None if timed is None else timed.p95,
                }
            )
        return {**period.to_json(), "models": lines, "total": report.total.spent.to_json()}

    def session(self, principal: str, name: str) -> dict[str, Json]:
        """Return a session's window over time.

        Raises:
            UnknownResource: The principal has no session of that name.
        """
        lines = usage_report(self.database, by="session", principal=principal, prices=self.prices).lines
        line = next((one for one in lines if one.key == name), None)
        if line is None or line.first is None or line.last is None:
            raise UnknownResource(f"no session is called `{name[:80]}`")
        own = self._entries(principal, line)
        calls = [entry for entry in own if entry.kind == "model" and entry.use is not None]
        histories = [entry for entry in own if entry.kind == "history" and isinstance(entry.detail.get("used"), int)]
        if not calls and not histories:
            return {"session": _session_json(line), **_known_part(own)}
        log = None if self.logs is None or not calls else self.logs.find(name, principal)
        if log is not None:
            main = [call for call in calls if call.use is not None and call.use.usage.input in log.inputs]
            calls = main or calls
        served, match = self._find_savings(principal, line, lines, own)
        models = [call.model for call in (calls or histories) if call.model is not None]
        known = (log.window if log is not None else None) or (histories[-1].detail["window"] if histories else None)
        limit = known or (self.window_of(models[-1]) if models else None)
        return {
            "session": _session_json(line),
            "title": None if log is None else log.title,
            "basis": "reported" if calls else "counted",
            "match": match,
            "limit": limit,
            **_window(calls or histories, served, () if log is None else log.compactions),
        }

    def _find_savings(
        self, principal: str, line: Line, lines: Sequence[Line], own: Sequence[Entry]
    ) -> tuple[list[Entry], str | None]:
        """Return what Ullage recorded beside a session's model calls, and how it was found.

        A client's log and the gateway name a session differently: the gateway's sessions of the same client in these
        hours are taken, unless the client had another logged session then.
        """
        served = [entry for entry in own if entry.kind != "model"]
        if served:
            return served, "same session"
        near = [
            one
            for one in lines
            if one.key != line.key and one.client == line.client and one.client is not None and _overlap(one, line)
        ]
        gateway = [one for one in near if one.requests and not one.spent.calls]
        if not gateway:
            return [], None
        if any(one.spent.calls for one in near):
            return [], "several sessions at the same time"
        begin, end = min(entry.time for entry in own), max(entry.time for entry in own) + _HOUR
        found = [entry for one in gateway for entry in self._entries(principal, one)]
        return sorted((one for one in found if begin <= one.time <= end), key=lambda one: one.time), "client and time"

    def _entries(self, principal: str, line: Line) -> list[Entry]:
        """Return the principal's entries of a session by time. Another principal's session may have the same name."""
        assert line.first is not None
        assert line.last is not None
        found = read_entries(self.database, since=line.first, until=line.last + _HOUR, session=line.key)
        return sorted((one for one in found if one.principal == principal), key=lambda one: one.time)

    def _report(self, principal: str, period: Period, by: Group) -> Report:
        return usage_report(
            self.database, by=by, since=period.since, zone=period.zone, principal=principal, prices=self.prices
        )


def _lines_json(lines: Iterable[Line]) -> list[Json]:
    return [line.to_json() for line in lines]


def _session_json(line: Line) -> dict[str, Json]:
    """Return a session's line without its models, which the list of sessions does not show."""
    return {name: value for name, value in line.to_json().items() if name != "models"}


def _overlap(one: Line, other: Line) -> bool:
    if one.first is None or one.last is None or other.first is None or other.last is None:
        return False
    return one.first <= other.last and other.first <= one.last


def _at(time: datetime) -> float:
    return round(time.timestamp(), 3)


class _CarriedTokens:
    """What a session would carry beyond its window without Ullage."""

    def __init__(self, served: Iterable[Entry]) -> None:
        served = list(served)
        self._definitions = [entry for entry in served if entry.kind == "definitions"]
        self._of_results = _RunningSum([entry for entry in served if entry.kind in ("result", "page")])
        self._of_history = _RunningSum([entry for entry in served if entry.kind == "history"])

    def extra_tokens(self, since: datetime, at: datetime) -> int:
        """Return the tokens that a call at a time would carry in addition: definitions, what compactions by Ullage have
        taken out, and what results and pages have saved since the client's last compaction."""
        results = self._of_results.until(at) - self._of_results.until(since)
        return results + self._of_history.until(at) + self._per_request(at)

    def _per_request(self, at: datetime) -> int:
        """Return what one request saved in definitions. An entry is written after the requests that it is about."""
        if not self._definitions:
            return 0
        place = bisect_left(self._definitions, at, key=lambda one: one.time)
        entry = self._definitions[min(place, len(self._definitions) - 1)]
        requests = entry.detail.get("requests")
        return round((entry.saved_tokens or 0) / requests) if isinstance(requests, int) and requests else 0


class _RunningSum:
    """Running sums of savings by time."""

    def __init__(self, found: Sequence[Entry]) -> None:
        self._times = [entry.time for entry in found]
        self._sums = [0, *accumulate(entry.saved_tokens or 0 for entry in found)]

    def until(self, at: datetime) -> int:
        return self._sums[bisect_right(self._times, at)]


def _tokens_in_window(call: Entry) -> int:
    """Return what the provider reported for a model call, or what Ullage counted for a history that was sent."""
    if call.use is not None:
        return call.use.usage.input or 0
    used = call.detail.get("used")
    return used if isinstance(used, int) else 0


def _window(calls: Sequence[Entry], served: Sequence[Entry], logged: Sequence[LoggedCompaction]) -> dict[str, Json]:
    """Return the window at each call, with the compactions between them."""
    carried, since = _CarriedTokens(served), datetime.min.replace(tzinfo=UTC)
    own = [entry for entry in served if entry.kind == "history" and entry.saved_tokens]
    compactions: list[Json] = [
        {
            "time": _at(entry.time),
            "before": entry.detail.get("used_before", entry.baseline_tokens),
            "after": entry.detail.get("used", entry.tokens),
            "how": "recorded by Ullage",
        }
        for entry in own
    ]
    points: list[Json] = []
    before: Entry | None = None
    for call in calls:
        tokens, known = _tokens_in_window(call), None if before is None else _tokens_in_window(before)
        for one in (one for one in logged if before is not None and before.time < one.at <= call.time):
            compactions.append(
                {"time": _at(one.at), "before": one.before, "after": one.after, "how": "recorded by the program"}
            )
            since = one.at
        is_ours = before is not None and any(before.time < one.time <= call.time for one in own)
        has_fallen = known is not None and known - tokens >= _LEAST_FALL and tokens < known * _FALL
        if not logged and not is_ours and has_fallen:
            compactions.append(
                {"time": _at(call.time), "before": known, "after": tokens, "how": "inferred: the window fell by half"}
            )
            since = call.time
        points.append(
            {
                "time": _at(call.time),
                "tokens": tokens,
                "without": tokens + carried.extra_tokens(since, call.time) if served else None,
                "model": call.model,
            }
        )
        before = call
    return {"points": points, "compactions": compactions}


def _known_part(served: Sequence[Entry]) -> dict[str, Json]:
    """Return the part of a window that Ullage knows of a client without a log: its definitions, and the results so
    far."""
    definitions = [entry for entry in served if entry.kind == "definitions" and entry.detail.get("requests")]
    points: list[Json] = []
    passed = whole = 0
    for entry in served:
        if entry.kind not in ("search", "result", "page"):
            continue
        passed += entry.tokens
        # A search and a page are there only because of Ullage.
        whole += entry.tokens + (entry.saved_tokens or 0) if entry.kind == "result" else 0
        place = bisect_left(definitions, entry.time, key=lambda one: one.time)
        of = definitions[min(place, len(definitions) - 1)] if definitions else None
        surface, without = _per_request(of)
        points.append(
            {
                "time": _at(entry.time),
                "tokens": None if surface is None else surface + passed,
                "without": None if without is None else without + whole,
                "model": None,
            }
        )
    basis: Literal["known part"] = "known part"
    return {"title": None, "basis": basis, "match": "same session", "limit": None, "points": points, "compactions": []}


def _per_request(entry: Entry | None) -> tuple[int | None, int | None]:
    """Return the definitions of one request with Ullage, and without."""
    requests, replies = (0, 0) if entry is None else (entry.detail.get("requests"), entry.detail.get("replies"))
    if entry is None or not isinstance(requests, int) or not requests:
        return None, None
    own = entry.tokens - (replies if isinstance(replies, int) else 0)
    without = None if entry.baseline_tokens is None else round(entry.baseline_tokens / requests)
    return round(own / requests), without
