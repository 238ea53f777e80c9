"""What does a session's file hold?

The values that its lines stand for: messages, and the compactions by which some of them were let go. How they are
written, `line` knows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ullage.tool import Json, JsonObject

from ..entry import Kind

__all__ = ["Archive", "Draft", "Generation", "Header", "Record", "WindowNote"]


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
