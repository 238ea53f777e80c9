"""The audit: one event for each refusal, withheld definition, approval and fallback; who, what, why and when.

Events are rows of `ullage_audit` and lines of JSON in the log `ullage.audit`. An event has names and codes, never an
argument, a statement, a prompt or a result. `ullage audit` shows them.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from ullage.errors import StoreFailed
from ullage.store import Connection, Database, moment, seconds, storable

__all__ = ["AUDIT_KINDS", "AuditEvent", "AuditKind", "log_audit", "read_audit", "store_audit", "write_audit"]

AuditKind = Literal["refusal", "withheld", "approval", "revocation", "fallback"]
"""
- `refusal`: a call that the settings, the user, a budget or the guard of a database did not allow
- `withheld`: a definition that is not served because it changed
- `approval`: a call, a definition or a project's file that the user, or a setting, allowed
- `revocation`: an approval that the user took back
- `fallback`: a model that failed and was replaced by another
"""
AUDIT_KINDS: tuple[AuditKind, ...] = get_args(AuditKind)

_log = logging.getLogger("ullage.audit")

_COLUMNS = ("time", "kind", "principal", "session", "client", "server", "subject", "reason")
_ADD = f"INSERT INTO ullage_audit ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{one}' for one in _COLUMNS)})"
_LONGEST = 300
"""Characters of a name or a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    time: datetime
    kind: AuditKind
    principal: str
    session: str | None = None
    """None for what a user did at the command line, and for what a server did by itself."""
    client: str | None = None
    server: str | None = None
    """The MCP server, the database, or the provider of a model."""
    subject: str
    """The tool, definition, file or model that the event is about."""
    reason: str
    """A code or a short sentence of Ullage's own."""

    def to_json(self) -> dict[str, str | None]:
        values = {name: _short(getattr(self, name)) for name in _COLUMNS[1:]}
        return {"time": self.time.isoformat(timespec="milliseconds"), **values}


def _short(text: str | None) -> str | None:
    if text is None:
        return None
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[:_LONGEST])
    return storable(shown if len(text) <= _LONGEST else f"{shown}…")


def log_audit(event: AuditEvent) -> None:
    """Write the event to the log as one line of JSON."""
    _log.info("%s", json.dumps({"event": "audit", **event.to_json()}, ensure_ascii=False))


def write_audit(connection: Connection, events: Sequence[AuditEvent]) -> None:
    """Add events to the store, in the connection's transaction."""
    if events:
        connection.execute(_ADD, [{**event.to_json(), "time": seconds(event.time)} for event in events])


def store_audit(database: Database, *events: AuditEvent) -> None:
    """Log events and write them at once. Blocks. A store that cannot be written is a warning, never an error."""
    for event in events:
        log_audit(event)
    try:
        database.write(lambda connection: write_audit(connection, events))
    except StoreFailed as error:
        _log.warning("the audit lacks %d events: %s", len(events), error.message)


def read_audit(  # noqa: PLR0913
    database: Database,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    kind: AuditKind | None = None,
    principal: str | None = None,
    limit: int = 1_000,
) -> Iterator[AuditEvent]:
    """Yield the last events from `since` up to, but not including, `until`, oldest first.

    Args:
        database: The store.
        since: The first moment; None for the beginning.
        until: The first moment that is not included; None for now.
        kind: Only events of this kind.
        principal: Only this principal's events.
        limit: How many at most; the latest.
    """
    conditions, values = ["1 = 1"], dict[str, object]()
    for name, sign, value in (
        ("since", "time >=", None if since is None else seconds(since)),
        ("until", "time <", None if until is None else seconds(until)),
        ("kind", "kind =", kind),
        ("principal", "principal =", principal),
    ):
        if value is not None:
            conditions.append(f"{sign} :{name}")
            values[name] = value
    query = (
        f"SELECT {', '.join(_COLUMNS)} FROM ullage_audit WHERE {' AND '.join(conditions)} "
        f"ORDER BY time DESC, id DESC LIMIT {int(limit)}"
    )
    rows = database.read(lambda connection: connection.execute(query, values).mappings())
    for row in reversed(list(rows)):
        fields = {name: row[name] for name in _COLUMNS[1:]}
        yield AuditEvent(time=moment(row["time"]).astimezone(UTC), **fields)
