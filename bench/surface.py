"""What do real tool definitions cost the model, and does slimming them change a single valid call?

Run by `make bench-surface`. `DATA` names another folder of catalogues (one .json a server, with its `tools`); `CHECK`
says how many arguments to build for each schema (default 6 from each side, each spoilt 8 times over). Prints a table of
servers, largest first, then what searches through find_tool cost within several budgets and how often they bring the
tool that was wanted, then what the check found, then one line of figures; fails where a slimmed schema accepts or
refuses an argument that the original would not, where a reply exceeds its budget, and where the median reply is longer
than 400 tokens. `SETS` names another folder of
searches (one folder a set, as for `bench-search`).
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

from arguments import Value, arguments, written
from found import Searches, search_catalogues, search_set
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

from ullage.gateway import one_line, signature
from ullage.gateway.slim import slim
from ullage.models import shipped
from ullage.tokens import Meter
from ullage.tool import JsonObject, Tool

DEFAULT_DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "catalogues"
DEFAULT_SETS = DEFAULT_DATA.parent / "search" / "dev"
SETS = ("livemcp_steps", "mcpproxy_golden")
"""Searches over real MCP servers' tools."""
MODEL = "gpt-4o"
SPOILT = 8
LEVELS = ("as listed", "for the model", "slimmed", "signatures", "one line")
"""The listed definition whole; its name, description and input schema, which is what a model is shown; and less."""


@dataclass(slots=True)
class Server:
    name: str
    tools: list[Tool]
    listed: list[Any]
    tokens: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(slots=True)
class Check:
    """How often two schemas were asked the same, and where they differed."""

    schemas: int = 0
    arguments: int = 0
    accepted: int = 0
    failed: int = 0
    """Arguments on which a validator gave up: a pattern it cannot read, a reference to nowhere."""
    disagreements: list[str] = field(default_factory=list[str])


def main() -> int:
    folder = Path(os.environ.get("DATA") or DEFAULT_DATA)
    if not folder.is_dir():
        print(f"no data: `{folder}` is not a folder; name one with DATA=path", file=sys.stderr)
        return 2
    servers = [read_server(path) for path in sorted(folder.glob("*.json"))]
    meter = Meter(shipped())
    for server in servers:
        server.tokens = dict(zip(LEVELS, weigh(server, meter), strict=True))
    report(servers)
    searches = search_all(servers, meter)
    report_searches(searches)
    check = check_all(servers, int(os.environ.get("CHECK") or 6))
    return conclude(servers, searches, check)


def read_server(path: Path) -> Server:
    listed = json.loads(path.read_text(encoding="utf-8"))["tools"]
    tools = [
        Tool(
            name=each["name"],
            description=each.get("description"),
            title=each.get("title"),
            input_schema=each["inputSchema"],
            output_schema=each.get("outputSchema"),
            annotations=each.get("annotations") or {},
        )
        for each in listed
    ]
    return Server(path.stem, tools, listed)


def weigh(server: Server, meter: Meter) -> Iterator[int]:
    slimmed = [slim(tool) for tool in server.tools]
    texts = (
        map(compact, server.listed),
        (compact(shown(tool)) for tool in server.tools),
        (compact(shown(tool)) for tool in slimmed),
        map(signature, slimmed),
        map(one_line, slimmed),
    )
    return (sum(meter.count(text, MODEL).tokens for text in level) for level in texts)


def shown(tool: Tool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "inputSchema": tool.input_schema}


