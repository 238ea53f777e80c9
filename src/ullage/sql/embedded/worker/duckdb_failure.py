"""What does an error of DuckDB mean to whoever asked?"""

import os.path
from collections.abc import Generator
from contextlib import contextmanager

import duckdb

from .failure import Failure

__all__ = ["failing_as_duckdb"]

_ADVICE = "\n\nPossible solutions"
"""What follows it speaks of settings that cannot be changed here."""


@contextmanager
def failing_as_duckdb(path: str) -> Generator[None]:
    try:
        yield
    except duckdb.Error as error:
        raise _failure(error, path) from error


def _failure(error: duckdb.Error, path: str) -> Failure:
    text = str(error).replace(path, os.path.basename(path))  # noqa: PTH119 - as it was given, whatever it is
    code = type(error).__name__
    if isinstance(error, duckdb.InterruptException):
        return Failure("deadline", "time was up", code=code)
    if isinstance(error, duckdb.OutOfMemoryException):
        return Failure("memory", text.partition(_ADVICE)[0], code=code)
    if "Could not set lock on file" in text:
        return Failure("source", "another program has it open for writing; DuckDB lets nobody read it then", code=code)
    if isinstance(error, (duckdb.IOException, duckdb.SerializationException, duckdb.FatalException)):
        return Failure("source", text, code=code)
    return Failure("query", text, code=code)
