"""Where do settings stand?

The project's file is looked for in the working directory and upward to the root of its repository, or to the home
folder; above that, other people's files begin. The user's own folders are those of the platform. Nothing is read
here.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from ullage.start_cache import project_walk

__all__ = ["FILE_NAME", "Places", "project_files", "project_folders"]

FILE_NAME = "ullage.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The user's own folders."""

    home: Path
    config: Path
    data: Path
    state: Path | None = None
    """Where approvals of project files are kept; None for `state` below `data`."""
    user: int | None = None
    """Their number, where the platform numbers its users."""

    @classmethod
    def of_user(cls) -> "Places":
        return cls(
            home=Path.home(),
            config=Path(platformdirs.user_config_dir("ullage", appauthor=False)),
            data=Path(platformdirs.user_data_dir("ullage", appauthor=False)),
            state=Path(platformdirs.user_state_dir("ullage", appauthor=False)),
            user=os.getuid() if hasattr(os, "getuid") else None,
        )

    @property
    def user_file(self) -> Path:
        return self.config / FILE_NAME

    @property
    def trust(self) -> Path:
        """The folder with the approvals of project files."""
        return (self.state or self.data / "state") / "trust"

    @property
    def sample(self) -> str:
        """The file of the sample shop."""
        return str(self.data / "sample-shop.db")

    @property
    def store(self) -> str:
        """The URL of the database that is used unless another is named."""
        return f"sqlite:///{(self.data / 'ullage.db').as_posix()}"


def project_folders(directory: Path, home: Path) -> tuple[Path, ...]:
    """The working directory and those above it that belong to the same work, innermost first.

    A folder that is in no repository and not under the home folder stands for itself alone: `/tmp` is everybody's.
    """
    return tuple(map(Path, project_walk(str(directory), str(home))))


def project_files(directory: Path, places: Places) -> Iterator[tuple[Path, bool]]:
    """Each place of a project's file with whether it may be trusted: one further up must not be another user's."""
    for folder in project_folders(directory, places.home):
        path = folder / FILE_NAME
        yield path, folder == directory or not _is_strangers(path, places.user)


def _is_strangers(path: Path, user: int | None) -> bool:
    try:
        return user is not None and path.stat().st_uid not in (0, user)
    except OSError:
        return False
