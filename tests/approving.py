"""Approval of project files, for tests of what approved files do."""

import os
from collections.abc import Mapping
from pathlib import Path

from ullage.config import Approvals, Flags, Loaded, Places, loading
from ullage.config.loading import review


def approve(path: Path, *, places: Places | None = None) -> Path:
    """Approves one project file as it is now, with all that it includes."""
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
