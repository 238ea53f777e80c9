"""Finds how many rows fit a token budget.

The result is the longest head of the rows that, with header and footer, weighs no more than the budget. It is weighed
as one whole text with the function passed in, in steps where the text may be long, so it is exact for any tokenizer.
Tokens are almost proportional to characters, so a first guess is close and a few weighings are enough. Rows are taken
from their source only as far as needed. A row is never cut; the caller chooses the footer's text.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ullage.tokens import Steps, drain

__all__ = ["Continued", "Fitted", "Footer", "Weigh", "WeighSteps", "fit", "fit_steps", "in_steps"]

Weigh = Callable[[str], int]
"""Returns the tokens of a text. For a model whose counts have a band, its upper end."""
WeighSteps = Callable[[str], Steps[int]]
"""Returns the tokens of a text as `Weigh` does, in steps, so that other tasks can run in between."""


def in_steps(weigh: Weigh) -> WeighSteps:
    """Wrap a `Weigh` as a `WeighSteps`."""

    def steps(text: str) -> Steps[int]:
        yield
        return weigh(text)

    return steps


Footer = Callable[[int, bool], str]
"""Returns the last line, given how many rows are shown and whether these are all; empty for none."""

_CHARACTERS = 4
"""Characters a token, as a first guess."""
_PULLED = 65_536
"""Characters of rows taken from the source between two yields."""
_SURELY = 2
"""A text whose head weighs this many times the budget exceeds it: no text weighs less than half of its head."""
_HEAD = 16
"""Characters a token of that head, so that the rest of a very long row is not weighed."""


class Continued(str):
    """A line that continues the one before it, without a line break between the two."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A text within the budget."""

    text: str
    tokens: int
    """Tokens of the text, never more than the budget."""
    rows: int
    """Rows that are shown."""
    complete: bool
    """Whether these are all the rows."""


def fit(header: str, lines: Iterable[str], footer: Footer, weigh: Weigh, budget: int) -> Fitted:
    """Return the text with as many rows as fit the budget.

    Where header and footer alone are too much, the text is the footer, or as many of its words as fit.

    Args:
        header: The text before the rows.
        lines: The rows, one line each; taken only as far as needed.
        footer: Makes the last line.
        weigh: Counts the tokens of a text.
        budget: The most tokens that the text may have.
    """
    return drain(fit_steps(header, lines, footer, in_steps(weigh), budget))


def fit_steps(header: str, lines: Iterable[str], footer: Footer, weigh: WeighSteps, budget: int) -> Steps[Fitted]:
    """Fit rows as `fit` does, in steps."""
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
    """Rows taken from the source so far."""
    lengths: list[int] = field(default_factory=lambda: [0])
    """Characters of the first n lines together, by n, including line breaks."""
    exhausted: bool = False
    weights: dict[tuple[int, bool], int] = field(default_factory=dict[tuple[int, bool], int])
    """Tokens of the whole text, by the number of rows in it and whether these are all."""

    def pull(self) -> Steps[int]:
        """Take rows until they exceed the budget or are all, and return their weight."""
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
        """Return the number of rows that fit, given that the empty text fits and all rows taken do not."""
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
        """Weigh a text; one that is far too long by its head."""
        head = text[: max(_PULLED, _HEAD * self.budget)]
        weight = yield from self.scale(head)
        if len(head) == len(text):
            return weight
        if weight > _SURELY * self.budget:
            return weight * len(text) // len(head)
        return (yield from self.scale(text))

    def _guess(self, low: int, high: int) -> int:
        """Guess the number of rows, as if every character between the two bounds weighed the same."""
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
    """Return the footer, or as many of its words as fit."""
    words = footer.split(" ")
    for number in range(len(words), 0, -1):
        text = " ".join(words[:number])
        tokens = yield from weigh(text)
        if tokens <= budget:
            return Fitted(text=text, tokens=tokens, rows=0, complete=False)
    return Fitted(text="", tokens=0, rows=0, complete=False)
