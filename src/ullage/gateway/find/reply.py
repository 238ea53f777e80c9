"""How is what was found written down, within the budget?

The reply is one JSON text with `tools`, `more` and `token_metrics`, and where there is reason `missing` and `hint`. Its
size is counted whole, by the tokenizer of whoever asked, before it leaves; it is made smaller until it fits.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ullage.tokens import Count
from ullage.tool import Json, JsonObject

from ..merge.view import Missing
from ..reference import characters
from .fit import Candidate, Fitted, Piece, fit
from .forms import Forms, written
from .savings import TokenMetrics
from .tools import CALL_WRITE

__all__ = ["LEAST_BUDGET", "About", "Beside", "FindToolResponse", "Found", "Weigh", "candidate", "compose"]

LEAST_BUDGET = 100
"""Tokens below which no reply says anything."""
_WRITES = " [write]"
_VIA = f',"call":"{CALL_WRITE.name}"'
_MOST_ALSO = 5
"""Tools named beside one that does the same."""
_NOTES = 0.3
"""Of the budget, that everything beside tools and figures may take."""

_LETTERS = 3
"""Characters that a token of definitions has at the least, on the whole."""

Weigh = Callable[[str], Count]


@dataclass(frozen=True, slots=True)
class Beside:
    """What is said besides tools and figures."""

    missing: Sequence[Missing] = ()
    """Servers whose tools could not be searched."""
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FindToolResponse:
    """A reply of `find_tool` as programs read it.

    Example:
        >>> reply = '{"tools":[],"more":[],"token_metrics":{"baseline_tokens":0,"returned_tokens":0,"tokens_saved":0,'
        >>> FindToolResponse.read(reply + '"savings_percentage":0}}').token_metrics.tokens_saved
        0
    """

    tools: tuple[JsonObject, ...]
    """Definitions, best match first."""
    token_metrics: TokenMetrics
    more: tuple[str, ...] = ()
    """Further tools, a line each."""
    missing: tuple[Json, ...] = ()
    """Servers whose tools could not be searched."""
    hint: str | None = None

    @classmethod
    def read(cls, text: str) -> "FindToolResponse":
        """Parses the text of a reply.

        Raises:
            ValueError: The text is no reply of `find_tool`, or its figures do not agree.
        """
        value: Json = json.loads(text)
        try:
            found = cast("dict[str, Any]", value)
            return cls(
                tools=tuple(found["tools"]),
                token_metrics=TokenMetrics(**found["token_metrics"]),
                more=tuple(found.get("more", ())),
                missing=tuple(found.get("missing", ())),
                hint=found.get("hint"),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError("this is no reply of find_tool") from error

    def to_json(self) -> dict[str, Json]:
        said: dict[str, Json] = {
            "tools": [dict(tool) for tool in self.tools],
            "more": [*self.more],
            "token_metrics": self.token_metrics.to_json(),
        }
        beside: dict[str, Json] = {"missing": [*self.missing], "hint": self.hint}
        return {**said, **{key: value for key, value in beside.items() if value}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    text: str
    metrics: TokenMetrics
    tokens: Count
    """Of the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What is known of a tool besides its definition."""

    named: bool = False
    near: bool = True
    writes: bool = False
    """Whether it goes through the other door."""
    also: tuple[str, ...] = ()
    """Others that do the same."""

    @property
    def others(self) -> list[Json]:
        """The first few of them."""
        rest = len(self.also) - _MOST_ALSO
        return [*self.also[:_MOST_ALSO], *([f"…{rest} more"] if rest > 0 else [])]


def candidate(forms: Forms, about: About, weigh: Weigh, *, baseline: int) -> Candidate:
    """The tool in all its forms with their costs. Which door it takes, and who else does the same, is said in all but
    the name, unless the definition would for that exceed all that there is."""
    others = about.others
    mark = (f" (also: {', '.join(map(str, others))})" if others else "") + (_WRITES if about.writes else "")
    beside = (f',"also":{written(others)}' if others else "") + (_VIA if about.writes else "")
    definition = f"{forms.definition[:-1]}{beside}}}"
    if beside and weigh(definition).tokens > baseline:
        definition = forms.definition
    return Candidate(
        definition=_piece(definition, weigh),
        signature=_piece(_marked(forms.signature, mark), weigh),
        line=_piece(_marked(forms.line, mark), weigh),
        name=_piece(forms.name, weigh),
        named=about.named,
        near=about.near,
    )


def _marked(line: str, mark: str) -> str:
    return f"{line[:-1]}{written(mark)[1:]}" if mark else line


def _piece(text: str, weigh: Weigh) -> Piece:
    return Piece(text, weigh(text).high)


def compose(  # noqa: PLR0913
    candidates: Sequence[Candidate],
    *,
    baseline: int,
    budget: int,
    weigh: Weigh,
    beside: Beside,
    limit: int | None = None,
) -> Found:
    """The fullest reply within the budget, and within the baseline: no reply returns more than there is.

    `limit` is the number of characters that the client shows; None for any number.
    """
    if limit is not None:
        budget = min(budget, limit // _LETTERS)
    notes = _notes(beside, int(budget * _NOTES), weigh)
    frame = weigh(_text(Fitted(), notes, TokenMetrics.of(baseline, 0)))
    # Costs are the upper edges of counts, the baseline is a count.
    most = baseline * frame.high // max(1, frame.tokens)
    fitted = fit(candidates, max(0, min(budget - frame.high, most)))
    while fitted != Fitted():
        returned = sum(weigh(piece.text).tokens for piece in (*fitted.tools, *fitted.more))
        if returned <= baseline:
            found = _found(fitted, notes, TokenMetrics.of(baseline, returned), weigh)
            if found.tokens.high <= budget and (limit is None or characters(found.text) <= limit):
                return found
        fitted = fitted.less()
    if candidates:
        notes = _notes(
            Beside(hint=f"{len(candidates)} found, none fits; give more max_tokens"), budget - frame.high, weigh
        )
    # Nothing was returned in the place of the catalogue, so nothing was saved.
    return _found(Fitted(), notes, TokenMetrics.of(0, 0), weigh)


def _found(fitted: Fitted, notes: str, metrics: TokenMetrics, weigh: Weigh) -> Found:
    text = _text(fitted, notes, metrics)
    return Found(text=text, metrics=metrics, tokens=weigh(text))


def _text(fitted: Fitted, notes: str, metrics: TokenMetrics) -> str:
    tools, more = (",".join(piece.text for piece in pieces) for pieces in (fitted.tools, fitted.more))
    return f'{{"tools":[{tools}],"more":[{more}],{notes}"token_metrics":{written(metrics.to_json())}}}'


def _notes(beside: Beside, room: int, weigh: Weigh) -> str:
    """`missing` and `hint` at the greatest length that the room allows, each followed by a comma."""
    for said in _lengths(beside.missing, beside.hint):
        text = "".join(f'"{key}":{written(value)},' for key, value in said.items() if value)
        if weigh(text).high <= room:
            return text
    return ""


def _lengths(missing: Sequence[Missing], hint: str | None) -> list[dict[str, Json]]:
    names: list[Json] = [one.server for one in missing]
    whole: list[Json] = [f"{one.server}: {one.brief}" for one in missing]
    few: list[Json] = [*names[:5], *([f"and {len(names) - 5} more"] if len(names) > 5 else [])]
    number: list[Json] = [f"{len(names)} servers"] if names else []
    return [
        {"missing": whole, "hint": hint},
        {"missing": names, "hint": hint},
        {"missing": few, "hint": hint},
        {"missing": few},
        {"missing": number},
    ]
