"""Session files, their archives, and recall of what was compacted."""

from .archive import Verified
from .recall import RECALL, DroppedMessage, Passage, Recalled, Recalling, RecallSource, Recollection
from .session import Session
from .session_file import Archive, Draft, Files, Generation, Record, SessionChanged, listed

__all__ = [
    "RECALL",
    "Archive",
    "Draft",
    "DroppedMessage",
    "Files",
    "Generation",
    "Passage",
    "RecallSource",
    "Recalled",
    "Recalling",
    "Recollection",
    "Record",
    "Session",
    "SessionChanged",
    "Verified",
    "listed",
]
