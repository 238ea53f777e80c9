"""Starts, restarts and shares the connections to MCP servers."""

from .health import Health
from .host import Host, Supervised

__all__ = ["Health", "Host", "Supervised"]
