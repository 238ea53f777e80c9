import pytest

from ullage.app import background
from ullage.app.background import load_vocabularies
from ullage.models import shipped
from ullage.tokens import Count, Meter


class Noting(Meter):
    """Notes for which models it was asked to count."""

    def __init__(self) -> None:
        super().__init__(shipped())
        self.asked: list[str] = []

    def count(self, text: str, model: str = "") -> Count:
        self.asked.append(model)
        return Count.exact(len(text))


@pytest.mark.anyio
async def test_what_clients_are_counted_by_is_loaded_before_they_ask(monkeypatch: pytest.MonkeyPatch):
    noting = Noting()
    monkeypatch.setattr(background, "meter", lambda: noting)
    monkeypatch.setattr(background, "QUIET", 0)
    await load_vocabularies(["gemini-2.5-pro", None, "gpt-4o"])
    assert noting.asked == ["gemini-2.5-pro", "gpt-4o", "gpt-4"]
