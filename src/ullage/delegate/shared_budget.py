"""Budgets shared by processes through the store.

An estimate is written before a call, in the transaction that checks the ceilings, and replaced after it by the actual
cost. If a process dies in between, its estimate remains, so that spending is never lost. `spend_limits` decides what
fits under a ceiling.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from ullage.store import Connection, Database, seconds, storable
from ullage.tool import Caller

from .spend_limits import NO_SPEND, Alert, Ceilings, Scope, Spend, Ticket, alerts, check, current, since

__all__ = ["StoredPurse"]

_ADD = (
    "INSERT INTO ullage_spends (id, time, principal, session, task, tokens, picodollars, settled) "
    "VALUES (:id, :time, :principal, :session, :task, :tokens, :picodollars, :settled)"
)
_SETTLE = (
    "UPDATE ullage_spends SET settled = :settled, tokens = :tokens, picodollars = :picodollars, time = :time "
    "WHERE id = :id"
)
_SETTLED = " AND settled = :settled"
_PICO = Decimal(10) ** 12
"""Prices are stored in picodollars: the finest known price is about 10^-10 dollars per token, and integer sums are
exact in every database."""
_MOST = Decimal(10) ** 16
"""Maximum counted for one call, in tokens and in picodollars ($10,000)."""
_LOCK = 0x756C6C617370
"""PostgreSQL advisory lock under which estimates are checked and written."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The principal, session and task whose scopes apply."""

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

    async def end(self, caller: Caller, task: str | None = None) -> None:
        """End a task or session; its spending is renamed, so that it still counts in the sums of days and months."""
        column, name = ("session", caller.session) if task is None else ("task", task)
        values = {
            "ended": f"ended {secrets.token_hex(8)}",
            "principal": storable(caller.principal),
            "name": storable(name),
        }
        statement = f"UPDATE ullage_spends SET {column} = :ended WHERE principal = :principal AND {column} = :name"
        await self.database.aside(lambda: self.database.write(lambda it: it.execute(statement, values)))

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
        ceilings = self.ceilings()
        if connection.kind == "postgresql":
            connection.execute("SELECT pg_advisory_xact_lock(:lock)", {"lock": _LOCK})
        # Only settled spends count, so that an estimate alone passes no threshold and each is passed once.
        before = self._sums(connection, ceilings, asked, settled_only=True)
        values = {"id": ticket.id, "settled": True, "time": seconds(self.now()), **_columns(actual)}
        connection.execute(_SETTLE, values)
        return list(alerts(ceilings, before, self._sums(connection, ceilings, asked, settled_only=True)))

    def _sums(
        self, connection: Connection, ceilings: Ceilings, asked: _Asked, *, settled_only: bool = False
    ) -> dict[Scope, Spend]:
        sums, settled = dict[Scope, Spend](), _SETTLED if settled_only else ""
        for scope in ceilings.kept():
            start, values = since(scope, self.now()), dict[str, object](settled=True) if settled_only else {}
            if start is not None:
                tokens, picodollars = connection.execute(
                    f"SELECT coalesce(sum(tokens), 0), coalesce(sum(picodollars), 0) FROM ullage_spends "
                    f"WHERE time >= :start{settled}",
                    {**values, "start": seconds(start)},
                ).one()
                sums[scope] = Spend(tokens=int(tokens), dollars=Decimal(int(picodollars)) / _PICO)
                continue
            name = asked.session if scope == "session" else asked.task
            if not name:
                sums[scope] = NO_SPEND
                continue
            rows = connection.execute(
                f"SELECT time, tokens, picodollars FROM ullage_spends "
                f"WHERE principal = :principal AND {scope} = :name{settled} ORDER BY time DESC",
                {**values, "principal": asked.principal, "name": name},
            ).all()
            going_on = list(current(rows, lambda row: row[0], seconds(self.now())))
            picodollars = sum(row[2] or 0 for row in going_on)
            sums[scope] = Spend(tokens=sum(row[1] for row in going_on), dollars=Decimal(picodollars) / _PICO)
        return sums


def _columns(spend: Spend) -> dict[str, int | None]:
    """Return the columns, capped so that no extreme price overflows a column or a sum and keeps a call from being
    counted."""
    dollars = None if spend.dollars is None else int(min(spend.dollars * _PICO, _MOST).to_integral_value())
    return {"tokens": min(spend.tokens, int(_MOST)), "picodollars": dollars}
