"""Accepted definitions of every server, and the decision whether a definition offered now may be served.

The first definition that a server lists is its baseline. A later one with another fingerprint is withheld until the
user accepts it; both are stored, so that the difference can be shown without starting the server. A name that a known
server lists for the first time is accepted and marked as new.

A baseline belongs to a server's name and to how its entry starts it, before variables are expanded
(`Server.launch_key`). A token that is renewed every hour, a folder or a temporary name therefore never starts a new
baseline; an entry that the user rewrites does. A baseline is never deleted by what a server does or by a server's
absence: a tool that disappears and comes back is compared with its old definition.

Each protocol era has a baseline of its own. In an era that a server never used before, definitions are compared with
those of the other era, so that a server cannot escape its baseline by using another revision.

Differences between the accepted definition and the current one have two forms. `changed_parts` is for a model: it
names the parts that changed and by how much, and never repeats a word of the new definition, because it may have
been written for the model to read. `difference_lines` is for a person: every value that differs, old and new, with
nothing left out. Neither escapes for a terminal; the CLI does.
"""

import difflib
import hashlib
import json
import logging
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal, cast

from ullage.errors import StoreFailed, ToolChanged
from ullage.ledger import AuditEvent, AuditKind, log_audit, write_audit
from ullage.options import Server
from ullage.store import Connection, Database, moment, seconds, storable, upsert
from ullage.thread_pacing import pace
from ullage.tool import Json, JsonObject

from .fingerprint import Places, exact_hash, fingerprint

__all__ = [
    "Baseline",
    "Baselines",
    "DefinitionChange",
    "Era",
    "Kind",
    "Offered",
    "Verdict",
    "changed_parts",
    "difference_lines",
    "tool_changed",
    "trust_command",
]

Kind = Literal["tool", "prompt", "instructions"]

_MOST_PARTS = 6
"""Most changed parts named to a model."""
_LONGEST_NAME = 60
"""Most characters of a name in a sentence."""
_SHOWN_HASH = 12
_CONTEXT = 2
"""Unchanged lines around a changed one of a long text."""
_MOST_COMPARED = 2_000
"""Lines above which old and new text are shown one after the other: comparing them takes the square of their number."""


class _Missing:
    """Stands for a value that only the other definition has."""


_MISSING = _Missing()


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
    """A definition that is withheld because it differs from the accepted one."""

    server: str
    kind: Kind
    name: str
    """The server's own name for it; empty for the server's instructions."""
    accepted: JsonObject | None
    """The accepted definition; None if its record cannot be read."""
    accepted_hash: str
    offered: JsonObject
    offered_hash: str
    since: datetime
    changes: int = 1
    """Number of different definitions offered since the first one."""
    record_id: str = ""
    """Id of the row in the store."""


def changed_parts(change: DefinitionChange) -> list[str]:
    """Return what changed, in words of the accepted definition only: new names and texts are counted, not quoted."""
    if change.accepted is None:
        return ["the record of the accepted definition cannot be read"]
    try:
        parts = list(_summary(change.accepted, change.offered, ""))
    except RecursionError:
        return ["it is nested too deep to be compared part by part"]
    rest = len(parts) - _MOST_PARTS
    return [*parts[:_MOST_PARTS], f"{rest} more"] if rest > 0 else parts


def _summary(old: Mapping[str, Json], new: Mapping[str, Json], place: str) -> Iterator[str]:
    for key, before in old.items():
        where = f"{place}.{_short(key)}" if place else _short(key)
        if key not in new:
            yield f"`{where}` removed"
            continue
        after = new[key]
        if _same(before, after):
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _summary(before, after, where)
        elif isinstance(before, str) and isinstance(after, str):
            yield f"`{where}` changed ({len(before):,} to {len(after):,} characters)"
        elif isinstance(before, list) and isinstance(after, list) and len(before) != len(after):
            yield f"`{where}` changed ({len(before):,} to {len(after):,} entries)"
        else:
            yield f"`{where}` changed"
    added = sum(key not in old for key in new)
    if added:
        what = "key" if added == 1 else "keys"
        yield f"{added} {what} added" + (f" to `{place}`" if place else "")


def _short(name: str) -> str:
    """Return a name of the accepted definition, shortened to one line."""
    shown = "".join(letter if letter.isprintable() and letter != "`" else "?" for letter in name[:_LONGEST_NAME])
    return shown if len(name) <= _LONGEST_NAME else f"{shown}…"


