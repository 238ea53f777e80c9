"""The session file: reading, locking, appending and repairing lines.

`SessionFile` keeps the lines that were read last. Under the lock it catches up with other processes, moves damage from
a crash to a file of its own, appends whole lines in one write and replaces the file as a whole. It does not interpret
the lines.

`Files` performs every file operation, in steps as small as the operating system's, so that a test can stop between any
two of them and lose what a failing machine may lose.

`locked` takes an advisory lock on a separate file, for as long as one write or one replacement takes. The kernel
releases it when its owner dies. It is opened anew each time, so that a child process inherits only a lock that is in
use at that moment. The branch for Windows follows the documentation and is untested.

A line is JSON with the checksum of its own bytes as the last key, so that it can be checked without being written anew:
`{"v":1,"seq":7,"id":"…","ts":"…","type":"message","message":{…},"crc":"…"}`. A line of an unknown type or version is
kept as a line. `Record` and `Generation` are what lines contain: messages, and compactions that replaced some of them.

A crash or a full or failing disk may leave a last line without its end, and lines that cannot be read. A line that can
be read but has a wrong checksum was edited by hand; it stays, and `verified` reports it. The caller decides about the
rest.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from errno import EACCES, EAGAIN, EDEADLK, ENOSPC, EPERM, EROFS, ETIMEDOUT
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args
from zlib import crc32

from ullage.errors import InvalidArguments, StoreFailed, UnreadableFile
from ullage.tool import Json, JsonObject

from ..token_weights import Kind

__all__ = [
    "PATIENCE",
    "Archive",
    "Clock",
    "Draft",
    "Files",
    "Generation",
    "Header",
    "Line",
    "Pen",
    "Record",
    "SessionChanged",
    "SessionFile",
    "Sifted",
    "Stamp",
    "WindowNote",
    "compaction_line",
    "headed",
    "header_line",
    "is_ours",
    "listed",
    "locked",
    "message_line",
    "put",
    "read_line",
    "sift",
    "window_line",
]


def listed(noun: str, numbers: Sequence[int]) -> str:
    """Format a list such as `line 7` or `lines 3, 7 and 8`."""
    *most, last = map(str, numbers)
    return f"{noun}s {', '.join(most)} and {last}" if most else f"{noun} {last}"


@dataclass(frozen=True, slots=True)
class WindowNote:
    """The context window that the session ran in, from this line on."""

    tokens: int
    model: str | None = None
    """Model whose window it is; None if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """Content of the first line."""

    id: str
    """The session's id. It is part of the name of the archive folder."""
    format: str | None = None
    model: str | None = None
    window: int | None = None
    """Tokens of the model's window; None if unknown. Later lines may change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A message that is or was in the file."""

    id: str
    seq: int
    """Number of the message, from 1 and without gaps. A message written by a compaction has the number of the last
    message that it replaces."""
    message: JsonObject
    """The message in the provider's format."""
    kind: Kind = "message"
    pinned: bool = False
    generation: int = 0
    """Number of the compaction that wrote it; 0 if it was appended."""
    ts: str
    line: bytes = field(repr=False)
    """The bytes in the file, with the line break."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message to be written in place of others."""

    message: JsonObject
    kind: Kind = "message"
    pinned: bool = False
    of: str | None = None
    """Id of the record that the draft replaces, if it replaces exactly one. The draft takes over its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The archive of replaced lines."""

    file: str
    """Name of the file in the session's archive folder."""
    sha256: str
    lines: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A compaction. The file before the first one is generation 0."""

    number: int
    archive: Archive | None
    """None if the originals were not archived."""
    ids: tuple[str, ...] = field(repr=False)
    """Ids of the lines that replaced the archived ones, including those that were kept."""
    ts: str
    meta: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Data about the compaction, such as the tier and the tokens saved."""
    session: str = field(repr=False)
    """Id of the session, so that the archives can be found if the first line is lost."""


