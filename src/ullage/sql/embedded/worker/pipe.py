"""How do a worker and whoever started it talk?

In frames: four bytes that say how many follow, then JSON. A thread of its own reads, so that the end of the other side
is noticed in the middle of a statement; the engines let it run while they work.
"""

import json
import queue
import struct
import threading
from collections.abc import Callable
from typing import BinaryIO

from .asked import Message

__all__ = ["Pipe"]

_LENGTH = struct.Struct(">I")
_AHEAD = 4
"""Frames that are read before they are wanted; more would pile up in memory."""


class Pipe:
    def __init__(self, source: BinaryIO, sink: BinaryIO, when_alone: Callable[[], None]) -> None:
        self._source = source
        self._sink = sink
        self._when_alone = when_alone
        self._waiting: queue.Queue[Message | None] = queue.Queue(_AHEAD)
        threading.Thread(target=self._read, daemon=True).start()

    def receive(self, patience: float | None = None) -> Message | None:
        """None where the other side has gone, or has said nothing for so many seconds."""
        try:
            return self._waiting.get(timeout=patience)
        except queue.Empty:
            return None

    def send(self, frame: bytes) -> None:
        self._sink.write(_LENGTH.pack(len(frame)) + frame)
        self._sink.flush()

    def _read(self) -> None:
        while (message := self._next()) is not None:
            self._waiting.put(message)
        self._when_alone()
        self._waiting.put(None)

    def _next(self) -> Message | None:
        head = self._source.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return None
        length: int = _LENGTH.unpack(head)[0]
        body = self._source.read(length)
        return None if len(body) < length else json.loads(body)
