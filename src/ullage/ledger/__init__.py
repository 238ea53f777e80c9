"""What was spent, what was saved?"""

from typing import TYPE_CHECKING

from ullage.deferred import import_on_use

if TYPE_CHECKING:
    from .entry import Entry, Kind
    from .read import Total, read_entries, totals
    from .record import Recorder, Recording, Unrecorded
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Entry": "entry",
            "Kind": "entry",
            "Recorder": "record",
            "Recording": "record",
            "Total": "read",
            "Unrecorded": "record",
            "read_entries": "read",
            "totals": "read",
        },
    )

__all__ = ["Entry", "Kind", "Recorder", "Recording", "Total", "Unrecorded", "read_entries", "totals"]
