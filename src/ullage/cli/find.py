"""Search for tools by what they do, with the ranking that an agent gets from find_tool."""

import argparse
import json
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ullage.app.build_gateway import Gateway
from ullage.app.open_store import forget_learnt
from ullage.errors import InvalidArguments
from ullage.gateway import Explained, signature
from ullage.search import Named, Reason, parts, terms
from ullage.tool import Call, Json, Tool

from .load_settings import add_flags, caller_of, read, say, with_gateway
from .output import NO_SERVERS, bold, dim, emit, emit_json, how_many, page, without_name
from .tools import without_ullage

__all__ = ["arguments", "find_explanation", "run", "why_json", "why_lines"]

_LABEL = 9
_INDENT = "    "
_TERMS = 6
"""Maximum terms shown to a person; the others contributed less."""
_LEAST = 0.005
"""Minimum score shown to a person: a smaller one is 0 in two decimals."""
_UNBROKEN = "\u00a0"
"""A space at which lines are not broken."""
_OF_SERVER = "a tool of the server that was named"
_NAMED: Mapping[Named, str] = {
    Named.NO: "",
    Named.IN_PART: "the query is part of its name",
    Named.AMONG_OTHERS: "the query says its name among other words",
    Named.WHOLLY: "the query is its name",
    Named.EXACTLY: "the query is its name, to the letter",
}


def find_explanation(line: str, found: Mapping[str, Explained]) -> Explained | None:
    """Return the explanation of the tool that a line of a reply begins with."""
    return found.get(max((name for name in found if line.startswith(name)), key=len, default=""))


def why_lines(one: Explained, width: int) -> list[str]:
    """Return aligned lines of at most `width` columns."""
    if one.hit is None:
        return [f"{_INDENT}{_OF_SERVER}"]
    hit, why = one.hit, one.hit.explain()
    # A term is the stem of several words: show one as it occurs in the tool.
    words = (word for text in reversed(hit.document.texts()) for word in reversed(parts(text)))
    written = {term: word for word in words for term in terms(word)}
    by_term: dict[str, list[Reason]] = {}
    for reason in why.reasons:
        if reason.score >= _LEAST:
            by_term.setdefault(reason.term, []).append(reason)
    told = sorted(by_term.values(), key=lambda one: -sum(reason.score for reason in one))
    rest = f"; {len(told) - _TERMS} more" if len(told) > _TERMS else ""
    common = "; ".join(_format_term(one, written) for one in told[:_TERMS]) + rest
    rows = [
        ("score", hit.score, _NAMED[hit.named]),
        ("words", why.words, common or "no rare word in common"),
    ]
    if why.nearness is not None:
        said = f"nearness {why.nearness:.2f}, which counts for at most {why.share:.2f} here"
        rows.append(("meaning", why.meaning, said))
    rows += [
        *([("closer", why.closer, "second pass, word by word against the best rivals")] if why.closer else []),
        *([("use", why.use, "called after a search like this one")] if why.use else []),
    ]
    lines: list[str] = []
    for label, score, said in rows:
        head = f"{_INDENT}{label:<{_LABEL}}{score:.2f}  "
        lines += textwrap.wrap(head + said, width, subsequent_indent=" " * len(head), break_long_words=False)
    return [line.replace(_UNBROKEN, " ") for line in lines]


def _format_term(reasons: Sequence[Reason], written: Mapping[str, str]) -> str:
    word, kin = written.get(reasons[0].term, reasons[0].term), "" if reasons[0].asked else " (similar)"
    gave = (f"{reason.field.value} {reason.score:.2f}".replace(" ", _UNBROKEN) for reason in reasons)
    return f"{word}{kin}: ".replace(" ", _UNBROKEN) + ", ".join(gave)


def why_json(shown: Iterable[Explained]) -> dict[str, Json]:
    """Return explanations by the tool's name; None for a tool listed only because its server was requested."""
    return {one.listed: one.to_json() for one in shown}


