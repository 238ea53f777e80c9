"""Learns from replies what each tool returns, for each principal apart.

A reply costs its call a look-up: the first few replies of a tool, and later ones ever more rarely, are noted as a
bounded `Sample` and read in the background. The learnt shape is kept in the store by principal, server and tool, with
the hash of the definition that it belongs to. A tool whose definition has another hash has no shape, and the stored one
is deleted. `return_shape` decides what may be kept of a reply.

Failing replies, Ullage's own tools, and tools whose `outputSchema` says what they return teach nothing. A database that
fails or is slow teaches nothing and delays nothing.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread

from ullage.errors import StoreFailed
from ullage.tool import Json, JsonObject, Origin, Reply, Tool

from ..merge.tool_view import Entry
from ..tool_source import Spawn, definition_hash
from .held_result import Sample, sample_of

if TYPE_CHECKING:
    # Imported on first use: most sessions learn and search long after they start.
    from .return_shape import ReturnShape

__all__ = ["LearntShape", "ShapeMemory", "ShapeStore"]

_EACH = 4
"""Replies of a tool of which each is read; after them, those whose number is a power of two."""
_MOST_TOOLS = 4_096
"""Most tools, of all principals together, whose replies are counted."""
_WAITING = 16
"""Most samples that wait to be read."""
_LATER = 0.05
"""Seconds after a reply in which it is not read, so that it is sent first."""
_STALE = 45.0
"""Seconds after which shapes are loaded again: another process may have learnt some, or deleted all."""
_PATIENCE = 0.5
"""Most seconds that a search waits for shapes to load."""
_PRINCIPALS = 64
"""Most principals whose shapes are kept in memory."""
_TEXTS = 4_096

ToolKey = tuple[str, str]
"""Names of server and tool."""
Definition = Callable[[Origin], Awaitable[Tool | None]]
"""Returns the definition of a server's tool under its own name; None if it is not listed."""


@dataclass(frozen=True, slots=True)
class LearntShape:
    """A shape with the hash of the definition that it belongs to."""

    definition: str
    shape: "ReturnShape"


class ShapeStore(Protocol):
    """Interface of a store of shapes as JSON. Blocking; raises `StoreFailed`."""

    def load(self, principal: str) -> Mapping[ToolKey, tuple[str, Json]]:
        """Return a principal's shapes: the definition's hash and the shape."""
        ...

    def save(self, principal: str, tool: ToolKey, definition: str, shape: Json) -> None:
        """Store the shape of a tool, in place of any other of this principal and tool."""
        ...

    def delete(self, principal: str, tool: ToolKey) -> None:
        """Delete the shape of a tool."""
        ...


@dataclass(slots=True)
class _Known:
    """The shapes of one principal."""

    at: float | None = None
    """When they were loaded; None before."""
    shapes: dict[ToolKey, LearntShape] = field(default_factory=dict[ToolKey, LearntShape])
    unsaved: set[ToolKey] = field(default_factory=set[ToolKey])


