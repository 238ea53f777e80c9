"""Imports the model calls in other programs' logs into the ledger.

Each file is read from where the last import stopped, and an unchanged file is not opened. A call costs what the program
logged, else its list price on its day; a prompt cache with a lifetime of one hour costs twice the input price.
"""

import json
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from ullage.clients.call_logs import LogFile, LoggedCall, State, find_logs, find_roots, read_calls
from ullage.ledger.rows import CallRow, Party, Subject, add_calls, call_key, picodollars_of
from ullage.models import Match, ModelTable, Price, Usage, cost_of, price_of
from ullage.store import Connection, Database, upsert

__all__ = ["CallPrices", "Imported", "import_logs"]

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
        rates = self.rates(call)
        if rates is None or call.model is None:
            return None
        plain, output, read, write = rates
        hour = call.cache_write_hour * (2 * plain - write)
        if call.input > self._flat[call.model]:
            match = self.models.get(call.model)
            usage = Usage(
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
            self._flat[model] = _flat_up_to(match, price, when)
        parts = (price.input, price.output, price.cache_read or price.input, price.cache_write or price.input)
        plain, output, read, write = (int(part.scaleb(12)) for part in parts)
        return plain, output, read, write


def _flat_up_to(match: Match, price: Price, when: datetime) -> int:
    longest = 0
    for tokens in _PROBES:
        usage = Usage(input=tokens, output=1)
        cost = cost_of(usage, match, when=when)
        if cost is None or cost.total != price.cost(usage).total:
            return longest
        longest = tokens
    return sys.maxsize


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
    changed = [
        one for one in find_logs(environment) if known.get(f"{node}:{one.path}", ())[:2] != (one.size, one.changed)
    ]
    if seconds is not None:
        changed.sort(key=lambda one: -one.changed)
    ends = None if seconds is None else time.monotonic() + seconds
    fresh = [one for one in changed if one.program == "codex" and f"{node}:{one.path}" not in known]
    roots = find_roots(fresh, _roots(known.values())) if any(one.program == "codex" for one in changed) else {}
    importing = _Importing(database, CallPrices(models), principal, node, roots)
    read = 0
    for file in changed:
        if ends is not None and time.monotonic() > ends:
            break
        state: State = json.loads(known[f"{node}:{file.path}"][2]) if f"{node}:{file.path}" in known else {}
        importing.read(file, state)
        read += 1
    importing.write()
    return Imported(files=read, unchanged=len(known), calls=importing.calls, is_complete=read == len(changed))


def _roots(known: Iterable[tuple[int, float, str]]) -> dict[str, str]:
    states: Iterator[State] = (json.loads(state) for _, _, state in known)
    return {state["id"]: state["root"] for state in states if "root" in state}


@dataclass(slots=True)
class _Importing:
    database: Database
    prices: CallPrices
    principal: str
    node: str
    roots: dict[str, str]
    calls: int = 0
    _rows: list[CallRow] = field(default_factory=list[CallRow])
    _files: list[dict[str, object]] = field(default_factory=list[dict[str, object]])

    def read(self, file: LogFile, state: State) -> None:
        last: list[float] = state.get("last") or []
        before: str | None = state.get("before")
        for call in read_calls(file, state, self.roots):
            row = self._row(file, call)
            if call.key is None or call.key != before:
                if last and not call.is_aside:
                    _note_miss(row, call, last, self.prices)
                if not call.is_aside:
                    last = [call.input, call.cache_read + call.cache_write]
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

    def _row(self, file: LogFile, call: LoggedCall) -> CallRow:
        counted = call.input, call.output, call.cache_read, call.cache_write
        project, model = _storable(call.project), _storable(call.model)
        return CallRow(
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
