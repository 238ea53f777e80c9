from pathlib import Path

import pytest

from store.databases import ENGINES, fresh_place, opened


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path: Path):
    with fresh_place(request.param, tmp_path) as where:
        yield where


@pytest.fixture
def database(place: str):
    with opened(place) as one:
        yield one
