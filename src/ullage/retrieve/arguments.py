"""What is asked of `retrieve.search`?

Strict: an argument nobody knows is refused, with the names of those that are.
"""

from dataclasses import dataclass
from difflib import get_close_matches

from ullage.errors import InvalidArguments
from ullage.tool import JsonObject

__all__ = ["BUDGET", "Arguments", "read"]

BUDGET = 2_000
"""Tokens of a reply, where nothing is said."""
_KNOWN = ("query", "max_tokens", "path")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    query: str
    max_tokens: int
    path: str | None


def read(arguments: JsonObject) -> Arguments:
    """Raises `InvalidArguments` that names the argument and what would do."""
    for name in arguments:
        if name not in _KNOWN:
            near = get_close_matches(name, _KNOWN, n=1)
            hint = (
                f"did you mean `{near[0]}`?" if near else "it takes `query` and, if you like, `max_tokens` and `path`"
            )
            raise _misfit(f"`{name}` is not known", hint)
    query, most, path = arguments.get("query"), arguments.get("max_tokens"), arguments.get("path")
    if not isinstance(query, str) or not query.strip():
        raise _misfit("`query` must be a text", 'give {"query": "…"}')
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        raise _misfit("`max_tokens` must be a whole number above 0", f"leave it out for {BUDGET}")
    if path is not None and not isinstance(path, str):
        raise _misfit("`path` must be a text", "name a file, a folder or a pattern such as `*.md`, or leave it out")
    return Arguments(query=query, max_tokens=BUDGET if most is None else most, path=path or None)


def _misfit(message: str, suggestion: str) -> InvalidArguments:
    return InvalidArguments(message, suggestion=suggestion, options=_KNOWN)
