"""How is something run in the background?

By whoever made the gateway, in a group that outlives what is run in it. Nothing is started here.
"""

from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["Spawn", "Work"]

Work = Callable[[], Coroutine[Any, Any, None]]
Spawn = Callable[[Work], object]
"""Runs a function in the background, as a task group's `start_soon` does."""
