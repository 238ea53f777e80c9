"""The engine for SQLite and DuckDB files, and the worker processes that read them.

`EmbeddedEngine` runs each statement in a worker process, under the engine's own locks and the system's limits. Two
files of the same engine share nothing. The guard judges statements beforehand, but the worker does not rely on it.

`TableWorker` runs a statement on rows as the table `result`, in a database without a file, in a worker under the same
locks. `unique_names` and `storable` convert column names and values to what SQLite can store.

A `Worker` handles one request at a time: frames in, frames out. It is killed whenever it may still be busy, because
nothing else ends a call that an engine cannot interrupt. Untested on Windows, where killing is the normal way to end a
process.

`Workers` is a pool of processes that read the same file, started when needed and kept warm; each ends by itself after
some time without a request. A request that is late, cancelled or crashed ends its process, and the next request gets
another.

`Received` assembles the frames of an answer. A worker reads untrusted files, so its output is validated like any other
input: a frame that does not fit raises `InvalidFrame`.
"""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal, cast

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread
from anyio.streams.buffered import BufferedByteReceiveStream

from ullage.errors import DeadlinePassed, QueryFailed, SourceFailed, UllageError
from ullage.processes import process_watcher
from ullage.table import Cell, Row, decode_pieces, dump_value, read_pieces
from ullage.tool import Json

from ..database import (
    Answer,
    Column,
    Dialect,
    ForeignKey,
    Index,
    Limits,
    Probe,
    Question,
    Routine,
    Stability,
    Structure,
    Table,
    Trigger,
    in_order,
)
from ..run_query import suggest_names

__all__ = [
    "MEMORY",
    "EmbeddedEngine",
    "Failed",
    "Frames",
    "InvalidFrame",
    "Received",
    "TableWorker",
    "Worker",
    "WorkerGone",
    "Workers",
    "batches",
    "closed_error",
    "crash_error",
    "failure",
    "frame_message",
    "late",
    "read_structure",
    "storable",
    "unique_names",
]


class InvalidFrame(Exception):
    """Raised for a frame that no worker of Ullage sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The error that a worker sent."""

    kind: str
    code: str | None
    text: str


@dataclass(slots=True, kw_only=True)
class Received:
    """The answer of a worker, assembled from its frames."""

    columns: tuple[str, ...] = ()
    rows: list[Row] = field(default_factory=list[Row])
    more: bool = False
    cut_cells: int = 0
    value: Json = None
    failed: Failed | None = None
    is_farewell: bool = False
    """Whether the worker had ended for lack of requests, without reading this one."""
    is_whole: bool = False

    @property
    def ends_worker(self) -> bool:
        return self.is_farewell or (self.failed is not None and self.failed.kind == "memory")

    def take(self, frame: Json) -> None:
        """Add a frame; raise `InvalidFrame` if it does not fit."""
        if not isinstance(frame, dict):
            raise InvalidFrame("a frame that is not an object")
        try:
            self._add_frame_in_steps(frame)
        except (KeyError, TypeError, ValueError, InvalidOperation) as error:
            raise InvalidFrame(f"a frame that does not fit: {type(error).__name__}") from error

    def _add_frame_in_steps(self, frame: Mapping[str, Json]) -> None:
        if "rows" in frame:
            self.rows.extend(
                tuple(_cell(cell) for cell in row) for row in [_list(inner) for inner in _list(frame["rows"])]
            )
            return
        if "columns" in frame:
            self.columns = tuple(str(name) for name in _list(frame["columns"]))
            return
        self.is_whole = True
        if "failed" in frame:
            code = frame["code"]
            self.failed = Failed(
                kind=str(frame["failed"]), code=None if code is None else str(code), text=str(frame["text"])
            )
        elif "value" in frame:
            self.value = frame["value"]
        elif "bye" in frame:
            self.is_farewell = True
        else:
            self.more, self.cut_cells = bool(frame["more"]), int(cast("int", frame["cut_cells"]))

    def answer(self) -> Answer:
        return Answer(columns=self.columns, rows=tuple(self.rows), more=self.more, cut_cells=self.cut_cells)


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _cell(value: Json) -> Cell:
    """Return a cell; an object is always a mark, of a decimal or of an object before transfer."""
    if not isinstance(value, dict):
        return value
    if "marked" in value:
        return _unmarked(value["marked"])
    return Decimal(str(value["decimal"])) if "decimal" in value else value["json"]


