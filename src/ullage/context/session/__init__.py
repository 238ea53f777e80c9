"""Session files, their archives, and recall of what was compacted."""

from .failure import SessionChanged
from .files import Files
from .listed import listed
from .passages import LetGo, Passage
from .recalled import Recalled
from .recollection import Recollection
from .record import Archive, Draft, Generation, Record
from .session import Session
from .source import RECALL, Recalling, RecallSource
from .verifying import Verified

__all__ = [
    "RECALL",
    "Archive",
    "Draft",
    "Files",
    "Generation",
    "LetGo",
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
