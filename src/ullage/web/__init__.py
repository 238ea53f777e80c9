"""HTTP pages for operators: the dashboard with its sign-in, health, metrics, the access log; export of telemetry."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .dashboard import CODES_PATH, Dashboard, GatewayFacts, SignIns, Viewer
    from .operations import AccessLog, Metrics, operations_pages
    from .otlp_export import Exporter, Target, open_telemetry, targets_of
    from .usage_figures import LoggedCompaction, LoggedSession, UsageFigures
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "AccessLog": "operations",
            "CODES_PATH": "dashboard",
            "Dashboard": "dashboard",
            "GatewayFacts": "dashboard",
            "LoggedCompaction": "usage_figures",
            "LoggedSession": "usage_figures",
            "Metrics": "operations",
            "SignIns": "dashboard",
            "UsageFigures": "usage_figures",
            "Viewer": "dashboard",
            "Exporter": "otlp_export",
            "Target": "otlp_export",
            "open_telemetry": "otlp_export",
            "operations_pages": "operations",
            "targets_of": "otlp_export",
        },
    )

__all__ = [
    "CODES_PATH",
    "AccessLog",
    "Dashboard",
    "Exporter",
    "GatewayFacts",
    "LoggedCompaction",
    "LoggedSession",
    "Metrics",
    "SignIns",
    "Target",
    "UsageFigures",
    "Viewer",
    "open_telemetry",
    "operations_pages",
    "targets_of",
]