def _unmarked(value: Json) -> Json:
    """Return a value whose decimals and objects are all marked."""
    if isinstance(value, list):
        return [_unmarked(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if "decimal" in value:
        # Readers of cells write out every digit of a decimal, also within a list or object.
        return cast("Json", Decimal(str(value["decimal"])))
    inside = value["json"]
    return {key: _unmarked(inner) for key, inner in inside.items()} if isinstance(inside, dict) else inside


_PROGRAM = Path(__file__).parent / "worker" / "__main__.py"
_PASSED_ON = ("TZ", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Environment variables passed on: the time zone, and what an interpreter may need to start. Others may be secrets."""

_MOST = 64 << 20
"""Maximum bytes of one frame."""
_AT_ONCE = 1 << 20
"""Maximum bytes of a frame that is decoded in the event loop."""
_DEEPEST = 500
"""Maximum nesting of a frame."""
_REAPED = 1.0
"""Seconds to wait for a killed process to end."""
_LEAVING = 1.0
"""Seconds to wait for a process that ends by itself, before it is killed."""


class WorkerGone(Exception):
    """Raised if the process ended, or sent an invalid frame, during a request."""


def frame_message(message: Mapping[str, object]) -> bytes:
    """Return a message as a frame."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return len(body).to_bytes(4, "big") + body


class Worker:
    """A worker process."""

    def __init__(self, process: anyio.abc.Process, registration: contextlib.ExitStack) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._registration = registration
        """Ends the process if Ullage is killed, which a process busy with a long query does not notice."""
        self._input = process.stdin
        self._output = BufferedByteReceiveStream(process.stdout)
        self._is_leaving = False
        """Whether its output has ended, so that it is ending or has ended."""

    @classmethod
    async def start(cls) -> "Worker":
        """Start a process."""
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        command = [sys.executable, "-I", str(_PROGRAM)]
        # A process cancelled while it starts would otherwise have no owner to end it.
        process = None
        with contextlib.ExitStack() as registration:
            registered = registration.enter_context(process_watcher().registration())
            environment |= registered.environment
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(command, env=environment, stderr=subprocess.DEVNULL)
            assert process is not None
            registered.started(process.pid)
            return cls(process, registration.pop_all())

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status, negative if a signal ended the process; None while it runs."""
        return self._process.returncode

    async def exchange(self, frames: Iterable[bytes], *, most: int) -> Received:
        """Send a request, and read the answer up to `most` bytes."""
        # A worker that failed before the request has sent the reason, which can still be read.
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            for frame in frames:
                await anyio.lowlevel.checkpoint()
                await self._input.send(frame)
        received, size = Received(), 0
        while not received.is_whole:
            try:
                length = int.from_bytes(await self._output.receive_exactly(4), "big")
                if length > _MOST:
                    raise WorkerGone("a frame without end")
                body = await self._output.receive_exactly(length)
            except (
                anyio.IncompleteRead,
                anyio.EndOfStream,
                anyio.ClosedResourceError,
                anyio.BrokenResourceError,
            ) as error:
                self._is_leaving = True
                raise WorkerGone("no more frames") from error
            size += len(body)
            if size > most:
                raise WorkerGone("more than was asked for")
            await _add_frame_in_steps(received, body)
        return received

    async def end(self) -> None:
        """Kill the process at once, and wait for it to end even if the caller is cancelled."""
        with self._registration:
            if self._is_leaving:
                # Wait first, because killing the process would replace the exit status that explains how it ended.
                with anyio.move_on_after(_LEAVING, shield=True):
                    await self._process.wait()
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            with anyio.move_on_after(_REAPED, shield=True):
                await self._process.aclose()


async def _add_frame_in_steps(received: Received, body: bytes) -> None:
    try:
        if len(body) < _AT_ONCE:
            frame: Json = json.loads(body)
        else:
            # In pieces: one call of the parser would block every thread.
            frame = await anyio.to_thread.run_sync(lambda: read_pieces(decode_pieces(body), _DEEPEST))
        received.take(frame)
    except (ValueError, RecursionError, InvalidFrame) as error:
        raise WorkerGone("nonsense") from error


_ASK_LESS = "ask for less: narrow the WHERE, aggregate, or join on fewer rows"
_INSTALL = ": pip install "
"""Separates what is missing from what to install in a worker's message."""
_NOT_THERE = "there is no such file"
"""A worker's message for a missing file."""


def failure(failed: Failed, *, name: str, seconds: float) -> UllageError:
    """Return the error to raise for a worker's failure."""
    text = failed.text if failed.code is None else f"{failed.code}: {failed.text}"
    match failed.kind:
        case "deadline":
            return late(seconds)
        case "source":
            why, install, package = text.partition(_INSTALL)
            suggestion = f"{_INSTALL}{package}".removeprefix(": ") if install else "look at the file, then ask again"
            if text == _NOT_THERE:
                suggestion = "check the path; it is taken from the folder of ullage.toml"
            return SourceFailed(f"`{name}` cannot be read: {why}", suggestion=suggestion)
        case "memory":
            return QueryFailed(text, suggestion=_ASK_LESS)
        case _:
            return QueryFailed(text, suggestion="correct the statement and try again")


def late(seconds: float) -> DeadlinePassed:
    return DeadlinePassed(
        f"the question was not answered within {round(seconds, 1) or seconds:g} s", suggestion=_ASK_LESS
    )


def crash_error(name: str, status: int | None) -> SourceFailed:
    if status is None or status == 0:
        how = ""
    elif status > 0:
        how = f" with status {status}"
    else:
        known = {number.value: number.name for number in signal.Signals}
        how = f" by {known.get(-status, f'signal {-status}')}"
    return SourceFailed(
        f"the process that reads `{name}` ended in the middle of the question{how}",
        suggestion=f"the next question gets a new one; {_ASK_LESS}",
    )


def closed_error(name: str) -> SourceFailed:
    return SourceFailed(f"`{name}` is closed", suggestion="Ullage is ending, or the database left the configuration")


MEMORY = 1 << 30
"""Memory limit of one worker, in bytes."""

_GRACE = 0.2
"""Seconds after the deadline in which a worker may end a request by itself before it is killed."""
_SLACK = 64 << 20
"""Bytes of an answer besides rows; a description of ten thousand tables needs as many."""

Frames = Callable[[float], Iterable[bytes]]
"""Returns the frames of a request, given the seconds left; they are generated while they are sent."""


class Workers:
    """A pool of worker processes that read the same file."""

    def __init__(
        self, hello: Mapping[str, object], *, name: str, limits: Limits, memory: int = MEMORY, idle: float = 60.0
    ) -> None:
        """Configure the pool.

        Args:
            hello: the first message to each worker, which names what it reads.
            name: the database's name in messages.
            limits: limits of answers.
            memory: memory limit of one worker, in bytes.
            idle: seconds without a request after which a worker ends.
        """
        self._hello = frame_message({**hello, "memory": memory, "idle": idle})
        self._name = name
        self._bytes = limits.bytes
        self._turns = anyio.Semaphore(limits.concurrency)
        self._warm: list[Worker] = []
        self._is_closed = False

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Process ids of the idle workers."""
        return tuple(worker.process_id for worker in self._warm)

    async def ask(self, frames: Frames, seconds: float) -> Received:
        """Send a request and return the answer.

        Raises:
            QueryFailed: the statement failed.
            DeadlinePassed: no answer arrived in time.
            SourceFailed: the file cannot be read, or the worker crashed.
        """
        received = await self._receive_within(frames, seconds)
        if received.failed is not None:
            raise failure(received.failed, name=self._name, seconds=seconds)
        return received

    async def close(self) -> None:
        """End the idle workers; one that is busy ends after its answer."""
        self._is_closed = True
        while self._warm:
            await self._warm.pop().end()

    async def _receive_within(self, frames: Frames, seconds: float) -> Received:
        deadline = anyio.current_time() + seconds
        with anyio.CancelScope(deadline=deadline + _GRACE):
            async with self._turns:
                received = await self._exchange(frames, deadline)
                while received.is_farewell:
                    received = await self._exchange(frames, deadline)
                return received
        raise late(seconds)

    async def _exchange(self, frames: Frames, deadline: float) -> Received:
        if self._is_closed:
            raise closed_error(self._name)
        warm = None
        while self._warm and warm is None:
            idle = self._warm.pop()
            # An idle worker may have been killed from outside.
            if idle.status is None:
                warm = idle
            else:
                await idle.end()
        worker = warm or await Worker.start()
        said = self._prepend_hello(frames, deadline, is_new=warm is None)
        try:
            received = await worker.exchange(said, most=self._bytes + _SLACK)
        except WorkerGone as error:
            await worker.end()
            raise crash_error(self._name, worker.status) from error
        except BaseException:
            await worker.end()
            raise
        if received.ends_worker or self._is_closed:
            await worker.end()
        else:
            self._warm.append(worker)
        return received

    def _prepend_hello(self, frames: Frames, deadline: float, *, is_new: bool) -> Iterable[bytes]:
        if is_new:
            yield self._hello
        yield from frames(max(0.0, deadline - anyio.current_time()))


Found = Mapping[str, Any]
"""Returned by Ullage's own catalogue queries, so its keys are known."""


def read_structure(value: Json, *, name: str) -> Structure:
    """Return the structure that a worker read."""
    found = cast("Found", value)
    routines = tuple(Routine(**routine) for routine in found.get("routines", ()))
    return Structure(tables=in_order(map(_table, found["tables"])), routines=routines, name=name)


def _table(found: Found) -> Table:
    return Table(
        name=found["name"],
        schema=found.get("schema"),
        kind=found["kind"],
        columns=tuple(
            Column(
                name=column["name"],
                type=column["type"],
                nullable=column["nullable"],
                default=column["default"],
                generated=column["generated"],
                computed=bool(column.get("computed")),
                expression=column.get("expression"),
                comment=column.get("comment"),
            )
            for column in found["columns"]
        ),
        primary_key=tuple(found["primary_key"]),
        foreign_keys=tuple(
            ForeignKey(
                columns=tuple(key["columns"]),
                table=key["table"],
                to=tuple(key["to"]),
                name=key.get("name"),
                on_update=key.get("on_update"),
                on_delete=key.get("on_delete"),
            )
            for key in found["foreign_keys"]
        ),
        indexes=tuple(
            Index(name=index["name"], columns=tuple(index["columns"]), unique=index["unique"])
            for index in found["indexes"]
        ),
        checks=tuple(found["checks"]),
        triggers=tuple(Trigger(**trigger) for trigger in found["triggers"]),
        rows=found.get("rows"),
        definition=found.get("definition"),
        comment=found.get("comment"),
        module=found.get("module"),
    )


_BATCH = 16_000
"""Characters sent at once; a batch is encoded in the event loop, in a few milliseconds."""
_LARGEST = 2**63
_LONGEST_NAME = 200


def unique_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Return case-insensitively unique names: the second `id` becomes `id_2`, a missing name is replaced by its
    position."""
    taken: set[str] = set()
    names: list[str] = []
    for place, column in enumerate(columns, 1):
        wanted = column.replace("\0", "")[:_LONGEST_NAME].strip() or f"column_{place}"
        name, number = wanted, 1
        while name.casefold() in taken:
            number += 1
            name = f"{wanted}_{number}"
        names.append(name)
        taken.add(names[-1].casefold())
    return tuple(names)


def storable(cell: Cell) -> int | float | str | None:
    """Return a value that SQLite can store: a decimal as a number, for sums and comparisons; a list or object as
    JSON."""
    if isinstance(cell, Decimal):
        return int(cell) if cell == cell.to_integral_value() and abs(cell) < _LARGEST else float(cell)
    if isinstance(cell, (list, dict)):
        try:
            return json.dumps(cell, ensure_ascii=False)
        except TypeError:  # it contains a decimal
            return dump_value(cell)
    if isinstance(cell, int) and abs(cell) >= _LARGEST:
        return str(cell)
    return cell


def batches(rows: Iterable[Row]) -> Iterator[list[list[int | float | str | None]]]:
    """Yield rows as lists of storable values, in batches of a bounded size."""
    batch: list[list[int | float | str | None]] = []
    size = 0
    for row in rows:
        batch.append([storable(cell) for cell in row])
        size += sum(len(cell) if isinstance(cell, str) else 8 for cell in batch[-1])
        if size > _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class EmbeddedEngine:
    """An `Engine` for one SQLite or DuckDB file."""

    def __init__(
        self,
        path: Path,
        *,
        dialect: Literal["sqlite", "duckdb"],
        limits: Limits | None = None,
        memory: int = MEMORY,
        within: str | None = None,
    ) -> None:
        """Configure the engine; no file is opened and no worker started before the first statement.

        A missing file is never created. With `within`, a file that links lead out of that folder is never opened.
        """
        self._dialect: Dialect = dialect
        self._limits = limits or Limits()
        self._name = path.name
        self._functions: Mapping[str, Stability] | None = None
        whole = path.absolute()
        # The worker gets the driver's directory, so that it needs no path from the environment or the user's
        # site-packages.
        found = importlib.util.find_spec("duckdb") if dialect == "duckdb" else None
        hello = {
            "kind": dialect,
            "path": str(whole),
            "uri": whole.as_uri(),
            "packages": None if found is None or found.origin is None else str(Path(found.origin).parent.parent),
            "within": within,
        }
        self._workers = Workers(hello, name=path.name, limits=self._limits, memory=memory)

    def __repr__(self) -> str:
        return f"EmbeddedEngine({self._name!r})"

    @property
    def dialect(self) -> Dialect:
        return self._dialect

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Process ids of the idle workers."""
        return self._workers.process_ids

    async def ask(self, question: Question) -> Answer:
        limits = self._limits
        message = {
            "do": "ask",
            "sql": question.sql,
            "rows": min(question.rows, limits.rows),
            "cell": limits.cell,
            "bytes": limits.bytes,
        }
        received = await self._workers.ask(_frames(message), min(question.seconds, limits.seconds))
        return received.answer()

    async def structure(self) -> Structure:
        received = await self._workers.ask(_frames({"do": "structure"}), self._limits.seconds)
        return read_structure(received.value, name=self._name)

    async def functions(self) -> Mapping[str, Stability]:
        if self._functions is None:
            received = await self._workers.ask(_frames({"do": "functions"}), self._limits.seconds)
            self._functions = cast("dict[str, Stability]", received.value)
        return self._functions

    async def probe(self) -> Probe:
        """Return no role: files have none, and this process opens them read-only, whoever may write to them."""
        return Probe(role=None)

    async def close(self) -> None:
        await self._workers.close()


def _frames(message: Mapping[str, object]) -> Frames:
    return lambda seconds: (frame_message({**message, "seconds": seconds}),)


_MOST_COLUMNS = 2_000


class TableWorker:
    """Runs statements on rows that are passed with each call."""

    def __init__(self, *, limits: Limits | None = None, memory: int = MEMORY) -> None:
        self._limits = limits or Limits()
        self._workers = Workers({"kind": "table"}, name="result", limits=self._limits, memory=memory)

    async def ask_table(  # noqa: PLR0913
        self,
        columns: Sequence[str],
        rows: Sequence[Row],
        sql: str,
        *,
        seconds: float,
        limit: int,
        beside: Mapping[str, tuple[Sequence[str], Sequence[Row]]] | None = None,
    ) -> Answer:
        """Run one statement on the table `result`.

        Args:
            columns: the column names of `result`.
            rows: its rows, each with as many cells as there are columns.
            sql: the statement.
            seconds: time limit.
            limit: maximum rows of the answer.
            beside: columns and rows of further tables, by name.
        """
        tables = {None: (columns, rows), **(beside or {})}
        named = {name: (unique_names(heading), held) for name, (heading, held) in tables.items()}
        for names, _ in named.values():
            if not names:
                raise QueryFailed("the result has no columns to ask about", suggestion="read it as text instead")
            if len(names) > _MOST_COLUMNS:
                raise QueryFailed(
                    f"the result has {len(names)} columns, and a table {_MOST_COLUMNS} at most",
                    suggestion="pick the columns you need by a path first",
                )
        message = {"do": "ask", "sql": sql, "rows": limit, "cell": self._limits.cell, "bytes": self._limits.bytes}

        def frames(left: float) -> Iterable[bytes]:
            deadline = anyio.current_time() + left
            for table, (names, held) in named.items():
                yield frame_message({"do": "begin", "columns": names, "table": table})
                for batch in batches(held):
                    yield frame_message({"do": "load", "rows": batch})
            yield frame_message({**message, "seconds": max(0.0, deadline - anyio.current_time())})

        try:
            return (await self._workers.ask(frames, seconds)).answer()
        except QueryFailed as error:
            tables = tuple(
                Table(name=name or "result", columns=tuple(Column(name=one, type="") for one in names))
                for name, (names, _) in named.items()
            )
            near = suggest_names(error, Structure(tables=tables), [table.name for table in tables])
            if near.options == error.options:
                raise
            raise QueryFailed(
                error.message, suggestion="use a table or column that exists, such as the options", options=near.options
            ) from None

    async def close(self) -> None:
        await self._workers.close()
