"""Tool search: parse the query, rank a view's tools, group duplicates and compose the reply.

A search passes through these steps:

1. `read_query` reads the arguments of `find_tool` into a `Query`.
2. `scope_of` narrows the search to servers that the query names unambiguously: `github: create issue`, `create
   issue @github`, `server_name` beside the query, or a query that is only the server's name. A server's name among
   other words is an ordinary word, because it may occur there by chance.
3. `begin` loads what was learnt from earlier searches, so that the index can use it. Only tools that the reply really
   showed are noted for learning. A tool found by its name and a pinned tool teach nothing, because neither needed a
   search.
4. `rank` orders the tools. A tool named in the query comes first, and it is the only result where the query is nothing
   but its name.
5. `grouped` merges tools that do the same: one takes a place in the reply and lists the names of the others.
6. `find_reply.compose` fits the result into the token budget.

`Searching.explain` runs the same ranking without noting anything, and reports why each tool was found.

Two servers of one kind (a fork beside its original, one server under two names) describe their tools in the same words,
and a reply that shows each of them has less room for others. Two tools are twins if they have the same name, the same
parameters and nearly the same words in their descriptions, and there is evidence that they also do the same: their
servers have the same name, or the descriptions share words that few tools use. `search(query)` of two services has the
same description twice and is no twin. Tools of one server are twins only where nothing differs, since a server
separates its own tools for a reason.

Words are compared, not meanings: a tool that does the same in other words is not recognised and keeps a place of its
own.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from typing import NamedTuple

import anyio.to_thread

from ullage.errors import InvalidArguments, UnknownTool
from ullage.search import EmbedderFailed, Hit, HybridIndex, Named, Need, Used, need_of, parts, restrained, terms
from ullage.tool import Caller, Json, JsonObject, Tool

from ..accepted_definitions import trust_command
from ..merge.tool_names import key
from ..merge.tool_view import Entry, View
from ..reply_metadata import character_limit
from ..results import ShapeMemory
from .argument_repair import parsed
from .find_metrics import Figures
from .find_reply import LEAST_BUDGET, About, Beside, Candidates, Found, compose
from .find_settings import FindSettings
from .tool_forms import Forms
from .tool_index import Latest, Shelf
from .usage_learning import Learning

__all__ = [
    "Asked",
    "Explained",
    "Group",
    "Lesson",
    "Query",
    "Ranked",
    "Scope",
    "Search",
    "Searching",
    "are_twins",
    "begin",
    "grouped",
    "rank",
    "read_query",
    "scope_of",
    "server_words",
    "stray",
]

_ALIKE = 0.8
"""Jaccard similarity of words, and of parameters, that twins must reach."""
_EVIDENCE = 5
"""Distinctive words beyond the name that both tools must share, where their servers' names give no evidence."""
_SOME_EVIDENCE = 2
"""Distinctive words required where one server's name contains the other's: `calendar`, `google-calendar`."""
_LONG = 4_000
"""Characters read of a description."""
_MOST_COMPARED = 50
"""Most tools of one name that a further tool of that name is compared with."""

_ANY_SERVER = """
mcp mcps server servers tool tools api apis client app service plugin agent ai js ts py python node go rust docker io
com org net the my a an and for test demo example sample dev development prod production staging local remote main
default backup work personal home primary secondary official fork simple smithery v
"""
"""Words in a server's name that do not describe the service."""
_ANY_TOOL = """
a an the of to in on at for from by with and or not is are be this that it its as if you your all any each one get list
search find create add update delete remove set read write fetch retrieve return returns use used using can will which
when where args argument arguments parameter parameters param input output result results optional required default
string number integer boolean object array json value values data text content id ids name names type types key keys
query limit offset page size count max min start end date time path url file files user users item items information
info detail details specific specified given provided new existing current available based tool server mcp true false
none null
"""
"""Words so common in tools that sharing them is no evidence."""
_OF_ANY_SERVER, _OF_ANY_TOOL = frozenset(_ANY_SERVER.split()), frozenset(terms(_ANY_TOOL))


