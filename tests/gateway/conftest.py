import pytest

from store.databases import opened


@pytest.fixture
def database(place: str):
    with opened(place) as one:
        yield one