PATIENCE = 30.0
"""Seconds to wait for the lock. Replacing a very large file takes a few."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.000_2, 0.002
"""Seconds between two tries. Short, so that the gaps of a process that writes continuously are used."""
_BUSY = (EACCES, EAGAIN, EDEADLK)


@contextlib.contextmanager
def locked(path: Path, patience: float) -> Generator[None]:
    """Take the lock. Raises `TimeoutError` if another process has it for longer than `patience` seconds."""
    descriptor = _held(path, time.monotonic() + patience)
    try:
        yield
    finally:
        os.close(descriptor)


def _held(path: Path, until: float) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _wait(descriptor, until)
            if _is_still(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _wait(descriptor: int, until: float) -> None:
    pause = _FIRST_PAUSE
    while not _taken(descriptor):
        if time.monotonic() > until:
            raise TimeoutError(ETIMEDOUT, "another process holds the lock")
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _is_still(descriptor: int, path: Path) -> bool:
    """Return whether the path still leads to the locked file. Another process may have removed it during the wait."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _taken(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno not in _BUSY:
                raise
            return False
        return True

else:
    import fcntl

    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _BUSY:
                raise
            return False
        return True


class SessionChanged(StoreFailed):
    """Another process replaced the records that were to be replaced. Nothing was written."""

    code = "SESSION_CHANGED"


_VERSION = 1
_KINDS = frozenset(get_args(Kind))
_CRC = b',"crc":"%08x"}\n'
_CRC_LENGTH = len(_CRC % 0)
_ID = 16
"""Hexadecimal digits of a line's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    raw: bytes
    """The line with its line break."""
    id: str
    seq: int
    """0 if the line has no number."""
    sound: bool
    """Whether the checksum matches the bytes."""
    header: Header | None = None
    record: Record | None = None
    generation: Generation | None = None
    window: WindowNote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """Session and time of the lines to write."""

    session: str
    ts: str
    generation: int = 0
    """0 for messages that are appended."""


def header_line(header: Header, ts: str) -> Line:
    about: dict[str, Json] = {"format": header.format, "model": header.model}
    about |= {} if header.window is None else {"window": header.window}
    return _sealed({"v": _VERSION, "seq": 0, "id": header.id, "ts": ts, "type": "session", **about})


def message_line(pen: Pen, draft: Draft, *, seq: int, place: int = 0) -> Line:
    """Make the line of a message. `place` distinguishes lines that one compaction writes under the same number."""
    about: dict[str, Json] = {"type": draft.kind}
    about |= {"pinned": True} if draft.pinned else {}
    about |= {"generation": pen.generation} if pen.generation else {}
    return _identified(pen, seq, {**about, "message": dict(draft.message)}, place)


def window_line(pen: Pen, note: WindowNote, *, seq: int) -> Line:
    """Make the line of a window note. Versions that do not know such lines keep them."""
    return _identified(pen, seq, {"type": "window", "window": note.tokens, "model": note.model}, 0)


def compaction_line(generation: Generation, *, seq: int) -> Line:
    archive = generation.archive
    about: dict[str, Json] = {
        "type": "compaction",
        "session": generation.session,
        "generation": generation.number,
        "archive": None
        if archive is None
        else {"file": archive.file, "sha256": archive.sha256, "lines": archive.lines, "bytes": archive.bytes},
        "ids": list(generation.ids),
        "meta": dict(generation.meta),
    }
    return _identified(Pen(session=generation.session, ts=generation.ts), seq, about, 0)


def read_line(raw: bytes) -> Line | None:
    """Parse a line; None if it is not a session line or is incomplete."""
    try:
        fields: dict[str, Any] = json.loads(raw)
        return _read(raw, fields) if isinstance(fields.get("type"), str) else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _identified(pen: Pen, seq: int, about: Mapping[str, Json], place: int) -> Line:
    said = _json([pen.session, seq, pen.ts, place, dict(about)])
    return _sealed({"v": _VERSION, "seq": seq, "id": sha256(said).hexdigest()[:_ID], "ts": pen.ts, **about})


def _sealed(fields: Mapping[str, Json]) -> Line:
    """Make a line with its checksum, parsed from its own bytes, so that it is what a reader will see."""
    body = _json(fields)[:-1]
    raw = body + _CRC % crc32(body)
    return _read(raw, json.loads(raw))


def _json(value: Mapping[str, Json] | Sequence[Json]) -> bytes:
    try:
        return _encoded(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArguments(
            f"a message must be JSON: {error}", suggestion="give it as it would be sent to the provider"
        ) from error


def _encoded(value: Mapping[str, Json] | Sequence[Json]) -> bytes:
    """Encode as UTF-8. Lone surrogates are escaped, since they have no UTF-8 bytes."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _read(raw: bytes, fields: dict[str, Any]) -> Line:
    kind, known = fields["type"], fields.get("v") == _VERSION
    seq, said = fields.get("seq"), fields.get("id")
    identifier = said if isinstance(said, str) and said else sha256(raw).hexdigest()[:_ID]
    number = seq if isinstance(seq, int) else 0
    return Line(
        raw=raw,
        id=identifier,
        seq=number,
        sound=raw[-_CRC_LENGTH:] == _CRC % crc32(raw[:-_CRC_LENGTH]),
        header=Header(
            id=identifier,
            format=fields.get("format"),
            model=fields.get("model"),
            window=_tokens(fields.get("window")),
        )
        if kind == "session" and {"v", "crc"} <= fields.keys()
        else None,
        record=_record(raw, identifier, number, fields) if kind in _KINDS and _is_message(fields) else None,
        generation=_generation(fields) if kind == "compaction" and known else None,
        window=_window(fields) if kind in ("session", "window") else None,
    )