@dataclass(slots=True)
class _Definition:
    """What is computed of a definition once. It takes milliseconds for one of thousands of parameters."""

    tool: Tool
    hash: str
    words: frozenset[str] | None = None
    """Of which keys may consist; None until a reply is read."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    principal: str
    tool: ToolKey
    sample: Sample
    definition: "Definition"


class ShapeMemory:
    """Shapes for all clients of a gateway.

    Args:
        store: Keeps shapes between starts; None to keep them in memory only.
        spawn: Runs learning in the background; without it, `settle` has to be called.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        store: ShapeStore | None = None,
        spawn: Spawn | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._spawn = spawn
        self._clock = clock
        self._seen: dict[tuple[str, str, str], int] = {}
        """Number of replies of each principal, server and tool."""
        self._waiting: list[_Waiting] = []
        self._is_running = False
        self._lock = anyio.Lock()
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._declared: dict[int, tuple[JsonObject, ReturnShape | None]] = {}
        """Cache of the shapes of schemas by object identity; the objects are kept so that their ids stay valid."""
        self._definitions: dict[int, _Definition] = {}
        """Cache of hashes and words of definitions by the identity of their input schema, which is kept so that its
        id stays valid."""
        self._texts: dict[tuple[int, str], tuple[ReturnShape, str]] = {}

    def observe(self, principal: str, reply: Reply, definition: "Definition") -> None:
        """Note a reply for learning.

        Args:
            principal: Whose call it answers.
            reply: With its origin, before it is shortened.
            definition: Returns the definition of the reply's tool.
        """
        origin = reply.origin
        if origin is None:
            return
        key = (principal, origin.server, origin.tool)
        seen = self._seen.get(key, 0) + 1
        if seen == 1 and len(self._seen) >= _MOST_TOOLS:
            self._seen.clear()
        self._seen[key] = seen
        if (seen > _EACH and seen & (seen - 1)) or reply.is_error or len(self._waiting) >= _WAITING:
            return
        sample = sample_of(reply)
        if sample is None:
            return
        self._waiting.append(_Waiting(principal, (origin.server, origin.tool), sample, definition))
        if self._spawn is not None and not self._is_running:
            self._is_running = True
            self._spawn(self._learn_later)

    async def _learn_later(self) -> None:
        try:
            await anyio.sleep(_LATER)
        finally:
            self._is_running = False
        await self.settle()

    async def settle(self) -> None:
        """Learn from all samples that wait, and store the result. To be called at shutdown too."""
        async with self._lock:
            while self._waiting:
                await self._learn(self._waiting.pop(0))
                await anyio.sleep(0)
            for principal, known in list(self._known.items()):
                while known.unsaved:
                    tool = known.unsaved.pop()
                    learnt = known.shapes.get(tool)
                    if self._store is None:
                        continue
                    with suppress(StoreFailed):
                        await anyio.to_thread.run_sync(_write, self._store, principal, tool, learnt)

    async def load(self, principal: str) -> None:
        """Load a principal's shapes, unless that was done lately."""
        known = self._of(principal)
        if self._store is None or (known.at is not None and self._clock() - known.at < _STALE):
            return
        known.at = self._clock()
        stored, found = self._store, None
        with suppress(StoreFailed), anyio.move_on_after(_PATIENCE):
            found = await anyio.to_thread.run_sync(lambda: _read_all(stored.load(principal)), abandon_on_cancel=True)
        if found is not None:
            unsaved = {tool: known.shapes[tool] for tool in known.unsaved if tool in known.shapes}
            # The same objects as before where nothing changed: texts are cached by identity.
            kept = {
                tool: known.shapes[tool] if known.shapes.get(tool) == learnt else learnt
                for tool, learnt in found.items()
            }
            known.shapes = {**kept, **unsaved}

    def text_of(self, principal: str, entry: Entry, model: str, weigh: Callable[[str], int]) -> str:
        """Return what a tool returns, as text of at most 25 tokens; empty if that is not known.

        Args:
            principal: Who asks.
            entry: The tool.
            model: The model that `weigh` counts for, as a key of the cache.
            weigh: Counts tokens.
        """
        shape = self.shape_of(principal, entry)
        if shape is None:
            return ""
        from .return_shape import write_shape

        key = id(shape), model
        known = self._texts.get(key)
        if known is None:
            if len(self._texts) >= _TEXTS:
                self._texts.clear()
            known = self._texts[key] = shape, write_shape(shape, weigh)
        return known[1]

    def shape_of(self, principal: str, entry: Entry) -> "ReturnShape | None":
        """Return the shape that a tool's `outputSchema` declares, else the one learnt for a principal."""
        schema = entry.tool.output_schema or entry.declared
        declared = None if schema is None else self._declared_shape(schema)
        if declared is not None:
            return declared
        known = self._known.get(principal)
        tool = (entry.server, entry.original)
        learnt = None if known is None else known.shapes.get(tool)
        if known is None or learnt is None:
            return None
        output = entry.tool.output_schema or entry.declared
        if (
            learnt.definition
            != self._of_definition(replace(entry.tool, name=entry.original, output_schema=output)).hash
        ):
            del known.shapes[tool]
            known.unsaved.add(tool)
            if self._spawn is not None:
                self._spawn(self.settle)
            return None
        return learnt.shape

    def _declared_shape(self, schema: JsonObject) -> "ReturnShape | None":
        from .return_shape import shape_of_schema

        known = self._declared.get(id(schema))
        if known is None:
            if len(self._declared) >= _MOST_TOOLS:
                self._declared.clear()
            known = self._declared[id(schema)] = schema, shape_of_schema(schema)
        return known[1]

    def _of_definition(self, tool: Tool) -> _Definition:
        """Return the hash and the words of a definition under its server's own name."""
        key = id(tool.input_schema)
        known = self._definitions.get(key)
        if known is None or not _is_same(known.tool, tool):
            if len(self._definitions) >= _MOST_TOOLS:
                self._definitions.clear()
            known = self._definitions[key] = _Definition(tool, definition_hash(replace(tool, aliases=())))
        return known

    def _words(self, tool: Tool) -> frozenset[str]:
        from .return_shape import definition_words

        known = self._of_definition(tool)
        if known.words is None:
            known.words = definition_words(tool)
        return known.words

    def _of(self, principal: str) -> _Known:
        known = self._known.setdefault(principal, _Known())
        self._known.move_to_end(principal)
        if len(self._known) > _PRINCIPALS:
            oldest = next((name for name, one in self._known.items() if not one.unsaved), None)
            if oldest is not None and oldest != principal:
                del self._known[oldest]
        return known

    async def _learn(self, waiting: _Waiting) -> None:
        from .return_shape import is_informative, join_shapes, shape_of_sample

        tool = await waiting.definition(Origin(*waiting.tool))
        if tool is None or (tool.output_schema is not None and self._declared_shape(tool.output_schema) is not None):
            return
        await self.load(waiting.principal)
        shape = shape_of_sample(waiting.sample, self._words(tool))
        if shape is None:
            return
        known, definition = self._of(waiting.principal), self._of_definition(tool).hash
        before = known.shapes.get(waiting.tool)
        if before is not None and before.definition == definition:
            shape = join_shapes(before.shape, shape)
            if shape == before.shape:
                return
        if is_informative(shape) and not _is_suspicious(shape):
            known.shapes[waiting.tool] = LearntShape(definition, shape)
            known.unsaved.add(waiting.tool)
        elif before is not None:
            del known.shapes[waiting.tool]
            known.unsaved.add(waiting.tool)


