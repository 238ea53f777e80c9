"""The program of the worker process that counts long texts (`worker`).

A request is the vocabulary's name and a line end, then the text in UTF-8 (unpaired surrogates included) in parts, each
after its length in four bytes, then a length of zero. An answer is the count in eight bytes, or -1 for a failure.
"""

import os
import signal
from collections.abc import Callable
from typing import IO

from .engine import default_engine

__all__ = ["answer_questions", "main"]


def answer_questions(source: IO[bytes], sink: IO[bytes], count: Callable[[str, str], int]) -> None:
    """Answer every request until there are no more. `count` takes the name of a vocabulary and a text."""
    while line := source.readline():
        parts = list[bytes]()
        while size := int.from_bytes(source.read(4), "little"):
            parts.append(source.read(size))
        try:
            counted = count(line[:-1].decode(), b"".join(parts).decode("utf-8", "surrogatepass"))
        except Exception:  # noqa: BLE001 - the text is then counted by the process that asked, which meets the error
            counted = -1
        sink.write(counted.to_bytes(8, "little", signed=True))
        sink.flush()


def main() -> None:  # pragma: no cover - in a process of its own
    """Answer requests from standard input. Anything else that is printed is discarded, so that it cannot mix with the
    answers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is meant for the gateway, whose end ends this process too
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    engine = default_engine(begins_short=False)
    answer_questions(source, sink, lambda vocabulary, text: engine.counter(vocabulary)(text))