def _window(fields: dict[str, Any]) -> WindowNote | None:
    tokens, model = _tokens(fields.get("window")), fields.get("model")
    return None if tokens is None else WindowNote(tokens, model if isinstance(model, str) else None)


def _tokens(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _is_message(fields: dict[str, Any]) -> bool:
    """Return whether the fields are a message of this version. A newer version may use the field for something else."""
    is_object = isinstance(fields.get("message"), dict)
    if fields.get("v") == _VERSION and not is_object:
        raise TypeError("a message is an object")
    return is_object


def _record(raw: bytes, identifier: str, seq: int, fields: dict[str, Any]) -> Record:
    message: JsonObject = fields["message"]
    return Record(
        id=identifier,
        seq=seq,
        message=message,
        kind=fields["type"],
        pinned=fields.get("pinned") is True,
        generation=int(fields.get("generation") or 0),
        ts=str(fields.get("ts") or ""),
        line=raw,
    )


def _generation(fields: dict[str, Any]) -> Generation:
    archive = fields["archive"]
    return Generation(
        number=int(fields["generation"]),
        archive=None
        if archive is None
        else Archive(
            file=str(archive["file"]),
            sha256=str(archive["sha256"]),
            lines=int(archive["lines"]),
            bytes=int(archive["bytes"]),
        ),
        ids=tuple(map(str, fields["ids"])),
        ts=str(fields["ts"]),
        meta=dict(fields["meta"]),
        session=str(fields["session"]),
    )


_MODE = 0o600
_FOLDER_MODE = 0o700
_BINARY = getattr(os, "O_BINARY", 0)
"""Windows only; without it, line breaks would be changed there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Identifies the file and state that was read."""

    device: int
    inode: int
    size: int
    changed: int
    """Time of the last change, in nanoseconds."""
    mode: int

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode of the file, independent of its content."""
        return self.device, self.inode


class Files:
    """File operations on the real disk."""

    def stamp(self, path: Path) -> Stamp | None:
        """Return the file's stamp; None if it does not exist."""
        try:
            return _stamp(path.stat())
        except FileNotFoundError:
            return None

    def read(self, path: Path, start: int = 0) -> tuple[bytes, Stamp]:
        """Return the bytes from a position on, and the stamp of the file that was read."""
        with path.open("rb") as file:
            file.seek(start)
            data = file.read()
            return data, _stamp(os.fstat(file.fileno()), size=start + len(data))

    def names(self, folder: Path) -> tuple[str, ...]:
        """Return the names in a folder; empty if it does not exist."""
        try:
            return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return ()

    def make_folder(self, path: Path) -> None:
        """Make a folder if it does not exist. Its parent must exist."""
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=_FOLDER_MODE)

    def create(self, path: Path, data: bytes, mode: int = _MODE) -> None:
        """Create a file that must not exist yet, readable only by this user."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, _MODE)
        with contextlib.closing(os.fdopen(descriptor, "wb", buffering=0)) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file.fileno(), rest) :]
            if mode != _MODE:
                path.chmod(mode)

    def append(self, path: Path, data: bytes, size: int) -> None:
        """Append all data in one write after the first `size` bytes, or nothing."""
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | _BINARY)
        try:
            if os.write(descriptor, data) != len(data):
                os.ftruncate(descriptor, size)
                raise OSError(ENOSPC, os.strerror(ENOSPC))
        finally:
            os.close(descriptor)

    def sync(self, path: Path) -> None:
        """Wait until what was written to the file would survive a power cut."""
        descriptor = os.open(path, os.O_RDWR | _BINARY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_folder(self, path: Path) -> None:
        """Wait until the names in a folder would survive a power cut. No-op on Windows, which has no such operation."""
        if os.name == "nt":
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        """Replace a file atomically."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file if it exists."""
        path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self, path: Path) -> Generator[None]:
        """Take the lock, excluding every other process that takes the same one."""
        with locked(path, PATIENCE):
            yield


