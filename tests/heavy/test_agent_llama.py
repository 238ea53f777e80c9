"""A real model in a small window, at work for longer than the window is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from heavy.agent_llama import MODEL, delegate, meter_of, orders
from heavy.delegate_llama import serving_llama
from ullage.agent import ContextStatus, Event, Returned, Used, run_agent
from ullage.app.build_delegate import DelegateSummarizer
from ullage.context import Context, Options, Session
from ullage.messages import Format

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]

WINDOW, ROUNDS, STEPS = 2_048, 6, 10
SYSTEM = """You are a clerk in the office of a shipping company, and you look up orders for those who ask.

An order has a number and several lines. A line says how many crates of which goods go to which address, and whether \
they are waiting in our warehouse or were shipped already. Look up one order at a time, and never guess what is in an \
order that you have not looked up. Addresses and quantities are told as they stand in the order, for the drivers go by \
them. Where an order has no lines, say so. Where somebody asks what an order costs, send them to the accounts office, \
which is open from eight in the morning until four in the afternoon on every day but Sunday.

When you have looked up all that was asked for, tell which lines are waiting, by order and line, and nothing else. Do \
not tell what was shipped unless you were asked. Be brief, be exact, and be kind to those who ask twice."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving_llama(WINDOW) as address:
        yield address


async def worked(address: str, folder: Path, *, knows: bool, rounds: int) -> list[tuple[Any, Used]]:
    """Each status, and what the server counted for the very prompt that it was told of."""
    meter, found = meter_of(address, knows=knows), list[Event]()
    async with httpx2.AsyncClient() as client:
        asked = delegate(client, address, meter, WINDOW)
        context = Context(
            model=MODEL,
            meter=meter,
            format=Format.ULLAGE,
            system=SYSTEM,
            options=Options(context_window=WINDOW),
            session=Session.open(folder / "session.jsonl", format=Format.ULLAGE),
            summarizer=DelegateSummarizer(delegate=asked),
        )
        source = orders()
        for number in range(rounds):
            prompt = f"Look up ten more orders, and tell me which of them are waiting. This is round {number}."
            work = run_agent(
                prompt, delegate=asked, context=context, tools=source, max_steps=STEPS, max_output_tokens=80
            )
            found += [event async for event in work]
    assert sum(isinstance(event, Returned) and not event.is_error for event in found) == rounds * STEPS
    told = [event.context for event in found if isinstance(event, ContextStatus)]
    used = [event for event in found if isinstance(event, Used)]
    assert len(told) == len(used) == rounds * STEPS, "no prompt was refused for its length"
    return list(zip(told, used, strict=True))


def reported(used: Used) -> int:
    assert used.reported
    assert used.usage.input is not None
    return used.usage.input


@pytest.mark.requirement("S2:long", "S2:status", "S2:compact:when")
async def test_sixty_tool_using_turns_go_through_a_window_of_two_thousand_tokens(server: str, tmp_path: Path):
    found = await worked(server, tmp_path, knows=True, rounds=ROUNDS)
    compacted = [(said, reported(used)) for said, used in found if said["compacted"]]
    assert len(compacted) >= 4
    for said, tokens in compacted:
        assert said["low"] <= tokens <= said["high"], said
        assert said["usagePercent"] < 50
    anchored = [(said["used"], reported(used)) for said, used in found if said["method"] == "anchored"]
    assert len(anchored) > 40
    off = [abs(ours - theirs) / theirs for ours, theirs in anchored]
    assert max(off) < 0.01, sorted(off)[-5:]
    assert max(reported(used) + (used.usage.output or 0) for _, used in found) <= WINDOW


async def test_a_model_whose_vocabulary_nobody_knows_fits_too_and_every_figure_lies_in_its_band(
    server: str, tmp_path: Path
):
    found = await worked(server, tmp_path, knows=False, rounds=3)
    assert any(said["compacted"] for said, _ in found)
    outside = [(said["used"], reported(used)) for said, used in found if not _holds(said, reported(used))]
    # Of the first prompt nobody knows how the tools are written into it.
    assert len(outside) <= 1, outside


def _holds(said: Any, tokens: int) -> bool:  # noqa: ANN401
    return said["low"] <= tokens <= said["high"]
