"""How does a wrapper hand on what it does not change?

A source may offer more than tools: resources, prompts, changes. A wrapper that is about calls offers of these just what
the source within it does, no more, so that asking whether it has them is asking the source.
"""

from typing import Generic, TypeVar

__all__ = ["Passing"]

Inner = TypeVar("Inner")

_PASSED = frozenset(
    {
        *("resources", "templates", "read", "subscribe", "unsubscribe"),
        *("prompts", "prompt", "complete", "set_log_level"),
        *("watch", "close", "introduction", "capabilities"),
        *("view", "find", "members", "failed"),
    }
)


class Passing(Generic[Inner]):
    """For a class that holds a source as `inner`."""

    __slots__ = ()

    inner: Inner

    def __getattr__(self, name: str) -> object:
        if name not in _PASSED:
            raise AttributeError(f"`{type(self).__name__}` has no attribute `{name}`")
        return getattr(self.inner, name)
