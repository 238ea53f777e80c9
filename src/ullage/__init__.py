"""The token economy of LLM agents: weigh what passes, write it down, narrow each door."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ullage.app import count, count_request, find_model

__version__ = "0.1.0"
__all__ = ["__version__", "count", "count_request", "find_model"]


def __getattr__(name: str) -> object:
    """Loads the rooms behind a name when it is first asked for, so that importing `ullage` costs nothing."""
    if name not in __all__:
        raise AttributeError(f"module `ullage` has no attribute `{name}`")
    import ullage.app

    return getattr(ullage.app, name)