def put(files: Files, path: Path, data: bytes, mode: int = _MODE) -> None:
    """Write a file so that it has either its old bytes or the new ones, whenever the machine stops.

    Returns when the new bytes would survive a power cut. The caller must have the lock.
    """
    temporary = path.with_name(f"{path.name}.tmp")
    files.remove(temporary)
    try:
        files.create(temporary, data, mode)
        files.sync(temporary)
        files.replace(temporary, path)
    except OSError:
        files.remove(temporary)
        raise
    files.sync_folder(path.parent)


def _stamp(found: os.stat_result, size: int | None = None) -> Stamp:
    return Stamp(
        device=found.st_dev,
        inode=found.st_ino,
        size=found.st_size if size is None else size,
        changed=found.st_mtime_ns,
        mode=found.st_mode & 0o777,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    lines: tuple[Line, ...]
    corrupt: bytes = b""
    """The lines that cannot be read."""
    places: tuple[int, ...] = ()
    """Their line numbers, from 1."""
    rest: bytes = b""
    """The bytes behind the last line break."""

    @property
    def last(self) -> Line | None:
        """`rest` as a line, if it lacks only its line break."""
        return read_line(self.rest + b"\n") if self.rest else None

    @property
    def is_whole(self) -> bool:
        return not (self.corrupt or self.rest)


def sift(data: bytes) -> Sifted:
    *pieces, rest = data.split(b"\n")
    read = [(piece, read_line(piece + b"\n")) for piece in pieces]
    return Sifted(
        lines=tuple(line for _, line in read if line is not None),
        corrupt=b"".join(piece + b"\n" for piece, line in read if line is None),
        places=tuple(place for place, (_, line) in enumerate(read, start=1) if line is None),
        rest=rest,
    )


def is_ours(lines: Sequence[Line]) -> bool:
    """Return whether the lines are a session: the first is a header, or, if that is lost, any other has a valid
    checksum."""
    return bool(lines) and (lines[0].header is not None or any(line.sound for line in lines))


def headed(lines: Sequence[Line], header: Header, ts: str) -> tuple[Line, ...]:
    """Return the lines with a header as the first: the existing one, or a new one for the session that the lines of
    compactions name."""
    found = next((line for line in lines if line.header is not None), None)
    if found is None:
        named = next((line.generation.session for line in lines if line.generation is not None), header.id)
        found = header_line(replace(header, id=named), ts)
    return found, *(line for line in lines if line is not found)


Clock = Callable[[], datetime]

_GROUPED = timedelta(seconds=1)
"""Longest time that appended lines wait to become durable. It is checked at the next append."""
_FORBIDDEN = (EACCES, EPERM, EROFS)
_DIGITS = 12
"""Digits of a hash in the name of a file of damaged lines."""
_MENDED = {
    "torn": "{lines} was torn: its {bytes} bytes are set aside in `{file}`",
    "corrupt": "{lines} cannot be read: the {bytes} bytes are set aside in `{file}`",
}


class SessionFile:
    """The lines of a session file. The caller must prevent concurrent use."""

    def __init__(self, path: Path, files: Files, clock: Clock) -> None:
        self.path = path
        self.lines: list[Line] = []
        self.last = 0
        """Greatest number of a message."""
        self.notes: list[str] = []
        """Descriptions of the repairs."""
        self._files = files
        self._clock = clock
        self._header: Header | None = None
        """Header that was read last, or the one that was given for a file without one."""
        self._records: tuple[Record, ...] | None = None
        self._stamp: Stamp | None = None
        self._faulty = False
        """Whether what was read needs repair."""
        self._waiting: datetime | None = None
        """Time since when appended lines wait to become durable."""
        self._settled: tuple[int, int] | None = None
        """Identity of the file whose name is known to be durable."""

    def open(self, header: Header) -> None:
        """Read the file, or create it with this header."""
        self._header = header
        try:
            self._make_folders(self.path.parent)
            if not self._is_new():
                # Checked before anything is written beside a file that may not be a session.
                self._catch_up(mends=False)
            with self._files.locked(self._beside("lock")):
                self._files.remove(self._beside("tmp"))
                if self._is_new():
                    self._stamp = self._files.stamp(self.path)
                    self.swap([header_line(header, self._clock().isoformat())])
                else:
                    self._catch_up(mends=True)
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
        """Lock, catch up with and repair the file. With `afresh`, read the whole file again."""
        with _telling(self.path), self._files.locked(self._beside("lock")):
            self._stamp = None if afresh else self._stamp
            self._catch_up(mends=True)
            yield

    def refresh(self) -> None:
        """Catch up with what others wrote, without locking or repairing."""
        with _telling(self.path):
            self._catch_up(mends=False)

    def bytes(self) -> bytes:
        """Read the file's bytes now, without an incomplete last line that is just being written."""
        with _telling(self.path):
            data, _ = self._files.read(self.path)
            if not data.endswith(b"\n"):
                with contextlib.suppress(OSError), self._files.locked(self._beside("lock")):
                    data, _ = self._files.read(self.path)
            return data

    def append(self, lines: Sequence[Line], *, durable: bool) -> None:
        """Append lines. The caller must have the lock."""
        self._files.append(self.path, b"".join(line.raw for line in lines), self._now().size)
        self._take(lines)
        self._stamp = self._now()
        at = self._clock()
        self._waiting = self._waiting or at
        if durable or at - self._waiting >= _GROUPED:
            self.settle()

    @property
    def is_waiting(self) -> bool:
        """Whether appended lines are not durable yet."""
        return self._waiting is not None

    def settle(self) -> None:
        """Wait until everything that was appended would survive a power cut. The caller must have the lock."""
        if self._waiting is not None:
            self._files.sync(self.path)
            self._waiting = None
        # A process may have died after it replaced the file and before its name became durable.
        if self._settled != self._now().identity:
            self._files.sync_folder(self.path.parent)
            self._settled = self._now().identity

    def swap(self, lines: Sequence[Line]) -> None:
        """Replace the whole file atomically. The caller must have the lock."""
        mode = {} if self._stamp is None else {"mode": self._stamp.mode}
        put(self._files, self.path, b"".join(line.raw for line in lines), **mode)
        self._take(lines, anew=True)
        self._stamp, self._faulty = self._now(), False
        self._waiting, self._settled = None, self._stamp.identity

    def _is_there(self) -> bool:
        with contextlib.suppress(OSError):
            return self._files.stamp(self.path) is not None
        return False

    def _is_new(self) -> bool:
        stamp = self._files.stamp(self.path)
        return stamp is None or stamp.size == 0

    def _make_folders(self, folder: Path) -> None:
        """Make the folder and its parents, and make their names durable."""
        if self._files.stamp(folder) is None:
            self._make_folders(folder.parent)
            self._files.make_folder(folder)
            self._files.sync_folder(folder.parent)

    def _catch_up(self, *, mends: bool) -> None:
        if self._now() != self._stamp:
            sifted, stamp = self._grown() or self._whole()
            # The bytes behind the last line break may still be being written.
            self._stamp = replace(stamp, size=stamp.size - len(sifted.rest))
            self._faulty = not sifted.is_whole or not self.lines or self.lines[0].header is None
        if mends and self._faulty:
            self._mend()

    def _grown(self) -> tuple[Sifted, Stamp] | None:
        """Read what is new in a file that has only grown; None if it is another file or was changed."""
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
                f"`{self.path}` is not a session of Ullage's and is left as it is", suggestion="give another path"
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
        """Move damaged bytes to separate files and continue without them."""
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
        f"the session `{path}` cannot be read or written: {reason}", suggestion="check the file and its folder"
    )
