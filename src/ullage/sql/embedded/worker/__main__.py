"""Entry point of the worker process.

It is run by its path. It duplicates the two pipes before anything else is loaded, so that any output of an engine is
discarded instead of corrupting an answer.
"""

import importlib
import os
import sys
from types import ModuleType

_NAME = "ullage_worker"


def _take(number: int, flags: int) -> int:
    """Return a private duplicate of a descriptor, and redirect the old number to the null device."""
    taken = os.dup(number)
    nothing = os.open(os.devnull, flags)
    os.dup2(nothing, number)
    os.close(nothing)
    return taken


def main() -> None:
    incoming, outgoing = _take(0, os.O_RDONLY), _take(1, os.O_WRONLY)
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would be loaded for this alone
    package = ModuleType(_NAME)
    package.__path__ = [here]
    sys.modules[_NAME] = package
    source, sink = os.fdopen(incoming, "rb", closefd=False), os.fdopen(outgoing, "wb", closefd=False)
    loop = importlib.import_module(f"{_NAME}.worker_loop")
    loop.serve(source, sink, confine=loop.confine, when_alone=_end)
    # A normal exit would wait for the thread that still reads from the pipe.
    _end()


def _end() -> None:
    os._exit(0)


if __name__ == "__main__":
    main()
