"""What does the last line say?

How much is shown of how much, and how to get the rest, in as few words as a model needs: this is read with every
result that was cut. Nothing is counted here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ullage.table import Path, write_path

from .layout import Kind
from .paging import Words

__all__ = ["Reading", "answered", "block_shown", "cut_short", "left_out", "named_by"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What is being read, as far as the last line speaks of it."""

    handle: str
    kind: Kind
    total: int | None = None
    """Units in all; None where nobody has counted them."""
    named: Callable[[int], str] | None = None
    """The path of a unit, where it has one."""
    has_paths: bool = True
    """Whether it is JSON."""
    rest: int | None = None
    """The unit to go on with behind these; None where there is none."""
    rows: int | None = None
    """In all, where the units are whole rows of one of our tables."""
    footer: str = ""
    """What that table says of itself, to stand above the last line."""

    def first(self) -> Words:
        """On the reply that was cut."""

        def shown(rows: int, following: int, is_all: bool) -> str:  # noqa: FBT001 - one of three plain facts
            onward = self.rest if is_all else following
            return self.footer if onward is None else self._above + self._shown(rows, onward)

        def shorter(number: int) -> tuple[str, ...]:
            return self._shown(0, number), *cut_short(self.handle)

        return Words(shown=shown, cut=lambda number: self._above + self._cut(number), shorter=shorter)

    def _shown(self, rows: int, onward: int) -> str:
        has_sql = self.kind == "records" or bool(self.footer)
        ways = ", ".join(["grep", *["path"][: self.has_paths], *["sql"][:has_sql]])
        how = f'read_result(handle="{self.handle}", offset={onward}) for more; {ways} to search'
        what = f"{onward}{self._among} {_noun(self.kind)}" if self.rows is None else f"{rows} of {self.rows} rows"
        return f"[{what} shown: {how}]"

    @property
    def _above(self) -> str:
        return f"{self.footer}\n" if self.footer else ""

    def further(self, begun: int) -> Words:
        """On a page that was asked for from a unit on."""

        def shown(rows: int, following: int, is_all: bool) -> str:  # noqa: FBT001
            if is_all and self.rest is None and begun == 0 and rows > 0:
                return "" if rows == 1 else f"[all {rows} {_noun(self.kind)}]"
            if not rows and not is_all:
                return f"[{_noun(self.kind, 1)} {following}{self._among} does not fit: give a larger max_tokens]"
            where = f"{_noun(self.kind)} {begun}–{following - 1}" if rows else f"no {_noun(self.kind)} from {begun} on"
            return f"[{where}{self._among}; {self._more(following, is_all)}]"

        return Words(shown=shown, cut=self._cut, shorter=_larger)

    def found(self, note: str = "") -> Words:
        """On what was searched for."""

        def shown(rows: int, following: int, is_all: bool) -> str:  # noqa: FBT001
            return f"[{rows} {_noun(self.kind, rows)} found{note}; {self._more(following, is_all)}]"

        return Words(shown=shown, cut=self._cut, shorter=_larger)

    def _more(self, following: int, is_all: bool) -> str:  # noqa: FBT001
        onward = self.rest if is_all else following
        return "no more" if onward is None else f"offset={onward} for more"

    @property
    def _among(self) -> str:
        return "" if self.total is None else f" of {self.total}"

    def _cut(self, number: int) -> str:
        whole = f"offset={number} and a larger max_tokens" if self.named is None else _path(self.named(number))
        more = f'read_result(handle="{self.handle}", offset={number + 1}) for more'
        return f"[{_noun(self.kind, 1)} {number}{self._among} is cut here: {more}, {whole} for all of it]"


def answered(begun: int, total: int, *, more: bool, beyond: str) -> Words:
    """On an answer to SQL that has so many rows, shown from one on; `more` where there were further ones, `beyond`
    where the table that was asked says that it does not hold all."""
    known = f"; asked of {beyond.removeprefix('-- ')}" if beyond else ""

    def shown(rows: int, following: int, is_all: bool) -> str:  # noqa: FBT001
        if not rows and not is_all:
            return f"[row {begun} of {total} does not fit: use substr() or fewer columns, or a larger max_tokens]"
        if not is_all:
            return f"[rows {begun}–{following - 1} of {total}; same sql with offset={following} for more{known}]"
        further = "; there are more: use LIMIT and OFFSET" if more else ""
        return f"[{rows} row{'' if rows == 1 else 's'}{further}{known}]"

    return Words(shown=shown, shorter=_larger)


def cut_short(handle: str) -> tuple[str, str]:
    """That there is more, where there is no room to say how much."""
    return f'[cut: read_result(handle="{handle}")]', f"[cut: read_result {handle}]"


def _larger(number: int) -> tuple[str]:
    return (f"[{number}: give a larger max_tokens]",)


def named_by(path: Path, first: int) -> Callable[[int], str]:
    """The path of a record, by its number, where the records stand at a path and the first has that number."""
    return lambda number: write_path((*path, number - first))


def block_shown(unit: int, total: int) -> str:
    """Below a block that is shown as it is."""
    onward = "no more" if unit + 1 >= total else f"offset={unit + 1} for more"
    return f"[block {unit} of {total}; {onward}]"


def left_out(handle: str, what: str, tokens: int, unit: int) -> str:
    """In place of a block that is too large."""
    return f'[{what} of {tokens} tokens: read_result(handle="{handle}", offset={unit}, max_tokens={tokens})]'


def _noun(kind: Kind, count: int = 2) -> str:
    word = {"records": "record", "lines": "line", "block": "block"}[kind]
    return word if count == 1 else f"{word}s"


def _path(path: str) -> str:
    quote = "'" if '"' in path else '"'
    return f"path={quote}{path}{quote}"
