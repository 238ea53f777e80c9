"""A real model behind llama.cpp's own server, and delegates that ask it on each of its wires."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from ullage.delegate import (
    Anthropic,
    Ask,
    Delegate,
    ModelEntry,
    OpenAIChat,
    OpenAIResponses,
    Policy,
    Provider,
    Timeouts,
    Wire,
)
from ullage.messages import Message, Text
from ullage.models import shipped
from ullage.tokens import Meter

__all__ = ["WIRES", "asking", "delegate", "forget", "provider", "serving_llama"]

PYTHON = Path(__file__).parents[2] / ".bench" / "llama" / "bin" / "python"
SERVER = Path(__file__).parent / "delegate_llama_server.py"
WIRES: dict[str, tuple[Wire, str]] = {
    "chat": (OpenAIChat(), "/v1"),
    "responses": (OpenAIResponses(), "/v1"),
    "anthropic": (Anthropic(), ""),
}
"""Each with what stands behind the server's address."""
PATIENT = Timeouts(connect=30, first_byte=300, idle=120)
"""A model without a graphics card, on a machine that others use."""
METER = Meter(shipped())


@contextmanager
def serving_llama(window: int) -> Iterator[str]:
    """Its address; one prompt at a time, with so many tokens of window."""
    if not PYTHON.with_name("..").joinpath(".installed").exists():
        pytest.fail("the model is not installed; run `make test-heavy`")
    process = subprocess.Popen(
        [str(PYTHON), str(SERVER), str(window)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


async def forget(address: str) -> None:
    """Lets the server's cache hold something that begins with no word of anybody's."""
    async with httpx2.AsyncClient(timeout=300) as client:
        reply = await client.post(f"{address}/completion", json={"prompt": "Zwölf", "n_predict": 1})
    reply.raise_for_status()


def provider(name: str, wire: str, address: str) -> Provider:
    speaks, path = WIRES[wire]
    return Provider(name=name, wire=speaks, base_url=address + path, timeouts=PATIENT)


def delegate(client: httpx2.AsyncClient, providers: Mapping[str, Provider], windows: Mapping[str, int]) -> Delegate:
    """The models are named as their providers are, and asked in this order."""
    first, *rest = windows
    entries = {
        name: ModelEntry(id=name, provider=name, model="smollm2", temperature=0.0, max_output_tokens=6, window=window)
        for name, window in windows.items()
    }
    return Delegate(
        policy=Policy(
            aliases={name: name for name in windows},
            models=entries,
            default_alias=first,
            fallbacks={first: tuple(rest)},
        ),
        models=shipped(),
        meter=METER,
        providers=providers,
        client=client,
        longest=600,
    )


def asking(text: str) -> Ask:
    system = Message(role="system", parts=(Text("You answer in one short sentence."),))
    return Ask(messages=(system, Message(role="user", parts=(Text(text),))))
