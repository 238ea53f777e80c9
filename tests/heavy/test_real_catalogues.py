"""What real servers list, replayed: all of them behind one `ullage serve`.

The recordings are no part of the project: `CATALOGUES` names their folder.
"""

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from heavy.real_client import ERAS, Front, fronted, run, text_of
from heavy.real_processes import gateway_of, left_behind, marked, marking, memory_of
from heavy.real_world import World, bare_world

CATALOGUES = Path(os.environ.get("CATALOGUES") or "no folder named")
REPLAY = Path(__file__).parent / "real_replay.py"
MEGABYTE = 1024 * 1024
ROOM = 400 * MEGABYTE
"""What the gateway itself may hold with some 2,600 tools behind it."""
PATIENCE = 120
_PLAIN = {"type", "description", "title", "default", "examples"}
"""Keys of a schema that leave the choice of a value free."""

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.anyio,
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are counted in /proc"),
    pytest.mark.skipif(not CATALOGUES.is_dir(), reason="no recorded catalogues here; name their folder in CATALOGUES"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A server of the recordings with the tools it had."""

    package: str
    tools: tuple[dict[str, Any], ...]


@pytest.fixture(scope="module")
def recorded() -> dict[str, Recorded]:
    """By the name of the file."""
    read = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(CATALOGUES.glob("*.json"))}
    return {name: Recorded(package=one["package"], tools=tuple(one["tools"])) for name, one in read.items()}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, recorded: dict[str, Recorded]) -> World:
    world = bare_world(tmp_path_factory.mktemp("catalogues"))
    # Neither site packages nor the user's settings: each of a hundred processes starts in a moment.
    said = {name: ["-I", "-S", str(REPLAY), str(CATALOGUES / f"{name}.json")] for name in recorded}
    world.rewrite(**{name: {"command": sys.executable, "args": arguments} for name, arguments in said.items()})
    return world


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    with marking(tmp_path) as mark:
        yield mark


@pytest.fixture(scope="module")
def listing(world: World) -> dict[str, dict[str, dict[str, Any]]]:
    """What `ullage tools` says: server to the server's own name of a tool to what is said of it."""
    reply = json.loads(run(world, "tools", "--json").stdout)
    assert reply["missing"] == []
    by_server: defaultdict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for tool in reply["tools"]:
        by_server[tool["server"]][tool["original_name"]] = tool
    return dict(by_server)


@pytest.mark.requirement("S1:aggregate")
def test_every_tool_of_every_recorded_server_is_listed_under_a_name_of_its_own(
    listing: dict[str, dict[str, dict[str, Any]]], recorded: dict[str, Recorded]
):
    names = [tool["name"] for server in listing.values() for tool in server.values()]
    known = {frozenset(server): name for name, server in listing.items()}
    unlisted = [name for name, one in recorded.items() if one.tools and frozenset(map(_name, one.tools)) not in known]
    assert unlisted == []
    assert len(names) == len(set(names)) == 2 + sum(len(one.tools) for one in recorded.values())
    assert max(map(len, names)) <= 48


def _name(tool: dict[str, Any]) -> str:
    return tool["name"]


@pytest.mark.requirement("S1:aggregate", "S1:find", "S1:surface")
@pytest.mark.parametrize("era", ERAS)
async def test_something_of_every_recorded_server_is_found_and_called(
    era: str,
    world: World,
    listing: dict[str, dict[str, dict[str, Any]]],
    mark: str,
    capsys: pytest.CaptureFixture[str],
):
    began = time.monotonic()
    async with fronted(world, era, mark=mark) as front:
        shown = (await front.client.list_tools()).tools
        opened = time.monotonic() - began
        unfound = [server for server, tools in listing.items() if not await _is_found(front, server, tools)]
        searched = time.monotonic() - began - opened
        called = [await _is_called(front, tools) for tools in listing.values()]
        processes = len(list(marked(mark)))
        memory = memory_of(gateway_of(mark))
    assert {tool.name for tool in shown} == {"find_tool", "call_tool", "call_tool_write", "read_result", "count-tokens"}
    assert unfound == []
    assert called.count(False) == 0
    assert called.count(True) > 80
    assert memory < ROOM
    assert await left_behind(mark) == []
    with capsys.disabled():
        sys.stderr.write(
            f"\n{len(listing)} servers, {sum(map(len, listing.values()))} tools: open after {opened:.1f} s, "
            f"{len(listing)} searches in {searched:.1f} s, {called.count(True)} calls, "
            f"{processes - 1} servers running, gateway {memory / MEGABYTE:.0f} MB\n"
        )


async def _is_found(front: Front, server: str, tools: dict[str, dict[str, Any]]) -> bool:
    """Whether a search for what one of its tools does, with the server's name beside it, shows a tool of the server."""
    tool = list(tools.values())[len(tools) // 2]
    wish = " ".join((tool["description"] or tool["original_name"]).split())[:200]
    reply = await front.find(wish, tool_keywords=server)
    listed = {one["name"] for one in tools.values()}
    shown = {one["name"] for one in reply["tools"]} | {line.split("(")[0].split()[0] for line in reply.get("more", [])}
    return bool(listed & shown)


async def _is_called(front: Front, tools: dict[str, dict[str, Any]]) -> bool | None:
    """Whether a call came to the right tool of the right server; None where no tool is simple enough to make one up."""
    tool = next((tool for tool in tools.values() if _arguments(tool["inputSchema"]) is not None), None)
    if tool is None or tool["server"] == "ullage":
        return None
    arguments = _arguments(tool["inputSchema"]) or {}
    with anyio.fail_after(PATIENCE):
        reply = json.loads(text_of(await front.write(tool["name"], **arguments)))
    return (reply.get("tool"), reply.get("arguments")) == (tool["original_name"], arguments)


def _arguments(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The fewest that fit; None where one of them is not plainly typed."""
    plain: dict[str, Any] = {"string": "a", "integer": 1, "number": 1, "boolean": True, "object": {}, "array": []}
    properties = schema.get("properties", {})
    asked = [properties.get(name, {}) for name in schema.get("required", [])]
    if schema.keys() & {"anyOf", "oneOf", "allOf"} or any(
        one.keys() - _PLAIN or one.get("type") not in plain for one in asked
    ):
        return None
    return {name: plain[one["type"]] for name, one in zip(schema.get("required", []), asked, strict=True)}
