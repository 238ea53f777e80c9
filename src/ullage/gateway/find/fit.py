"""How much of each tool can be shown within a budget?

Whoever looks for a tool is served best by few whole definitions and many lines: two definitions and eighteen lines held
79 of 100 needed tools in some 800 tokens, eight definitions 63 in 1,350. So about half of the room goes to definitions,
best first; the rest of the tools get a line each as long as there is room, and what is then left makes lines into
signatures and signatures into definitions. Pure arithmetic over costs; who counts them, and what stands around, is the
reply's affair.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = ["Candidate", "Fitted", "Piece", "fit"]

_FIRST = 0.75
"""Of the room, that the best hit's definition may take."""
_DEFINITIONS = 0.5
"""Of the room, that all definitions may take together."""
_MOST_DEFINITIONS = 8
"""Beyond the first few, a small definition is no better a guess than a line."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a reply as it will stand there."""

    text: str
    cost: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A tool in each of its forms; cheaper forms may cost as much as dearer ones, then the dearer is taken."""

    definition: Piece
    signature: Piece
    line: Piece
    name: Piece
    named: bool = False
    """Whether it was asked for by its name, and its definition comes before anything else."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is shown: definitions, and a line for each other tool, both best first."""

    tools: tuple[Piece, ...] = ()
    more: tuple[Piece, ...] = ()

    @property
    def cost(self) -> int:
        return sum(piece.cost for piece in self.tools + self.more)

    def less(self) -> "Fitted":
        """Without its last line, or without its last definition."""
        if self.more:
            return replace(self, more=self.more[:-1])
        return replace(self, tools=self.tools[:-1])


def fit(candidates: Sequence[Candidate], room: int) -> Fitted:
    """The best that fits into the room, for candidates in the order of their nearness."""
    shown = _definitions(candidates, room)
    left = room - _cost(shown)
    left = _fill(candidates, shown, left)
    left = _raise(candidates, shown, left, [candidate.signature for candidate in candidates])
    _raise(candidates, shown, left, [candidate.definition for candidate in candidates[:_MOST_DEFINITIONS]])
    ranks = sorted(shown)
    return Fitted(
        tools=tuple(shown[rank] for rank in ranks if shown[rank] is candidates[rank].definition),
        more=tuple(shown[rank] for rank in ranks if shown[rank] is not candidates[rank].definition),
    )


_Shown = dict[int, Piece]
"""The form taken for each rank."""


def _definitions(candidates: Sequence[Candidate], room: int) -> _Shown:
    """Whole definitions of the best. One that is too large is passed over and leaves its place to the next."""
    shown: _Shown = {}
    spent = 0
    for rank, candidate in enumerate(candidates[:_MOST_DEFINITIONS]):
        share = 1.0 if candidate.named else _DEFINITIONS if rank else _FIRST
        if spent + candidate.definition.cost <= room * share:
            shown[rank] = candidate.definition
            spent += candidate.definition.cost
    return shown


def _fill(candidates: Sequence[Candidate], shown: _Shown, left: int) -> int:
    """A line for every tool not yet shown, or its name, while there is room."""
    for rank, candidate in enumerate(candidates):
        form = next((form for form in (candidate.line, candidate.name) if form.cost <= left), None)
        if rank not in shown and form is not None:
            shown[rank] = form
            left -= form.cost
    return left


def _raise(candidates: Sequence[Candidate], shown: _Shown, left: int, fuller: Sequence[Piece]) -> int:
    """Makes what is shown of the best tools fuller, while there is room."""
    for rank, piece in enumerate(fuller):
        now = shown.get(rank)
        if now is not None and now is not candidates[rank].definition and piece.cost - now.cost <= left:
            left -= piece.cost - now.cost
            shown[rank] = piece
    return left


def _cost(shown: _Shown) -> int:
    return sum(piece.cost for piece in shown.values())
