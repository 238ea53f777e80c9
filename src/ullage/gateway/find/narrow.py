"""To which servers does a search keep, and what does it look for there?

Whoever names a server so that nothing else can be meant gets that server's tools: `github: create issue`, `create issue
@github`, `server_name` beside the query, or a query that is nothing but the server's name. A server's name among other
words is a word like them, for it may stand there by chance. Nothing is ranked here.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ullage.errors import InvalidArguments, UnknownTool

from ..merge.spelling import key
from ..merge.view import View
from .twins import server_words

__all__ = ["Scope", "scope_of", "stray"]

_BEFORE_COLON = re.compile(r"\s*([^:\n]{1,100}):(?!//)(.*)", re.DOTALL)
_AT = re.compile(r"(?<!\S)(@[\w@./-]{1,100})(?=[\s,;:!?]|$)")
_ONE_WORD = re.compile(r"\s*([A-Za-z][\w.-]*):\s+\S.*", re.DOTALL)
_AROUND = (
    "tool tools server servers mcp the of all list show me what are which available from for by in on every please"
)
"""Words around a server's name in a query for all of its tools: `list all tools of github`."""
_OF_A_LIST = frozenset(_AROUND.split())
_LISTED = frozenset({"tool", "tools", "server", "servers", "mcp"})
"""One of which must be there."""


@dataclass(frozen=True, slots=True)
class Scope:
    text: str
    """What is looked for; empty where that is everything."""
    servers: frozenset[str] = frozenset()
    """Where; empty for everywhere."""

    def holds(self, server: str) -> bool:
        return not self.servers or server in self.servers


def scope_of(description: str, said: Sequence[str], view: View) -> Scope:
    """`said` are servers named as such: raises `InvalidArguments` for one that there is not. What only may name one is
    taken for words where it does not."""
    if said:
        servers = frozenset(_server(name, view) for name in said)
        return Scope("" if _named(description, view) & servers else description, servers)
    return _marked(description, view) or _whole(description, view) or Scope(description)


def stray(description: str, view: View) -> str | None:
    """What stands where a server's name would and is none: `nosuch: create issue`, `create issue @nosuch`."""
    if scope_of(description, (), view).servers:
        return None
    before, behind = _ONE_WORD.fullmatch(description), _AT.findall(description)
    return before[1] if before else behind[-1].removeprefix("@") if behind else None


def _server(name: str, view: View) -> str:
    try:
        return view.server(name)
    except UnknownTool as error:
        alike = [one for one in view.servers if server_words(one) == server_words(name)]
        if len(alike) == 1:
            return alike[0]
        raise InvalidArguments(error.message, suggestion=error.suggestion, options=error.options) from error


def _marked(text: str, view: View) -> Scope | None:
    """`server: words`, or `words @server`."""
    before = _BEFORE_COLON.fullmatch(text)
    if before and (servers := _named(before[1], view)):
        return Scope(before[2].strip(), servers)
    found = {mark: servers for mark in _AT.findall(text) if (servers := _named(mark, view))}
    rest = " ".join(_AT.sub(lambda mark: "" if mark[1] in found else mark[0], text).split())
    return Scope(rest, frozenset[str]().union(*found.values())) if found else None


def _whole(text: str, view: View) -> Scope | None:
    """Nothing but a server's name, or that and words for all of its tools."""
    return next((Scope("", servers) for name in _spellings(text) if (servers := _named(name, view))), None)


def _spellings(text: str) -> Iterator[str]:
    yield text
    words = text.split()
    if _LISTED.intersection(map(str.casefold, words)):
        yield " ".join(word for word in words if word.casefold() not in _OF_A_LIST)


def _named(text: str, view: View) -> frozenset[str]:
    """The servers whose name this is, in whatever spelling: one, or none, or some that are called alike."""
    spelt = key(text)
    return frozenset(server for server in view.servers if spelt and _key(server) == spelt)


_key = lru_cache(maxsize=8_192)(key)
