"""What was spent, what was saved?"""

from .entry import Entry, Kind
from .read import Total, read_entries, totals
from .record import Recorder, Recording, Unrecorded

__all__ = ["Entry", "Kind", "Recorder", "Recording", "Total", "Unrecorded", "read_entries", "totals"]
