"""Whose tokens are counted for this caller?

A gateway is never told the client's model: figures are those of the model that the user named for the client, else of
o200k_base and a window of 200,000, and say so. What a text weighs, the meter knows.
"""

from dataclasses import dataclass, field
from typing import Final

from ullage.models import ModelTable
from ullage.tool import Caller

__all__ = ["ASSUMED", "INEXACT", "Reference", "References", "character_limit", "characters"]

INEXACT = "Actual tokens may vary by LLM tokenizer"
"""The warning on a figure that is not exact for the caller."""
_CHARACTER_LIMITS: Final = {"gemini": 39_000, "gemini-cli": 39_000}
"""Client to the characters of a tool's reply that it shows whole. Gemini CLI truncates what exceeds 40,000, and adds
words of its own to a reply."""


def character_limit(caller: Caller) -> int | None:
    """The characters that a reply to this caller may have; None for any number."""
    return _CHARACTER_LIMITS.get((caller.client or "").lower().replace("_", "-"))


def characters(text: str) -> int:
    """The length of a text as programs in JavaScript measure it, in units of UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    model: str | None
    """The model's id; None where nobody named one."""
    counted_as: str
    """The name that the meter is given."""
    label: str
    """What a figure says it was counted by: the model's id, or the vocabulary assumed."""
    window: int
    exact: bool
    """Whether it is the caller's own model; whether a count is exact for that model, the count knows."""


ASSUMED: Final = Reference(model=None, counted_as="gpt-4o", label="o200k_base", window=200_000, exact=False)
"""For whoever named no model. The catalogue's weights are counted as this too, once for all."""


@dataclass(frozen=True, slots=True)
class References:
    """The reference of each caller, by the model that the user named for it."""

    models: ModelTable
    window: int | None = None
    """Where the user set one: for every caller."""
    _made: dict[str | None, Reference] = field(default_factory=dict[str | None, Reference], repr=False)
    """Users name few models; each is looked up once."""

    def __call__(self, caller: Caller) -> Reference:
        made = self._made.get(caller.model)
        if made is None:
            made = self._made[caller.model] = self._make(caller.model)
        return made

    def _make(self, model: str | None) -> Reference:
        match = None if model is None else self.models.get(model)
        if model is None or match is None:
            return Reference(
                model=None,
                counted_as=ASSUMED.counted_as,
                label=ASSUMED.label,
                window=self.window or ASSUMED.window,
                exact=False,
            )
        window = self.window or match.card.window or ASSUMED.window
        return Reference(model=match.card.id, counted_as=model, label=match.card.id, window=window, exact=True)
