"""What is asked of `delegate.run` and its kin?

Strict at every level: an argument nobody knows is refused, with the names of those that are.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar, cast

from ullage.errors import InvalidArguments
from ullage.tool import Json, JsonObject

__all__ = ["Arguments", "read"]

Value = TypeVar("Value")

_METADATA = ("language", "tier", "domain", "temperature")
_CAPS = ("maxOutputTokens",)
_DOMAINS = ("code", "creative", "default")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """Of all the tools together; each takes those it names."""

    prompt: str = ""
    force_model: str | None = None
    language: str | None = None
    tier: str | None = None
    domain: str = "default"
    temperature: float | None = None
    max_output_tokens: int | None = None
    context: tuple[str, ...] = ()
    files: Mapping[str, str]
    """Contents by path, where the caller gives them."""
    paths: tuple[str, ...] = ()
    """Of files that are to be read."""
    images: tuple[str, ...] = ()
    continues: str | None = None
    """The handle of an earlier answer."""
    schema: JsonObject | None = None
    """JSON Schema that the answer must fit."""
    framework: str | None = None
    models: tuple[str, ...] = ()
    judge: str | None = None


def read(arguments: JsonObject, known: tuple[str, ...], required: tuple[str, ...]) -> Arguments:
    """Raises `InvalidArguments` that names the argument, where it stands and what would do."""
    _only(arguments, known, "")
    for name in required:
        if arguments.get(name) is None:
            raise InvalidArguments(f"`{name}` is missing", suggestion=f"give `{name}`", options=known)
    metadata, caps = _table(arguments, "metadata", _METADATA), _table(arguments, "caps", _CAPS)
    files, paths = _files(arguments, is_needed="files" in required)
    return Arguments(
        prompt=_text(arguments, "prompt") or "",
        force_model=_text(arguments, "forceModel"),
        language=_language(metadata),
        tier=_text(metadata, "tier"),
        domain=_domain(metadata),
        temperature=_temperature(metadata),
        max_output_tokens=_output(caps),
        context=_texts(arguments, "context"),
        files=files,
        paths=paths,
        images=_texts(arguments, "images"),
        continues=_text(arguments, "continue"),
        schema=_of(arguments, "schema", lambda one: one if isinstance(one, dict) and one else None, "an object"),
        framework=_text(arguments, "framework"),
        models=_texts(arguments, "models"),
        judge=_text(arguments, "judge"),
    )


def _only(table: JsonObject, known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
            raise InvalidArguments(f"`{where}{key}` is not known", suggestion=hint, options=known)


def _table(arguments: JsonObject, name: str, known: tuple[str, ...]) -> JsonObject:
    value = _of(arguments, name, lambda one: one if isinstance(one, dict) else None, "an object")
    table = cast("JsonObject", value or {})
    _only(table, known, f"{name}.")
    return table


def _of(table: JsonObject, name: str, fits: Callable[[Json], Value | None], wanted: str) -> Value | None:
    value = table.get(name)
    if value is None:
        return None
    found = fits(value)
    if found is None:
        raise InvalidArguments(f"`{name}` must be {wanted}", suggestion=f"give {wanted}, or leave it out")
    return found


def _text(table: JsonObject, name: str) -> str | None:
    return _of(table, name, lambda one: one if isinstance(one, str) and one.strip() else None, "a text")


def _texts(table: JsonObject, name: str) -> tuple[str, ...]:
    def fits(value: Json) -> tuple[str, ...] | None:
        listed = value if isinstance(value, list) else [value]
        texts = tuple(one for one in listed if isinstance(one, str) and one)
        return texts if len(texts) == len(listed) else None

    return _of(table, name, fits, "a list of texts") or ()


def _files(table: JsonObject, *, is_needed: bool) -> tuple[dict[str, str], tuple[str, ...]]:
    """Contents by path, and paths of files that are to be read: an object gives the one, a list the other."""
    if isinstance(table.get("files"), dict):

        def fits(value: Json) -> dict[str, str] | None:
            texts = {path: text for path, text in cast("JsonObject", value).items() if isinstance(text, str)}
            return texts if len(texts) == len(cast("JsonObject", value)) else None

        files, paths = _of(table, "files", fits, "a list of paths, or an object of paths and contents") or {}, ()
    else:
        files, paths = dict[str, str](), _texts(table, "files")
    if is_needed and not files and not paths:
        raise InvalidArguments("`files` is empty", suggestion="give each file's path, or its path with its content")
    return files, paths


def _language(metadata: JsonObject) -> str | None:
    said = _text(metadata, "language")
    return None if said is None else said.strip().lower().replace("_", "-").split("-")[0]


def _domain(metadata: JsonObject) -> str:
    said = _text(metadata, "domain") or "default"
    if said not in _DOMAINS:
        hint = "use one of the domains below, or leave it out"
        raise InvalidArguments(f"no domain is called `{said}`", suggestion=hint, options=_DOMAINS)
    return said


def _temperature(metadata: JsonObject) -> float | None:
    def fits(value: Json) -> float | None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        return float(value) if abs(value) <= sys.float_info.max else None

    return _of(metadata, "temperature", fits, "a number")


def _output(caps: JsonObject) -> int | None:
    def fits(value: Json) -> int | None:
        return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

    return _of(caps, "maxOutputTokens", fits, "a whole number above 0")
