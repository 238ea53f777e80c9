"""List the tools of every server behind Ullage, with what their definitions cost a model in each request.

What is known from before is shown without starting any server; a server that was never listed is started.
"""

import argparse
from collections.abc import Sequence

import anyio

from ullage import app
from ullage.app.gateway import Gateway
from ullage.errors import UllageError
from ullage.gateway import Entry, View, definition_text
from ullage.tool import Json, Tool

from .configured import add_flags, read, say, with_gateway
from .output import bold, columns, dim, emit, emit_json

__all__ = ["arguments", "run"]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("server", nargs="?", metavar="SERVER", help="only this one, with every tool in a line")
    parser.add_argument("--refresh", action="store_true", help="start every server and ask it again")
    parser.add_argument(
        "--wait", metavar="SECONDS", type=float, default=60.0, help="for servers never listed before (default 60)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, definitions included")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    loaded = read(arguments)

    async def look(gateway: Gateway) -> tuple[View, tuple[Tool, ...], str]:
        if arguments.refresh:
            await _refresh(gateway)
        view = await gateway.view(arguments.wait)
        find = gateway.find(arguments.client)
        return view, (await find.tools()).tools, find.instructions(view)

    view, listed, instructions = with_gateway(loaded, look)
    entries = [entry for entry in view.entries if arguments.server in (None, entry.server)]
    if arguments.json:
        emit_json(_json(view, entries, listed))
        return 0
    if arguments.server is None:
        _print_servers(view, listed, instructions)
    else:
        _print_tools(entries)
    return 0


async def _refresh(gateway: Gateway) -> None:
    async def one(name: str) -> None:
        try:
            await gateway.kept(name).refresh()
        except UllageError as error:
            say(f"ullage: {name}: {error.message}")

    async with anyio.create_task_group() as tasks:
        for server in gateway.settings.servers:
            if not server.disabled:
                tasks.start_soon(one, server.name)


def _tokens(entry: Entry) -> int:
    known = entry.token_count
    return _weigh(definition_text(entry.tool)) if known is None else known


def _weigh(text: str) -> int:
    return app.count(text, "gpt-4o").tokens


def _print_servers(view: View, listed: Sequence[Tool], instructions: str) -> None:
    rows = [("server", "tools", "tokens", "")]
    for server in view.servers:
        entries = [entry for entry in view.entries if entry.server == server]
        missing = next((one.reason for one in view.missing if one.server == server), "")
        tools, tokens = ("-", "-") if missing else (str(len(entries)), f"{sum(map(_tokens, entries)):,}")
        rows.append((server, tools, tokens, missing))
    titles, *lines = columns(rows, right=frozenset({1, 2}))
    emit(dim(titles))
    for line in lines:
        emit(line)
    everything = sum(map(_tokens, view.entries))
    shown = sum(_weigh(definition_text(tool)) for tool in listed) + _weigh(instructions)
    emit()
    emit(f"{bold(f'{everything:,}')} tokens of definitions in every request without Ullage (o200k_base).")
    emit(f"{bold(f'{shown:,}')} with it: {', '.join(tool.name for tool in listed[:8])}{_rest(listed)}")


def _rest(listed: Sequence[Tool]) -> str:
    return f" and {len(listed) - 8} more." if len(listed) > 8 else "."


def _print_tools(entries: Sequence[Entry]) -> None:
    rows = [("tool", "tokens", "", "")]
    for entry in entries:
        door = "read" if entry.is_read_only else "write"
        said = " ".join((entry.tool.description or entry.tool.title or "").split())
        rows.append((entry.listed, f"{_tokens(entry):,}", door, said[:80]))
    titles, *lines = columns(rows, right=frozenset({1}))
    emit(dim(titles))
    for line in lines:
        emit(line)


def _json(view: View, entries: Sequence[Entry], listed: Sequence[Tool]) -> dict[str, Json]:
    return {
        "tools": [_entry_json(entry) for entry in entries],
        "listed": [tool.name for tool in listed],
        "missing": [{"server": one.server, "reason": one.reason} for one in view.missing],
        "baseline_tokens": sum(map(_tokens, view.entries)),
        "approximationMethod": "o200k_base",
    }


def _entry_json(entry: Entry) -> dict[str, Json]:
    return {
        "name": entry.listed,
        "server": entry.server,
        "original_name": entry.original,
        "read_only": entry.is_read_only,
        "access": entry.access,
        "token_count": _tokens(entry),
        "description": entry.tool.description,
        "inputSchema": dict(entry.tool.input_schema),
    }
