"""What does a question about three held results cost, and what does it cost to learn from a reply what a tool returns?

The results are issues as JSON, a log as a JSON object a line, and a database's answer, as tools of three servers give
them. One statement that joins them is weighed beside the three statements that fetch as little as possible of each,
with their answers; the model would still have to join those itself. Hostile replies have 10,000 different keys, 200
levels, 50 MB, keys in any script; the tool's definition has 2,000 parameters.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from random import Random
from statistics import median

import anyio

from ullage.app.build_sources import HeldTables
from ullage.gateway import References
from ullage.gateway.results import ResultReader, ResultRules, ShapeMemory, Vault
from ullage.gateway.results.held_result import Held, Part, survey
from ullage.tokens import Meter, drain
from ullage.tool import ANONYMOUS, Call, Json, Origin, Reply, Structured, Tool, text_block

__all__ = ["Joins", "milliseconds_to_learn", "weigh_joins"]

_MODEL = "gpt-4o"
_TEAMS = ("core", "docs", "mobile", "payments")
_LEVELS = ("info", "info", "info", "warning", "error")
_JOIN = (
    "SELECT c.team, count(*) AS errors FROM result i JOIN {log} l ON l.issue = i.number JOIN {customers} c ON c.id = "
    "i.customer WHERE i.state = 'open' AND l.level = 'error' AND c.plan = 'enterprise' GROUP BY c.team ORDER BY 2 DESC"
)
_SEPARATE = (
    "SELECT number, customer FROM result WHERE state = 'open'",
    "SELECT issue, count(*) AS errors FROM result WHERE level = 'error' GROUP BY issue",
    "SELECT id, team FROM result WHERE plan = 'enterprise'",
)


@dataclass(frozen=True, slots=True)
class Joins:
    """Tokens of one question about three results."""

    whole: int
    """Of the results themselves."""
    joined: int
    separate: int

    @property
    def share(self) -> float:
        return self.joined / self.separate


def weigh_joins(meter: Meter) -> Joins:
    """Ask both ways, with the worker that `read_result` uses."""
    return anyio.run(_weigh_joins, meter)


async def _weigh_joins(meter: Meter) -> Joins:
    vault, query = Vault(), HeldTables()
    reader = ResultReader(vault=vault, rules=ResultRules, meter=meter, reference=References(meter.models), query=query)
    texts = _three_results()
    handles = [_keep(vault, text) for text in texts]

    async def cost(handle: str, sql: str) -> int:
        arguments: dict[str, Json] = {"handle": handle, "sql": sql}
        reply = await reader.call(Call(tool="read_result", arguments=arguments))
        if reply.is_error:
            raise RuntimeError(str(reply.content))
        said = "".join(str(block.get("text", "")) for block in reply.content)
        return meter.count(json.dumps(arguments), _MODEL).tokens + meter.count(said, _MODEL).tokens

    try:
        joined = await cost(handles[0], _JOIN.format(log=handles[1], customers=handles[2]))
        separate = [await cost(handle, sql) for handle, sql in zip(handles, _SEPARATE, strict=True)]
    finally:
        await query.close()
    return Joins(sum(meter.count(text, _MODEL).tokens for text in texts), joined, sum(separate))


def _three_results() -> Sequence[str]:
    random = Random(11)
    issues = [
        {
            "number": number,
            "title": f"Checkout fails in step {number % 9}",
            "state": random.choice(("open", "open", "closed")),
            "customer": random.randint(1, 300),
            "assignee": {"login": f"dev{number % 12}", "id": number % 12},
        }
        for number in range(1, 501)
    ]
    log = [
        {
            "time": f"2026-11-{1 + number % 28:02}T{number % 24:02}:00:00Z",
            "level": random.choice(_LEVELS),
            "issue": random.randint(1, 500),
            "message": f"request {number} answered in {random.randint(3, 900)} ms",
        }
        for number in range(3_000)
    ]
    rows = [f"{one},{random.choice(_TEAMS)},{random.choice(('free', 'team', 'enterprise'))}" for one in range(1, 301)]
    customers = "\n".join(["id,team,plan", *rows, f"-- {len(rows)} rows; complete"])
    return json.dumps(issues), "\n".join(map(json.dumps, log)), customers


def _keep(vault: Vault, text: str) -> str:
    part = Part(text=text, layout=drain(survey(text)))
    return vault.keep(Held(principal=ANONYMOUS.principal, server="shop", tool="toy", parts=(part,)))


_SCRIPTS = ("clé", "ключ", "名前", "مفتاح", "열쇠", "κλειδί", "שם", "नाम", "ชื่อ")
_ROUNDS = 5


def milliseconds_to_learn() -> dict[str, float]:
    """CPU that a hostile reply costs: to note it, and to read it afterwards."""
    return anyio.run(_milliseconds_to_learn)


async def _milliseconds_to_learn() -> dict[str, float]:
    parameters: dict[str, Json] = {
        f"parameter_{number}": {"type": "string", "description": "some words " * 4} for number in range(2_000)
    }
    tool = Tool(name="toy", description="a word " * 5_000, input_schema={"type": "object", "properties": parameters})

    async def definition(_: Origin) -> Tool:
        return tool

    await _learn(Reply.text('{"id": 1}'), definition)  # imports what learning needs
    return {name: median([await _learn(reply, definition) for _ in range(_ROUNDS)]) for name, reply in _hostile()}


async def _learn(reply: Reply, definition: object) -> float:
    memory, told = ShapeMemory(), Reply(content=reply.content, structured=reply.structured, origin=Origin("s", "toy"))
    began = time.process_time()
    memory.observe("ada", told, definition)  # pyright: ignore[reportArgumentType]
    await memory.settle()
    return (time.process_time() - began) * 1_000


def _hostile() -> list[tuple[str, Reply]]:
    keys: dict[str, Json] = {f"{_SCRIPTS[number % len(_SCRIPTS)]}{number}": number for number in range(10_000)}
    names = ("user", "name", "id", "state", "type", "url", "count", "total")
    random = Random(5)
    known: list[Json] = [{"_".join(random.sample(names, 4)): {"id": 1} for _ in range(59)} for _ in range(200)]
    deep: Json = reduce(lambda inner, _: {"data": inner}, range(200), 1)
    rows: list[Json] = [{"id": number, "name": "x" * 480} for number in range(100_000)]
    long: Json = {"名" * 100_000: 1, "key": 2}
    values: dict[str, Json] = {
        "10,000 keys in nine scripts": keys,
        "200 records of 59 known keys": known,
        "200 levels": deep,
        "50 MB of rows": {"rows": rows},
        "a key of 100,000 characters": long,
    }
    found = list[tuple[str, Reply]]()
    for name, value in values.items():
        text = text_block(json.dumps(value, ensure_ascii=False))
        found.append((f"{name}, text", Reply(content=(text,))))
        found.append((f"{name}, structured", Reply(structured=Structured(value))))
    return found
