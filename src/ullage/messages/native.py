"""What does this message say, be it a dict, an SDK's object or a neutral `Message`?

SDKs are known by how their objects are made plain, and none is imported. Nothing is dropped, and nothing given is
changed. Whose format the messages are in, `detect` tells.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from ullage.errors import UnreadableRequest
from ullage.tool import Json

from .anthropic import read_message as read_message_anthropic
from .gemini import read_message as read_message_gemini
from .neutral import from_json, to_json
from .openai_chat import read_message as read_message_openai_chat
from .openai_responses import read_message as read_message_openai_responses
from .parts import Format, Message

__all__ = ["plain", "read_message"]

_READERS: Mapping[Format, Callable[[Json], Message]] = {
    Format.OPENAI_CHAT: read_message_openai_chat,
    Format.OPENAI_RESPONSES: read_message_openai_responses,
    Format.ANTHROPIC: read_message_anthropic,
    Format.GEMINI: read_message_gemini,
    Format.ULLAGE: from_json,
}
_SCALARS = frozenset({str, int, float, bool, type(None)})


def read_message(native: object, format: Format) -> Message:  # noqa: A002
    """One message or item in neutral parts; a bare text too, where the format has such. A neutral one stays itself."""
    if isinstance(native, Message):
        return native
    try:
        return _READERS[format](native if isinstance(native, str) else plain(native))
    except RecursionError as error:
        raise UnreadableRequest("a message is nested too deeply to be read") from error


def plain(native: object) -> dict[str, Json]:
    """The JSON that would be sent. A dict that is JSON already is given back itself; what is not, is not copied
    further than needed."""
    made = _json(native)
    if not isinstance(made, dict):
        raise _unreadable(native)
    return made


def _json(value: object) -> Json:
    kind = type(value)
    if kind in _SCALARS:
        return cast("Json", value)
    if kind is dict:
        return _json_table(cast("dict[str, object]", value))
    return _json_list(cast("list[object]", value)) if kind is list else _json_other(value)


def _json_table(table: dict[str, object]) -> Json:
    changed = table
    for key, value in table.items():
        if type(value) not in _SCALARS and (made := _json(value)) is not value:
            changed = dict(table) if changed is table else changed
            changed[key] = made
    return cast("Json", changed)


def _json_list(values: list[object]) -> Json:
    made = [_json(value) for value in values]
    same = all(new is old for new, old in zip(made, values, strict=True))
    return cast("Json", values) if same else made


def _json_other(value: object) -> Json:
    match value:
        case str() | int() | float():
            return value
        case bytes() | bytearray():
            return b64encode(value).decode("ascii")
        case Message():
            return to_json(value)
        case Mapping():
            return {str(key): _json(inner) for key, inner in cast("Mapping[object, object]", value).items()}
        case Sequence():
            return [_json(inner) for inner in cast("Sequence[object]", value)]
        case _:
            return _json_object(value)


def _json_object(value: Any) -> Json:  # noqa: ANN401
    """An SDK's object as the SDK itself would send it."""
    if not isinstance(value, type):
        if callable(getattr(value, "model_dump", None)):
            return _json(_dumped(value))
        if callable(getattr(value, "to_dict", None)):
            return _json(value.to_dict())
        if hasattr(value, "__dataclass_fields__"):
            return _json(asdict(value, dict_factory=_without_nothing))
    raise _unreadable(value)


def _dumped(model: Any) -> object:  # noqa: ANN401
    """OpenAI's and Anthropic's clients send what was set, less what they mark as their own; Google's, which know
    themselves as `to_json_dict`, all that is not None, under the names of the wire."""
    if hasattr(model, "to_json_dict"):
        return model.model_dump(mode="json", by_alias=True, exclude_none=True)
    own = getattr(model, "__api_exclude__", None)
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=own, warnings=False)


def _without_nothing(fields: list[tuple[str, object]]) -> dict[str, object]:
    return {name: value for name, value in fields if value is not None}


def _unreadable(native: object) -> UnreadableRequest:
    return UnreadableRequest(
        f"a message is a JSON object or an SDK's object, not `{type(native).__name__}`",
        suggestion="give the dict that would be sent, or the object that the SDK gave",
    )
