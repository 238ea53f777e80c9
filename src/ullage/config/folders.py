"""Which folders did the user name to be searched?"""

from dataclasses import dataclass

__all__ = ["Folders"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    name: str
    folders: tuple[str, ...] = ()
    """Absolute paths, as those of `files`."""
    files: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    max_file_bytes: int = 1_000_000
    within: str | None = None
    """The folder of the project that named them: a link in it that leads out of it is not read."""
    came_from: str = ""
