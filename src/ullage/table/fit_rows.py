"""Finds how many rows fit a token budget.

The longest head of the rows that, with header and footer, weighs no more than the budget: found on the whole text,
by the scale that is given, so that it is exact whatever the tokenizer. Tokens are almost in proportion to
characters, so a first guess is near and a handful of weighings settles it. Rows are taken from their source only as
far as they may be needed. A row is never cut; what a footer says is the caller's affair.

By a function it is given, in steps where the text may be long. It never counts for itself.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ullage.tokens import Steps, drain

__all__ = ["Continued", "Fitted", "Footer", "Weigh", "WeighSteps", "fit", "fit_steps", "in_steps"]

Weigh = Callable[[str], int]
"""The tokens of a text, at once. For a model whose counts have a band, the upper edge of it."""
WeighSteps = Callable[[str], Steps[int]]
"""The same, letting others in now and then."""


def in_steps(weigh: Weigh) -> WeighSteps:
    def steps(text: str) -> Steps[int]:
        yield
        return weigh(text)

    return steps


Footer = Callable[[int, bool], str]
"""The last line, given how many rows are shown and whether these are all; empty for none."""

_CHARACTERS = 4
"""A token's, as a first guess."""
_PULLED = 65_536
"""Characters of rows taken before others are let in."""
_SURELY = 2
"""A text whose head weighs this many times the budget is over it, whatever follows: no text weighs half of its head."""
_HEAD = 16
"""Characters a token in that head, so that the rest of a very long row is not weighed."""


class Continued(str):
    """A line that goes on where the one above it ends: no line break stands between the two."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    text: str
    tokens: int
    """Of the text, never over the budget."""
    rows: int
    """That are shown."""
    complete: bool
    """Whether these are all that there were."""


def fit(header: str, lines: Iterable[str], footer: Footer, weigh: Weigh, budget: int) -> Fitted:
    """`fit_steps` at once."""
    return drain(fit_steps(header, lines, footer, in_steps(weigh), budget))


def fit_steps(header: str, lines: Iterable[str], footer: Footer, weigh: WeighSteps, budget: int) -> Steps[Fitted]:
    """Where header and footer alone are too much, there is the footer, or as many of its words as fit."""
    fitting = _Fitting(header=header, source=iter(lines), footer=footer, scale=weigh, budget=budget)
    if (yield from fitting.pull()) <= budget:
        return fitting.fitted(len(fitting.lines))
    if (yield from fitting.weigh(0)) > budget:
        return (yield from _least(footer(0, False), weigh, budget))
    return fitting.fitted((yield from fitting.search()))


@dataclass(slots=True, kw_only=True)
class _Fitting:
    header: str
    source: Iterator[str]
    footer: Footer
    scale: WeighSteps
    budget: int
    lines: list[str] = field(default_factory=list[str])
    """Taken from the source so far."""
    lengths: list[int] = field(default_factory=lambda: [0])
    """Of the first so many lines together, line breaks included."""
    exhausted: bool = False
    weights: dict[tuple[int, bool], int] = field(default_factory=dict[tuple[int, bool], int])
    """Of the whole text, by the rows in it and whether these are all."""

    def pull(self) -> Steps[int]:
        """Takes rows until they are too many, or all; says what they weigh."""
        wanted = _CHARACTERS * self.budget
        while True:
            yield from self._take(wanted)
            weight = yield from self.weigh(len(self.lines))
            if weight > self.budget or self.exhausted:
                return weight
            wanted = 2 * self.lengths[-1]

    def _take(self, wanted: int) -> Steps[None]:
        paused = self.lengths[-1]
        while self.lengths[-1] <= wanted:
            line = next(self.source, None)
            if line is None:
                self.exhausted = True
                return
            self.lines.append(line)
            self.lengths.append(self.lengths[-1] + len(line) + 1)
            if self.lengths[-1] - paused > _PULLED:
                paused = self.lengths[-1]
                yield

    def search(self) -> Steps[int]:
        """The number of rows that fit, where none does and all that were taken do not."""
        low, high, tries = 0, len(self.lines), 0
        while high - low > 1:
            tries += 1
            guess = self._guess(low, high) if tries % 3 else (low + high) // 2
            if (yield from self.weigh(guess)) <= self.budget:
                low = guess
            else:
                high = guess
        return low

    def weigh(self, rows: int) -> Steps[int]:
        key = (rows, self._is_all(rows))
        if key not in self.weights:
            self.weights[key] = yield from self._weigh(self.text(rows))
        return self.weights[key]

    def _weigh(self, text: str) -> Steps[int]:
        """A text that is far too long is weighed by its head."""
        head = text[: max(_PULLED, _HEAD * self.budget)]
        weight = yield from self.scale(head)
        if len(head) == len(text):
            return weight
        if weight > _SURELY * self.budget:
            return weight * len(text) // len(head)
        return (yield from self.scale(text))

    def _guess(self, low: int, high: int) -> int:
        """As if every character between the two weighed the same."""
        light, heavy = self.weights[low, False], self.weights[high, self._is_all(high)]
        span = self.lengths[high] - self.lengths[low]
        length = self.lengths[low] + span * (self.budget - light) // (heavy - light)
        return min(max(bisect_right(self.lengths, length) - 1, low + 1), high - 1)

    def _is_all(self, rows: int) -> bool:
        return self.exhausted and rows == len(self.lines)

    def text(self, rows: int) -> str:
        footer = self.footer(rows, self._is_all(rows))
        lines = [*_if_any(self.header), *self.lines[:rows], *_if_any(footer)]
        is_begun = (number > 0 and not isinstance(line, Continued) for number, line in enumerate(lines))
        return "".join(f"\n{line}" if begun else line for begun, line in zip(is_begun, lines, strict=True))

    def fitted(self, rows: int) -> Fitted:
        is_all = self._is_all(rows)
        return Fitted(text=self.text(rows), tokens=self.weights[rows, is_all], rows=rows, complete=is_all)


def _if_any(line: str) -> list[str]:
    return [line] if line else []


def _least(footer: str, weigh: WeighSteps, budget: int) -> Steps[Fitted]:
    """The footer, or as many of its words as fit."""
    words = footer.split(" ")
    for number in range(len(words), 0, -1):
        text = " ".join(words[:number])
        tokens = yield from weigh(text)
        if tokens <= budget:
            return Fitted(text=text, tokens=tokens, rows=0, complete=False)
    return Fitted(text="", tokens=0, rows=0, complete=False)