def trust_command(server: str, tool: str | None = None) -> str:
    """Return the command that shows a change and accepts it, quoted for a shell."""
    words = [server] if not tool else [server, tool]
    separator = "-- " if any(word.startswith("-") for word in words) else ""
    return f"ullage trust {separator}{' '.join(shlex.quote(word) for word in words)}"


def tool_changed(listed: str, change: DefinitionChange) -> ToolChanged:
    """Return the error for a call of a withheld tool or a request for a withheld prompt."""
    hashes = f"{change.accepted_hash[:_SHOWN_HASH] or 'unreadable'} to {change.offered_hash[:_SHOWN_HASH]}"
    command = trust_command(_short(change.server), _short(change.name))
    error = ToolChanged(
        f"`{_short(listed)}` is withheld: its definition is not the one the user accepted "
        f"({'; '.join(changed_parts(change))}; {hashes})",
        suggestion=f"Do without it, and tell the user that `{command}` shows the difference and accepts it.",
    )
    error.tool = change.server, change.name
    return error


def difference_lines(change: DefinitionChange) -> list[str]:
    """Return every value that differs, as `- old` and `+ new` lines below its place."""
    if change.accepted is None:
        text = json.dumps(dict(change.offered), indent=2, ensure_ascii=False)
        return ["the record of the accepted definition cannot be read; offered is:", *text.splitlines()]
    return list(_difference(dict(change.accepted), dict(change.offered), ""))


def _difference(old: Json | _Missing, new: Json | _Missing, place: str) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            where = f"{place}.{key}" if place else key
            if key in old and key in new and _same(old[key], new[key]):
                continue
            yield from _difference(old.get(key, _MISSING), new.get(key, _MISSING), where)
        return
    yield f"{place or 'definition'}:"
    before, after = _written(old), _written(new)
    if len(before) + len(after) > _MOST_COMPARED:
        yield from (f"  {mark}{line}" for mark, lines in (("-", before), ("+", after)) for line in lines)
        return
    # Only the two header lines are skipped, by position: a line of the text may start with `--` or `++` as well.
    compared = islice(difflib.unified_diff(before, after, n=_CONTEXT, lineterm=""), 2, None)
    yield from (f"  {line}" for line in compared if not line.startswith("@@"))


def _written(value: Json | _Missing) -> list[str]:
    if isinstance(value, _Missing):
        return []
    if isinstance(value, str):
        return value.split("\n")
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).splitlines()


def _same(before: Json, after: Json) -> bool:
    """Return whether two values are equal as JSON, since Python treats 1 and true as equal."""
    return before == after and json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True)


_log = logging.getLogger(__name__)

Era = Literal["handshake", "stateless", ""]
"""The protocol's two eras; empty if not recorded, as in catalogues of earlier versions."""
Origin = Literal["first", "new", "user", "setting"]
"""How a definition was accepted: in the server's first listing, as a new name of a known server, by the user, or by
`definition_changes = "accept"`."""

_MOST_NAMES = 20_000
"""Most names recorded of one server, so that a server cannot fill the store; further ones are withheld."""

_MOST_LOGGED = 5
"""Most names in one line of the log."""
_NEW_FOR = timedelta(days=30)
"""Time for which a name that was added later counts as new."""

