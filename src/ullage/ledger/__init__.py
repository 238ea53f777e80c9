"""The ledger: what was spent and what was saved, recorded in batches and reported from sums kept with the rows."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .audit import AUDIT_KINDS, AuditEvent, AuditKind, log_audit, read_audit, store_audit, write_audit
    from .ledger import (
        KEEP_DAYS,
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
    from .report import GROUPS, Group, Line, Prices, Report, Saved, Spent, program_name, usage_report, used_tools
    from .rows import Entry, Kind, ModelUse
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
            "Entry": "rows",
            "Group": "report",
            "KEEP_DAYS": "ledger",
            "Kind": "rows",
            "Latency": "ledger",
            "Line": "report",
            "ModelUse": "rows",
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
            "program_name": "report",
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
    "program_name",
    "read_audit",
    "read_entries",
    "store_audit",
    "totals",
    "usage_report",
    "used_tools",
    "write_audit",
]
