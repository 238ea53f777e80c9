"""Write docs/cli.md from the command line's own grammar. `make docs` runs it; a stale page fails the tests."""

import argparse
import sys
from functools import partial
from pathlib import Path

from ullage.cli.main import VERBS, verb_parser

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
_WIDTH = 100


def page() -> str:
    parts = ["# The command line\n", "Made by `make docs` from the program itself; do not edit.\n"]
    for verb, summary in VERBS.items():
        parser = verb_parser(verb)
        parts += [f"## ullage {verb}\n", f"{summary}.\n", f"```text\n{usage(parser)}```\n"]
    return "\n".join(parts)


def usage(parser: argparse.ArgumentParser) -> str:
    parser.formatter_class = partial(argparse.RawDescriptionHelpFormatter, width=_WIDTH - 2)  # type: ignore[assignment]
    return parser.format_help()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}", file=sys.stderr)
