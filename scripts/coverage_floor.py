"""Has the coverage floor ever been higher than it is now?

Reads `fail_under` from every committed version of pyproject.toml; a lowered floor fails. Without a history there is
nothing to compare with, and nothing fails.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def floor_of(text: str) -> float:
    return tomllib.loads(text).get("tool", {}).get("coverage", {}).get("report", {}).get("fail_under", 0)


def git(*words: str) -> str:
    return subprocess.run(("git", *words), cwd=ROOT, capture_output=True, text=True, check=True).stdout


def earlier_floors() -> list[float]:
    try:
        commits = git("log", "--format=%H", "-Gfail_under", "--", "pyproject.toml").split()
        return [floor_of(git("show", f"{commit}:pyproject.toml")) for commit in commits]
    except (OSError, subprocess.CalledProcessError):
        return []


def main() -> int:
    now = floor_of((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    highest = max(earlier_floors(), default=0)
    if now < highest:
        print(f"the coverage floor fell from {highest} to {now}: it may only rise", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
