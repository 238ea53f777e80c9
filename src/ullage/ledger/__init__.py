"""The ledger: tokens and money that were spent and saved."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .ledger import Entry, Kind, Recorder, Recording, Total, Unrecorded, read_entries, totals
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Entry": "ledger",
            "Kind": "ledger",
            "Recorder": "ledger",
            "Recording": "ledger",
            "Total": "ledger",
            "Unrecorded": "ledger",
            "read_entries": "ledger",
            "totals": "ledger",
        },
    )

__all__ = ["Entry", "Kind", "Recorder", "Recording", "Total", "Unrecorded", "read_entries", "totals"]