def compact(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def search_all(servers: list[Server], meter: Meter) -> list[Searches]:
    sets = Path(os.environ.get("SETS") or DEFAULT_SETS)
    found = search_catalogues([(server.name, server.tools) for server in servers], meter)
    return found + [row for name in SETS if (sets / name).is_dir() for row in search_set(sets / name, meter)]


def check_all(servers: list[Server], number: int) -> Check:
    check = Check()
    for server in servers:
        for tool in server.tools:
            compare(check, f"{server.name} {tool.name}", tool.input_schema, slim(tool).input_schema, number)
    return check


def compare(check: Check, name: str, original: JsonObject, slimmed: JsonObject, number: int) -> None:
    """Asks both of the same arguments, made from each; what lost its `$schema` is read by either dialect."""
    random = Random(name)
    reader, readers = validator(original), [validator(slimmed)]
    if "$schema" in original and "$schema" not in slimmed and validator_for(original) is Draft7Validator:
        readers.append(Draft7Validator(slimmed))
    made = chain(*(arguments(dict(schema), random, number, SPOILT) for schema in (original, slimmed)))
    distinct = {written(value): value for value in made}
    check.schemas += 1
    for text, value in distinct.items():
        before, after = verdict(reader, value), [verdict(each, value) for each in readers]
        check.arguments += 1
        check.accepted += before == "accepted"
        check.failed += before not in ("accepted", "refused")
        if after != [before] * len(after):
            check.disagreements.append(f"{name}: {before} before, {' and '.join(after)} after: {text[:300]}")


def validator(schema: JsonObject) -> Validator:
    return validator_for(schema, default=Draft202012Validator)(schema)


def verdict(reader: Validator, value: Value) -> str:
    try:
        return "accepted" if reader.is_valid(value) else "refused"
    except Exception as error:  # noqa: BLE001 — whatever a broken schema raises, it must raise on both sides
        return type(error).__name__


def report(servers: list[Server]) -> None:
    print(f"Tokens ({MODEL})\n{'server':52}{'tools':>6}" + "".join(f"{level:>15}" for level in LEVELS))
    for server in sorted(servers, key=lambda each: -each.tokens["as listed"]):
        numbers = "".join(f"{server.tokens[level]:>15,}" for level in LEVELS)
        print(f"{server.name[:51]:52}{len(server.tools):>6}{numbers}")
    print(
        f"{'all':52}{sum(len(each.tools) for each in servers):>6}"
        + "".join(f"{n:>15,}" for n in totals(servers).values())
    )


def report_searches(searches: list[Searches]) -> None:
    print("\nThrough find_tool: tokens, and the share of wanted tools in the reply")
    print(
        f"{'searches':20}{'tools':>7}{'carried':>9}{'queries':>9}{'budget':>8}{'median':>8}{'p90':>7}"
        f"{'mean':>7}{'most':>7}{'whole':>8}{'any':>8}"
    )
    for row in searches:
        print(
            f"{row.name:20}{row.tools:>7,}{row.surface:>9,}{row.queries:>9,}{row.budget:>8,}{row.median_tokens:>8,.0f}"
            f"{row.p90_tokens:>7,.0f}{row.mean_tokens:>7,.0f}{row.most_tokens:>7,}{row.whole:>8.1%}{row.any:>8.1%}"
            f"{'  EXCEEDED' if row.exceeded else ''}{'  TOO LONG' if row.too_long else ''}"
        )


def totals(servers: list[Server]) -> dict[str, int]:
    return {level: sum(server.tokens[level] for server in servers) for level in LEVELS}


def conclude(servers: list[Server], searches: list[Searches], check: Check) -> int:
    print(
        f"\n{check.schemas:,} schemas asked of {check.arguments:,} arguments before and after: "
        f"{check.accepted:,} accepted, {check.failed:,} on which the validator gave up, "
        f"{len(check.disagreements)} disagreements"
    )
    for line in check.disagreements[:20]:
        print(f"DISAGREE  {line}")
    figures = {
        "servers": len(servers),
        "tools": check.schemas,
        "tokens": totals(servers),
        "searches": [asdict(row) for row in searches],
        "arguments": check.arguments,
        "accepted": check.accepted,
        "gave up": check.failed,
        "disagreements": len(check.disagreements),
    }
    print(json.dumps(figures))
    return 1 if check.disagreements or any(row.exceeded or row.too_long for row in searches) else 0


if __name__ == "__main__":
    sys.exit(main())
