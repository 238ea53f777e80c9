"""How is what was found written down, within the budget?

The reply is one JSON text with `tools`, `more` and `token_metrics`, and where there is reason `missing` and `hint`. Its
size is counted whole, by the tokenizer of whoever asked, before it leaves; it is made smaller until it fits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ullage.tokens import Count
from ullage.tool import Json

from ..merge.view import Missing
from .fit import Candidate, Fitted, Piece, fit
from .forms import Forms, written
from .savings import TokenMetrics
from .tools import CALL_WRITE

__all__ = ["LEAST_BUDGET", "Beside", "Found", "Weigh", "candidate", "compose"]

LEAST_BUDGET = 100
"""Tokens below which no reply says anything."""
_WRITES = " [write]"
_VIA = f',"call":"{CALL_WRITE.name}"}}'
_NOTES = 0.3
"""Of the budget, that everything beside tools and figures may take."""

Weigh = Callable[[str], Count]


@dataclass(frozen=True, slots=True)
class Beside:
    """What is said besides tools and figures."""

    missing: Sequence[Missing] = ()
    """Servers whose tools could not be searched."""
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    text: str
    metrics: TokenMetrics
    tokens: Count
    """Of the text."""


def candidate(forms: Forms, weigh: Weigh, *, named: bool, writes: bool, baseline: int) -> Candidate:
    """The tool in all its forms with their costs; one that goes through the other door says so, unless the definition
    would for that exceed all that there is."""
    definition = forms.definition[:-1] + _VIA if writes else forms.definition
    if writes and weigh(definition).tokens > baseline:
        definition = forms.definition
    return Candidate(
        definition=_piece(definition, weigh),
        signature=_piece(_marked(forms.signature, writes=writes), weigh),
        line=_piece(_marked(forms.line, writes=writes), weigh),
        name=_piece(forms.name, weigh),
        named=named,
    )


def _marked(line: str, *, writes: bool) -> str:
    return f'{line[:-1]}{_WRITES}"' if writes else line


def _piece(text: str, weigh: Weigh) -> Piece:
    return Piece(text, weigh(text).high)


def compose(
    candidates: Sequence[Candidate],
    *,
    baseline: int,
    budget: int,
    weigh: Weigh,
    beside: Beside,
) -> Found:
    """The fullest reply within the budget, and within the baseline: no reply returns more than there is."""
    notes = _notes(beside, int(budget * _NOTES), weigh)
    frame = weigh(_text(Fitted(), notes, TokenMetrics.of(baseline, 0)))
    # Costs are the upper edges of counts, the baseline is a count.
    most = baseline * frame.high // max(1, frame.tokens)
    fitted = fit(candidates, max(0, min(budget - frame.high, most)))
    while fitted != Fitted():
        returned = sum(weigh(piece.text).tokens for piece in (*fitted.tools, *fitted.more))
        if returned <= baseline:
            found = _found(fitted, notes, TokenMetrics.of(baseline, returned), weigh)
            if found.tokens.high <= budget:
                return found
        fitted = fitted.less()
    if candidates:
        notes = _notes(
            Beside(hint=f"{len(candidates)} found, none fits; give more max_tokens"), budget - frame.high, weigh
        )
    return _found(Fitted(), notes, TokenMetrics.of(baseline, 0), weigh)


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
