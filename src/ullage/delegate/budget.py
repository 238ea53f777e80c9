"""Where is it kept what was spent, so that many processes share one budget?

In the store: an estimate is written down before a call, in the transaction that checks the ceilings, and replaced after
it by what was spent. A process that dies in between leaves its estimate standing: spend is never lost. What fits under
a ceiling, `ceilings` knows.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from ullage.store import Connection, Database, seconds, storable
from ullage.tool import Caller

from .ceilings import Alert, Ceilings, Scope, alerts, check, since
from .spending import NO_SPEND, Spend, Ticket

__all__ = ["StoredPurse"]

_ADD = (
    "INSERT INTO ullage_spends (id, time, principal, session, task, tokens, picodollars, settled) "
    "VALUES (:id, :time, :principal, :session, :task, :tokens, :picodollars, :settled)"
)
_SETTLE = "UPDATE ullage_spends SET settled = :settled, tokens = :tokens, picodollars = :picodollars WHERE id = :id"
_PICO = Decimal(10) ** 12
"""The finest price on record is some 10^-10 dollars a token; whole numbers add up exactly everywhere."""
_LOCK = 0x756C6C617370
"""Of PostgreSQL's advisory locks, the one under which estimates are checked and written."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """Whose scopes are meant."""

    principal: str
    session: str
    task: str | None


@dataclass(slots=True, kw_only=True)
class StoredPurse:
    """A purse shared by every process that uses the same store."""

    database: Database
    ceilings: Callable[[], Ceilings]
    alert: Callable[[Alert], None] = lambda _: None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _open: dict[str, _Asked] = field(default_factory=dict[str, _Asked])

    async def reserve(self, estimate: Spend, caller: Caller, task: str | None, *, already: Spend = NO_SPEND) -> Ticket:
        asked = _Asked(storable(caller.principal), storable(caller.session), None if task is None else storable(task))
        ticket = Ticket(secrets.token_hex(16))
        await self.database.aside(
            lambda: self.database.write(lambda it: self._reserve(it, ticket, estimate, asked, already))
        )
        self._open[ticket.id] = asked
        return ticket

    async def settle(self, ticket: Ticket, actual: Spend) -> None:
        asked = self._open.pop(ticket.id)
        passed = await self.database.aside(
            lambda: self.database.write(lambda it: self._settle(it, ticket, actual, asked))
        )
        for one in passed:
            self.alert(one)

    def _reserve(self, connection: Connection, ticket: Ticket, estimate: Spend, asked: _Asked, already: Spend) -> None:
        if connection.kind == "postgresql":
            connection.execute("SELECT pg_advisory_xact_lock(:lock)", {"lock": _LOCK})
        ceilings = self.ceilings()
        check(ceilings, {**self._sums(connection, ceilings, asked), "call": already}, estimate)
        connection.execute(
            _ADD,
            {
                "id": ticket.id,
                "time": seconds(self.now()),
                "principal": asked.principal,
                "session": asked.session,
                "task": asked.task,
                "settled": False,
                **_columns(estimate),
            },
        )

    def _settle(self, connection: Connection, ticket: Ticket, actual: Spend, asked: _Asked) -> list[Alert]:
        ceilings, mine = self.ceilings(), {"id": ticket.id}
        tokens, picodollars = connection.execute(
            "SELECT tokens, picodollars FROM ullage_spends WHERE id = :id", mine
        ).one()
        reserved = self._sums(connection, ceilings, asked)
        connection.execute(_SETTLE, {**mine, "settled": True, **_columns(actual)})
        # Without this call, so that an estimate alone passes no threshold.
        before: dict[Scope, Spend] = {scope: _less(spend, tokens, picodollars) for scope, spend in reserved.items()}
        return list(alerts(ceilings, before, self._sums(connection, ceilings, asked)))

    def _sums(self, connection: Connection, ceilings: Ceilings, asked: _Asked) -> dict[Scope, Spend]:
        return {scope: self._sum(connection, scope, asked) for scope in ceilings.kept()}

    def _sum(self, connection: Connection, scope: Scope, asked: _Asked) -> Spend:
        condition, values = self._within(scope, asked)
        tokens, picodollars = connection.execute(
            f"SELECT coalesce(sum(tokens), 0), coalesce(sum(picodollars), 0) FROM ullage_spends WHERE {condition}",
            values,
        ).one()
        return Spend(tokens=int(tokens), dollars=Decimal(int(picodollars)) / _PICO)

    def _within(self, scope: Scope, asked: _Asked) -> tuple[str, dict[str, object]]:
        start = since(scope, self.now())
        if start is not None:
            return "time >= :start", {"start": seconds(start)}
        if scope == "session":
            values: dict[str, object] = {"principal": asked.principal, "session": asked.session}
            return "principal = :principal AND session = :session", values
        if asked.task:
            return "principal = :principal AND task = :task", {"principal": asked.principal, "task": asked.task}
        return "1 = 0", {}


def _columns(spend: Spend) -> dict[str, int | None]:
    dollars = None if spend.dollars is None else int((spend.dollars * _PICO).to_integral_value())
    return {"tokens": spend.tokens, "picodollars": dollars}


def _less(spend: Spend, tokens: int, picodollars: int | None) -> Spend:
    dollars = (spend.dollars or Decimal(0)) - Decimal(picodollars or 0) / _PICO
    return Spend(tokens=spend.tokens - tokens, dollars=dollars)
