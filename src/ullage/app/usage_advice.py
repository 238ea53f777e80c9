"""Data of `ullage usage` and the status line: the ledger with imported logs, five-hour blocks, and advice.

The model calls in other programs' logs are imported into the ledger. Each file is read from where the last import
stopped, and an unchanged file is not opened. A call costs what the program logged, else its list price on its day; a
prompt cache with a lifetime of one hour costs twice the input price.
"""

import json
import platform
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import partial
from pathlib import Path

from ullage.clients.call_logs import Lineage, LogFile, LoggedCall, State, find_lineage, find_logs, read_calls
from ullage.config import Flags, load
from ullage.ledger import Group, Line, Report, Spent, program_name, read_entries, usage_report, used_tools
from ullage.ledger.rows import CallRow, Party, Subject, add_calls, call_key, picodollars_of
from ullage.models import ModelTable, Price, cost_of, price_of
from ullage.models import Usage as TokenUsage
from ullage.processes import user_name
from ullage.store import Connection, Database, upsert
from ullage.tool import Json

from .count_text import meter

__all__ = [
    "Advice",
    "Block",
    "CallPrices",
    "Imported",
    "Span",
    "UnusedTools",
    "Usage",
    "advise",
    "five_hour_blocks",
    "import_logs",
    "open_usage",
    "unused_tools",
]

