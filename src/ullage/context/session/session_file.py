"""The session file: reading, locking, appending and repairing lines.

Holds the lines that were read last. Under the lock it brings itself up to date, sets aside what a crash left torn,
appends whole lines in one write and swaps the file as a whole. What the lines mean is not known here.

Every one of them goes through here, in steps as small as the operating system's, so that a test can stop between any
two of them and lose what a failing machine may lose. What they are for, others know.

An advisory lock on a file of its own, held for as long as one write or one swap takes. The kernel lets go of it when
its holder dies, however that dies. It is opened anew each time, so that a child of the process inherits none that is
not just held.

The branch for Windows is written by the book and untested.

JSON with the checksum of its own bytes as the last key, so that a line can be checked without being written anew:
`{"v":1,"seq":7,"id":"…","ts":"…","type":"message","message":{…},"crc":"…"}`. A line of a type or version that is not
known here is a line all the same.

The values that its lines stand for: messages, and the compactions by which some of them were let go. How they are
written, `line` knows.

What a crash, a full disk or a failing one may leave: a last line without its end, and lines that cannot be read. A line
that reads but has another checksum was written by somebody's hand and stays; `verifying` tells of it. What becomes of
the rest, whoever asks decides.
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
    """`line 7`, `lines 3, 7 and 8`."""
    *most, last = map(str, numbers)
    return f"{noun}s {', '.join(most)} and {last}" if most else f"{noun} {last}"


@dataclass(frozen=True, slots=True)
class WindowNote:
    """The window that the session ran in, from this line on."""

    tokens: int
    model: str | None = None
    """Whose window it was; None where nobody said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the first line says."""

    id: str
    """The session's, which names the folder of its archives."""
    format: str | None = None
    model: str | None = None
    window: int | None = None
    """Tokens that the model's window holds; None where nobody said. Later lines may say otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A message that is in the file, or was."""

    id: str
    seq: int
    """The number of the message, from 1 and without gaps. What a compaction wrote has the number of the last message
    that it stands for."""
    message: JsonObject
    """As the provider's format writes it."""
    kind: Kind = "message"
    pinned: bool = False
    generation: int = 0
    """The compaction that wrote it; 0 where it was appended."""
    ts: str
    line: bytes = field(repr=False)
    """The bytes that stand in the file, line break included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message that is to stand where others stood."""

    message: JsonObject
    kind: Kind = "message"
    pinned: bool = False
    of: str | None = None
    """The id of the one record that it stands for, where it is one: the draft takes over its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Where the replaced lines lie."""

    file: str
    """Its name in the session's folder of archives."""
    sha256: str
    lines: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A compaction. The file as it was before the first one is generation 0."""

    number: int
    archive: Archive | None
    """None where the originals were not to be kept."""
    ids: tuple[str, ...] = field(repr=False)
    """Of the lines that stand where the archived ones stood, those that were kept as they are among them."""
    ts: str
    meta: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """What the compactor wants to be known of it: the tier, what was won."""
    session: str = field(repr=False)
    """The id of the session, so that a lost first line does not cost the archives."""


PATIENCE = 30.0
"""Seconds; a swap of a very large file takes a few."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.000_2, 0.002
"""Seconds between two tries. Short, or somebody who writes all the time would leave no gap that is met."""
_BUSY = (EACCES, EAGAIN, EDEADLK)


@contextlib.contextmanager
def locked(path: Path, patience: float) -> Generator[None]:
    """Raises `TimeoutError` where somebody else holds it for longer than that."""
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
    """Whether others find the same file there: somebody may have tidied it away while we waited."""
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
    """What was to be replaced is no longer there as it was read: somebody else was faster. Nothing was written."""

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
    """With its line break."""
    id: str
    seq: int
    """0 where it says none."""
    sound: bool
    """Whether the checksum is that of the bytes."""
    header: Header | None = None
    record: Record | None = None
    generation: Generation | None = None
    window: WindowNote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """Who writes, and when."""

    session: str
    ts: str
    generation: int = 0
    """0 for messages that are appended."""


def header_line(header: Header, ts: str) -> Line:
    about: dict[str, Json] = {"format": header.format, "model": header.model}
    about |= {} if header.window is None else {"window": header.window}
    return _sealed({"v": _VERSION, "seq": 0, "id": header.id, "ts": ts, "type": "session", **about})


def message_line(pen: Pen, draft: Draft, *, seq: int, place: int = 0) -> Line:
    """`place` tells apart what one compaction writes under one number."""
    about: dict[str, Json] = {"type": draft.kind}
    about |= {"pinned": True} if draft.pinned else {}
    about |= {"generation": pen.generation} if pen.generation else {}
    return _identified(pen, seq, {**about, "message": dict(draft.message)}, place)


