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
    return Arguments(
        prompt=_text(arguments, "prompt") or "",
        force_model=_text(arguments, "forceModel"),
        language=_language(metadata),
        tier=_text(metadata, "tier"),
        domain=_domain(metadata),
        temperature=_temperature(metadata),
        max_output_tokens=_output(caps),
        context=_texts(arguments, "context"),
        files=_files(arguments, is_needed="files" in required),
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


def _files(table: JsonObject, *, is_needed: bool) -> dict[str, str]:
    def fits(value: Json) -> dict[str, str] | None:
        if not isinstance(value, dict):
            return None
        texts = {path: content for path, content in value.items() if isinstance(content, str)}
        return texts if len(texts) == len(value) else None

    files = _of(table, "files", fits, "an object of paths and contents") or {}
    if is_needed and not files:
        raise InvalidArguments("`files` is empty", suggestion="give each file's path with its content")
    return files


def _language(metadata: JsonObject) -> str | None:
    said = _text(metadata, "language")
    return None if said is None else said.strip().lower().replace("_", "-").split("-")[0]


def _domain(metadata: JsonObject) -> str:
    said = _text(metadata, "domain") or "default"
    if said not in _DOMAINS:
        raise InvalidArguments(f"no domain is called `{said}`", options=_DOMAINS)
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
