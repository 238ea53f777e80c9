"""Which tools do the same, so that one of them can stand for all?

Two servers of one kind, a fork beside its original, one server under two names: their tools say the same in the same
words, and a reply that shows each of them has less room for others. Twins have the same name, the same parameters and
nearly the same words in their descriptions, and there is evidence that they do the same and do not only say it: their
servers are called the same, or they share words that few tools say. `search(query)` of two services says the same of
both and is no twin. A server tells its own tools apart for a reason, so they are twins only where nothing differs.

Words are compared and not meanings: who does the same in other words is not noticed and keeps a place of its own.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

from ullage.search import parts, terms
from ullage.tool import Json, Tool

from ..merge.view import Entry

__all__ = ["Group", "are_twins", "grouped", "server_words"]

_ALIKE = 0.8
"""Of all words, and of all parameters, that one of two tools has: the part that both must have."""
_EVIDENCE = 5
"""Telling words that both must say beyond their name, where their servers' names show nothing."""
_SOME_EVIDENCE = 2
"""The same where one server's name says what the other's does and more: `calendar`, `google-calendar`."""
_LONG = 4_000
"""Characters read of a description."""
_MOST_COMPARED = 50
"""Tools of one name that another of that name is compared with."""

_ANY_SERVER = """
mcp mcps server servers tool tools api apis client app service plugin agent ai js ts py python node go rust docker io
com org net the my a an and for test demo example sample dev development prod production staging local remote main
default backup work personal home primary secondary official fork simple smithery v
"""
"""Words of a server's name that do not say what it serves."""
_ANY_TOOL = """
a an the of to in on at for from by with and or not is are be this that it its as if you your all any each one get list
search find create add update delete remove set read write fetch retrieve return returns use used using can will which
when where args argument arguments parameter parameters param input output result results optional required default
string number integer boolean object array json value values data text content id ids name names type types key keys
query limit offset page size count max min start end date time path url file files user users item items information
info detail details specific specified given provided new existing current available based tool server mcp true false
none null
"""
"""Words that so many tools say that it is no evidence to share them."""
_OF_ANY_SERVER, _OF_ANY_TOOL = frozenset(_ANY_SERVER.split()), frozenset(terms(_ANY_TOOL))


@dataclass(frozen=True, slots=True)
class Group:
    """Tools that do the same."""

    first: Entry
    """Stands for all."""
    others: tuple[Entry, ...] = ()


def grouped(entries: Sequence[Entry], wanted: Iterable[str] = ()) -> list[Group]:
    """The tools in groups, in the order of the best of each. That one stands for its group, unless the words that are
    wanted name the server of another and not its own."""
    groups: list[list[Entry]] = []
    of_name: dict[tuple[str, ...], list[list[Entry]]] = {}
    for entry in entries:
        known = of_name.setdefault(_name(entry), [])
        group = next((group for group in known[:_MOST_COMPARED] if are_twins(group[0], entry)), None) if known else None
        if group is None:
            group = [entry]
            known.append(group)
            groups.append(group)
        else:
            group.append(entry)
    words = frozenset(wanted)
    return [Group(group[0]) if len(group) == 1 else _group(group, words) for group in groups]


def _group(group: Sequence[Entry], wanted: frozenset[str]) -> Group:
    first = max(group, key=lambda entry: server_words(entry.server) <= wanted)
    return Group(first, tuple(entry for entry in group if entry is not first))


_judged: dict[tuple[int, int], tuple[Entry, Entry, bool]] = {}
"""Pairs of entries, by their identities, which hold as long as they are held here: the next search asks again."""
_MOST_JUDGED = 4_096


def are_twins(one: Entry, other: Entry) -> bool:
    """Whether two tools do the same."""
    known = _judged.get((id(one), id(other)))
    if known is None:
        if len(_judged) >= _MOST_JUDGED:
            _judged.clear()
        known = _judged[id(one), id(other)] = one, other, _do_the_same(one, other)
    return known[2]


def _do_the_same(one: Entry, other: Entry) -> bool:
    """The cheapest to find out comes first."""
    if _name(one) != _name(other) or one.is_read_only != other.is_read_only:
        return False
    if one.server == other.server:
        return _are_the_same(one, other)
    return _take_the_same(one.tool, other.tool) and _say_the_same(one, other)


def _take_the_same(one: Tool, other: Tool) -> bool:
    """Whether a call of one is a call of the other, but for what may be left out."""
    ones, others = _parameters(one), _parameters(other)
    return (
        _required(one) == _required(other)
        and _are_alike(ones.keys(), others.keys())
        and all(_type(ones[name]) == _type(others[name]) for name in ones.keys() & others.keys())
    )


def _say_the_same(one: Entry, other: Entry) -> bool:
    ones, others = _words(_description(one)), _words(_description(other))
    if not _are_alike(ones, others) or _speak_of_two_services(one, other, ones ^ others):
        return False
    return len(_telling(one) & _telling(other)) >= _wanting(server_words(one.server), server_words(other.server))


def _speak_of_two_services(one: Entry, other: Entry, differing: Set[str]) -> bool:
    """Whether one says a word of its server's name, in its own name or description, that the other nowhere has."""
    names = _words(" ".join(server_words(one.server) ^ server_words(other.server)))
    return not names.isdisjoint(differing | (_words(one.original) ^ _words(other.original)))


def _wanting(one: frozenset[str], other: frozenset[str]) -> int:
    """How much evidence the names of two servers leave to be shown."""
    if one <= _OF_ANY_SERVER or other <= _OF_ANY_SERVER or not (one <= other or other <= one):
        return _EVIDENCE
    return 0 if one == other else _SOME_EVIDENCE


def _telling(entry: Entry) -> frozenset[str]:
    """Words of description and parameters, beyond the name, that few tools say."""
    said = _words(_description(entry)) | _words(" ".join(_parameters(entry.tool)))
    return frozenset(word for word in said - _OF_ANY_TOOL - _words(entry.original) if len(word) > 1)


def _are_alike(one: Set[str], other: Set[str]) -> bool:
    return len(one & other) >= _ALIKE * len(one | other)


@lru_cache(maxsize=4_096)
def server_words(server: str) -> frozenset[str]:
    """The words of a server's name that say what it serves, or all where none does; `@owner/name` is `name`, and case
    parts no words: `GitHub` is one."""
    words = frozenset(word for word in parts(server.rsplit("/", 1)[-1].casefold()) if not word.isdecimal())
    return words - _OF_ANY_SERVER or words or frozenset({server})


def _name(entry: Entry) -> tuple[str, ...]:
    return _name_words(entry.original, entry.server)


@lru_cache(maxsize=4_096)
def _name_words(name: str, server: str) -> tuple[str, ...]:
    """The words of a tool's name in any order, without its server's where others remain."""
    words = parts(name)
    return tuple(sorted([word for word in words if word not in server_words(server)] or words)) or (name,)


def _are_the_same(one: Entry, other: Entry) -> bool:
    return (
        _description(one) == _description(other)
        and one.tool.input_schema == other.tool.input_schema
        and parts(one.original) == parts(other.original)
    )


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
