from pathlib import Path

import pytest

from upstreams import settle_in


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, in a home that is nobody's."""
    settle_in(tmp_path, monkeypatch)
    return tmp_path / "work"
