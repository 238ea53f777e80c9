"""How does a table of `ullage.toml` become a database that can be asked?

Variables in its address are replaced and paths are made whole; one whose variable is not set is left out, for itself
alone. Nothing is reached or opened here.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from ullage.options import SAMPLE, DatabaseSettings, Limits

from .entry import unresolved
from .issue import Issue
from .page import Page, dotted
from .source_keys import LIMITS

__all__ = ["database_of", "sample_shop"]

_FILE = re.compile(r"(?P<scheme>(?:sqlite|duckdb)(?:\+\w+)?:///)(?P<path>[^?]*)(?P<rest>\?.*)?", re.DOTALL)
_PASSWORD = re.compile(r"://[^:/@\s]*:(?P<secret>[^@]+)@|[?&]password=(?P<named>[^&]+)")
_MEGABYTE = 1_000_000


def sample_shop() -> DatabaseSettings:
    """What a flag adds, for whoever has no database at hand."""
    return DatabaseSettings(name="shop", url=SAMPLE, description="A sample shop: customers, products, orders.")


def database_of(
    page: Page, path: tuple[str, ...], values: Mapping[str, Any]
) -> tuple[DatabaseSettings | None, tuple[Issue, ...]]:
    """The database, or None and the reason why it is left out. `values` have the names of the fields."""
    written = cast("str", values["url"])
    expanded = page.expand(written)
    missing = unresolved(page, f"source `{path[-1]}`", path, [expanded])
    if missing:
        return None, missing
    rest = {name: value for name, value in values.items() if name not in LIMITS}
    limits = _limits({name: value for name, value in values.items() if name in LIMITS})
    rest |= {"url": _placed(expanded.text, page.absolute), "came_from": f"{page.file} [{dotted(path)}]"}
    return DatabaseSettings(name=path[-1], limits=limits, **rest), _plain(page, path, written)


def _limits(values: Mapping[str, Any]) -> Limits:
    sized = {"bytes": int(values["bytes"] * _MEGABYTE)} if "bytes" in values else {}
    return Limits(**{**values, **sized})


def _placed(url: str, absolute: Callable[[str], str]) -> str:
    if url == SAMPLE:
        return url
    if "://" not in url:
        return absolute(url)
    file = _FILE.fullmatch(url)
    if file is None or file["path"] in ("", ":memory:"):
        return url
    return f"{file['scheme']}{absolute(file['path'])}{file['rest'] or ''}"


def _plain(page: Page, path: tuple[str, ...], written: str) -> tuple[Issue, ...]:
    found = _PASSWORD.search(written)
    if found is None or "${" in (found["secret"] or found["named"]):
        return ()
    said = f"the password of source `{path[-1]}` stands in this file for whoever reads it"
    hint = "write ${VARIABLE} in its place, and set that variable"
    return (page.issue("note", said, (*path, "database"), suggestion=hint),)
