"""The ledger: what was spent and what was saved, recorded in batches and reported from sums kept with the rows."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .audit import AUDIT_KINDS, AuditEvent, AuditKind, log_audit, read_audit, store_audit, write_audit
    from .entry import Entry, Kind, ModelUse
    from .ledger import (
        Latency,
        Recorder,
        Recording,
        SpendOnly,
        Total,
        Unrecorded,
        latencies,
        ledger_revision,
        read_entries,
        totals,
    )
    from .prune import KEEP_DAYS
    from .report import GROUPS, Group, Line, Prices, Report, Saved, Spent, usage_report, used_tools
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "AUDIT_KINDS": "audit",
            "AuditEvent": "audit",
            "AuditKind": "audit",
            "GROUPS": "report",
            "log_audit": "audit",
            "read_audit": "audit",
            "store_audit": "audit",
            "write_audit": "audit",
            "Entry": "entry",
            "Group": "report",
            "KEEP_DAYS": "prune",
            "Kind": "entry",
            "Latency": "ledger",
            "Line": "report",
            "ModelUse": "entry",
            "Prices": "report",
            "Recorder": "ledger",
            "Recording": "ledger",
            "Report": "report",
            "Saved": "report",
            "SpendOnly": "ledger",
            "Spent": "report",
            "Total": "ledger",
            "Unrecorded": "ledger",
            "latencies": "ledger",
            "ledger_revision": "ledger",
            "read_entries": "ledger",
            "totals": "ledger",
            "usage_report": "report",
            "used_tools": "report",
        },
    )

__all__ = [
    "AUDIT_KINDS",
    "GROUPS",
    "KEEP_DAYS",
    "AuditEvent",
    "AuditKind",
    "Entry",
    "Group",
    "Kind",
    "Latency",
    "Line",
    "ModelUse",
    "Prices",
    "Recorder",
    "Recording",
    "Report",
    "Saved",
    "SpendOnly",
    "Spent",
    "Total",
    "Unrecorded",
    "latencies",
    "ledger_revision",
    "log_audit",
    "read_audit",
    "read_entries",
    "store_audit",
    "totals",
    "usage_report",
    "used_tools",
    "write_audit",
]