class Group(NamedTuple):
    """Tools that do the same. A named tuple, like `Ranked`, because a search makes a hundred."""

    first: Entry
    """The tool shown for the whole group."""
    others: tuple[Entry, ...] = ()


def grouped(entries: Sequence[Entry], wanted: Iterable[str] = ()) -> list[Group]:
    """Group the tools that do the same, in the order of each group's best tool.

    The best tool represents its group, unless the wanted words name the server of another tool and not its own.
    """
    groups: list[list[Entry]] = []
    of_name: dict[tuple[str, ...], list[list[Entry]]] = {}
    for entry in entries:
        known = of_name.setdefault(_name(entry), [])
        for group in known[:_MOST_COMPARED]:
            if are_twins(group[0], entry):
                group.append(entry)
                break
        else:
            group = [entry]
            known.append(group)
            groups.append(group)
    words = frozenset(wanted)
    return [Group(group[0]) if len(group) == 1 else _group(group, words) for group in groups]


def _group(group: Sequence[Entry], wanted: frozenset[str]) -> Group:
    first = max(group, key=lambda entry: server_words(entry.server) <= wanted)
    return Group(first, tuple(entry for entry in group if entry is not first))


_judged: dict[tuple[int, int], tuple[Entry, Entry, bool]] = {}
"""Cache of comparisons by object identity. The entries are kept in the value so that their ids stay valid."""
_MOST_JUDGED = 4_096


def are_twins(one: Entry, other: Entry) -> bool:
    """Return whether two tools do the same. Results are cached."""
    known = _judged.get((id(one), id(other)))
    if known is None:
        if len(_judged) >= _MOST_JUDGED:
            _judged.clear()
        known = _judged[id(one), id(other)] = one, other, _do_the_same(one, other)
    return known[2]


def _do_the_same(one: Entry, other: Entry) -> bool:
    """Compare two tools, the cheapest checks first."""
    if _name(one) != _name(other) or one.is_read_only != other.is_read_only:
        return False
    if one.server == other.server:
        return (
            _description(one) == _description(other)
            and one.tool.input_schema == other.tool.input_schema
            and parts(one.original) == parts(other.original)
        )
    ones, others = _parameters(one.tool), _parameters(other.tool)
    take_the_same = (
        _required(one.tool) == _required(other.tool)
        and _are_alike(ones.keys(), others.keys())
        and all(_type(ones[name]) == _type(others[name]) for name in ones.keys() & others.keys())
    )
    if not take_the_same:
        return False
    ones, others = _words(_description(one)), _words(_description(other))
    if not _are_alike(ones, others):
        return False
    # One of them mentions, in its name or description, a word of its server's name that the other lacks.
    servers = _words(" ".join(server_words(one.server) ^ server_words(other.server)))
    if not servers.isdisjoint((ones ^ others) | (_words(one.original) ^ _words(other.original))):
        return False
    # How many distinctive words the tools must share depends on the names of their servers.
    first, second = server_words(one.server), server_words(other.server)
    if first <= _OF_ANY_SERVER or second <= _OF_ANY_SERVER or not (first <= second or second <= first):
        least = _EVIDENCE
    else:
        least = 0 if first == second else _SOME_EVIDENCE
    return len(_telling(one) & _telling(other)) >= least


def _telling(entry: Entry) -> frozenset[str]:
    """Return the distinctive words of description and parameters, without those of the tool's name."""
    said = _words(_description(entry)) | _words(" ".join(_parameters(entry.tool)))
    return frozenset(word for word in said - _OF_ANY_TOOL - _words(entry.original) if len(word) > 1)


def _are_alike(one: Set[str], other: Set[str]) -> bool:
    return len(one & other) >= _ALIKE * len(one | other)


