"""Runs one part of `make bench-context` alone, as `python bench/context_money.py` does."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from context_traces import data_folder


class Figures(Protocol):
    """What a part found."""

    def missed(self) -> list[str]: ...


Found = TypeVar("Found", bound=Figures)


def run_alone(run: Callable[[Path], Found], report: Callable[[Found], None]) -> int:
    """Prints the table of a part and what is below its floors; 1 where something is."""
    figures = run(data_folder())
    report(figures)
    missed = figures.missed()
    for line in missed:
        print(f"BELOW THE FLOOR  {line}")
    return 1 if missed else 0
