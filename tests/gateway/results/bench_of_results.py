"""What stands around held results in a test: a tool that says what it is told, a budget, a reader."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ullage.gateway import Member, Merge, View
from ullage.gateway.merge.tool_view import Entry, MergedWrapper
from ullage.gateway.reply_metadata import META, References, weighed
from ullage.gateway.results import Budgeted, ResultReader, ResultRules, TableQuery, Vault
from ullage.models import shipped
from ullage.testing import FakeSource
from ullage.tokens import Meter, drain
from ullage.tool import Call, Caller, Json, Origin, Reply, Tool, ToolSource, text_block

METER = Meter(shipped())
REFERENCES = References(METER.models)
ADA = Caller(principal="ada", session="s")
BOB = Caller(principal="bob", session="s")
TOY = Tool(name="toy", input_schema={"type": "object"})
ONWARD = re.compile(r"offset=(\d+)\)? for more")


def records(number: int, words: int = 3) -> list[dict[str, Json]]:
    return [
        {"id": one, "name": f"name {one}", "share": one / 8, "note": "some words " * (one % words)}
        for one in range(number)
    ]


class SingleSource(MergedWrapper):
    """One source as merged sources, which passes replies on as they are."""

    def __init__(self, source: ToolSource, shown: View | None = None) -> None:
        own = Member(name="ullage", source=FakeSource(), prefix="", own=True)
        self.inner = Merge([own, Member(name="shop", source=source, prefix="")])
        self.shown = shown

    async def view(self, wait: float = 0.0) -> View:
        return self.shown or await self.inner.view(wait)

    async def call_entry(self, entry: Entry, call: Call) -> Reply:
        return await entry.member.source.call(call)


@dataclass
class Bench:
    """One tool behind a budget, and the way to what was left out."""

    reply: Reply
    rules: ResultRules = field(default_factory=ResultRules)
    vault: Vault = field(default_factory=Vault)
    caller: Caller = ADA
    query: TableQuery | None = None
    ran: int = 0

    async def _answer(self, _: Call) -> Reply:
        self.ran += 1
        return self.reply if self.reply.origin else replace(self.reply, origin=Origin("shop", "toy"))

    async def call(self, **meta: Json) -> Reply:
        source = SingleSource(FakeSource(offered=(TOY,), answer=self._answer))
        budgeted = Budgeted(inner=source, rules=lambda: self.rules, vault=self.vault, meter=METER, reference=REFERENCES)
        return await budgeted.call(Call(tool="toy", caller=self.caller, meta=meta))

    async def read(self, handle: str, caller: Caller | None = None, **arguments: Json) -> Reply:
        reader = ResultReader(
            vault=self.vault, rules=lambda: self.rules, meter=METER, reference=REFERENCES, query=self.query
        )
        call = Call(tool="read_result", arguments={"handle": handle, **arguments}, caller=caller or self.caller)
        return await reader.call(call)

    def weight(self, reply: Reply) -> int:
        """As `Metered` counts it, at the upper edge."""
        return drain(weighed(reply, METER, REFERENCES(self.caller).counted_as)).high

    async def pages(self, handle: str, **arguments: Any) -> AsyncIterator[str]:  # noqa: ANN401
        """Every page, by doing what the last lines say."""
        offset: int | None = 0
        while offset is not None:
            page = text(await self.read(handle, offset=offset, **arguments))
            yield page
            onward = ONWARD.search(page.splitlines()[-1])
            assert onward is None or int(onward[1]) > offset
            offset = None if onward is None else int(onward[1])


def text(reply: Reply) -> str:
    return "\n".join(str(block.get("text", "")) for block in reply.content)


def meta(reply: Reply) -> dict[str, Any]:
    said: Any = reply.meta[META]
    return said


def handle(reply: Reply) -> str:
    return meta(reply)["handle"]


def said(*texts: str, is_error: bool = False) -> Reply:
    return Reply(content=tuple(map(text_block, texts)), is_error=is_error)


def as_json(value: object, indent: int | None = None) -> Reply:
    return said(json.dumps(value, indent=indent))


def rows_in(page: str) -> Iterator[str]:
    """The lines of a page that are neither its header nor its last line."""
    lines = page.splitlines()[:-1]
    return iter(lines[1:] if lines and lines[0].startswith("id,") else lines)
