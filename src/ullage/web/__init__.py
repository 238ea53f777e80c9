"""HTTP pages for operators: health, metrics and the access log."""

from .operations import AccessLog, Metrics, operations_pages

__all__ = ["AccessLog", "Metrics", "operations_pages"]
