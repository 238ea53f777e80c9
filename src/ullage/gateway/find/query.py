"""What is looked for, and how much may the answer cost?

Reads the arguments of `find_tool` and ranks a view's tools by them. Whoever says a name gets that tool first, and
alone where the query is nothing but a name; whoever names a server (`narrow`) gets that server's tools and no others.
Of tools that do the same (`twins`), one takes a place and names the rest.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from ullage.errors import InvalidArguments
from ullage.search import Hit, Named, parts
from ullage.tool import Json, JsonObject

from ..merge.view import Entry, View
from .heal import parsed
from .narrow import Scope, scope_of
from .reply import LEAST_BUDGET
from .twins import Group, grouped

__all__ = ["Query", "Ranked", "Search", "rank", "read_query"]

_ARGUMENTS = ("tool_description", "tool_keywords", "max_tokens")
_OTHER_WORDS = ("query", "description", "tool_name", "name", "q")
_SERVER = ("server_name", "serverName", "server")
_MOST = 40
"""Tools that a reply can show at all, of a common budget."""
_MOST_OF_MUCH = 80
"""The same for a large budget, and for a query that names a server and nothing else."""
_MUCH = 2_000
_DEEP = 2_000
"""Tools looked at for those of one server."""
_MOST_TOKENS = 100_000
_LONGEST = 10_000
"""Letters that are read of a description, and of keywords: what is longer is a document and no query."""
_ONE_WORD = re.compile(r"[\w.:/-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    description: str
    keywords: str = ""
    servers: tuple[str, ...] = ()
    """To whose tools it keeps, as they were said."""
    budget: int
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"{self.description} {self.keywords}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    listed: str
    named: bool = False
    """Whether the query says its name."""
    near: bool = True
    """False where it is there for its server's sake and not for what it does."""
    also: tuple[str, ...] = ()
    """Others that do the same."""


Search = Callable[[str, int], Sequence[Hit]]
"""The documents nearest to a text, at most so many: an index's search, or something around it."""


def read_query(arguments: JsonObject, budget: int) -> Query:
    """Raises `InvalidArguments` where nothing is asked for, or no reply can be as small as the caller wants it.

    Where the caller wants nothing, `budget` holds, but for the least that any reply takes.
    """
    given, budget = dict(arguments), max(budget, LEAST_BUDGET)
    description, notes = _text(given.pop("tool_description", None)), list[str]()
    keywords = _text(given.pop("tool_keywords", None))
    most = _tokens(given.pop("max_tokens", None), budget)
    servers = next((named for one in _SERVER if one in given and (named := _names(given.pop(one)))), ())
    if not description and (other := next((one for one in _OTHER_WORDS if _text(given.get(one))), None)):
        description = _text(given.pop(other))
        notes.append(f"`{other}` read as `tool_description`")
    if not description and not keywords and not servers:
        raise InvalidArguments(
            "`tool_description` is missing",
            suggestion='Say what the tool should do: {"tool_description": "create an issue"}.',
            options=_ARGUMENTS,
        )
    notes += [f"find_tool has no argument `{name[:40]}`; left aside" for name in given]
    if max(len(description), len(keywords)) > _LONGEST:
        description, keywords = description[:_LONGEST], keywords[:_LONGEST]
        notes.append(f"only the first {_LONGEST:,} letters were read")
    return Query(description=description, keywords=keywords, servers=servers, budget=most, notes=tuple(notes))


def _text(value: Json) -> str:
    """A text, or the words of a list."""
    if isinstance(value, list):
        return " ".join(each for each in value if isinstance(each, str)).strip()
    return value.strip() if isinstance(value, str) else ""


def _names(value: Json) -> tuple[str, ...]:
    """One name, several with commas between, or a list of them."""
    each = value if isinstance(value, list) else value.split(",") if isinstance(value, str) else []
    return tuple(name.strip() for name in each if isinstance(name, str) and name.strip())


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


def rank(search: Search, view: View, query: Query, entries: Mapping[str, Entry]) -> tuple[Ranked, ...]:
    """The tools for the query, nearest first; `entries` are the view's by their listed names."""
    scope = scope_of(query.description, query.servers, view)
    most = _MOST if scope.text and query.budget < _MUCH else _MOST_OF_MUCH
    found = _found(search, query, scope, entries, 2 * most)
    groups = grouped([entries[listed] for listed in islice(found, _DEEP)], parts(query.text.casefold()))
    return tuple(_ranked(group, found) for group in groups[:most])


def _ranked(group: Group, found: Mapping[str, Ranked]) -> Ranked:
    """The one that stands for all, as near as the nearest of them."""
    if not group.others:
        return found[group.first.listed]
    every = [found[entry.listed] for entry in (group.first, *group.others)]
    return Ranked(
        listed=group.first.listed,
        named=any(each.named for each in every),
        near=any(each.near for each in every),
        also=tuple(each.listed for each in every[1:]),
    )


def _found(search: Search, query: Query, scope: Scope, entries: Mapping[str, Entry], most: int) -> dict[str, Ranked]:
    """Those that are named, those that are near, then what else there is of a server that was asked for."""
    most = _DEEP if scope.servers else most
    hits = _within(scope, entries, search(f"{scope.text} {query.keywords}".strip(), most))
    alone = hits
    if not scope.text:
        # A server's name may be a tool's as well, and that of another server.
        alone = _within(Scope(""), entries, search(query.description, _MOST))
    elif query.keywords:
        alone = _within(scope, entries, search(scope.text, most))
    whole = [hit.document.id for hit in alone if hit.named >= Named.WHOLLY]
    named = whole + [hit.document.id for hit in hits if hit.named >= Named.AMONG_OTHERS]
    found = {listed: Ranked(listed=listed, named=True) for listed in named}
    if whole and _is_only_a_name(scope.text):
        return found
    near = {hit.document.id: Ranked(listed=hit.document.id) for hit in hits}
    rest = {listed: Ranked(listed=listed, near=False) for listed in _of_servers(scope, entries)}
    return found | _without(found, near) | _without(found | near, rest)


def _is_only_a_name(text: str) -> bool:
    """One word that is made of several, as nobody speaks: `create_issue`, `github.createIssue`."""
    return _ONE_WORD.fullmatch(text) is not None and len(parts(text)) > 1


def _without(known: Mapping[str, Ranked], others: Mapping[str, Ranked]) -> dict[str, Ranked]:
    return {listed: each for listed, each in others.items() if listed not in known}


def _within(scope: Scope, entries: Mapping[str, Entry], hits: Iterable[Hit]) -> list[Hit]:
    return [hit for hit in hits if (entry := entries.get(hit.document.id)) and scope.holds(entry.server)]


def _of_servers(scope: Scope, entries: Mapping[str, Entry]) -> list[str]:
    """The tools of the servers that were asked for, in the order of their lists."""
    return [listed for listed, entry in entries.items() if entry.server in scope.servers] if scope.servers else []
