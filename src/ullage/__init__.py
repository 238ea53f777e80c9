"""MCP gateway, token counter and context compaction that reduce what LLM agents spend."""

TYPE_CHECKING = False  # Not imported from `typing`, because that would slow down every start.
if TYPE_CHECKING:
    from ullage.app import count, count_request, find_model
    from ullage.app.build_context import Context, compact, get_context_usage, run_agent
    from ullage.context import Session
    from ullage.gateway import FindToolResponse, TokenMetrics

__version__ = "0.1.0"
__all__ = [
    "Context",
    "FindToolResponse",
    "Session",
    "TokenMetrics",
    "__version__",
    "compact",
    "count",
    "count_request",
    "find_model",
    "get_context_usage",
    "run_agent",
]

_ROOMS = {
    "Context": "app.build_context",
    "FindToolResponse": "gateway",
    "Session": "context",
    "TokenMetrics": "gateway",
    "compact": "app.build_context",
    "count": "app",
    "count_request": "app",
    "find_model": "app",
    "get_context_usage": "app.build_context",
    "run_agent": "app.build_context",
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    """Import the module of a public name on first access, so that `import ullage` is fast."""
    if name not in _ROOMS:
        raise AttributeError(f"module `ullage` has no attribute `{name}`")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
