"""`Session`: a conversation in a file that several processes may append to.

A session is a file of lines, appended to by any number of processes. A compaction lays the lines that it lets go
into an archive and then swaps the file as a whole; whenever the machine stops, there is the old file or the new
one. What is let go, and when, is decided elsewhere.

Everything here blocks, for as long as a disk takes: call it in a thread where an event loop must not wait. Safe between
threads.

Reads each archive once, when it is first asked for, and leaves out what is active: an archive also holds what stayed,
what a compaction that came too late did not replace, and what was brought back. For one thread at a time.
"""

import contextlib
import json
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from types import TracebackType

from ullage.errors import InvalidArguments, StoreFailed, UnreadableRequest
from ullage.messages import Format, Message, Text, detect_messages, read_message
from ullage.tool import Json, JsonObject

from ..token_weights import Kind
from .archive import (
    Archives,
    Unwound,
    Value,
    Verified,
    accounted,
    composed,
    find_region,
    generation_of,
    narrowed,
    state_at,
    unwind,
    verified,
)
from .recall import LetGo, Recalled, Recollection
from .session_file import (
    Clock,
    Draft,
    Files,
    Generation,
    Header,
    Line,
    Pen,
    Record,
    SessionChanged,
    SessionFile,
    WindowNote,
    message_line,
    sift,
    window_line,
)

__all__ = ["Memory", "Session"]


class Memory:
    def __init__(self, archives: Archives, format: Format | None, model: str | None) -> None:  # noqa: A002
        self._archives = archives
        self._format = format
        self._model = model
        self._seen = set[str]()
        """Names of archives."""
        self._archived: dict[str, LetGo] = {}
        """Originals that lie in archives."""
        self._recollection = Recollection()

    def of(self, active: Sequence[Record]) -> Recollection:
        """What was let go, given what is active."""
        self._look(active)
        present = {record.id for record in active}
        gone = {name: found for name, found in self._archived.items() if name not in present}
        self._recollection.hold(gone, (self._message(record) for record in active))
        return self._recollection

    def _look(self, active: Sequence[Record]) -> None:
        """The latest generation that has a message in its archive is the one that let it go."""
        found: dict[str, tuple[Record, int]] = {}
        for kept in self._archives.kept():
            if not kept.whole and kept.name not in self._seen:
                self._seen.add(kept.name)
                originals = (line.record for line in self._archives.read(kept) if line.record is not None)
                found |= {record.id: (record, kept.generation) for record in originals if not record.generation}
        if self._format is None and found:
            natives = (record.message for record in (*(record for record, _ in found.values()), *active))
            self._format = detect_messages(natives, model=self._model)
        for record, generation in found.values():
            self._archived[record.id] = LetGo(
                id=record.id, number=record.seq, message=self._message(record), generation=generation
            )

    def _message(self, record: Record) -> Message:
        """One that cannot be read is searched as the JSON that it is."""
        try:
            return read_message(record.message, self._format or Format.ULLAGE)
        except UnreadableRequest:
            return Message(role="user", parts=(Text(json.dumps(record.message, ensure_ascii=False)),))


def _now() -> datetime:
    return datetime.now(UTC)


