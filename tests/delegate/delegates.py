"""A delegate with an OpenAI that answers as told and a Google that is well, without a network."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import httpx2

from delegate.policies import policy
from delegate.streams import ANSWERS, WIRES, Scripted
from ullage.delegate import NO_SPEND, Delegate, Patience, Policy, Provider, Purse, Spend, Ticket, Timeouts
from ullage.errors import OverBudget, StoreFailed
from ullage.models import shipped
from ullage.tokens import Meter
from ullage.tool import Caller

__all__ = ["METER", "QUICK", "Both", "FakePurse", "delegate", "one_fallback", "saying"]

QUICK = Patience(first_pause=0.001)
METER = Meter(shipped())


@dataclass
class FakePurse:
    reserved: list[Spend] = field(default_factory=list[Spend])
    settled: list[Spend] = field(default_factory=list[Spend])
    reservations: int | None = None
    """How many there is enough for."""
    broken: bool = False
    """Whether nothing can be written down any more."""

    async def reserve(self, estimate: Spend, caller: Caller, task: str | None, *, already: Spend = NO_SPEND) -> Ticket:
        if len(self.reserved) == self.reservations:
            raise OverBudget("over the budget of this day")
        self.reserved.append(estimate)
        return Ticket(str(len(self.reserved)))

    async def settle(self, ticket: Ticket, actual: Spend) -> None:
        if self.broken:
            raise StoreFailed("the disk is full")
        self.settled.append(actual)

    async def end(self, caller: Caller, task: str | None = None) -> None:
        return None


@dataclass
class Both:
    openai: Scripted
    google: Scripted = field(default_factory=lambda: Scripted([ANSWERS["gemini"]]))

    async def __call__(self, request: httpx2.Request) -> httpx2.Response:
        return await (self.openai if request.url.host == "openai.test" else self.google)(request)

    def client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self))


def one_fallback() -> Policy:
    return replace(policy(), fallbacks={"chat-default": ("long-context",)})


def delegate(client: httpx2.AsyncClient, purse: Purse | None = None, by: Policy | None = None) -> Delegate:
    wires = {"openai": "chat", "google": "gemini"}
    return Delegate(
        policy=by or one_fallback(),
        models=shipped(),
        meter=METER,
        providers={
            name: Provider(
                name=name,
                wire=WIRES[wire],
                base_url=f"http://{name}.test",
                key="k",
                timeouts=Timeouts(first_byte=5, idle=0.5),
            )
            for name, wire in wires.items()
        },
        client=client,
        purse=purse or FakePurse(),
        patience=QUICK,
        now=lambda: datetime(2026, 11, 15, tzinfo=UTC),
    )


def saying(text: str) -> list[object]:
    """An answer on the chat wire."""
    return [{"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}]
