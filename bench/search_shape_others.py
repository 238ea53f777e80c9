"""How do others answer a search, and how else could we?

Our own ranking as eight definitions, as lines alone, and as two definitions with lines. And the replies of two
gateways, with their rankings (`search_peers`):

- mcp-optimizer (`src/mcp_optimizer/server.py`, github.com/StacklokLabs/mcp-optimizer at 13ad614) answers with up to
  eight definitions as they are and the server's name in each. Its framework writes them as JSON with indentation and
  with every empty field; counted so, and in a second row as if they were written compactly.
- ToolHive's vMCP (`pkg/vmcp/optimizer`, github.com/stacklok/toolhive, since pull request 4016) answers with up to
  eight whole definitions in compact JSON.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import search_peers
from search_sets import Maker, Row, Search, Set
from search_shape_replies import ALSO, LINE, WHOLE, Behind, Reply, weigh

from ullage.gateway.find.find_reply import About, Candidate, TokenMetrics, candidate
from ullage.gateway.find.tool_forms import forms_of
from ullage.gateway.merge.tool_view import Entry

__all__ = ["EIGHT", "PEERS", "our_others", "peer_replies"]

_ALL = 100_000
"""A budget for all that there is: a reply then shows the first eight whole, and everything in the ranking's order."""
_METRICS = TokenMetrics.of(100_000, 1_000).to_json()
_EMPTY = {"title": None, "outputSchema": None, "icons": None, "annotations": None, "_meta": None}

EIGHT = "ours, 8 definitions"
_OURS: Mapping[str, tuple[int, int]] = {
    EIGHT: (8, 0),
    "ours, 25 lines": (0, 25),
    "ours, 2 definitions + 18 lines": (2, 18),
}
"""Definitions and lines."""


async def our_others(behind: Behind, words: str) -> dict[str, Reply]:
    """Our own ranking in other shapes."""
    every = (await behind.reply(words, _ALL)).shown
    ranked = [name for name, form in every.items() if form != ALSO][: max(map(sum, _OURS.values()))]
    forms = {name: _candidate(behind.listed[name]) for name in ranked}
    return {name: _our_reply(forms, *numbers) for name, numbers in _OURS.items()}


def _candidate(entry: Entry) -> Candidate:
    return candidate(forms_of(entry.tool), About(writes=not entry.is_read_only), weigh, baseline=_ALL)


def _our_reply(forms: Mapping[str, Candidate], definitions: int, lines: int) -> Reply:
    whole, brief = list(forms)[:definitions], list(forms)[definitions : definitions + lines]
    tools = ",".join(forms[name].definition.text for name in whole)
    more = ",".join(forms[name].line.text for name in brief)
    text = f'{{"tools":[{tools}],"more":[{more}],"token_metrics":{_compact(_METRICS)}}}'
    return Reply(text, dict.fromkeys(whole, WHOLE) | dict.fromkeys(brief, LINE))


def _as_optimizer(rows: Sequence[Row]) -> str:
    tools = [_definition(row, row["name"]) | _EMPTY | {"mcp_server_name": row.get("server") or ""} for row in rows]
    return json.dumps({"tools": tools, "token_metrics": _METRICS}, ensure_ascii=False, indent=2)


def _as_optimizer_might(rows: Sequence[Row]) -> str:
    tools = [_definition(row, row["name"]) | {"mcp_server_name": row.get("server") or ""} for row in rows]
    return _compact({"tools": tools, "token_metrics": _METRICS})


def _as_toolhive(rows: Sequence[Row]) -> str:
    tools = [{"annotations": {}} | _definition(row, f"{row.get('server') or ''}_{row['name']}") for row in rows]
    return _compact({"tools": tools, "token_metrics": _METRICS})


PEERS: Mapping[str, tuple[Maker, Callable[[Sequence[Row]], str]]] = {
    "mcp-optimizer, up to 8 whole": (search_peers.mcp_optimizer, _as_optimizer),
    "the same, written compactly": (search_peers.mcp_optimizer, _as_optimizer_might),
    "ToolHive vMCP, up to 8 whole": (search_peers.toolhive, _as_toolhive),
}
"""Who ranks, and how the answer is written."""


def peer_replies(each: Set, behind: Behind) -> dict[str, Callable[[str], Reply]]:
    """What answers a query, for each peer."""
    rows = {row["id"]: row for row in each.tools}
    makers = {make: make(each.tools) for make in {make for make, _ in PEERS.values()}}
    return {name: partial(_peer_reply, rows, behind, makers[make], write) for name, (make, write) in PEERS.items()}


def _peer_reply(
    rows: Mapping[str, Row], behind: Behind, search: Search, write: Callable[[Sequence[Row]], str], words: str
) -> Reply:
    found = search(words)
    return Reply(write([rows[id_] for id_ in found]), {behind.entries[id_].listed: WHOLE for id_ in found})


def _definition(row: Row, name: str) -> Row:
    described = {"description": row["description"]} if row.get("description") is not None else {}
    return {"name": name, **described, "inputSchema": row.get("inputSchema") or {}}


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
