"""Runs the statements that the parent process sends, one after the other, in a confined process.

The first message names the file to read and the memory limit; each later one is a request. After every answer the
connection is closed, and with it anything that a statement could have left behind.

`confine` limits memory, the size of written files, core dumps and priority. Windows has no such limits (untested
there). macOS does not enforce the one on memory; each engine's own limit remains.
"""

import contextlib
import os
import sys
from collections.abc import Callable
from typing import BinaryIO, Protocol

from .worker_protocol import Failure, Pipe, Source, encode_message

__all__ = ["confine", "serve"]

_RESERVED = 2 << 30
"""Address space that DuckDB reserves without using it, beyond its memory limit."""

_NICE = 5


def confine(*, memory: int, file_bytes: int) -> None:
    """Limit this process's memory, written files, core dumps and priority."""
    if sys.platform == "win32":
        return
    import resource

    os.nice(_NICE)
    for limit, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_DATA, memory),
        (resource.RLIMIT_AS, memory + _RESERVED),
    ):
        # Nothing to do if the limit is already lower, or the system does not support it.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(limit, (value, value))


class Confine(Protocol):
    def __call__(self, *, memory: int, file_bytes: int) -> None: ...


def serve(source: BinaryIO, sink: BinaryIO, *, confine: Confine, when_alone: Callable[[], None]) -> None:
    pipe = Pipe(source, sink, when_alone)
    hello = pipe.receive()
    if hello is None:
        return
    try:
        if hello["kind"] == "sqlite":
            from .sqlite_worker import sqlite_file

            database = sqlite_file(hello["path"], uri=hello["uri"], memory=hello["memory"], within=hello.get("within"))
        elif hello["kind"] == "table":
            from .sqlite_worker import SqliteTable

            database = SqliteTable(memory=hello["memory"])
        else:
            if hello["packages"] is not None and hello["packages"] not in sys.path:
                sys.path.append(hello["packages"])
            try:
                from .duckdb_worker import duckdb_file
            except ModuleNotFoundError as error:
                raise Failure("source", 'DuckDB is not installed: pip install "ullage[duckdb]"') from error
            database = duckdb_file(hello["path"], memory=hello["memory"], within=hello.get("within"))
    except Failure as failure:
        pipe.send(_encode_failure(failure))
        return
    confine(memory=hello["memory"], file_bytes=database.file_bytes)
    _answer_requests(pipe, database, patience=hello["idle"])
    pipe.send(encode_message({"bye": True}))


def _answer_requests(pipe: Pipe, database: Source, *, patience: float) -> None:
    while (message := pipe.receive(patience)) is not None:
        send = pipe.send
        try:
            match message["do"]:
                case "ask":
                    database.ask(message, send)
                case "structure":
                    send(encode_message({"value": database.structure(message)}))
                case "functions":
                    send(encode_message({"value": database.functions(message)}))
                case _:
                    database.take(message)
        except Failure as failure:
            send(_encode_failure(failure))
            if failure.kind == "memory":
                return
        except MemoryError:
            send(_encode_failure(Failure("memory", "the question needs more memory than there is for one")))
            return
        except Exception as error:  # noqa: BLE001 - an unforeseen statement must not end the process
            send(_encode_failure(Failure("query", f"{type(error).__name__}: {error}")))


def _encode_failure(failure: Failure) -> bytes:
    return encode_message({"failed": failure.kind, "code": failure.code, "text": failure.text})
