"""Data of `ullage usage` and the status line: the ledger with imported logs, five-hour blocks, and advice."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from pathlib import Path

from ullage.config import Flags, load
from ullage.ledger import Group, Line, Report, Spent, read_entries, usage_report, used_tools
from ullage.models import ModelTable, Price, price_of
from ullage.processes import user_name
from ullage.store import Database
from ullage.tool import Json

from .count_text import meter
from .import_logs import Imported, import_logs

__all__ = [
    "Advice",
    "Block",
    "Span",
    "UnusedTools",
    "Usage",
    "advise",
    "five_hour_blocks",
    "open_usage",
    "unused_tools",
]

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
            finding=f"Prompt caches were lost: {total.missed:,} tokens read anew; most in session {worst.key[:8]}",
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
        line = calls.get(config.program.name)
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
            finding=f"Nothing of server {name} was used: {tools} tools, {tokens:,} tokens wherever they are listed",
            command=f"ullage tools --server {name}",
            tokens=carried,
            dollars=None,
        )
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedTools:
    """The tools of a server behind Ullage that nobody called."""

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
            finding=f"{worst.uses:,} results of {worst.key} weigh {worst.result_tokens // worst.uses:,} tokens each",
            command=f"ULLAGE_BUDGET={_LARGE} ullage serve   (or budget = {_LARGE} under [results])",
            tokens=beyond,
            dollars=None if price is None or price.input is None else beyond * price.input,
        )
    ]