class Session:
    """Open one with `Session.open`."""

    def __init__(self, file: SessionFile, archives: Archives, *, archive: bool, clock: Clock) -> None:
        self._file = file
        self._archives = archives
        self._archive = archive
        self._clock = clock
        self._lock = RLock()
        self._memory = Memory(archives, self.format, self.model)
        self._remembering = RLock()
        self._accounted = frozenset[int]()
        """Numbers of messages that are not active and are not lost for that."""
        self._missed = frozenset[int]()
        """Those that were looked for in the archives and are not there."""

    @classmethod
    def open(  # noqa: PLR0913 - all but the path are rarely given
        cls,
        path: str | os.PathLike[str],
        *,
        format: Format | None = None,  # noqa: A002
        model: str | None = None,
        window: int | None = None,
        archive: bool = True,
        clock: Clock = _now,
        files: Files | None = None,
    ) -> "Session":
        """Opens the session, or begins one; `format`, `model` and `window` are written down when it is begun.

        What a crash left torn is mended, and `notes` tell of it. Without `archive`, what is let go is gone. Raises
        `UnreadableFile` for a file that is no session, `StoreFailed` where nothing can be read or begun.
        """
        disk = files or Files()
        file = SessionFile(Path(os.path.realpath(path)), disk, clock)
        file.open(Header(id=uuid.uuid4().hex[:16], format=format, model=model, window=window))
        known = file.header.format
        if format is not None and known is not None and known != format:
            raise InvalidArguments(
                f"the messages of `{path}` are in the format `{known}`, not `{format}`",
                suggestion="leave the format out, or begin another session",
            )
        archives = Archives(disk, file.path, file.header.id)
        if archives.is_untidy():
            with contextlib.suppress(StoreFailed), file.locked():
                archives.tidy()
        return cls(file, archives, archive=archive, clock=clock)

    @property
    def path(self) -> Path:
        return self._file.path

    @property
    def id(self) -> str:
        return self._file.header.id

    @property
    def format(self) -> Format | None:
        """What the messages are written in; None where nobody said, or where it is not known here."""
        said = self._file.header.format
        return Format(said) if said in tuple(Format) else None

    @property
    def model(self) -> str | None:
        return self._file.header.model

    def window(self, model: str | None = None) -> int | None:
        """Tokens of the window that the session last ran in with that model; None where nobody noted one."""
        with self._lock:
            notes = (line.window for line in reversed(self._file.lines) if line.window is not None)
            return next((note.tokens for note in notes if model is None or note.model in (None, model)), None)

    def note_window(self, tokens: int, model: str | None = None) -> None:
        """Writes down the window that the session runs in from now on, where it is not what was noted last."""
        if self.window(model) == tokens:
            return
        with self._lock, self._file.locked():
            pen = Pen(session=self.id, ts=self._clock().isoformat())
            self._file.append([window_line(pen, WindowNote(tokens, model), seq=self._file.last)], durable=False)

    @property
    def keeps(self) -> bool:
        """Whether what is let go is kept, and so can be found again."""
        return self._archive

    @property
    def notes(self) -> tuple[str, ...]:
        """What was mended, in sentences."""
        return tuple(self._file.notes)

    @property
    def records(self) -> tuple[Record, ...]:
        """What is active now, as far as this process has seen. The same tuple as long as nothing has changed."""
        with self._lock:
            return self._file.records

    @property
    def generation(self) -> int:
        """How often something was let go."""
        with self._lock:
            return generation_of(self._file.lines)

    def refresh(self) -> tuple[Record, ...]:
        """What is active now, with what other processes wrote."""
        with self._lock:
            self._file.refresh()
            return self._file.records

    def append(
        self, messages: Sequence[JsonObject], *, pinned: bool = False, kind: Kind = "message", durable: bool = False
    ) -> tuple[Record, ...]:
        """Puts messages at the end, in one write. They outlive the process when this returns, and a power cut where
        that is wished; otherwise within a second of the next message, or when the session is closed."""
        drafts = [Draft(message=message, kind=kind, pinned=pinned) for message in messages]
        if not drafts:
            return ()
        with self._lock, self._file.locked():
            pen = Pen(session=self.id, ts=self._clock().isoformat())
            lines = [message_line(pen, one, seq=seq) for seq, one in enumerate(drafts, start=self._file.last + 1)]
            self._file.append(lines, durable=durable)
        return tuple(line.record for line in lines if line.record is not None)

    def replace(
        self,
        first: int,
        last: int,
        values: Sequence[Value],
        *,
        snapshot: Sequence[Record],
        meta: Mapping[str, Json] | None = None,
    ) -> Generation:
        """Puts values into the place of the records `[first:last)` of a snapshot, which is what `records` was.

        Records among the values stay as they are, byte for byte; so does whatever was appended since. What is replaced
        lies in an archive before it leaves the file. Raises `SessionChanged`, and writes nothing, where the records
        have been replaced by somebody else.
        """
        old, new = narrowed(snapshot[first:last], values)
        with self._lock, self._file.locked(afresh=True):
            region = find_region(self._file.lines, old)
            if region is None:
                raise SessionChanged(
                    f"the messages were replaced in `{self.path}` by somebody else",
                    suggestion="read `records` anew and decide again",
                )
            number = generation_of(self._file.lines) + 1
            kept = self._archives.keep(number, region.old) if self._archive else None
            self._accounted |= {line.seq for line in region.old}
            made = Generation(
                number=number, archive=kept, ids=(), ts=self._clock().isoformat(), meta=meta or {}, session=self.id
            )
            return self._swap(composed(region, new, made))

    def history(self, *, full: bool = False) -> tuple[Record, ...]:
        """What is active; in full, with every original in its place again, as far as the archives hold them."""
        with self._lock:
            if not full:
                return self._file.records
            return tuple(line.record for line in self._unwound(0).lines if line.record is not None)

    def generations(self) -> tuple[Generation, ...]:
        """The compactions that made the file what it is, the first one first, as far as the archives lead back."""
        with self._lock:
            unwound = self._unwound(0)
        return (*filter(None, [unwound.missing]), *reversed(unwound.undone))

    def verify(self) -> Verified:
        """Looks at every line and every archive as they lie there."""
        with self._lock:
            sifted = sift(self._file.bytes())
            return verified(sifted, unwind(sifted.lines, self._archives.lines), self._archives.fault)

    def lost(self) -> tuple[int, ...]:
        """The numbers of the messages that are neither active nor in an archive, for their lines could not be read. One
        that nothing came behind is not missed."""
        with self._lock:
            active = (record.seq for record in self._file.records)
            missed = frozenset(range(1, 1 + self._file.last)).difference(active) - self._accounted
            if missed != self._missed:
                self._accounted |= accounted(self._unwound(0))
                self._missed = missed - self._accounted
            return tuple(sorted(self._missed))

    def restore(self, generation: int) -> int:
        """Makes the file what it was at a generation, byte for byte, with whatever was appended since behind it.

        Returns the generation that it was; `restore` with that brings it back, as long as archives are kept. Raises
        `InvalidArguments` where no archive leads there.
        """
        with self._lock, self._file.locked(afresh=True):
            now, lines = generation_of(self._file.lines), tuple(self._file.lines)
            if generation != now:
                state = self._state(generation)
                if self._archive:
                    self._archives.keep_whole(now, lines)
                self._file.swap(state)
            return now

    def recall(self, query: str, *, limit: int, room: int, count: Callable[[str], int], skip: int = 0) -> Recalled:
        """What was let go that is near the query, after the first `skip` passages, within so many tokens."""
        active = self.refresh()
        with self._remembering:
            return self._memory.of(active).recall(query, limit=limit, room=room, count=count, skip=skip)

    def remember(self) -> None:
        """Makes what was let go ready for `recall`, so that nobody waits for all of it at once when he first asks. What
        was made ready before is not done again."""
        active = self.refresh()
        with self._remembering:
            self._memory.of(active).ready()

    def flush(self) -> None:
        """Returns when all that was appended would survive a power cut."""
        with self._lock, self._file.locked():
            self._file.settle()

    def close(self) -> None:
        """Nothing stays open between two calls; what is not durable yet becomes so."""
        with self._lock:
            if self._file.is_waiting:
                self.flush()

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _swap(self, lines: Sequence[Line]) -> Generation:
        self._file.swap(lines)
        made = [line.generation for line in lines if line.generation is not None]
        return max(made, key=lambda generation: generation.number)

    def _unwound(self, to: int) -> Unwound:
        return unwind(self._file.lines, self._archives.lines, to)

    def _state(self, generation: int) -> tuple[Line, ...]:
        state = state_at(self._file.lines, generation, self._archives.lines, self._archives.wholes())
        if state is None:
            raise InvalidArguments(
                f"no archive leads to generation {generation}",
                options=tuple(str(one) for one in range(generation_of(self._file.lines) + 1)),
            )
        return state
