"""`Session`: a conversation in a file that several processes may append to.

A session is a file of lines, and any number of processes may append to it. A compaction first writes the lines that it
replaces to an archive and then replaces the whole file, so that after a crash either the old or the new file is there.
What is compacted, and when, is decided in `compaction`.

All methods block on the disk: call them in a thread where an event loop must not wait. `Session` is thread-safe.

`Memory` reads each archive once, on first use, and skips messages that are active: an archive also contains messages
that a compaction kept, that a late compaction did not replace, and that were restored. `Memory` is not thread-safe.
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
from .recall import DroppedMessage, Recalled, Recollection
from .session_file import (
    Clock,
    Draft,
    Files,
    Generation,
    Header,
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
    """The dropped messages of a session, read from its archives. Not thread-safe."""

    def __init__(self, archives: Archives, format: Format | None, model: str | None) -> None:  # noqa: A002
        self._archives = archives
        self._format = format
        self._model = model
        self._seen = set[str]()
        """Names of the archives that were read."""
        self._archived: dict[str, DroppedMessage] = {}
        """Archived originals, by message id."""
        self._recollection = Recollection()

    def of(self, active: Sequence[Record]) -> Recollection:
        """Return the recollection of dropped messages, that is the archived ones that are not among `active`."""
        # A message in several archives was dropped by the latest of their generations.
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
            self._archived[record.id] = DroppedMessage(
                id=record.id, number=record.seq, message=self._message(record), generation=generation
            )
        present = {record.id for record in active}
        gone = {name: archived for name, archived in self._archived.items() if name not in present}
        self._recollection.hold(gone, (self._message(record) for record in active))
        return self._recollection

    def _message(self, record: Record) -> Message:
        """Convert a record to a message. A message that cannot be read is searched as JSON text."""
        try:
            return read_message(record.message, self._format or Format.ULLAGE)
        except UnreadableRequest:
            return Message(role="user", parts=(Text(json.dumps(record.message, ensure_ascii=False)),))


def _now() -> datetime:
    return datetime.now(UTC)


class Session:
    """A conversation in a file. Open it with `Session.open`.

    Several processes may append to the same file. All methods block on the disk and are thread-safe.

    Example:

        with Session.open("runs/42.jsonl") as session:
            session.append([{"role": "user", "content": "Which orders are late?"}])
    """

    def __init__(self, file: SessionFile, archives: Archives, *, archive: bool, clock: Clock) -> None:
        self._file = file
        self._archives = archives
        self._archive = archive
        self._clock = clock
        self._lock = RLock()
        self._memory = Memory(archives, self.format, self.model)
        self._remembering = RLock()
        self._accounted = frozenset[int]()
        """Numbers of messages that are not active but known to be archived."""
        self._missed = frozenset[int]()
        """Numbers of messages that are neither active nor in an archive."""

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
        """Open a session, or create it if the file does not exist.

        Damage from a crash is repaired, and `notes` describes the repair.

        Args:
            path: The session file.
            format: Format of the messages; written to a new file.
            model: The model of the conversation; written to a new file.
            window: Context window of the model in tokens; written to a new file.
            archive: Whether a compaction archives the messages that it drops. If False, they are lost.
            clock: Returns the current time, for the time stamps of the lines.
            files: File operations, for tests.

        Raises:
            UnreadableFile: The file is not a session.
            StoreFailed: The file cannot be read or created.
            InvalidArguments: The file's messages are in another format than `format`.
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
        """Path of the session file."""
        return self._file.path

    @property
    def id(self) -> str:
        """Id of the session."""
        return self._file.header.id

    @property
    def format(self) -> Format | None:
        """Format of the messages; None if the file names none or one that is unknown to this version."""
        said = self._file.header.format
        return Format(said) if said in tuple(Format) else None

    @property
    def model(self) -> str | None:
        """Model of the conversation, as recorded in the file; None if unknown."""
        return self._file.header.model

    def window(self, model: str | None = None) -> int | None:
        """Return the context window, in tokens, that the session last ran in with a model.

        Args:
            model: The model; None returns the last window of any model.

        Returns:
            The window, or None if the file records none.
        """
        with self._lock:
            notes = (line.window for line in reversed(self._file.lines) if line.window is not None)
            return next((note.tokens for note in notes if model is None or note.model in (None, model)), None)

    def note_window(self, tokens: int, model: str | None = None) -> None:
        """Record the window that the session runs in from now on, unless it is the one recorded last."""
        if self.window(model) == tokens:
            return
        with self._lock, self._file.locked():
            pen = Pen(session=self.id, ts=self._clock().isoformat())
            self._file.append([window_line(pen, WindowNote(tokens, model), seq=self._file.last)], durable=False)

    @property
    def keeps(self) -> bool:
        """Whether dropped messages are archived, so that `recall` can find them."""
        return self._archive

    @property
    def notes(self) -> tuple[str, ...]:
        """Descriptions of the repairs that were made, in sentences."""
        return tuple(self._file.notes)

    @property
    def records(self) -> tuple[Record, ...]:
        """The active messages, as far as this process has read them. The same tuple is returned until something
        changes."""
        with self._lock:
            return self._file.records

    @property
    def generation(self) -> int:
        """The number of compactions."""
        with self._lock:
            return generation_of(self._file.lines)

    def refresh(self) -> tuple[Record, ...]:
        """Return the active messages, including those that other processes appended."""
        with self._lock:
            self._file.refresh()
            return self._file.records

    def append(
        self, messages: Sequence[JsonObject], *, pinned: bool = False, kind: Kind = "message", durable: bool = False
    ) -> tuple[Record, ...]:
        """Append messages in one write.

        When this returns, the messages survive the end of the process. They survive a power cut as well with `durable`;
        otherwise within a second of the next message, or when the session is closed.

        Args:
            messages: Messages in the provider's format.
            pinned: Whether a compaction must keep these messages.
            kind: Kind of the messages, such as a summary.
            durable: Whether to wait until the messages would survive a power cut.

        Returns:
            The records of the messages.
        """
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
        """Replace the records `[first:last)` of a snapshot.

        Records among the values stay unchanged, byte for byte, and so do messages that were appended since the
        snapshot. The replaced lines are archived before they leave the file.

        Args:
            first: Index of the first record to replace.
            last: Index behind the last record to replace.
            values: The new content: drafts, and records of the snapshot that are kept.
            snapshot: An earlier value of `records`.
            meta: Data about the compaction, to be stored with it.

        Returns:
            The compaction.

        Raises:
            SessionChanged: Another process replaced the records meanwhile. Nothing is written.
            InvalidArguments: Nothing would be replaced, or a record among `values` is not one of those that are
                replaced.
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
            lines = composed(region, new, made)
            self._file.swap(lines)
            marks = (line.generation for line in lines if line.generation is not None)
            return max(marks, key=lambda generation: generation.number)

    def history(self, *, full: bool = False) -> tuple[Record, ...]:
        """Return the active messages; with `full`, the originals in their places, as far as the archives contain
        them."""
        with self._lock:
            if not full:
                return self._file.records
            return tuple(line.record for line in self._unwound(0).lines if line.record is not None)

    def generations(self) -> tuple[Generation, ...]:
        """Return the compactions that produced the file, oldest first, as far as the archives lead back."""
        with self._lock:
            unwound = self._unwound(0)
        return (*filter(None, [unwound.missing]), *reversed(unwound.undone))

    def verify(self) -> Verified:
        """Check every line and every archive on disk."""
        with self._lock:
            sifted = sift(self._file.bytes())
            return verified(sifted, unwind(sifted.lines, self._archives.lines), self._archives.fault)

    def lost(self) -> tuple[int, ...]:
        """Return the numbers of the messages whose lines could not be read and that are in no archive. A lost message
        at the end of the file cannot be detected."""
        with self._lock:
            active = (record.seq for record in self._file.records)
            missed = frozenset(range(1, 1 + self._file.last)).difference(active) - self._accounted
            if missed != self._missed:
                self._accounted |= accounted(self._unwound(0))
                self._missed = missed - self._accounted
            return tuple(sorted(self._missed))

    def restore(self, generation: int) -> int:
        """Restore the file of an earlier generation byte for byte, with the messages that were appended since behind
        it.

        Args:
            generation: Number of the compaction to return to; 0 is the state before the first one.

        Returns:
            The generation before the call. `restore` with that number undoes the call, as long as archives are kept.

        Raises:
            InvalidArguments: No archive leads to that generation.
        """
        with self._lock, self._file.locked(afresh=True):
            now, lines = generation_of(self._file.lines), tuple(self._file.lines)
            if generation != now:
                state = state_at(self._file.lines, generation, self._archives.lines, self._archives.wholes())
                if state is None:
                    raise InvalidArguments(
                        f"no archive leads to generation {generation}",
                        options=tuple(str(one) for one in range(generation_of(self._file.lines) + 1)),
                    )
                if self._archive:
                    self._archives.keep_whole(now, lines)
                self._file.swap(state)
            return now

    def recall(self, query: str, *, limit: int, room: int, count: Callable[[str], int], skip: int = 0) -> Recalled:
        """Search the dropped messages.

        Args:
            query: Words, names or quoted text.
            limit: Most passages to return.
            room: Most tokens of the text.
            count: Counts the tokens of a text.
            skip: Passages to leave out, best first, because they were shown before.
        """
        active = self.refresh()
        with self._remembering:
            return self._memory.of(active).recall(query, limit=limit, room=room, count=count, skip=skip)

    def remember(self) -> None:
        """Index the dropped messages for `recall`, so that the first query need not wait for all of them. What is
        indexed already is not indexed again."""
        active = self.refresh()
        with self._remembering:
            self._memory.of(active).ready()

    def flush(self) -> None:
        """Wait until everything that was appended would survive a power cut."""
        with self._lock, self._file.locked():
            self._file.settle()

    def close(self) -> None:
        """Make everything that was appended durable. No file stays open between two calls."""
        with self._lock:
            if self._file.is_waiting:
                self.flush()

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _unwound(self, to: int) -> Unwound:
        return unwind(self._file.lines, self._archives.lines, to)