_BATCH = 20_000
"""Calls per transaction."""
_WORTH = 5_000
"""Minimum of tokens read again that counts as a cache miss."""
_PROBES = (32_000, 128_000, 200_000, 256_000, 272_000, 512_000, 1_500_000)
"""Prompt lengths at which a model's price may rise."""
_PUT_FILE = upsert(
    "ullage_log_files",
    ("path", "size", "changed", "state"),
    key="path",
    update={name: f"excluded.{name}" for name in ("size", "changed", "state")},
)
_SOURCE_LOG = 1
_REGIONAL = Decimal("1.1")
"""Factor of all prices of Anthropic where the answer has to be computed in the US."""
_FAST = {
    "claude-opus-4-6": 6,
    "claude-opus-4-7": 6,
    "claude-opus-4-8": 2,
    "claude-opus-5": 2,
    "claude-opus-5-5": 2,
}
"""Factors of all prices of Anthropic's models in fast mode. The price of other models in fast mode is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    files: int
    """Files that were read."""
    unchanged: int
    calls: int
    """Calls that are new, or more complete than those already stored."""
    is_complete: bool = True
    """False where the time limit was reached first."""


@dataclass(slots=True)
class CallPrices:
    """List prices in picodollars per token, by model and day."""

    models: ModelTable
    _rates: dict[tuple[str, int], tuple[int, int, int, int] | None] = field(
        default_factory=dict[tuple[str, int], tuple[int, int, int, int] | None]
    )
    _flat: dict[str, int] = field(default_factory=dict[str, int])
    """By model, the longest prompt up to which its price does not rise."""

    def picodollars(self, call: LoggedCall) -> int | None:
        if call.dollars is not None:
            return picodollars_of(call.dollars)
        listed = self._list_price(call)
        if listed is None or not (call.is_fast or call.is_regional):
            return listed
        factor = _REGIONAL if call.is_regional else Decimal(1)
        if call.is_fast:
            match = self.models.get(call.model or "")
            faster = None if match is None else _FAST.get(match.card.id)
            if faster is None:
                return None
            factor *= faster
        return int(listed * factor)

    def _list_price(self, call: LoggedCall) -> int | None:
        rates = self.rates(call)
        if rates is None or call.model is None:
            return None
        plain, output, read, write = rates
        hour = call.cache_write_hour * (2 * plain - write)
        if call.input > self._flat[call.model]:
            match = self.models.get(call.model)
            usage = TokenUsage(
                input=call.input, output=call.output, cache_read=call.cache_read, cache_write=call.cache_write
            )
            cost = None if match is None else cost_of(usage, match, when=datetime.fromtimestamp(call.time, UTC))
            total = None if cost is None else picodollars_of(cost.total)
            return None if total is None else total + hour
        fresh = call.input - call.cache_read - call.cache_write
        return fresh * plain + call.output * output + call.cache_read * read + call.cache_write * write + hour

    def rates(self, call: LoggedCall) -> tuple[int, int, int, int] | None:
        """Return the prices of input, output, cache reads and cache writes; None where one of them is unknown."""
        if call.model is None:
            return None
        key = (call.model, int(call.time // 86_400))
        if key not in self._rates:
            self._rates[key] = self._find_price(call.model, datetime.fromtimestamp(call.time, UTC))
        return self._rates[key]

    def _find_price(self, model: str, when: datetime) -> tuple[int, int, int, int] | None:
        match = self.models.get(model)
        price = None if match is None else price_of(match, when=when)
        if match is None or price is None or price.input is None or price.output is None or price.currency != "USD":
            return None
        if model not in self._flat:
            longest = 0
            for tokens in _PROBES:
                usage = TokenUsage(input=tokens, output=1)
                cost = cost_of(usage, match, when=when)
                if cost is None or cost.total != price.cost(usage).total:
                    self._flat[model] = longest
                    break
                longest = tokens
            else:
                self._flat[model] = sys.maxsize
        parts = (price.input, price.output, price.cache_read or price.input, price.cache_write or price.input)
        plain, output, read, write = (int(part.scaleb(12)) for part in parts)
        return plain, output, read, write


def import_logs(
    database: Database,
    environment: Mapping[str, str],
    models: ModelTable,
    *,
    principal: str,
    seconds: float | None = None,
) -> Imported:
    """Import new calls from the logs of every program.

    Args:
        database: The store.
        environment: Variables that locate the programs' logs.
        models: The price table.
        principal: Owner of the calls.
        seconds: Time limit. With one, the newest files are read first.
    """
    node = platform.node()
    known: dict[str, tuple[int, float, str]] = {
        path: (size, changed, state)
        for path, size, changed, state in database.read(
            lambda connection: connection.execute("SELECT path, size, changed, state FROM ullage_log_files")
        )
    }
    logs = list(find_logs(environment))
    changed = [one for one in logs if known.get(f"{node}:{one.path}", ())[:2] != (one.size, one.changed)]
    if seconds is not None:
        changed.sort(key=lambda one: -one.changed)
    ends = None if seconds is None else time.monotonic() + seconds
    fresh = [one for one in changed if one.program == "codex" and f"{node}:{one.path}" not in known]
    lineage = Lineage({}, {})
    if any(one.program == "codex" for one in changed):
        states: dict[str, State] = {path: json.loads(state) for path, (_, _, state) in known.items()}
        roots = {state["id"]: state["root"] for state in states.values() if "root" in state}
        read_before = ((one.path, states.get(f"{node}:{one.path}", {})) for one in logs)
        paths = {state["id"]: path for path, state in read_before if "root" in state}
        lineage = find_lineage(fresh, roots, paths)
    importing = _Importing(database, CallPrices(models), principal, node, lineage)
    read = 0
    for file in changed:
        if ends is not None and time.monotonic() > ends:
            break
        state: State = json.loads(known[f"{node}:{file.path}"][2]) if f"{node}:{file.path}" in known else {}
        importing.read(file, state)
        read += 1
    importing.write()
    return Imported(files=read, unchanged=len(known), calls=importing.calls, is_complete=read == len(changed))


@dataclass(slots=True)
class _Importing:
    database: Database
    prices: CallPrices
    principal: str
    node: str
    lineage: Lineage
    calls: int = 0
    _rows: list[CallRow] = field(default_factory=list[CallRow])
    _files: list[dict[str, object]] = field(default_factory=list[dict[str, object]])

    def read(self, file: LogFile, state: State) -> None:
        last: list[float] | None = None
        before: str | None = None
        for call in read_calls(file, state, self.lineage):
            if last is None:  # the state of a file that was rewritten is cleared before its first call
                last, before = state.get("last") or [], state.get("before")
            counted = call.input, call.output, call.cache_read, call.cache_write
            project, model = _storable(call.project), _storable(call.model)
            row = CallRow(
                id=call_key(_storable(call.key), file.program, model, counted, call.time),
                time=call.time,
                party=Party(self.principal, _storable(call.session) or "", False, file.program, project),
                subject=Subject("model", model=model),
                source=_SOURCE_LOG,
                input=call.input,
                output=call.output,
                cache_read=call.cache_read,
                cache_write=call.cache_write,
                reasoning=call.reasoning,
                picodollars=self.prices.picodollars(call),
                flags=_REPORTED,
            )
            if call.key is None or call.key != before:
                if last and not call.is_aside:
                    _note_miss(row, call, last, self.prices)
                if not call.is_aside:
                    last = [call.input, call.cache_read + call.cache_write]
            if not call.is_aside:
                before = call.key
            self._rows.append(row)
            if len(self._rows) >= _BATCH:
                rows, self._rows = self._rows, []
                self.calls += self.database.write(partial(add_calls, calls=rows))
        if last:
            state |= {"last": last, "before": before}
        self._files.append(
            {
                "path": f"{self.node}:{file.path}",
                "size": file.size,
                "changed": file.changed,
                "state": json.dumps(state),
            }
        )

    def write(self) -> None:
        """Write the remaining calls together with each file's read position.

        A process that ends before this reads them again, and no call is counted twice.
        """
        rows, files, self._rows, self._files = self._rows, self._files, [], []

        def work(connection: Connection) -> int:
            changed = add_calls(connection, rows)
            if files:
                connection.execute(_PUT_FILE, files)
            return changed

        if rows or files:
            self.calls += self.database.write(work)


_LONGEST_NAME = 1_000


def _storable(name: str | None) -> str | None:
    """Return a name without what no database takes: lone surrogates, NUL, and very long texts."""
    if name is None or (len(name) <= _LONGEST_NAME and name.isascii() and "\0" not in name):
        return name
    return name[:_LONGEST_NAME].encode("utf-8", "replace").decode("utf-8").replace("\0", "?")


_REPORTED = 1 << 2
"""Flag of a call whose token counts come from the provider."""


def _note_miss(row: CallRow, call: LoggedCall, last: list[float], prices: CallPrices) -> None:
    """Record a cache miss: more than half of what the request before wrote to the provider's cache was read anew."""
    shared = int(min(last[0], call.input))
    if not last[1] or 2 * call.cache_read >= shared or shared - call.cache_read < _WORTH:
        return
    row.missed = shared - call.cache_read
    rates = prices.rates(call)
    if rates is not None:
        plain, _, read, write = rates
        row.missed_picodollars = row.missed * (max(0, (write if call.cache_write >= row.missed else plain) - read))


