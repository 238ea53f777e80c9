from collections.abc import Callable, Mapping

import pytest

from ullage.config.config_file import Page

MakePage = Callable[..., Page]


@pytest.fixture
def page() -> MakePage:
    """Makes a page of a text, as if it stood in a folder of the user's."""

    def make(text: str, environment: Mapping[str, str] | None = None, file: str = "/home/me/ullage.toml") -> Page:
        return Page(
            file=file,
            text=text,
            environment=environment or {},
            absolute=lambda entry: entry.replace("~", "/home/me", 1) if entry[0] in "~/" else f"/home/me/{entry}",
            projects=("/home/me/work", "/home/me"),
        )

    return make
