"""Wires the packages together.

The composition root: it builds what the rest receives. `ullage.app.build_gateway` is imported where a gateway is
wanted: the MCP SDK and the database come with it, and `ullage count` must not wait for them.
"""

from .count_text import count, count_request, find_model, meter, meter_for

__all__ = ["count", "count_request", "find_model", "meter", "meter_for"]
