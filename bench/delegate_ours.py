"""How do Ullage and the bare HTTP client call the server of `make bench-delegate`?

Run by it. The bare client sends the same request and reads the same bytes, and does nothing with them.
"""

from collections.abc import Mapping

import httpx2
from delegate_timing import Call, take_orders

from ullage.delegate import Anthropic, Ask, Delegate, ModelEntry, OpenAIChat, OpenAIResponses, Policy, Provider, Wire
from ullage.messages import Message, Text
from ullage.models import shipped
from ullage.tokens import Meter

WIRES: dict[str, tuple[Wire, str, str]] = {
    "chat": (OpenAIChat(), "/v1", "gpt-4o-mini"),
    "responses": (OpenAIResponses(), "/v1", "gpt-4o-mini"),
    "anthropic": (Anthropic(), "", "claude-haiku-4-5"),
}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "anthropic": "/v1/messages"}
PROMPT = "What is the answer?"
MODELS = shipped()
METER = Meter(MODELS)


def clients(address: str) -> Mapping[str, Call]:
    client = httpx2.AsyncClient()
    raw = {f"bytes, {wire}": _raw(client, address + path) for wire, path in PATHS.items()}
    return raw | {f"ullage, {wire}": _ours(client, address, wire) for wire in WIRES}


def _raw(client: httpx2.AsyncClient, url: str) -> Call:
    body = {"model": "gpt-4o-mini", "stream": True, "messages": [{"role": "user", "content": PROMPT}]}

    async def call() -> str:
        async with client.stream("POST", url, json=body) as response:
            async for _ in response.aiter_bytes():
                pass
        return ""

    return call


def _ours(client: httpx2.AsyncClient, address: str, name: str) -> Call:
    wire, path, model = WIRES[name]
    delegate = Delegate(
        policy=Policy(
            aliases={"one": "one"},
            models={"one": ModelEntry(id="one", provider=name, model=model)},
            default_alias="one",
        ),
        models=MODELS,
        meter=METER,
        providers={name: Provider(name=name, wire=wire, base_url=address + path, key="k")},
        client=client,
    )
    ask = Ask(messages=(Message(role="user", parts=(Text(PROMPT),)),))

    async def call() -> str:
        return (await delegate.run(ask)).completion.text

    return call


if __name__ == "__main__":
    take_orders(clients)