_LEAST_TOKENS = 100
"""Minimum tokens of a reply: with fewer, `find_tool` has no room for any tool."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", nargs="*", metavar="QUERY", help="what the tool should do, or its name")
    parser.add_argument("--keywords", metavar="WORDS", help="additional search terms")
    parser.add_argument("--max-tokens", metavar="N", type=int, help="maximum size of the reply in tokens")
    parser.add_argument("--why", action="store_true", help="explain each result: words, meaning, earlier use")
    parser.add_argument("--json", action="store_true", help="print the reply that an agent gets")
    parser.add_argument(
        "--forget", action="store_true", help="do not search; delete what was learned from earlier searches"
    )
    add_flags(parser)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SearchResult:
    """The result of a search."""

    said: Mapping[str, Any]
    baseline: int
    """Tokens of definitions without Ullage."""
    is_direct: bool
    writing: Set[str]
    """Tools that may change something."""
    why: Mapping[str, Explained]
    """Explanations by name; empty if they were not requested."""

    @property
    def shown(self) -> list[Explained]:
        """Explanations of the tools in the reply."""
        names = (*(tool["name"] for tool in self.said["tools"]), *self.said["more"])
        return [one for name in names if (one := find_explanation(name, self.why)) is not None]


def run(arguments: argparse.Namespace) -> int:
    if arguments.forget:
        if arguments.query:
            raise InvalidArguments(
                "--forget searches for nothing", suggestion="leave the query out: ullage find --forget"
            )
        uses, shapes = forget_learnt(read(arguments).settings)
        if arguments.json:
            emit_json({"forgotten": uses, "shapes_forgotten": shapes})
        elif shapes:
            emit(f"{how_many(uses, 'use')} and {how_many(shapes, 'shape')} of replies forgotten.")
        else:
            emit(f"{how_many(uses, 'use')} forgotten.")
        return 0
    asked = _read_arguments(arguments)

    async def search(gateway: Gateway) -> _SearchResult:
        caller, find = caller_of(gateway, arguments.client), gateway.find(arguments.client)
        reply = await find.call(Call(tool="find_tool", arguments=asked, caller=caller))
        why = await find.explain(asked, caller) if arguments.why else ()
        view = await gateway.view()
        return _SearchResult(
            said=json.loads(str(reply.content[0]["text"])),
            baseline=without_ullage(view),
            is_direct=find.surface == "direct",
            writing={entry.listed for entry in view.entries if not entry.is_read_only},
            why={one.listed: one for one in why},
        )

    loaded = read(arguments)
    found = with_gateway(loaded, search)
    if arguments.json:
        emit_json({**found.said, **({"why": why_json(found.shown)} if arguments.why else {})})
    else:
        _print(found)
        settings = loaded.settings
        if not (settings.servers or settings.databases or settings.retrieves or settings.delegate.is_wanted):
            say(NO_SERVERS)
    return 0 if found.said["tools"] or found.said["more"] else 1


def _read_arguments(arguments: argparse.Namespace) -> dict[str, Json]:
    """Return the arguments of find_tool, and refuse those that it would refuse in words meant for a model."""
    asked: dict[str, Json] = {"tool_description": " ".join(arguments.query)}
    if not " ".join(arguments.query).strip():
        raise InvalidArguments(
            "the query is empty", suggestion='say what the tool should do: ullage find "create an issue"'
        )
    if arguments.keywords:
        asked["tool_keywords"] = arguments.keywords
    if arguments.max_tokens is not None:
        if arguments.max_tokens < _LEAST_TOKENS:
            raise InvalidArguments(
                f"no reply fits into fewer than {_LEAST_TOKENS} tokens",
                suggestion=f"give --max-tokens {_LEAST_TOKENS} or more, or leave it out",
            )
        asked["max_tokens"] = arguments.max_tokens
    return asked


def _print(found: _SearchResult) -> None:
    for number, tool in enumerate(found.said["tools"]):
        if number:
            emit()
        call, _, _ = signature(Tool(name=tool["name"], input_schema=tool["inputSchema"])).partition(" — ")
        call += " [write]" if tool["name"] in found.writing else ""
        emit(bold(tool["name"]) + _wrap_line(call).removeprefix(tool["name"]))
        said = " ".join(str(tool.get("description") or "").split())
        if said:
            emit(dim(textwrap.fill(said, page(), initial_indent="  ", subsequent_indent="  ")))
        if tool.get("also"):
            emit(dim(f"  also: {', '.join(tool['also'])}"))
        _print_why(tool["name"], found.why)
    if found.said["tools"] and found.said["more"]:
        emit()
    for line in found.said["more"]:
        call, dash, rest = _wrap_line(line).partition("—")
        emit(f"{call}{dim(dash + rest)}")
        _print_why(line, found.why)
    for missing in found.said.get("missing", []):
        server, _, reason = missing.partition(": ")
        say(f"ullage: `{server}` was not searched: {without_name(reason, server)}")
    say(found.said["hint"] if "hint" in found.said else _format_figures(found))


def _print_why(line: str, why: Mapping[str, Explained]) -> None:
    one = find_explanation(line, why)
    for said in () if one is None else why_lines(one, page()):
        emit(dim(said))


def _format_figures(found: _SearchResult) -> str:
    returned = found.said["token_metrics"]["returned_tokens"]
    said = f"{how_many(returned, 'token')} of definitions"
    if found.is_direct:
        return f"{said}. Every tool is listed directly for this client, so it does not need to search."
    whole = f"{said} instead of {found.baseline:,} for all tools"
    saved = found.baseline - returned
    return f"{whole}: {100 * saved / found.baseline:.1f}% saved." if saved > 0 else f"{whole}."


def _wrap_line(line: str) -> str:
    """Wrap a line for a person; for a program it remains one line."""
    if not sys.stdout.isatty():
        return line
    return textwrap.fill(line, page(), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