@lru_cache(maxsize=4_096)
def server_words(server: str) -> frozenset[str]:
    """Return the words of a server's name that describe the service, or all of them where none does.

    `@owner/name` is read as `name`. Case does not split words: `GitHub` is one word.
    """
    words = frozenset(word for word in parts(server.rsplit("/", 1)[-1].casefold()) if not word.isdecimal())
    return words - _OF_ANY_SERVER or words or frozenset({server})


def _name(entry: Entry) -> tuple[str, ...]:
    return _name_words(entry.original, entry.server)


@lru_cache(maxsize=4_096)
def _name_words(name: str, server: str) -> tuple[str, ...]:
    """Return the sorted words of a tool's name, without those of its server's name where others remain."""
    words = parts(name)
    return tuple(sorted([word for word in words if word not in server_words(server)] or words)) or (name,)


def _description(entry: Entry) -> str:
    return (entry.tool.description or entry.tool.title or "")[:_LONG]


@lru_cache(maxsize=2_048)
def _words(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def _parameters(tool: Tool) -> dict[str, Json]:
    properties = tool.input_schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _required(tool: Tool) -> frozenset[str]:
    required = tool.input_schema.get("required")
    return frozenset(map(str, required)) if isinstance(required, list) else frozenset()


def _type(schema: Json) -> Json:
    return schema.get("type") if isinstance(schema, dict) else None


_BEFORE_COLON = re.compile(r"\s*([^:\n]{1,100}):(?!//)(.*)", re.DOTALL)
_AT = re.compile(r"(?<!\S)(@[\w@./-]{1,100})(?=[\s,;:!?]|$)")
_ONE_WORD = re.compile(r"\s*([A-Za-z][\w.-]*):\s+\S.*", re.DOTALL)
_AROUND = (
    "tool tools server servers mcp the of all list show me what are which available from for by in on every please"
)
"""Words around a server's name in a query for all of its tools: `list all tools of github`."""
_OF_A_LIST = frozenset(_AROUND.split())
_LISTED = frozenset({"tool", "tools", "server", "servers", "mcp"})
"""At least one of these must occur in such a query."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of a catalogue that a query searches."""

    text: str
    """The text to search for; empty to list everything."""
    servers: frozenset[str] = frozenset()
    """The servers to search; empty for all."""

    def holds(self, server: str) -> bool:
        """Return whether the server is in scope."""
        return not self.servers or server in self.servers


def scope_of(description: str, said: Sequence[str], view: View) -> Scope:
    """Return the scope of a query.

    Args:
        description: The query. A server's name in it narrows the search only where it is unambiguous.
        said: Servers given explicitly, in an argument of their own.
        view: The view to search.

    Raises:
        InvalidArguments: An explicitly given server does not exist.
    """
    if said:
        servers = frozenset(_server(name, view) for name in said)
        return Scope("" if _named(description, view) & servers else description, servers)
    before = _BEFORE_COLON.fullmatch(description)
    if before and (servers := _named(before[1], view)):
        marked = Scope(before[2].strip(), servers)
    else:
        found = {mark: servers for mark in _AT.findall(description) if (servers := _named(mark, view))}
        rest = " ".join(_AT.sub(lambda mark: "" if mark[1] in found else mark[0], description).split())
        marked = Scope(rest, frozenset[str]().union(*found.values())) if found else None
    if marked:
        return marked
    # A text that is only a server's name, or that name with words that ask for all of its tools.
    whole = (Scope("", servers) for name in _spellings(description) if (servers := _named(name, view)))
    return next(whole, Scope(description))


def stray(description: str, view: View) -> str | None:
    """Return an unknown name written where a server's name belongs, as in `nosuch: create issue` or `create issue
    @nosuch`."""
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


def _spellings(text: str) -> Iterator[str]:
    yield text
    words = text.split()
    if _LISTED.intersection(map(str.casefold, words)):
        yield " ".join(word for word in words if word.casefold() not in _OF_A_LIST)


def _named(text: str, view: View) -> frozenset[str]:
    """Return the servers with this name in any spelling. There may be several whose names differ only in spelling."""
    spelt = key(text)
    return frozenset(server for server in view.servers if spelt and _key(server) == spelt)


_key = lru_cache(maxsize=8_192)(key)

_ARGUMENTS = ("tool_description", "tool_keywords", "max_tokens")
_OTHER_WORDS = ("query", "description", "tool_name", "name", "q")
_SERVER = ("server_name", "serverName", "server")
_MOST = 40
"""Most tools in a reply with an ordinary budget."""
_MOST_OF_MUCH = 80
"""Most tools in a reply with a large budget, or to a query that only names a server."""
_MUCH = 2_000
_DEEP = 2_000
"""Most hits examined when the search is narrowed to servers."""
_MOST_TOKENS = 100_000
_LONGEST = 10_000
"""Most characters read of a description, and of keywords; anything longer is a document, not a query."""
_QUERY_ONE_WORD = re.compile(r"[\w.:/-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The parsed arguments of `find_tool`."""

    description: str
    keywords: str = ""
    servers: tuple[str, ...] = ()
    """The servers to search, as the caller wrote them; empty for all."""
    budget: int
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Description and keywords together."""
        return f"{self.description} {self.keywords}".strip()


class Ranked(NamedTuple):
    """A tool found by a search, with its relevance."""

    listed: str
    named: bool = False
    """Whether the query contains the tool's name."""
    near: bool = True
    """False where the tool is included only because its server was asked for."""
    score: float = 0.0
    """The hit's score, comparable within one search only."""
    also: tuple[str, ...] = ()
    """Listed names of other tools that do the same."""


Search = Callable[[str, int], Sequence[Hit]]
"""A search function: the documents nearest to a text, and at most so many."""


def read_query(arguments: JsonObject, budget: int) -> Query:
    """Parse the arguments of `find_tool`.

    Args:
        arguments: As the caller sent them. Common wrong names for the description are accepted and noted.
        budget: Tokens for the reply where the caller gives no `max_tokens`, raised to the smallest possible reply.

    Raises:
        InvalidArguments: The query is empty, or `max_tokens` is not a number or below the smallest possible reply.
    """
    given, budget = dict(arguments), max(budget, LEAST_BUDGET)
    description, notes = _text(given.pop("tool_description", None)), list[str]()
    keywords = _text(given.pop("tool_keywords", None))
    value = given.pop("max_tokens", None)
    number = parsed(value) if isinstance(value, str) else value
    if number is None:
        most = budget
    else:
        if (
            isinstance(number, bool)
            or not isinstance(number, int | float)
            or (isinstance(number, float) and math.isnan(number))
        ):
            raise InvalidArguments("`max_tokens` must be a number", suggestion=f"Leave it out for {budget}.")
        if number < LEAST_BUDGET:
            raise InvalidArguments(
                f"no reply fits into a `max_tokens` below {LEAST_BUDGET}",
                suggestion=f"Give {LEAST_BUDGET} or more, or leave it out.",
            )
        most = int(min(number, _MOST_TOKENS))
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
    """Return a string stripped, or the strings of a list joined by spaces."""
    if isinstance(value, list):
        return " ".join(each for each in value if isinstance(each, str)).strip()
    return value.strip() if isinstance(value, str) else ""


def _names(value: Json) -> tuple[str, ...]:
    """Return the names in a string separated by commas, or in a list."""
    each = value if isinstance(value, list) else value.split(",") if isinstance(value, str) else []
    return tuple(name.strip() for name in each if isinstance(name, str) and name.strip())


def rank(search: Search, view: View, query: Query, entries: Mapping[str, Entry]) -> tuple[Ranked, ...]:
    """Return the tools for the query, nearest first.

    Args:
        search: The index's search.
        view: The view to search.
        query: The parsed query.
        entries: The view's entries by their listed names.
    """
    scope = scope_of(query.description, query.servers, view)
    most = _MOST if scope.text and query.budget < _MUCH else _MOST_OF_MUCH
    found = _found(search, query, scope, entries, 2 * most)
    groups = grouped([entries[listed] for listed in islice(found, _DEEP)], parts(query.text.casefold()))
    return tuple(_ranked(group, found) for group in groups[:most])


def _ranked(group: Group, found: Mapping[str, Ranked]) -> Ranked:
    """Return the group's first tool with the best score of the group."""
    if not group.others:
        return found[group.first.listed]
    every = [found[entry.listed] for entry in (group.first, *group.others)]
    return Ranked(
        listed=group.first.listed,
        named=any(each.named for each in every),
        near=any(each.near for each in every),
        score=max(each.score for each in every),
        also=tuple(each.listed for each in every[1:]),
    )


def _found(search: Search, query: Query, scope: Scope, entries: Mapping[str, Entry], most: int) -> dict[str, Ranked]:
    """Return named tools, then near ones, then the remaining tools of the servers that were asked for."""
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
    scores = {hit.document.id: hit.score for hit in (*alone, *hits)}
    found = {listed: Ranked(listed, True, True, scores[listed]) for listed in named}
    if whole and (_QUERY_ONE_WORD.fullmatch(scope.text) is not None and len(parts(scope.text)) > 1):
        return found
    for hit in hits:
        listed = hit.document.id
        if listed not in found:
            found[listed] = Ranked(listed, False, True, hit.score)
    if scope.servers:
        for listed, entry in entries.items():
            if entry.server in scope.servers:
                found.setdefault(listed, Ranked(listed=listed, near=False))
    return found


def _within(scope: Scope, entries: Mapping[str, Entry], hits: Iterable[Hit]) -> list[Hit]:
    if not scope.servers:
        return [hit for hit in hits if hit.document.id in entries]
    return [hit for hit in hits if (entry := entries.get(hit.document.id)) and scope.holds(entry.server)]


_NAMES = re.compile(r'[^\s"\\,()\[\]]+')
"""Matches a tool's name in a reply. The few names with other characters are not learnt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lesson:
    """The learning state of one search: gains from earlier uses, and what to note of the reply."""

    index: HybridIndex
    learning: Learning | None = None
    caller: Caller
    need: Need = field(default_factory=Need)
    gains: Mapping[str, float] = field(default_factory=dict[str, float])
    """Score gains from earlier uses, by listed name."""

    def search(self, text: str, limit: int) -> Sequence[Hit]:
        """Search the index with the gains applied."""
        if not self.gains:
            return self.index.search(text, limit)
        return restrained(self.index.search(text, limit, learnt=self.gains), self.gains)

    def note(self, reply: str, found: Iterable[Ranked], entries: Mapping[str, Entry]) -> None:
        """Note which of the found tools the reply shows, for later learning.

        Tools found by their name and pinned tools are not noted, since they needed no search.
        """
        if self.learning is None or not self.need:
            return
        said = frozenset(_NAMES.findall(reply))
        near = (listed for each in found if not each.named for listed in (each.listed, *each.also) if listed in said)
        shown = (entries[listed] for listed in near)
        self.learning.showed(self.caller, self.need, map(_used, (entry for entry in shown if not entry.is_pinned)))


async def begin(learning: Learning | None, text: str, index: HybridIndex, view: View, caller: Caller) -> Lesson:
    """Start the lesson of a search; it is empty where learning is off or the text has no usable words."""
    need = Need() if learning is None else need_of(text, index.holds)
    if learning is None or not need:
        return Lesson(index=index, caller=caller)
    book = view.book
    assert book is not None
    gains = {
        entry.listed: gain
        for used, gain in (await learning.bonuses(caller, need)).items()
        for entry in book.find(used[1], used[0])
        if _used(entry) == used
    }
    return Lesson(index=index, learning=learning, caller=caller, need=need, gains=gains)


def _used(entry: Entry) -> Used:
    return entry.server, entry.original


_LETTERS = 50_000
"""Characters of found definitions above which they are counted in a worker thread."""
_MANY = 1_000
"""Tools in a view above which it is ranked in a worker thread, as it always is with an encoder."""
_STAND_INS = 3
"""Most retries of a search: the encoder may fail, then the table, and an index of either may be built meanwhile."""
_WITH_SHAPES = 4
"""Best ranks that are shown with what they return; beyond these, a line is as useful."""
_SERVERS = 20
"""Most servers listed in the hint of an empty result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query with everything that its search depends on."""

    query: Query
    view: View
    caller: Caller
    settings: FindSettings


_DECIMALS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """A tool that a search found, with the reason."""

    listed: str
    hit: Hit | None
    """The index's hit with the parts of its score; None where the tool is included only because its server was asked
    for."""

    def to_json(self) -> dict[str, Json] | None:
        """Return the parts of the score; None where there is no hit."""
        if self.hit is None:
            return None
        hit, why = self.hit, self.hit.explain()
        return {
            "score": round(hit.score, _DECIMALS),
            "named": hit.named.name.lower() if hit.named else None,
            "words": round(why.words, _DECIMALS),
            "meaning": round(why.meaning, _DECIMALS),
            "closer": round(why.closer, _DECIMALS),
            "use": round(why.use, _DECIMALS),
            "nearness": None if why.nearness is None else round(why.nearness, _DECIMALS),
            "share": round(why.share, _DECIMALS),
            "terms": [
                {
                    "term": reason.term,
                    "field": reason.field.value,
                    "score": round(reason.score, _DECIMALS),
                    "asked": reason.asked,
                }
                for reason in why.reasons
            ],
        }


class Searching:
    """Runs the searches of one `Find`."""

    def __init__(
        self, shelf: Shelf, figures: Figures, learning: Learning | None, shapes: ShapeMemory | None = None
    ) -> None:
        self._shelf = shelf
        self._figures = figures
        self._learning = learning
        self._shapes = shapes
        self._by_name = Latest[dict[str, Entry]]()
        self._reading = Latest[frozenset[str]]()
        self._candidates = Candidates()

    async def search(self, asked: Asked) -> Found:
        """Search, compose the reply within the budget, and note what it shows for learning."""
        entries = self._entries(asked.view)
        lesson, ranked = await self._ranked(asked)
        hits = [(each, entries[each.listed]) for each in ranked]
        forms = await self._shelf.forms([entry for _, entry in hits])
        baseline = await self._figures.baseline(asked.view, asked.caller)
        shapes, principal = self._shapes, asked.caller.principal
        if shapes is None or not asked.settings.shapes:
            returns = {}
        else:
            await shapes.load(principal)
            model, weigh = self._figures.model(asked.caller), self._figures.weigh(asked.caller)
            returns = {
                one.listed: shapes.text_of(principal, one, model, lambda text: weigh(text).high)
                for one in [entry for _, entry in hits[:_WITH_SHAPES]]
            }
        work = partial(self._compose, asked, list(zip(hits, forms, strict=True)), baseline, returns)
        # Definitions may be of any length, and their tokens are counted when they are first found.
        letters = sum(len(form.definition) for form in forms)
        found = await anyio.to_thread.run_sync(work) if letters > _LETTERS else work()
        lesson.note(found.text, ranked, entries)
        return found

    async def has_match(self, asked: Asked) -> bool:
        """Return whether any tool of the view is near the query."""
        _, ranked = await self._ranked(asked)
        return any(each.near for each in ranked)

    async def explain(self, asked: Asked) -> tuple[Explained, ...]:
        """Return what the same search finds, nearest first, without noting anything for learning."""
        heard = dict[str, Hit]()
        _, ranked = await self._ranked(asked, heard)
        return tuple(
            Explained(listed=each.listed, hit=heard.get(each.listed) if each.near else None) for each in ranked
        )

    async def _ranked(self, asked: Asked, heard: dict[str, Hit] | None = None) -> tuple[Lesson, tuple[Ranked, ...]]:
        """Rank with fallbacks: where an embedder fails, search again with its replacement, and in the end by words
        alone.

        Each hit is added to `heard` when it is first found.
        """
        for _ in range(_STAND_INS):
            try:
                return await self._ranked_once(asked, heard)
            except EmbedderFailed as error:
                await self._shelf.give_up(error)
                if heard is not None:
                    heard.clear()
        return await self._ranked_once(asked, heard)

    async def _ranked_once(self, asked: Asked, heard: dict[str, Hit] | None) -> tuple[Lesson, tuple[Ranked, ...]]:
        index = await self._shelf.index(asked.view, asked.settings.index)
        learning = self._learning if asked.settings.learn else None
        lesson = await begin(learning, asked.query.text, index, asked.view, asked.caller)

        def search(text: str, limit: int) -> Sequence[Hit]:
            hits = lesson.search(text, limit)
            if heard is not None:
                for hit in hits:
                    heard.setdefault(hit.document.id, hit)
            return hits

        entries = self._entries(asked.view)
        work = partial(rank, search, asked.view, asked.query, entries)
        takes_long = asked.settings.index == "encoder" or len(entries) > _MANY
        return lesson, await anyio.to_thread.run_sync(work) if takes_long else work()

    def _entries(self, view: View) -> dict[str, Entry]:
        return self._by_name.of((view,), lambda: {entry.listed: entry for entry in view.entries})

    def _compose(
        self,
        asked: Asked,
        found: Sequence[tuple[tuple[Ranked, Entry], Forms]],
        baseline: int,
        returns: Mapping[str, str],
    ) -> Found:
        weigh, doors = self._figures.weigh(asked.caller), not asked.settings.join_calls
        known = self._candidates.of_model(self._figures.model(asked.caller), baseline)
        reading = self._reading.of(
            (asked.view,), lambda: frozenset(entry.listed for entry in asked.view.entries if entry.is_read_only)
        )
        candidates = [
            known(
                form,
                About(
                    each.named,
                    each.near,
                    doors and each.listed not in reading,
                    each.also,
                    returns.get(each.listed, ""),
                ),
                weigh,
            )
            for (each, _), form in found
        ]
        hint = _withheld(asked)
        if hint is None and not found:
            hint = _hint(asked.view)
        elif hint is None and not asked.query.servers:
            name = stray(asked.query.description, asked.view)
            hint = None if name is None else f"No server is called `{name[:40]}`; all were searched."
        beside = Beside((*asked.settings.pending, *asked.view.missing), hint)
        limit = character_limit(asked.caller)
        return compose(
            candidates,
            baseline=baseline,
            budget=asked.query.budget,
            weigh=weigh,
            weigh_joined=self._figures.weigh_joined(asked.caller),
            beside=beside,
            limit=limit,
            scores=[each.score for (each, _), _ in found] if asked.settings.stop_early else (),
        )


def _withheld(asked: Asked) -> str | None:
    """Return a hint for a query that names a withheld tool: why it is withheld and which command accepts it."""
    words = {key(word) for word in asked.query.text.split()}
    for entry in asked.view.changed:
        if words & {key(entry.listed), key(entry.original)}:
            command = trust_command(entry.server, entry.original)
            return f"`{entry.listed}` is withheld: its definition changed. The user can accept it: {command}"
    return None


def _hint(view: View) -> str:
    servers = list(view.servers or dict.fromkeys(entry.server for entry in view.entries))
    rest = f" and {len(servers) - _SERVERS} more" if len(servers) > _SERVERS else ""
    named = f" Servers: {', '.join(servers[:_SERVERS])}{rest}." if servers else " No server is connected."
    return f"No tool matches this. Try other words, or a server's name.{named}"
