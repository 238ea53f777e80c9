"""What is looked for, and how much may the answer cost?

Reads the arguments of `find_tool` and ranks a view's tools by them. Whoever says a name gets that tool first, and alone
where the query is nothing but a name; whoever says a server's name gets that server's tools.
"""

import math
import re
from dataclasses import dataclass

from ullage.errors import InvalidArguments
from ullage.search import LexicalIndex, Named
from ullage.tool import Json, JsonObject

from ..merge.spelling import key
from ..merge.view import View
from .heal import parsed
from .reply import LEAST_BUDGET

__all__ = ["Query", "Ranked", "rank", "read_query"]

_ARGUMENTS = ("tool_description", "tool_keywords", "max_tokens")
_OTHER_WORDS = ("query", "description", "tool_name", "name", "q")
_MOST = 40
"""Tools that a reply can show at all."""
_MOST_OF_A_SERVER = 80
_MOST_TOKENS = 100_000
_ONLY_A_NAME = re.compile(r"\w+(?:[-_.:/]+\w+)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    description: str
    keywords: str = ""
    budget: int
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.description} {self.keywords}".strip()


@dataclass(frozen=True, slots=True)
class Ranked:
    listed: str
    named: bool = False
    """Whether the query says its name."""


def read_query(arguments: JsonObject, budget: int) -> Query:
    """Raises `InvalidArguments` where nothing is asked for, or no reply can be as small as the caller wants it.

    Where the caller wants nothing, `budget` holds, but for the least that any reply takes.
    """
    given, budget = dict(arguments), max(budget, LEAST_BUDGET)
    description, notes = _text(given.pop("tool_description", None)), list[str]()
    keywords = _text(given.pop("tool_keywords", None))
    most = _tokens(given.pop("max_tokens", None), budget)
    if not description and (other := next((one for one in _OTHER_WORDS if _text(given.get(one))), None)):
        description = _text(given.pop(other))
        notes.append(f"`{other}` read as `tool_description`")
    if not description and not keywords:
        raise InvalidArguments(
            "`tool_description` is missing",
            suggestion='Say what the tool should do: {"tool_description": "create an issue"}.',
            options=_ARGUMENTS,
        )
    notes += [f"find_tool has no argument `{name[:40]}`; left aside" for name in given]
    return Query(description=description, keywords=keywords, budget=most, notes=tuple(notes))


def _text(value: Json) -> str:
    """A text, or the words of a list."""
    if isinstance(value, list):
        return " ".join(each for each in value if isinstance(each, str)).strip()
    return value.strip() if isinstance(value, str) else ""


def _tokens(value: Json, budget: int) -> int:
    number = parsed(value) if isinstance(value, str) else value
    if number is None:
        return budget
    if isinstance(number, bool) or not isinstance(number, int | float) or _is_nan(number):
        raise InvalidArguments("`max_tokens` must be a number", suggestion=f"Leave it out for {budget}.")
    if number < LEAST_BUDGET:
        raise InvalidArguments(
            f"no reply fits into a `max_tokens` below {LEAST_BUDGET}",
            suggestion=f"Give {LEAST_BUDGET} or more, or leave it out.",
        )
    return int(min(number, _MOST_TOKENS))


def _is_nan(number: float) -> bool:
    """Asked of no integer: it may be too large for a float."""
    return isinstance(number, float) and math.isnan(number)


def rank(index: LexicalIndex, view: View, query: Query) -> tuple[Ranked, ...]:
    """The tools for the query, nearest first."""
    hits = index.search(query.text, _MOST)
    alone = index.search(query.description, _MOST) if query.keywords else hits
    whole = [hit.document.id for hit in alone if hit.named >= Named.WHOLLY]
    named = whole + [hit.document.id for hit in hits if hit.named >= Named.AMONG_OTHERS]
    if whole and _ONLY_A_NAME.fullmatch(query.description):
        rest: list[str] = []
    else:
        rest = _of_server(view, query.text) or [hit.document.id for hit in hits]
    found = {listed: Ranked(listed, named=True) for listed in named}
    return tuple((found | {listed: Ranked(listed) for listed in rest if listed not in found}).values())


def _of_server(view: View, text: str) -> list[str]:
    """The tools of the server that the whole query names, if it names one."""
    spelt = key(text)
    named = {server for server in view.servers if spelt and key(server) == spelt}
    return [entry.listed for entry in view.entries if entry.server in named][:_MOST_OF_A_SERVER] if named else []
