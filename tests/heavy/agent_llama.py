"""An agent whose model is a small real one, and which calls a tool at every step because it can answer nothing else.

The model has learnt no tool calls. The wire here tells it of its tools in the system prompt, and has the server hold
its answer to the grammar of a call; what goes out and comes back is counted by the server as any other prompt.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import httpx2

from heavy.delegate_llama import PATIENT
from ullage.delegate import Completion, Delegate, Event, ModelEntry, OpenAIChat, Outgoing, Policy, Provider
from ullage.delegate.model_call import Reader, WireRequest
from ullage.messages import Message, Text, ToolCall, ToolDefinition, ToolResult
from ullage.models import ModelTable, Usage, shipped
from ullage.testing import FakeSource
from ullage.tokens import Meter, Steps
from ullage.tokens.bpe import default_engine
from ullage.tool import Call, JsonObject, Reply, Tool

__all__ = ["MODEL", "CallingWire", "delegate", "meter_of", "orders"]

MODEL = "smollm2"


@dataclass(frozen=True)
class CallingWire:
    """Chat with a model that must call the first of its tools where it has any."""

    inner: OpenAIChat = field(default_factory=OpenAIChat)

    def write(self, outgoing: Outgoing) -> WireRequest:
        if not outgoing.tools:
            return self.inner.write(outgoing)
        system, *rest = outgoing.messages
        told = Text("\n".join(["Tools:", *map(_shown, outgoing.tools)]))
        plain = map(_plain, (replace(system, parts=(*system.parts, told)), *rest))
        written = self.inner.write(replace(outgoing, messages=tuple(plain), tools=()))
        return replace(written, body={**written.body, "grammar": _grammar(outgoing.tools[0])})

    def reader(self) -> "CallReader":
        return CallReader(self.inner.reader())

    def authorize(self, key: str) -> dict[str, str]:
        return self.inner.authorize(key)


def _shown(tool: ToolDefinition) -> str:
    return json.dumps({"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)})


def _grammar(tool: ToolDefinition) -> str:
    """Of a call as `_words` writes it, with a number from 1 to 99 as its only argument."""
    opening = json.dumps(_words(ToolCall(name=tool.name, arguments='{"number": ')).removesuffix("}"))
    return f'root ::= {opening} [1-9] [0-9]? "}}}}"'


def _plain(message: Message) -> Message:
    """Calls and results as the texts that the model wrote and reads."""
    role = "user" if message.role == "tool" else message.role
    return Message(role=role, parts=(Text("\n\n".join(map(_words, message.parts))),))


def _words(part: object) -> str:
    if isinstance(part, ToolCall):
        return f'{{"name": "{part.name}", "arguments": {part.arguments}}}'
    parts = part.parts if isinstance(part, ToolResult) else (part,)
    return "\n".join(one.text for one in parts if isinstance(one, Text))


@dataclass
class CallReader:
    inner: Reader

    @property
    def is_whole(self) -> bool:
        return self.inner.is_whole

    @property
    def is_over(self) -> bool:
        return self.inner.is_over

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        return self.inner.feed(event, data)

    def finish(self) -> Completion:
        whole = self.inner.finish()
        try:
            asked = json.loads(whole.text)
            call = ToolCall(name=str(asked["name"]), arguments=json.dumps(asked["arguments"]))
        except (ValueError, KeyError, TypeError):
            return whole
        message = Message(role="assistant", parts=(call,))
        return replace(whole, message=message, tool_calls=(call,), finish="tool_calls")

    def so_far(self) -> Usage:
        return self.inner.so_far()


@dataclass
class ServersEngine:
    """The model's own vocabulary, by asking its server."""

    address: str

    def available(self, vocabulary: str) -> bool:
        return vocabulary == MODEL or default_engine().available(vocabulary)

    def adds_up(self, vocabulary: str) -> bool:
        return vocabulary != MODEL and default_engine().adds_up(vocabulary)

    def counter(self, vocabulary: str) -> Callable[[str], int]:
        return self._count if vocabulary == MODEL else default_engine().counter(vocabulary)

    def steps(self, vocabulary: str, text: str) -> Steps[int]:
        yield
        return self.counter(vocabulary)(text)

    def _count(self, text: str) -> int:
        body = {"content": text, "add_special": False, "parse_special": False}
        reply = httpx2.post(f"{self.address}/tokenize", json=body, timeout=120)
        return len(reply.raise_for_status().json()["tokens"])


def meter_of(address: str, *, knows: bool) -> Meter:
    """One that knows the model's vocabulary, or one that has never heard of the model."""
    if not knows:
        return Meter(shipped())
    card = {"id": MODEL, "provider": "huggingface", "family": "smollm", "tokenizer": MODEL}
    return Meter(ModelTable({"sources": [], "cards": [card]}), engine=ServersEngine(address))  # pyright: ignore[reportArgumentType]


def delegate(client: httpx2.AsyncClient, address: str, meter: Meter, window: int) -> Delegate:
    entry = ModelEntry(id=MODEL, provider="llama", model=MODEL, temperature=0.8, window=window)
    return Delegate(
        policy=Policy(aliases={MODEL: MODEL}, models={MODEL: entry}, default_alias=MODEL),
        models=meter.models,
        meter=meter,
        providers={
            "llama": Provider(name="llama", wire=CallingWire(), base_url=f"{address}/v1", timeouts=PATIENT),
        },
        client=client,
        longest=600,
    )


_STREETS = ("Harbour Road", "Mill Lane", "Castle Street", "Market Square", "Station Road", "Orchard Close")
_GOODS = ("pears", "nails", "wool", "lamps", "salt")


def orders() -> FakeSource:
    """A tool that tells two to five lines of an order."""

    async def look_up(call: Call) -> Reply:
        number, turn = call.arguments.get("number"), len(source.calls)
        lines = [
            f"order {number}.{line}: {(7 * turn + line) % 90} crates of {_GOODS[(turn + line) % 5]} to "
            f"{turn % 80 + line} {_STREETS[(turn + line) % 6]}, {'shipped' if line % 2 else 'waiting'}"
            for line in range(2 + turn % 4)
        ]
        return Reply.text("\n".join(lines))

    schema: JsonObject = {
        "type": "object",
        "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 99}},
        "required": ["number"],
    }
    tool = Tool(name="look_up", description="Looks up an order.", input_schema=schema)
    source = FakeSource(offered=(tool,), answer=look_up)
    return source
