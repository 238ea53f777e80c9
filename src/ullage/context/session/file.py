"""What is in the session's file now, and how does it change?

Holds the lines that were read last. Under the lock it brings itself up to date, sets aside what a crash left torn,
appends whole lines in one write and swaps the file as a whole. What the lines mean is not known here.
"""

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from errno import EACCES, EPERM, EROFS
from hashlib import sha256
from pathlib import Path

from ullage.errors import StoreFailed, UnreadableFile

from .files import Files, Stamp, put
from .line import Line, header_line
from .listed import listed
from .mending import Sifted, headed, is_ours, sift
from .record import Header, Record

__all__ = ["Clock", "SessionFile"]

Clock = Callable[[], datetime]

_GROUPED = timedelta(seconds=1)
"""For so long may appended lines wait to be made durable; looked at when the next ones come."""
_FORBIDDEN = (EACCES, EPERM, EROFS)
_DIGITS = 12
"""Of a hash, in the name of what was set aside."""
_MENDED = {
    "torn": "{lines} was torn: its {bytes} bytes are set aside in `{file}`",
    "corrupt": "{lines} cannot be read: the {bytes} bytes are set aside in `{file}`",
}


class SessionFile:
    """One at a time: whoever holds it sees to that."""

    def __init__(self, path: Path, files: Files, clock: Clock) -> None:
        self.path = path
        self.lines: list[Line] = []
        self.last = 0
        """The greatest number of a message."""
        self.notes: list[str] = []
        """What was mended."""
        self._files = files
        self._clock = clock
        self._header: Header | None = None
        """As it was read last; as it was given, for a file that has none."""
        self._records: tuple[Record, ...] | None = None
        self._stamp: Stamp | None = None
        self._faulty = False
        """Whether there is something to be mended in what was read."""
        self._waiting: datetime | None = None
        """Since when appended lines wait to be made durable."""
        self._settled: tuple[int, int] | None = None
        """The file whose name is known to be durable."""

    def open(self, header: Header) -> None:
        """Reads what is there, or begins a new file with that header."""
        self._header = header
        try:
            self._begin(header)
        except OSError as error:
            if error.errno not in _FORBIDDEN or not self._is_there():
                raise _failed(self.path, error) from error
            self.notes.append(f"`{self.path}` is only read: {error.strerror}")
            self.refresh()

    @property
    def header(self) -> Header:
        assert self._header is not None, "a file is opened before it is asked"
        return self._header

    @property
    def records(self) -> tuple[Record, ...]:
        if self._records is None:
            self._records = tuple(line.record for line in self.lines if line.record is not None)
        return self._records

    @contextlib.contextmanager
    def locked(self, *, afresh: bool = False) -> Generator[None]:
        """The file up to date and mended, and nobody else writing; read as a whole once more where that is wished."""
        with _telling(self.path), self._files.locked(self._beside("lock")):
            self._stamp = None if afresh else self._stamp
            self._catch_up(mends=True)
            yield

    def refresh(self) -> None:
        """Takes over what others wrote. Waits for nobody, and mends nothing."""
        with _telling(self.path):
            self._catch_up(mends=False)

    def bytes(self) -> bytes:
        """As they lie there, whatever was read before; without half a line that is just being written."""
        with _telling(self.path):
            data, _ = self._files.read(self.path)
            if not data.endswith(b"\n"):
                with contextlib.suppress(OSError), self._files.locked(self._beside("lock")):
                    data, _ = self._files.read(self.path)
            return data

    def append(self, lines: Sequence[Line], *, durable: bool) -> None:
        """For whoever holds the lock."""
        self._files.append(self.path, b"".join(line.raw for line in lines), self._now().size)
        self._take(lines)
        self._stamp = self._now()
        at = self._clock()
        self._waiting = self._waiting or at
        if durable or at - self._waiting >= _GROUPED:
            self.settle()

    @property
    def is_waiting(self) -> bool:
        """Whether something that was appended is not durable yet."""
        return self._waiting is not None

    def settle(self) -> None:
        """Returns when all that was appended would survive a power cut. For whoever holds the lock."""
        if self._waiting is not None:
            self._files.sync(self.path)
            self._waiting = None
        # Another process may have died between swapping the file in and making its name durable.
        if self._settled != self._now().identity:
            self._files.sync_folder(self.path.parent)
            self._settled = self._now().identity

    def swap(self, lines: Sequence[Line]) -> None:
        """The whole file from one moment to the next. For whoever holds the lock."""
        mode = {} if self._stamp is None else {"mode": self._stamp.mode}
        put(self._files, self.path, b"".join(line.raw for line in lines), **mode)
        self._take(lines, anew=True)
        self._stamp, self._faulty = self._now(), False
        self._waiting, self._settled = None, self._stamp.identity

    def _begin(self, header: Header) -> None:
        self._make_folders(self.path.parent)
        if not self._is_new():
            # Before anything is laid beside a file that may be somebody else's.
            self._catch_up(mends=False)
        with self._files.locked(self._beside("lock")):
            self._files.remove(self._beside("tmp"))
            if self._is_new():
                self._stamp = self._files.stamp(self.path)
                self.swap([header_line(header, self._clock().isoformat())])
            else:
                self._catch_up(mends=True)

    def _is_there(self) -> bool:
        with contextlib.suppress(OSError):
            return self._files.stamp(self.path) is not None
        return False

    def _is_new(self) -> bool:
        stamp = self._files.stamp(self.path)
        return stamp is None or stamp.size == 0

    def _make_folders(self, folder: Path) -> None:
        """Their names are as durable as what will lie in them."""
        if self._files.stamp(folder) is None:
            self._make_folders(folder.parent)
            self._files.make_folder(folder)
            self._files.sync_folder(folder.parent)

    def _catch_up(self, *, mends: bool) -> None:
        if self._now() != self._stamp:
            sifted, stamp = self._grown() or self._whole()
            # What stands behind the last line break may still be being written.
            self._stamp = replace(stamp, size=stamp.size - len(sifted.rest))
            self._faulty = not sifted.is_whole or not self.lines or self.lines[0].header is None
        if mends and self._faulty:
            self._mend()

    def _grown(self) -> tuple[Sifted, Stamp] | None:
        """Takes over what is new in a file that has only grown; None where it is another, or was changed."""
        known, now = self._stamp, self._now()
        if known is None or not self.lines or now.identity != known.identity or now.size <= known.size:
            return None
        last = self.lines[-1].raw
        data, stamp = self._files.read(self.path, known.size - len(last))
        if stamp.identity != known.identity or not data.startswith(last):
            return None
        sifted = sift(data[len(last) :])
        self._take(sifted.lines)
        return sifted, stamp

    def _whole(self) -> tuple[Sifted, Stamp]:
        data, stamp = self._files.read(self.path)
        sifted = sift(data)
        if not is_ours((*sifted.lines, *filter(None, [sifted.last]))):
            raise UnreadableFile(
                f"`{self.path}` is no session of Ullage's and is left as it is", suggestion="give another path"
            )
        self._take(sifted.lines, anew=True)
        return sifted, stamp

    def _take(self, lines: Sequence[Line], *, anew: bool = False) -> None:
        if anew:
            self.lines, self.last = [], 0
        self.lines += lines
        self.last = max(self.last, *(line.seq for line in lines), 0)
        self._header = next((line.header for line in lines if line.header is not None), self._header)
        self._records = None

    def _mend(self) -> None:
        """Sets aside what is no line, and goes on without it."""
        sifted, self._stamp = self._whole()
        torn = b"" if sifted.last else sifted.rest
        for kind, data in (("torn", torn), ("corrupt", sifted.corrupt)):
            if data:
                aside = self._beside(f"{kind}-{sha256(data).hexdigest()[:_DIGITS]}")
                put(self._files, aside, data)
                named = listed("line", sifted.places) if kind == "corrupt" else "the last line"
                self.notes.append(_MENDED[kind].format(lines=named, bytes=len(data), file=aside.name))
        lines = (*sifted.lines, *filter(None, [sifted.last]))
        if not any(line.header for line in lines):
            self.notes.append("the first line was lost and is written anew")
        self.swap(headed(lines, self.header, self._clock().isoformat()))

    def _now(self) -> Stamp:
        stamp = self._files.stamp(self.path)
        if stamp is None:
            raise StoreFailed(f"the session's file `{self.path}` is gone", suggestion="open the session anew")
        return stamp

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{suffix}")


@contextlib.contextmanager
def _telling(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise _failed(path, error) from error


def _failed(path: Path, error: OSError) -> StoreFailed:
    reason = error.strerror or type(error).__name__
    return StoreFailed(
        f"the session `{path}` cannot be read or written: {reason}", suggestion="see to the file and its folder"
    )
