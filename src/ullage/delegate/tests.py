"""How are tests written by a model?

With a framework and a seed that are told it; the answer must hold files and the command that runs them, and what is
Python must at least be read as Python. Nothing is run.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from .asking import Unfit

__all__ = ["SEED", "Suite", "framework_for", "read_suite", "written"]

SEED = "20250101"
_FILE = re.compile(r"^### +`?([^\n`]+?)`?[ \t]*\n+```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^## +Commands?[ \t]*\n+```[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE | re.IGNORECASE)
_FRAMEWORKS = {
    ".py": "pytest",
    ".ts": "vitest",
    ".tsx": "vitest",
    ".js": "node:test",
    ".mjs": "node:test",
    ".go": "the testing package",
    ".rs": "cargo test",
    ".rb": "minitest",
    ".java": "JUnit 5",
    ".cs": "xUnit",
    ".php": "PHPUnit",
}


@dataclass(frozen=True, slots=True)
class Suite:
    command: str
    files: Mapping[str, str]


def framework_for(files: Mapping[str, str]) -> str:
    """What people use for most of these files; pytest where that is not known."""
    endings = ["." + path.rpartition(".")[2] for path in files]
    known = [_FRAMEWORKS[ending] for ending in endings if ending in _FRAMEWORKS]
    return max(known, key=known.count, default="pytest")


def read_suite(text: str) -> Suite:
    """Raises `Unfit` where files or command are missing, or Python is none."""
    command = _COMMAND.search(text)
    if command is None or not command[1].strip():
        raise Unfit("there is no `## Commands` with a fenced block")
    files = {path.strip(): body for path, body in _FILE.findall(text)}
    if not files:
        raise Unfit("there is no `### PATH` with a fenced block under `## Files`")
    for path, body in files.items():
        _check(path, body)
    return Suite(command[1].strip(), files)


def _check(path: str, body: str) -> None:
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        raise Unfit(f"`{path}` lies outside the project")
    if path.endswith(".py"):
        try:
            ast.parse(body)
        except (SyntaxError, ValueError) as error:
            raise Unfit(f"`{path}` is not Python: {error}") from error


def written(suite: Suite) -> str:
    files = "\n".join(f"### {path}\n```\n{body.rstrip()}\n```" for path, body in suite.files.items())
    return f"## Commands\n```\n{suite.command}\n```\n## Files\n{files}"