_BLOCK = timedelta(hours=5)
_LEAST = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class Usage:
    """The ledger, completed from the logs on this machine."""

    database: Database
    imported: Imported
    models: ModelTable
    _prices: dict[str, Price | None] = field(default_factory=dict[str, Price | None])

    def price(self, model: str) -> Price | None:
        """Return today's list price."""
        if model not in self._prices:
            match = self.models.get(model)
            self._prices[model] = None if match is None else price_of(match, when=datetime.now(UTC))
        return self._prices[model]


@contextmanager
def open_usage(store: str | None, environment: Mapping[str, str], folder: Path) -> Generator[Usage]:
    """Open the store that the settings name and bring the logs in."""
    url = store or load(Flags(), environment, folder).settings.store
    database = Database.open(url)
    try:
        models = meter().models
        imported = import_logs(database, environment, models, principal=user_name())
        yield Usage(database, imported, models)
    finally:
        database.close()


@dataclass(slots=True)
class Block:
    """Five hours from the first call on: the window of a subscription's limits."""

    client: str
    start: datetime
    end: datetime
    last: datetime
    spent: Spent
    is_active: bool = False


def five_hour_blocks(
    database: Database, *, since: date | None, until: date | None, zone: tzinfo, now: datetime | None = None
) -> list[Block]:
    """Return the blocks of each client's model calls.

    A block begins at the full hour (UTC) of its first call and ends five hours later, or after five hours without a
    call.
    """
    now = now or datetime.now(UTC)
    begin = None if since is None else datetime.combine(since, datetime.min.time(), zone).astimezone(UTC)
    end = None if until is None else datetime.combine(until, datetime.min.time(), zone).astimezone(UTC)
    blocks: list[Block] = []
    latest: dict[str, Block] = {}
    for entry in read_entries(database, since=begin, until=end, kind="model"):
        if entry.use is None:
            continue
        client = entry.client or "ullage"
        block = latest.get(client)
        if block is None or entry.time >= block.end or entry.time - block.last >= _BLOCK:
            start = entry.time.replace(minute=0, second=0, microsecond=0)
            block = latest[client] = Block(client, start, start + _BLOCK, entry.time, Spent())
            blocks.append(block)
        usage, spent, dollars = entry.use.usage, block.spent, entry.use.dollars
        block.last = entry.time
        block.spent = Spent(
            calls=spent.calls + 1,
            input=spent.input + (usage.input or 0),
            output=spent.output + (usage.output or 0),
            cache_read=spent.cache_read + (usage.cache_read or 0),
            cache_write=spent.cache_write + (usage.cache_write or 0),
            reasoning=spent.reasoning + (usage.reasoning or 0),
            picodollars=spent.picodollars + (0 if dollars is None else round(dollars.scaleb(12))),
            unpriced=spent.unpriced + (dollars is None),
        )
    for block in latest.values():
        block.is_active = block.end > now and now - block.last < _BLOCK
    return sorted(blocks, key=lambda one: one.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A change worth making, with its value on the user's own data."""

    finding: str
    command: str
    tokens: int
    dollars: Decimal | None

    def to_json(self) -> dict[str, Json]:
        return {
            "finding": self.finding,
            "command": self.command,
            "tokens": self.tokens,
            "dollars": None if self.dollars is None else float(self.dollars),
        }


@dataclass(frozen=True, slots=True)
class Span:
    """The days of a report."""

    since: date | None
    until: date | None
    """The first day after it."""
    zone: tzinfo


def advise(usage: Usage, report: Report, span: Span) -> list[Advice]:
    """Return the three most valuable changes, best first."""
    found = [
        *_missed_caches(usage, span),
        *_advise_install(usage, span),
        *_unused_tools(usage, span),
        *_large_results(usage, report, span),
    ]
    found.sort(key=lambda one: (-(one.dollars or 0), -one.tokens))
    return [one for one in found if one.dollars is None or one.dollars >= _LEAST][:3]


def _by(usage: Usage, group: Group, span: Span) -> Report:
    return usage_report(usage.database, by=group, since=span.since, until=span.until, zone=span.zone)


def _missed_caches(usage: Usage, span: Span) -> list[Advice]:
    """Find the session whose lost prompt cache cost most."""
    sessions = _by(usage, "session", span)
    worst = max(sessions.lines, key=lambda one: one.spent.missed_picodollars, default=None)
    total = sessions.total.spent
    if worst is None or not worst.spent.missed_picodollars:
        return []
    return [
        Advice(
            finding=f"Prompt caches expired: {total.missed:,} tokens were sent again, most in session {worst.key[:8]}",
            command=f"ullage context --session {worst.key}",
            tokens=total.missed,
            dollars=total.missed_dollars,
        )
    ]


def _advise_install(usage: Usage, span: Span) -> list[Advice]:
    """Find programs that send the definitions of their servers in every request."""
    from ullage.clients.configs import current_surroundings, read_clients

    from .install_plan import is_ullage

    weights = _server_weights(usage.database)
    calls = {line.key: line for line in _by(usage, "client", span).lines}
    advice: list[Advice] = []
    for config in read_clients(current_surroundings()):
        line = calls.get(program_name(config.program.name) or "")
        servers = config.active_servers
        if line is None or not line.spent.calls or any(is_ullage(one) for one in servers):
            continue
        tokens = sum(weights.get(one.name, (0, 0))[1] for one in servers)
        if not tokens:
            continue
        model = _most_called(line)
        price = None if model is None else usage.price(model)
        rate = None if price is None else price.cache_read or price.input
        whole = tokens * line.spent.calls
        advice.append(
            Advice(
                finding=f"{config.program.title} carries {tokens:,} tokens of tools in {line.spent.calls:,} requests",
                command=f"ullage install {config.program.name}",
                tokens=whole,
                dollars=None if rate is None else whole * rate,
            )
        )
    return advice


def _most_called(line: Line) -> str | None:
    return max(line.models, key=lambda name: line.models[name].calls, default=None)


def _server_weights(database: Database) -> dict[str, tuple[int, int]]:
    """Return by server the number of its tools and the tokens of their definitions."""
    query = (
        "SELECT s.name, COUNT(*), SUM(t.token_count) FROM ullage_servers s JOIN ullage_tools t ON t.server_id = s.id "
        "WHERE s.updated = (SELECT MAX(o.updated) FROM ullage_servers o WHERE o.name = s.name) GROUP BY s.name"
    )
    rows = database.read(lambda connection: connection.execute(query).all())
    return {name: (int(tools), int(tokens)) for name, tools, tokens in rows}


def _unused_tools(usage: Usage, span: Span) -> list[Advice]:
    """Find servers behind Ullage of which nothing was called."""
    servers = _by(usage, "server", span)
    if not servers.total.uses:
        return []
    used = {line.key for line in servers.lines if line.uses}
    idle = {name: found for name, found in _server_weights(usage.database).items() if name not in used}
    if not idle:
        return []
    name, (tools, tokens) = max(idle.items(), key=lambda item: item[1][1])
    carried = tokens * servers.total.requests
    return [
        Advice(
            finding=f"Server {name} was never used: {tools} tools, {tokens:,} tokens wherever they are listed",
            command=f"ullage tools {name}",
            tokens=carried,
            dollars=None,
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedTools:
    """The tools of a server behind Ullage that were never called."""

    server: str
    names: tuple[str, ...]
    tools: int
    """All tools of the server."""
    tokens: int
    """Tokens of the unused definitions, in each request that lists them."""
    dollars: Decimal | None
    """Cost of listing them in every request of the time, read from a cache; None where no price is known."""

    def to_json(self) -> dict[str, Json]:
        return {
            "server": self.server,
            "unused": list(self.names),
            "tools": self.tools,
            "tokens": self.tokens,
            "dollars": None if self.dollars is None else float(self.dollars),
        }


def unused_tools(usage: Usage, report: Report, span: Span) -> list[UnusedTools]:
    """Return the tools without a call in the time, of each server that the catalogue knows; the heaviest first."""
    called = used_tools(usage.database, since=span.since, until=span.until, zone=span.zone)
    query = (
        "SELECT s.name, t.name, t.token_count FROM ullage_servers s JOIN ullage_tools t ON t.server_id = s.id "
        "WHERE s.updated = (SELECT MAX(o.updated) FROM ullage_servers o WHERE o.name = s.name)"
    )
    rows = usage.database.read(lambda connection: connection.execute(query).all())
    known = [(str(server), str(tool), int(tokens)) for server, tool, tokens in rows]
    model = _most_called(report.total)
    price = None if model is None else usage.price(model)
    rate = None if price is None else price.cache_read or price.input
    found = list[UnusedTools]()
    for server in dict.fromkeys(name for name, _, _ in known):
        tools = [(tool, tokens) for name, tool, tokens in known if name == server]
        unused = [(tool, tokens) for tool, tokens in tools if (server, tool) not in called]
        tokens = sum(tokens for _, tokens in unused)
        dollars = None if rate is None else tokens * report.total.requests * rate
        names = tuple(sorted(tool for tool, _ in unused))
        if unused:
            found.append(UnusedTools(server=server, names=names, tools=len(tools), tokens=tokens, dollars=dollars))
    return sorted(found, key=lambda one: -one.tokens)


_LARGE = 2_000


def _large_results(usage: Usage, report: Report, span: Span) -> list[Advice]:
    """Find the tool whose results have most tokens, where they are large."""
    tools = _by(usage, "tool", span)
    large = [line for line in tools.lines if line.uses and line.result_tokens / line.uses > _LARGE]
    if not large:
        return []
    worst = max(large, key=lambda one: one.result_tokens)
    beyond = worst.result_tokens - _LARGE * worst.uses
    model = _most_called(report.total)
    price = None if model is None else usage.price(model)
    return [
        Advice(
            finding=f"{worst.uses:,} results of {worst.key} have {worst.result_tokens // worst.uses:,} tokens each",
            command=f"ULLAGE_BUDGET={_LARGE} ullage serve   (or budget = {_LARGE} under [results])",
            tokens=beyond,
            dollars=None if price is None or price.input is None else beyond * price.input,
        )
    ]