def _is_same(one: Tool, other: Tool) -> bool:
    """Return whether two definitions are surely equal, by the identity of their schemas."""
    return (
        one.input_schema is other.input_schema
        and one.output_schema is other.output_schema
        and (one.name, one.description, one.title) == (other.name, other.description, other.title)
        and (one.annotations, one.extra) == (other.annotations, other.extra)
    )


def _write(store: ShapeStore, principal: str, tool: ToolKey, learnt: LearntShape | None) -> None:
    from .return_shape import shape_to_json

    if learnt is None:
        store.delete(principal, tool)
    else:
        store.save(principal, tool, learnt.definition, shape_to_json(learnt.shape))


def _read_all(stored: Mapping[ToolKey, tuple[str, Json]]) -> dict[ToolKey, LearntShape]:
    from .return_shape import read_shape

    read = {tool: (definition, read_shape(said)) for tool, (definition, said) in stored.items()}
    return {tool: LearntShape(definition, shape) for tool, (definition, shape) in read.items() if shape is not None}


_SENTENCE = 3
"""Words of a key from which it may be an instruction."""


def _is_suspicious(shape: "ReturnShape") -> bool:
    """Return whether the keys of a shape, read as sentences, are flagged as instructions to a model."""
    from ..poison import find_flags

    sentences = [words for key in _all_keys(shape) if len((words := _words(key)).split()) >= _SENTENCE]
    if not sentences:
        return False
    said = Tool(name="returns", description=". ".join(sentences), input_schema={"type": "object"})
    return bool(find_flags("returns", [said]))


def _words(key: str) -> str:
    return key.replace("_", " ").replace("-", " ").strip()


def _all_keys(shape: "ReturnShape") -> Iterable[str]:
    for key, inner in shape.keys.items():
        yield key
        yield from _all_keys(inner)
    if shape.items is not None:
        yield from _all_keys(shape.items)