_TEXTS = ("id", "server", "launch", "era", "kind", "name", "accepted", "accepted_hash", "exact", "matched", "pending")
_COLUMNS = (*_TEXTS, "pending_hash", "origin", "changes", "created", "accepted_at", "pending_at", "checksum")
_SAVE = upsert(
    "ullage_definitions",
    _COLUMNS,
    key="id",
    update={name: f"excluded.{name}" for name in _COLUMNS if name not in ("id", "created")},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """A definition as a server offers it now."""

    kind: Kind
    name: str
    definition: JsonObject
    fingerprint: str
    exact: str

    @classmethod
    def of(cls, kind: Kind, name: str, definition: JsonObject, places: Places) -> "Offered":
        return cls(
            kind=kind,
            name=name,
            definition=definition,
            fingerprint=fingerprint(definition, places),
            exact=exact_hash(definition),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The stored record of one definition in one era."""

    server: str
    launch: str
    era: Era
    kind: Kind
    name: str
    accepted: JsonObject | None
    """The accepted definition; None if the record was unreadable. Nothing matches it until the user accepts what is
    offered."""
    accepted_hash: str
    """Fingerprint of the accepted definition."""
    exact: str
    matched: str
    """Exact hash of the last definition with this fingerprint, as stored in the catalogue."""
    pending: JsonObject | None = None
    """A different definition that was offered and is withheld."""
    pending_hash: str | None = None
    origin: Origin = "first"
    changes: int = 0
    created: datetime
    accepted_at: datetime
    pending_at: datetime | None = None
    stored_id: str = field(default="", compare=False)
    """Id of a damaged row, which differs from the id computed from the other fields."""

    @property
    def id(self) -> str:
        parts = [self.server, self.launch, self.era, self.kind, self.name]
        return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()

    def matches(self, offered: Offered, places: Places) -> bool:
        if self.accepted is None:
            return False
        if offered.exact in (self.exact, self.matched) or offered.fingerprint == self.accepted_hash:
            return True
        # Recorded in another folder, or by a version that normalised differently.
        return fingerprint(self.accepted, places) == offered.fingerprint

    def change(self) -> DefinitionChange | None:
        if self.pending is None or self.pending_hash is None:
            return None
        return DefinitionChange(
            server=self.server,
            kind=self.kind,
            name=self.name,
            accepted=self.accepted,
            accepted_hash=self.accepted_hash,
            offered=self.pending,
            offered_hash=self.pending_hash,
            since=self.pending_at or self.accepted_at,
            changes=self.changes,
            record_id=self.id,
        )

    def accepting(self, origin: Origin, now: datetime) -> "Baseline":
        """Return the record with its pending definition accepted."""
        if self.pending is None or self.pending_hash is None:
            return replace(self, origin=origin, accepted_at=now)
        exact = exact_hash(self.pending)
        return replace(
            self,
            accepted=self.pending,
            accepted_hash=self.pending_hash,
            exact=exact,
            matched=exact,
            pending=None,
            pending_hash=None,
            pending_at=None,
            origin=origin,
            accepted_at=now,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision on a listing."""

    withheld: Mapping[tuple[Kind, str], DefinitionChange] = field(
        default_factory=dict[tuple[Kind, str], DefinitionChange]
    )
    records: tuple[Baseline, ...] = ()
    """All records of the server after the decision."""
    written: tuple[Baseline, ...] = ()
    """The records that must be stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The definitions that a server offers at one moment, to be compared with its records."""

    server: Server
    era: Era
    offered: tuple[Offered, ...]
    places: Places
    now: datetime

    def judge(self, records: Sequence[Baseline]) -> Verdict:
        """Compare every definition with its record.

        A name without a record is accepted, as part of the first listing of its kind or as new.
        """
        by_name: dict[tuple[Kind, str], list[Baseline]] = {}
        for record in records:
            by_name.setdefault((record.kind, record.name), []).append(record)
        known = {"tool" if record.kind == "instructions" else record.kind for record in records}
        damaged = {record.stored_id for record in records if record.stored_id}
        written: list[Baseline] = []
        withheld: dict[tuple[Kind, str], DefinitionChange] = {}
        for one in pace(self.offered):
            of_name = by_name.get((one.kind, one.name), [])
            if not of_name and len(by_name) + len(written) >= _MOST_NAMES:
                withheld[one.kind, one.name] = DefinitionChange(
                    server=self.server.name,
                    kind=one.kind,
                    name=one.name,
                    accepted=None,
                    accepted_hash="",
                    offered=one.definition,
                    offered_hash=one.fingerprint,
                    since=self.now,
                )
                continue
            record = self._judged(one, of_name, is_known=one.kind in known)
            if record.id in damaged and record.accepted is not None and not of_name:
                record = replace(
                    self._fresh(one, "first"),
                    accepted=None,
                    accepted_hash="",
                    pending=one.definition,
                    pending_hash=one.fingerprint,
                    pending_at=self.now,
                )
            if record not in of_name:
                written.append(record)
            if (change := record.change()) is not None:
                withheld[one.kind, one.name] = change
        kept = {record.id: record for record in records} | {record.id: record for record in written}
        return Verdict(withheld=withheld, records=tuple(kept.values()), written=tuple(written))

    def _judged(self, one: Offered, of_name: Sequence[Baseline], *, is_known: bool) -> Baseline:
        own = next((record for record in of_name if record.era == self.era), None)
        if not of_name:
            return self._fresh(one, "new" if is_known else "first")
        if own is None:
            same = next((record for record in of_name if record.matches(one, self.places)), None)
            if same is not None:
                return self._fresh(one, same.origin)
            latest = max(of_name, key=lambda record: record.accepted_at)
            own = replace(latest, era=self.era, pending=None, pending_hash=None, pending_at=None, created=self.now)
        if own.matches(one, self.places):
            return replace(own, matched=one.exact, pending=None, pending_hash=None, pending_at=None)
        if own.pending_hash == one.fingerprint:
            return own
        pending = replace(
            own,
            pending=one.definition,
            pending_hash=one.fingerprint,
            pending_at=self.now,
            changes=own.changes + 1,
        )
        return pending.accepting("setting", self.now) if self.server.definition_changes == "accept" else pending

    def _fresh(self, one: Offered, origin: Origin) -> Baseline:
        return Baseline(
            server=self.server.name,
            launch=self.server.launch_key,
            era=self.era,
            kind=one.kind,
            name=one.name,
            accepted=one.definition,
            accepted_hash=one.fingerprint,
            exact=one.exact,
            matched=one.exact,
            origin=origin,
            created=self.now,
            accepted_at=self.now,
        )


def _events(server: Server, written: Iterable[Baseline], now: datetime) -> list[AuditEvent]:
    """Return what was withheld or accepted now, for the audit."""
    found = list[AuditEvent]()
    for record in written:
        if record.pending_at == now:
            found.append(_event(server, record, now, "withheld", "the definition is not the accepted one"))
        elif record.origin == "setting" and record.accepted_at == now:
            found.append(_event(server, record, now, "approval", "accepted by `definition_changes`"))
    return found


def _event(server: Server, record: Baseline, now: datetime, kind: AuditKind, reason: str) -> AuditEvent:
    hashes = f"{record.accepted_hash[:_SHOWN_HASH]} to {(record.pending_hash or '')[:_SHOWN_HASH]}"
    return AuditEvent(
        time=now,
        kind=kind,
        principal="",
        server=server.name,
        subject=f"{record.kind} {record.name}".strip(),
        reason=f"{reason} ({hashes})" if record.pending_hash else reason,
    )


def _names(records: Sequence[Baseline]) -> str:
    named = [record.name[:60] if record.name.isprintable() else ascii(record.name[:60]) for record in records]
    shown = ", ".join(name or "its instructions" for name in named[:_MOST_LOGGED])
    return f"{shown} and {len(records) - _MOST_LOGGED} more" if len(records) > _MOST_LOGGED else shown


class Baselines:
    """The records of all servers, in the store, or in the memory of this process without one."""

    def __init__(
        self,
        database: Database | None,
        *,
        places: Places | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        on_failure: Callable[[StoreFailed], None] = lambda _: None,
    ) -> None:
        """Open the records. `on_failure` is called if the store cannot be used; records are then kept in memory."""
        self._database = database
        self._places = places or Places()
        self._clock = clock
        self._on_failure = on_failure
        self._memory: dict[tuple[str, str], tuple[Baseline, ...]] = {}

    def places(self, server: Server) -> Places:
        return self._places if server.directory is None else replace(self._places, folder=server.directory)

    def offer(self, server: Server, kind: Kind, definitions: Iterable[tuple[str, JsonObject]]) -> tuple[Offered, ...]:
        """Return the definitions with their hashes; of a name listed twice, only the first, which is served."""
        places, first = self.places(server), dict[str, JsonObject]()
        for name, said in definitions:
            first.setdefault(name, said)
        return tuple(Offered.of(kind, name, said, places) for name, said in pace(first.items()))

    def judge(
        self,
        server: Server,
        era: Era,
        offered: tuple[Offered, ...],
        *,
        legacy: Callable[[], tuple[Offered, ...]] = tuple,
    ) -> Verdict:
        """Decide which definitions of a listing may be served, and record them. Blocks.

        `legacy` returns what the catalogue had of a server before baselines existed; it becomes the baseline of a
        server without one under its name, and is called only for such a server.
        """
        if server.definition_changes == "ignore":
            return Verdict()
        listing = _Listing(server=server, era=era, offered=offered, places=self.places(server), now=self._clock())
        key = (server.name, server.launch_key)
        before_baselines = None if self._is_known(server.name) else legacy()

        def judged(records: Sequence[Baseline]) -> Verdict:
            if not before_baselines or any(record.kind != "prompt" for record in records):
                return listing.judge(records)
            before = replace(listing, era="", offered=before_baselines).judge(records)
            verdict = listing.judge(before.records)
            kept = {one.id: one for one in (*before.written, *verdict.written)}
            return replace(verdict, written=tuple(kept.values()))

        def write(connection: Connection) -> Verdict:
            verdict = judged(self._with_memory(key, _load(connection, *key)))
            _save(connection, verdict.written)
            write_audit(connection, _events(server, verdict.written, listing.now))
            return verdict

        verdict = judged(self.records(server))
        if verdict.written and self._database is not None:
            try:
                verdict = self._database.write(write)
            except StoreFailed as error:
                self._on_failure(error)
        self._memory[key] = verdict.records
        held = [record for record in verdict.written if record.pending_at == listing.now]
        taken = [
            record for record in verdict.written if record.origin == "setting" and record.accepted_at == listing.now
        ]
        if held:
            command = trust_command(server.name, held[0].name if len(held) == 1 else None)
            _log.warning("server `%s` changed %s: withheld until `%s` accepts it", server.name, _names(held), command)
        if taken:
            _log.warning("server `%s` changed %s: accepted, as `definition_changes` says", server.name, _names(taken))
        for event in _events(server, verdict.written, listing.now):
            log_audit(event)
        return verdict

    def _is_known(self, name: str) -> bool:
        """Return whether a listing of tools was ever recorded under the name, whatever the configuration."""
        if self._database is None:
            return True
        query = "SELECT id FROM ullage_definitions WHERE server = :server AND kind <> 'prompt' LIMIT 1"
        values = {"server": storable(name)}
        try:
            return self._database.read(lambda connection: connection.execute(query, values).first()) is not None
        except StoreFailed:
            return True

    def recall(self, server: Server, offered: tuple[Offered, ...]) -> Verdict:
        """Decide which definitions of a listing from the catalogue may be served, without recording anything. Blocks.

        A server without a baseline is served as before: its catalogue becomes the baseline when it is next asked.
        """
        if server.definition_changes != "hold":
            return Verdict()
        records = self.records(server)
        by_name: dict[tuple[Kind, str], list[Baseline]] = {}
        for record in records:
            by_name.setdefault((record.kind, record.name), []).append(record)
        places = self.places(server)
        withheld: dict[tuple[Kind, str], DefinitionChange] = {}
        for one in offered:
            of_name = by_name.get((one.kind, one.name), [])
            if not of_name or any(record.matches(one, places) for record in of_name):
                continue
            latest = max(of_name, key=lambda record: record.accepted_at)
            shown = replace(
                latest,
                pending=one.definition,
                pending_hash=one.fingerprint,
                pending_at=latest.pending_at or latest.accepted_at,
            )
            withheld[one.kind, one.name] = cast("DefinitionChange", shown.change())
        return Verdict(withheld=withheld, records=records)

    def records(self, server: Server) -> tuple[Baseline, ...]:
        """Return all records of a server in its current configuration. Blocks."""
        key = (server.name, server.launch_key)
        if self._database is None:
            return self._memory.get(key, ())
        try:
            return self._with_memory(key, self._database.read(lambda connection: _load(connection, *key)))
        except StoreFailed as error:
            self._on_failure(error)
            return self._memory.get(key, ())

    def _with_memory(self, key: tuple[str, str], stored: tuple[Baseline, ...]) -> tuple[Baseline, ...]:
        """Return the stored records with those that this process could not write."""
        ids = {record.stored_id or record.id for record in stored}
        return (*stored, *(record for record in self._memory.get(key, ()) if record.id not in ids))

    def stamp(self, server: Server) -> str | None:
        """Return a value that changes whenever any process accepts a definition of the server. Blocks.

        Empty if the store cannot be read, None if there is none.
        """
        query = (
            "SELECT id, accepted_hash FROM ullage_definitions WHERE server = :server AND launch = :launch ORDER BY id"
        )
        values = {"server": storable(server.name), "launch": server.launch_key}
        if self._database is None:
            return None
        try:
            rows = self._database.read(lambda connection: connection.execute(query, values).all())
        except StoreFailed:
            return ""
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    def withheld(self, server: Server) -> tuple[DefinitionChange, ...]:
        """Return the changes that await the user's acceptance, as last offered. Blocks."""
        found = (record.change() for record in self.records(server))
        return tuple(change for change in found if change is not None)

    def new(self, server: Server) -> tuple[Baseline, ...]:
        """Return the names added after the server's first listing, in the last month, that the user has not seen.
        Blocks."""
        oldest = self._clock() - _NEW_FOR
        return tuple(one for one in self.records(server) if one.origin == "new" and one.created >= oldest)

    def accept(self, server: Server, shown: Iterable[DefinitionChange]) -> tuple[DefinitionChange, ...]:
        """Accept exactly the definitions that were shown; return those that were still on offer. Blocks."""
        wanted = {change.record_id: change for change in shown}
        now = self._clock()

        def accepted(records: Iterable[Baseline]) -> list[Baseline]:
            return [
                record.accepting("user", now)
                for record in records
                if record.id in wanted and record.pending_hash == wanted[record.id].offered_hash
            ]

        taken = self._rewrite(server, accepted)
        return tuple(wanted[record.id] for record in taken)

    def acknowledge(self, server: Server) -> None:
        """Mark the new names of a server as seen by the user. Blocks."""
        now = self._clock()
        self._rewrite(server, lambda records: [one.accepting("user", now) for one in records if one.origin == "new"])

    def _rewrite(self, server: Server, change: Callable[[Iterable[Baseline]], list[Baseline]]) -> list[Baseline]:
        key = (server.name, server.launch_key)

        def write(connection: Connection) -> list[Baseline]:
            changed = change(_load(connection, *key))
            _save(connection, changed)
            return changed

        if self._database is not None:
            return self._database.write(write)
        records = self._memory.get(key, ())
        changed = change(records)
        self._memory[key] = tuple({one.id: one for one in (*records, *changed)}.values())
        return changed


def _load(connection: Connection, server: str, launch: str) -> tuple[Baseline, ...]:
    query = (
        f"SELECT {', '.join(_COLUMNS)} FROM ullage_definitions WHERE server = :server AND launch = :launch ORDER BY id"
    )
    rows = connection.execute(query, {"server": storable(server), "launch": launch}).mappings()
    return tuple(_record(row, server, launch) for row in pace(rows))


def _record(row: Mapping[Any, Any], server: str, launch: str) -> Baseline:
    """Read a row. A damaged row keeps its id and matches nothing."""
    is_whole = row["checksum"] == _checksum(row)
    pending = row["pending"] if is_whole else None
    text = row["name"]
    try:
        name = str(json.loads(text))
    except ValueError:
        name = text
    record = Baseline(
        server=server,
        launch=launch,
        era=row["era"],
        kind=row["kind"],
        name=name,
        accepted=json.loads(row["accepted"]) if is_whole and row["accepted"] else None,
        accepted_hash=row["accepted_hash"] if is_whole else "",
        exact=row["exact"] if is_whole else "",
        matched=row["matched"] if is_whole else "",
        pending=None if pending is None else json.loads(pending),
        pending_hash=row["pending_hash"] if is_whole else None,
        origin=row["origin"] if is_whole else "first",
        changes=row["changes"] if is_whole else 0,
        created=moment(row["created"]),
        accepted_at=moment(row["accepted_at"]),
        pending_at=None if row["pending_at"] is None or not is_whole else moment(row["pending_at"]),
    )
    return record if record.id == row["id"] else replace(record, stored_id=row["id"])


def _save(connection: Connection, records: Iterable[Baseline]) -> None:
    rows = [_row(record) for record in pace(records)]
    if not rows:
        return
    connection.execute(_SAVE, rows)


def _row(record: Baseline) -> dict[str, object]:
    row: dict[str, object] = {
        "id": record.id,
        "server": storable(record.server),
        "launch": record.launch,
        "era": record.era,
        "kind": record.kind,
        "name": json.dumps(record.name),
        "accepted": "" if record.accepted is None else json.dumps(dict(record.accepted), separators=(",", ":")),
        "accepted_hash": record.accepted_hash,
        "exact": record.exact,
        "matched": record.matched,
        "pending": None if record.pending is None else json.dumps(dict(record.pending), separators=(",", ":")),
        "pending_hash": record.pending_hash,
        "origin": record.origin,
        "changes": record.changes,
        "created": seconds(record.created),
        "accepted_at": seconds(record.accepted_at),
        "pending_at": None if record.pending_at is None else seconds(record.pending_at),
    }
    return {**row, "checksum": _checksum(row)}


def _checksum(row: Mapping[Any, Any]) -> str:
    """Return a checksum that detects a damaged row. It does not protect against someone with write access to the
    store."""
    parts = [row[name] for name in (*_TEXTS, "pending_hash", "origin", "changes")]
    return hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()
