"""Approval of project files, for tests of what approved files do."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import ullage.cli
from ullage.config import Approvals, Flags, Loaded, Places
from ullage.config import loader as loading
from ullage.config.loader import review
from ullage.config.project_trust import ProjectScope

_FILE_FLAGS = ("--config", "--include")


def approve(path: Path, *, places: Places | None = None) -> Path:
    """Approves one project file as it is now, with all that it includes; a file of the user's own needs no approval."""
    if not ProjectScope(Path.cwd(), places or Places.of_user()).contains(path):
        return path
    found = review(path, os.environ, Path.cwd(), places=places)
    Approvals((places or Places.of_user()).trust).approve(found.unit, found.effects)
    return path


def approve_pending(
    flags: Flags, environment: Mapping[str, str], directory: Path, *, places: Places | None = None
) -> None:
    """Approves every project file that these settings would meet."""
    found = loading.examine(flags, environment, directory, places=places, is_review=True)
    for pending in found.pending:
        Approvals((places or Places.of_user()).trust).approve(pending.unit, pending.effects)


def load(flags: Flags, environment: Mapping[str, str], directory: Path, *, places: Places | None = None) -> Loaded:
    """The settings with every project file approved."""
    approve_pending(flags, environment, directory, places=places)
    return loading.load(flags, environment, directory, places=places)


def examine(flags: Flags, environment: Mapping[str, str], directory: Path, *, places: Places | None = None) -> Loaded:
    """The same without raising."""
    approve_pending(flags, environment, directory, places=places)
    return loading.examine(flags, environment, directory, places=places)


def main(argv: Sequence[str]) -> int:
    """The command, with every project file that it meets approved."""
    words = list(argv)
    values = {flag: [words[at + 1] for at, word in enumerate(words[:-1]) if word == flag] for flag in _FILE_FLAGS}
    config = Path(values["--config"][0]) if values["--config"] else None
    include = tuple(Path(path) for path in values["--include"])
    approve_pending(Flags(config=config, include=include), os.environ, Path.cwd())
    return ullage.cli.main(words)
