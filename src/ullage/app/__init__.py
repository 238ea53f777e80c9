"""Wiring of the packages together.

The composition root: it builds what the other packages receive. `ullage.app.build_gateway` is imported only where a
gateway is needed, because it imports the MCP SDK and the database, and `ullage count` must start without them.
"""

from .count_text import count, count_request, find_model, meter, meter_for

__all__ = ["count", "count_request", "find_model", "meter", "meter_for"]
