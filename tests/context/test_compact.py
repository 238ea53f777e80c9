import pytest

from context.sessions import METER, Summarising, steps
from ullage.context import Context, Options
from ullage.tool import JsonObject

pytestmark = pytest.mark.anyio

WINDOW = 8_000


def said(role: str, number: int) -> JsonObject:
    return {"role": role, "content": f"word {number} " * 40}


async def test_where_hardly_anything_may_be_let_go_it_is_not_done_before_every_call():
    """Each time, a provider must read anew all that stands behind."""
    made = Context(model="gpt-4o", meter=METER, options=Options(context_window=WINDOW), summarizer=Summarising())
    made.add(*(said(("user", "assistant")[number % 2], number) for number in range(60)))
    made.add({"role": "user", "content": "paste " * int(0.7 * WINDOW)})
    compactions = 0
    for step in range(0, 60, 2):
        prepared = await made.prepare()
        assert prepared.status.used < WINDOW
        compactions += prepared.compacted
        made.add(*steps(30)[step : step + 2])
    assert compactions <= 8


@pytest.mark.parametrize("window", range(100, 1_000, 50))
async def test_what_wins_nothing_is_not_done(window: int):
    made = Context(model="gpt-4o", meter=METER, options=Options(context_window=window))
    for number in range(12):
        made.add({"role": "user", "content": f"word {number} " * (number % 5 * 12 + 1)}, *steps(2, words=20))
        prepared = await made.prepare()
        assert prepared.before is None or prepared.status.used < prepared.before.used
