"""Checks of a request's params, by method and era.

The SDK checks with typed models of the whole protocol, which cost more to import than the rest of the program. Here is
checked what its models demand of a client; what they would ignore passes. Pure.
"""

from collections.abc import Callable, Mapping
from typing import cast

from ..jsonrpc import INVALID_PARAMS, Message
from ..protocol import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    LOG_LEVEL_KEY,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
)
from .loudness import LEVELS
from .refusal import RefusedRequest, invalid_params, unknown_method

__all__ = ["check_envelope", "check_params", "has_envelope"]

_ACTIONS = frozenset({"accept", "decline", "cancel"})
_ABILITIES = ("elicitation", "sampling", "roots", "experimental", "extensions", "tasks")
_FLAGS = ("toolsListChanged", "resourcesListChanged", "promptsListChanged")

Check = Callable[[Message], bool]


def has_envelope(params: Message) -> bool:
    """Whether a request is of the later era: its `_meta` names a protocol version."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def check_envelope(params: Message) -> None:
    """Raise `RefusedRequest` where `_meta` lacks what every request of the later era carries."""
    meta: object = params.get("_meta")
    if not isinstance(meta, dict):
        raise RefusedRequest(
            INVALID_PARAMS,
            "params._meta must be an object carrying the required "
            f"{VERSION_KEY!r} and {CAPABILITIES_KEY!r} envelope keys",
        )
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        text = f"params._meta is missing the required envelope key(s): {', '.join(missing)}"
        raise RefusedRequest(INVALID_PARAMS, text)
    version = cast("Message", meta)[VERSION_KEY]
    if not isinstance(version, str):
        raise RefusedRequest(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if version not in MODERN_VERSIONS:
        data = {"supported": list(MODERN_VERSIONS), "requested": version}
        raise RefusedRequest(UNSUPPORTED_VERSION, "Unsupported protocol version", data)


def check_params(method: str, params: Message, *, is_modern: bool) -> None:
    """Raise `RefusedRequest` for params that the method does not take, or a method that this era does not have.

    A method that no era has passes: whether it is known is decided by who answers it.
    """
    check = (_MODERN if is_modern else _LEGACY).get(method)
    if check is None:
        if method in _LEGACY or method in _MODERN:
            raise unknown_method(method)
        return
    has_good_meta = _is_modern_meta(params["_meta"]) if is_modern else _is_legacy_meta(params.get("_meta"))
    if not has_good_meta or not check(params):
        raise invalid_params()


def _is_legacy_meta(meta: object) -> bool:
    return meta is None or (isinstance(meta, dict) and _is_token(cast("Message", meta).get("progressToken")))


def _is_modern_meta(meta: Message) -> bool:
    info, level = meta.get(CLIENT_INFO_KEY), meta.get(LOG_LEVEL_KEY)
    return (
        _is_token(meta.get("progressToken"))
        and _are_capabilities(meta[CAPABILITIES_KEY])
        and (info is None or _is_implementation(info))
        and (level is None or level in LEVELS)
    )


def _is_token(token: object) -> bool:
    return token is None or isinstance(token, str | int)


def _are_capabilities(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    found = cast("Message", value)
    if any(not _is_optional(found, key, dict) for key in _ABILITIES):
        return False
    named: list[Message] = [found.get(key) or {} for key in ("experimental", "extensions")]
    return all(isinstance(one, dict) for part in named for one in part.values())


def _is_implementation(value: object) -> bool:
    found = cast("Message", value) if isinstance(value, dict) else {}
    return isinstance(found.get("name"), str) and isinstance(found.get("version"), str)


def _is_optional(params: Message, key: str, kind: type) -> bool:
    value = params.get(key)
    return value is None or isinstance(value, kind)


def _are_texts(value: object) -> bool:
    """Whether it is absent, or an object with texts only."""
    return value is None or (
        isinstance(value, dict) and all(isinstance(one, str) for one in cast("Message", value).values())
    )


def _is_any(_: Message) -> bool:
    return True


def _is_page(params: Message) -> bool:
    return _is_optional(params, "cursor", str)


def _is_address(params: Message) -> bool:
    return isinstance(params.get("uri"), str)


def _is_call(params: Message) -> bool:
    named = isinstance(params.get("name"), str) and _is_optional(params, "arguments", dict)
    return named and _is_optional(params, "task", dict)


def _is_prompt(params: Message) -> bool:
    return isinstance(params.get("name"), str) and _are_texts(params.get("arguments"))


def _is_completion(params: Message) -> bool:
    ref, argument, context = params.get("ref"), params.get("argument"), params.get("context")
    if not isinstance(ref, dict) or not isinstance(argument, dict):
        return False
    asked, given = cast("Message", ref), cast("Message", argument)
    needed = {"ref/prompt": "name", "ref/resource": "uri"}.get(cast("str", asked.get("type")), "")
    if not isinstance(asked.get(needed), str):
        return False
    if context is not None and not (
        isinstance(context, dict) and _are_texts(cast("Message", context).get("arguments"))
    ):
        return False
    return isinstance(given.get("name"), str) and isinstance(given.get("value"), str)


def _is_level(params: Message) -> bool:
    return params.get("level") in LEVELS


def _is_greeting(params: Message) -> bool:
    return (
        isinstance(params.get("protocolVersion"), str)
        and _are_capabilities(params.get("capabilities"))
        and _is_implementation(params.get("clientInfo"))
    )


def _is_listening(params: Message) -> bool:
    wanted = params.get("notifications")
    if not isinstance(wanted, dict):
        return False
    asked = cast("Message", wanted)
    uris = asked.get("resourceSubscriptions")
    if uris is not None and not (
        isinstance(uris, list) and all(isinstance(one, str) for one in cast("list[object]", uris))
    ):
        return False
    return all(_is_optional(asked, flag, bool) for flag in _FLAGS)


def _can_resume(check: Check) -> Check:
    """The check of a request that may be sent again with what it needed first."""

    def both(params: Message) -> bool:
        answers = params.get("inputResponses")
        given = answers is None or (
            isinstance(answers, dict) and all(map(_is_input, cast("Message", answers).values()))
        )
        return given and _is_optional(params, "requestState", str) and check(params)

    return both


def _is_input(value: object) -> bool:
    """Whether it is a result of `elicitation/create`, `roots/list` or `sampling/createMessage`."""
    found = cast("Message", value) if isinstance(value, dict) else {}
    if found.get("action") in _ACTIONS or isinstance(found.get("roots"), list):
        return True
    return isinstance(found.get("model"), str) and isinstance(found.get("role"), str) and "content" in found


_LISTS: Mapping[str, Check] = {
    "tools/list": _is_page,
    "resources/list": _is_page,
    "resources/templates/list": _is_page,
    "prompts/list": _is_page,
    "completion/complete": _is_completion,
}
_LEGACY: Mapping[str, Check] = {
    **_LISTS,
    "initialize": _is_greeting,
    "ping": _is_any,
    "logging/setLevel": _is_level,
    "prompts/get": _is_prompt,
    "resources/read": _is_address,
    "resources/subscribe": _is_address,
    "resources/unsubscribe": _is_address,
    "tools/call": _is_call,
}
_MODERN: Mapping[str, Check] = {
    **_LISTS,
    "server/discover": _is_any,
    "subscriptions/listen": _is_listening,
    "prompts/get": _can_resume(_is_prompt),
    "resources/read": _can_resume(_is_address),
    "tools/call": _can_resume(_is_call),
}
