"""A real model, asked on every wire that its server speaks: one prompt is one sum, whichever way it is counted."""

from collections.abc import Iterator

import httpx2
import pytest

from heavy.delegate_llama import WIRES, asking, delegate, forget, provider, serving_llama
from ullage.delegate import Outcome

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]

SMALL, LARGE = 256, 2_048
NOBODY = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def large() -> Iterator[str]:
    with serving_llama(LARGE) as address:
        yield address


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    with serving_llama(SMALL) as address:
        yield address


def totals(outcome: Outcome) -> tuple[int | None, int | None, int]:
    assert outcome.usage_reported
    return outcome.usage.input, outcome.usage.output, outcome.usage.cache_read or 0


@pytest.mark.requirement("S4:usage", "S4:providers")
async def test_one_prompt_has_the_same_totals_on_every_wire_whether_it_was_cached_or_not(large: str):
    cold, cached, texts = dict[str, object](), dict[str, object](), set[str]()
    async with httpx2.AsyncClient() as client:
        for wire in WIRES:
            one = delegate(client, {"llama": provider("llama", wire, large)}, {"llama": LARGE})
            await forget(large)
            for found in (cold, cached):
                outcome = await one.run(asking("Write a greeting for a friend who is ill."))
                found[wire] = totals(outcome)
                texts.add(outcome.completion.text)
    assert len(set(cold.values())) == 1, cold
    assert len(set(cached.values())) == 1, cached
    assert len(texts) == 1, texts
    (unread,), (read,) = set(cold.values()), set(cached.values())
    assert isinstance(unread, tuple)
    assert isinstance(read, tuple)
    assert unread[:2] == read[:2]
    assert unread[2] == 0
    assert 0 < read[2] < read[0]


@pytest.mark.requirement("S4:retry")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_prompt_that_a_real_window_does_not_hold_goes_to_the_next_larger(wire: str, small: str, large: str):
    providers = {
        "small": provider("small", wire, small),
        "same": provider("same", wire, NOBODY),
        "large": provider("large", wire, large),
    }
    async with httpx2.AsyncClient() as client:
        # The policy believes that the first two hold more than they do, so that only the server knows better.
        one = delegate(client, providers, {"small": LARGE, "same": LARGE, "large": 2 * LARGE})
        outcome = await one.run(asking("Repeat the last word: " + "pear apple " * SMALL))
    assert [(attempt.provider, attempt.kind) for attempt in outcome.attempts] == [
        ("small", "context_length"),
        ("large", None),
    ]
    assert outcome.usage.input is not None
    assert outcome.usage.input > SMALL
