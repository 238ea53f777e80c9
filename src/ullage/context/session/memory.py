"""What of this session was let go?

Reads each archive once, when it is first asked for, and leaves out what is active: an archive also holds what stayed,
what a compaction that came too late did not replace, and what was brought back. For one thread at a time.
"""

import json
from collections.abc import Sequence

from ullage.errors import UnreadableRequest
from ullage.messages import Format, Message, Text, detect_messages, read_message

from .archive import Archives
from .passages import LetGo
from .recollection import Recollection
from .record import Record

__all__ = ["Memory"]


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
