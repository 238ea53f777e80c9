from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ullage.models import shipped
from ullage.retrieve import META, Found, Passage, Place, Query, RetrieveSource
from ullage.tokens import Meter
from ullage.tool import Call, Caller, Json, Reply

METER = Meter(shipped())


def tokens(text: str) -> int:
    return METER.count(text, "gpt-4o").tokens


def weigh(caller: Caller) -> Callable[[str], int]:
    del caller
    return tokens


@dataclass
class FakeRetriever:
    """Texts in memory, every one of them a passage; all are found, in their order."""

    texts: Mapping[str, str]
    notes: tuple[str, ...] = ()
    asked: list[Query] = field(default_factory=list[Query])

    async def search(self, query: Query) -> Found:
        self.asked.append(query)
        return Found(tuple(self._place(path) for path in self.texts)[: query.limit], self.notes)

    async def read(self, places: tuple[Place, ...]) -> tuple[Passage, ...]:
        kept = [place for place in places if place.path in self.texts]
        return tuple(Passage(place, tuple(self.texts[place.path].split("\n"))) for place in kept)

    def _place(self, path: str) -> Place:
        return Place(path=path, first=1, last=self.texts[path].count("\n") + 1)


def grown(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


async def ask(source: RetrieveSource, query: str, principal: str = "ann", **arguments: Json) -> Reply:
    caller = Caller(principal=principal, session="s")
    return await source.call(Call(tool="retrieve.search", arguments={"query": query, **arguments}, caller=caller))


def text_of(reply: Reply) -> str:
    text = reply.content[0]["text"]
    assert isinstance(text, str)
    return text


def told(reply: Reply) -> dict[str, Any]:
    found = reply.meta[META]
    assert isinstance(found, dict)
    return found
