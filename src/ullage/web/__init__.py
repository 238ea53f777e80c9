"""HTTP pages for operators: the dashboard with its sign-in, health, metrics and the access log."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .dashboard import CODES_PATH, Dashboard, GatewayFacts
    from .operations import AccessLog, Metrics, operations_pages
    from .sign_in import SignIns, Viewer
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
            "SignIns": "sign_in",
            "UsageFigures": "usage_figures",
            "Viewer": "sign_in",
            "operations_pages": "operations",
        },
    )

__all__ = [
    "CODES_PATH",
    "AccessLog",
    "Dashboard",
    "GatewayFacts",
    "LoggedCompaction",
    "LoggedSession",
    "Metrics",
    "SignIns",
    "UsageFigures",
    "Viewer",
    "operations_pages",
]
