from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ullage.app.build_gateway import StoredSurfaces
from ullage.gateway import Decision, StoredForms
from ullage.store import Database

pytestmark = pytest.mark.anyio

DIRECT = Decision(surface="direct", reason="it is small", configuration="c")
SEARCH = Decision(surface="search", reason="it is large", configuration="c")


class Stored:
    """Decisions in a database, whose background the test runs itself."""

    def __init__(self, folder: Path) -> None:
        self.forms = StoredForms(Database.open(f"sqlite:///{folder}/kept.db"), edition="surface")
        self.waiting: list[Callable[[], Awaitable[None]]] = []
        self.surfaces = StoredSurfaces(self.forms, self.waiting.append)


@pytest.mark.requirement("S1:surface")
async def test_a_decision_is_recalled_after_a_restart_even_where_the_end_came_first(tmp_path: Path):
    first = Stored(tmp_path)
    first.surfaces.remember("k", SEARCH)
    first.surfaces.remember("k", DIRECT)
    first.surfaces.remember("k", DIRECT)
    assert len(first.waiting) == 2
    await first.surfaces.save()
    for work in first.waiting:
        await work()
    second = Stored(tmp_path)
    assert second.surfaces.recall("k") is None
    await second.surfaces.load(["k", "unheard of"])
    assert second.surfaces.recall("k") == DIRECT
    assert second.surfaces.recall("unheard of") is None


@pytest.mark.requirement("S1:surface")
@pytest.mark.parametrize(
    "said", [{}, {"surface": "sideways", "reason": "r", "configuration": "c"}, {"surface": "direct"}]
)
async def test_what_was_kept_and_cannot_be_read_is_decided_again(tmp_path: Path, said: dict[str, str]):
    stored = Stored(tmp_path)
    stored.forms.save({"k": {**said}})
    await stored.surfaces.load(["k"])
    assert stored.surfaces.recall("k") is None