def window_line(pen: Pen, note: WindowNote, *, seq: int) -> Line:
    """A version that does not know such lines keeps them."""
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
    """None where it is none of ours, or not whole."""
    try:
        fields: dict[str, Any] = json.loads(raw)
        return _read(raw, fields) if isinstance(fields.get("type"), str) else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _identified(pen: Pen, seq: int, about: Mapping[str, Json], place: int) -> Line:
    said = _json([pen.session, seq, pen.ts, place, dict(about)])
    return _sealed({"v": _VERSION, "seq": seq, "id": sha256(said).hexdigest()[:_ID], "ts": pen.ts, **about})


def _sealed(fields: Mapping[str, Json]) -> Line:
    """As it will be read, so that nobody goes by what he meant to write."""
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
    """Half a surrogate has no bytes in UTF-8; escaped, it survives."""
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
    """A newer version may write something else there; this one does not."""
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
"""Windows' own; without it, line breaks would be changed there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Tells whether a file is still the one that was read."""

    device: int
    inode: int
    size: int
    changed: int
    """Nanoseconds, as the file system keeps them."""
    mode: int

    @property
    def identity(self) -> tuple[int, int]:
        """Which file it is, whatever stands in it."""
        return self.device, self.inode


class Files:
    """The disk as it is."""

    def stamp(self, path: Path) -> Stamp | None:
        """None where there is no such file."""
        try:
            return _stamp(path.stat())
        except FileNotFoundError:
            return None

    def read(self, path: Path, start: int = 0) -> tuple[bytes, Stamp]:
        """What stands there from a place on, and in which file that was."""
        with path.open("rb") as file:
            file.seek(start)
            data = file.read()
            return data, _stamp(os.fstat(file.fileno()), size=start + len(data))

    def names(self, folder: Path) -> tuple[str, ...]:
        """Of what lies in it; none where there is no such folder."""
        try:
            return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return ()

    def make_folder(self, path: Path) -> None:
        """One that is there is no error; the folder around it must be."""
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=_FOLDER_MODE)

    def create(self, path: Path, data: bytes, mode: int = _MODE) -> None:
        """A file that must not be there yet, seen by nobody else."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, _MODE)
        with contextlib.closing(os.fdopen(descriptor, "wb", buffering=0)) as file:
            _write_all(file.fileno(), data)
            if mode != _MODE:
                path.chmod(mode)

    def append(self, path: Path, data: bytes, size: int) -> None:
        """All of it in one write behind the first `size` bytes, or nothing."""
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | _BINARY)
        try:
            if os.write(descriptor, data) != len(data):
                os.ftruncate(descriptor, size)
                raise OSError(ENOSPC, os.strerror(ENOSPC))
        finally:
            os.close(descriptor)

    def sync(self, path: Path) -> None:
        """Returns when what was written to the file would survive a power cut."""
        descriptor = os.open(path, os.O_RDWR | _BINARY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_folder(self, path: Path) -> None:
        """The same for the names in a folder; Windows knows no such thing."""
        if os.name == "nt":
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        """From one moment to the next."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """One that is not there is no error."""
        path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self, path: Path) -> Generator[None]:
        """Holds everybody else off who asks for the same lock."""
        with locked(path, PATIENCE):
            yield


def put(files: Files, path: Path, data: bytes, mode: int = _MODE) -> None:
    """The file is what it was, or has these bytes and nothing else, whenever the machine stops.

    Returns when it would survive a power cut. For whoever holds the lock.
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


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    lines: tuple[Line, ...]
    corrupt: bytes = b""
    """The lines that cannot be read."""
    places: tuple[int, ...] = ()
    """Theirs, from 1."""
    rest: bytes = b""
    """What stands behind the last line break."""

    @property
    def last(self) -> Line | None:
        """The rest, where it is a line that lacks only its line break."""
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
    """Whether a file is a session: its first line says so, or, where that is lost, the checksum of any other does."""
    return bool(lines) and (lines[0].header is not None or any(line.sound for line in lines))


def headed(lines: Sequence[Line], header: Header, ts: str) -> tuple[Line, ...]:
    """The same with a header as the first line: the one that is there, or a new one for the session that the lines
    of compactions name."""
    found = next((line for line in lines if line.header is not None), None)
    if found is None:
        named = next((line.generation.session for line in lines if line.generation is not None), header.id)
        found = header_line(replace(header, id=named), ts)
    return found, *(line for line in lines if line is not found)


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
