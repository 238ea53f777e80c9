"""What do our rankings answer in another process?

In one that has the encoder, or in one without a network. The encoder needs a runtime that is no dependency of ours, so
it lives in `.bench/encoder`, an environment of its own that `make .bench/encoder/.installed` makes. Run as a script,
this file reads tools and queries from its standard input and answers there.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from search_sets import Set

if TYPE_CHECKING:
    from search_ours import Answers, Kind

__all__ = ["answers_elsewhere", "have_encoder", "python_of"]

_ENCODER = Path(__file__).parent.parent / ".bench" / "encoder" / "bin" / "python"
_LOAD = "from ullage.search import load_encoder; print(load_encoder().edition)"


def python_of(kind: str) -> str:
    return str(_ENCODER) if kind == "encoder" else sys.executable


@cache
def have_encoder() -> bool:
    """Whether the encoder can be loaded where it is to be installed; if not, why not is said."""
    if not _ENCODER.exists():
        print("no encoder: `make .bench/encoder/.installed` installs it", file=sys.stderr)
        return False
    done = subprocess.run([_ENCODER, "-c", _LOAD], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"no encoder: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    return done.returncode == 0


def answers_elsewhere(kind: "Kind", sets: Sequence[Set], *, environment: Mapping[str, str] | None = None) -> "Answers":
    """What each ranking of that kind finds, in a process of its own."""
    asked = [(each.tools, [query.text for query in each.queries]) for each in sets]
    done = subprocess.run(
        [python_of(kind), __file__, kind],
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment,
    )
    return json.loads(done.stdout)


def main() -> None:
    from search_ours import answers

    json.dump(answers("encoder" if sys.argv[1] == "encoder" else "static", json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
