"""How does Ullage answer `make bench-faults`?

Run by it, with the wire of the provider that fails. Time-outs are those of the peers; patience is what ships.
"""

import sys

import httpx2
from faults_answering import Ask as AskOnce
from faults_answering import answer_orders

from ullage.delegate import (
    Anthropic,
    Ask,
    Delegate,
    Gemini,
    ModelEntry,
    OpenAIChat,
    OpenAIResponses,
    Policy,
    Provider,
    Timeouts,
)
from ullage.messages import Message, Text
from ullage.models import shipped
from ullage.tokens import Meter

PRIMARY = {
    "chat": (OpenAIChat(), "/v1", "gpt-4o-mini"),
    "responses": (OpenAIResponses(), "/v1", "gpt-4o-mini"),
    "gemini": (Gemini(), "/gemini", "gemini-2.5-flash"),
}
METER = Meter(shipped())
CLIENT = httpx2.AsyncClient()
TIMEOUTS = Timeouts(first_byte=5, idle=5)
ASK = Ask(messages=(Message(role="user", parts=(Text("Say something of some length."),)),))


def fresh(address: str) -> AskOnce:
    wire, path, model = PRIMARY[sys.argv[1]]
    primary = ModelEntry(id="primary", provider="primary", model=model)
    backup = ModelEntry(id="backup", provider="backup", model="claude-haiku-4-5")
    delegate = Delegate(
        policy=Policy(
            aliases={"first": "primary", "second": "backup"},
            models={"primary": primary, "backup": backup},
            default_alias="first",
            fallbacks={"first": ("second",)},
        ),
        models=shipped(),
        meter=METER,
        providers={
            "primary": Provider(name="primary", wire=wire, base_url=address + path, key="k", timeouts=TIMEOUTS),
            "backup": Provider(
                name="backup", wire=Anthropic(), base_url=address + "/anthropic", key="k", timeouts=TIMEOUTS
            ),
        },
        client=CLIENT,
    )

    async def ask(streamed: bool) -> str:  # noqa: FBT001  (it always is)
        return (await delegate.run(ASK)).completion.text

    return ask


if __name__ == "__main__":
    for _, _, model in PRIMARY.values():
        # A process reads a vocabulary once, whatever fails.
        METER.count("a word", model)
    answer_orders(fresh)
