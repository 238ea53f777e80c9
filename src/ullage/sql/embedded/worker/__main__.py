"""Entry point of the worker process.

Run by its path. Takes the two pipes for itself before anything else is loaded, so that whatever an engine prints falls
into nothing instead of into the middle of an answer.
"""

import importlib
import os
import sys
from types import ModuleType

_NAME = "ullage_worker"


def _take(number: int, flags: int) -> int:
    """A private copy of a descriptor, whose old number leads nowhere from here on."""
    taken = os.dup(number)
    nothing = os.open(os.devnull, flags)
    os.dup2(nothing, number)
    os.close(nothing)
    return taken


def _know_siblings() -> None:
    """The files beside this one become a package that is found by nothing but its path."""
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would be loaded for this alone
    package = ModuleType(_NAME)
    package.__path__ = [here]
    sys.modules[_NAME] = package


def _load(module: str) -> ModuleType:
    return importlib.import_module(f"{_NAME}.{module}")


def main() -> None:
    incoming, outgoing = _take(0, os.O_RDONLY), _take(1, os.O_WRONLY)
    _know_siblings()
    source, sink = os.fdopen(incoming, "rb", closefd=False), os.fdopen(outgoing, "wb", closefd=False)
    confine = _load("confine").confine
    _load("worker_loop").serve(source, sink, confine=confine, when_alone=_end)
    # By itself it would wait for the thread that still listens for a question.
    _end()


def _end() -> None:
    os._exit(0)


if __name__ == "__main__":
    main()
