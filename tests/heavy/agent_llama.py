"""An agent whose model is a small real one, and which calls a tool at every step because it can answer nothing else.

The model has learnt no tool calls. The wire here tells it of its tools in the system prompt, and has the server hold
its answer to a JSON schema of a call; what goes out and comes back is counted by the server as any other prompt.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import httpx2

from heavy.delegate_llama import PATIENT
from ullage.delegate import Completion, Delegate, Event, ModelEntry, OpenAIChat, Outgoing, Policy, Provider
from ullage.delegate.exchange import Reader, Written
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
    """Chat with a model that must call a tool where there is any."""

    inner: OpenAIChat = field(default_factory=OpenAIChat)

    def write(self, outgoing: Outgoing) -> Written:
        if not outgoing.tools:
            return self.inner.write(outgoing)
        told = "\n".join(["Tools:", *map(_shown, outgoing.tools)])
        system, *rest = (_plain(message) for message in outgoing.messages)
        words = "\n\n".join((*(part.text for part in system.parts if isinstance(part, Text)), told))
        messages = (replace(system, parts=(Text(words),)), *rest)
        first = outgoing.tools[0]
        return self.inner.write(replace(outgoing, messages=messages, tools=(), output_schema=_call_schema(first)))

    def reader(self) -> "CallReader":
        return CallReader(self.inner.reader())

    def authorize(self, key: str) -> dict[str, str]:
        return self.inner.authorize(key)


def _shown(tool: ToolDefinition) -> str:
    return json.dumps({"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)})


def _call_schema(tool: ToolDefinition) -> JsonObject:
    return {
        "type": "object",
        "properties": {"name": {"const": tool.name}, "arguments": dict(tool.schema)},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _plain(message: Message) -> Message:
    """Calls and results as the texts that the model wrote and reads."""
    role = "user" if message.role == "tool" else message.role
    return Message(role=role, parts=tuple(Text(_words(part)) for part in message.parts))


def _words(part: object) -> str:
    match part:
        case Text():
            return part.text
        case ToolCall():
            return f'{{"name": "{part.name}", "arguments": {part.arguments}}}'
        case ToolResult():
            return "\n".join(one.text for one in part.parts if isinstance(one, Text))
        case _:
            raise AssertionError(f"the model says no {part}")


@dataclass
class CallReader:
    inner: Reader

    def feed(self, event: str | None, data: str) -> tuple[Event, ...]:
        return self.inner.feed(event, data)

    def finish(self) -> Completion:
        whole = self.inner.finish()
        if not whole.text.lstrip().startswith('{"name"'.replace(" ", "")) and '"arguments"' not in whole.text:
            return whole
        call = ToolCall(name=_name(whole.text), arguments=_arguments(whole.text))
        message = Message(role="assistant", parts=(call,))
        return replace(whole, text="", message=message, tool_calls=(call,), finish="tool_calls")

    def so_far(self) -> Usage:
        return self.inner.so_far()


def _name(text: str) -> str:
    try:
        return str(json.loads(text)["name"])
    except ValueError:
        return "look_up"


def _arguments(text: str) -> str:
    """As the model spaced them, so that what goes back is what came."""
    start = text.index(":", text.index('"arguments"')) + 1
    return text[start : text.rindex("}") if text.rstrip().endswith("}") else len(text)].strip()


@dataclass
class ServersEngine:
    """The model's own vocabulary, by asking its server."""

    address: str
    asked: httpx2.Client = field(default_factory=lambda: httpx2.Client(timeout=120))

    def available(self, vocabulary: str) -> bool:
        return vocabulary == MODEL or default_engine().available(vocabulary)

    def counter(self, vocabulary: str) -> Callable[[str], int]:
        return self._count if vocabulary == MODEL else default_engine().counter(vocabulary)

    def steps(self, vocabulary: str, text: str) -> Steps[int]:
        yield
        return self.counter(vocabulary)(text)

    def _count(self, text: str) -> int:
        body = {"content": text, "add_special": False, "parse_special": False}
        reply = self.asked.post(f"{self.address}/tokenize", json=body)
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
