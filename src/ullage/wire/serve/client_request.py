"""A client's request and its connection, independent of the transport.

The server for standard input and output creates requests itself; over HTTP they are created from the SDK's contexts.
Questions to a client and its answers pass unchanged.

Ullage's errors become errors of the protocol, for requests whose results have no place for an error, and where the
protocol requires a refusal. Another program's error passes unchanged except for invisible characters.

Params are checked by method and era. The SDK checks them with typed models of the whole protocol, which take longer to
import than the rest of the program. This module checks what those models require of a client; what they would ignore
passes.

Log levels are those of RFC 5424: a client of the earlier era sets one for its session; a later one names one in each
request, and without it receives no log messages.

A client's declared abilities are compared with what a question to it requires.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final, TypeVar, cast

import anyio.to_thread

from ullage.errors import BadInput, ClientLacksAbility, ProtocolError, UllageError, UnknownResource
from ullage.invisible_characters import escape_invisible, escape_json
from ullage.tool import ClientDeclaration, Json, JsonObject, Needs

from ..jsonrpc import (
    CAPABILITIES_KEY,
    CLIENT_INFO_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LOG_LEVEL_KEY,
    METHOD_NOT_FOUND,
    MODERN_VERSIONS,
    UNSUPPORTED_VERSION,
    VERSION_KEY,
    Message,
)

__all__ = [
    "LEVELS",
    "LEVEL_KEY",
    "Connection",
    "RefusedRequest",
    "Request",
    "can_be_asked",
    "check_envelope",
    "check_params",
    "has_envelope",
    "invalid_params",
    "is_heard",
    "most_talkative",
    "or_refused",
    "refusal",
    "requests_in",
    "require",
    "require_all",
    "unknown_method",
]


class Connection:
    """The state of a client's connection."""

    __slots__ = ("__weakref__", "capabilities", "client_info", "exit_stack", "log_level", "notify", "state", "version")

    def __init__(
        self,
        notify: Callable[[str, Message | None], Awaitable[None]],
        *,
        capabilities: JsonObject | None = None,
        exit_stack: AsyncExitStack | None = None,
    ) -> None:
        self.notify = notify
        """Sends a notification that belongs to no request; dropped where the client is gone."""
        self.capabilities: JsonObject = capabilities or {}
        """As declared in the handshake; a later client declares them with each request."""
        self.client_info: JsonObject = {}
        """Name and version of the client, as given in the handshake."""
        self.exit_stack = exit_stack or AsyncExitStack()
        """Callbacks for the end of the connection."""
        self.log_level: str | None = None
        """The level set by `logging/setLevel`; None before that."""
        self.state: dict[str, Any] = {}
        self.version: str | None = None
        """The protocol revision agreed in the handshake."""


class Request(ABC):
    """One request of a client. Its params have been checked by `check_params` or by the SDK."""

    __slots__ = ("connection", "is_modern", "method", "number", "params", "transport")

    def __init__(  # noqa: PLR0913 - the facts of a request
        self,
        method: str,
        params: Message,
        *,
        number: int | str | None,
        is_modern: bool,
        connection: Connection,
        transport: object = None,
    ) -> None:
        self.method = method
        self.params = params
        self.number = number
        """Its id; None for a notification."""
        self.is_modern = is_modern
        """Whether it is of revision 2026-07-28 or later."""
        self.connection = connection
        self.transport = transport
        """The HTTP request for a request over HTTP, else None."""

    @property
    def meta(self) -> Message:
        return self.params.get("_meta") or {}

    @property
    def client(self) -> ClientDeclaration:
        """What the client declares about itself."""
        if not self.is_modern:
            return ClientDeclaration(info=self.connection.client_info, capabilities=self.connection.capabilities)
        info, capabilities = self.meta.get(CLIENT_INFO_KEY), self.meta.get(CAPABILITIES_KEY)
        return ClientDeclaration(
            info=cast("JsonObject", info) if isinstance(info, dict) else {},
            capabilities=cast("JsonObject", capabilities) if isinstance(capabilities, dict) else {},
        )

    @abstractmethod
    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send the client a request and wait for its result.

        Raises:
            ClientCannot: The client cannot be asked during this request.
            ProtocolError: The client answered with an error, or is gone.
        """

    @abstractmethod
    async def notify(self, method: str, params: Message | None = None) -> None:
        """Send the client a notification related to this request; dropped once the request has been answered."""

    async def pause(self) -> bool:
        """End the stream that carries the answer, where the client can come back for it; return whether it can."""
        return False

    async def report_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send the client a progress notification, if its request had a progress token."""
        token = self.meta.get("progressToken")
        if isinstance(token, bool) or not isinstance(token, int | str):
            return
        params: Message = {"progressToken": token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self.notify("notifications/progress", params)


ResultT = TypeVar("ResultT")

_RESOURCE_NOT_FOUND = -32002
"""Error number of a missing resource in the earlier era; the later one has no number of its own for it."""


class RefusedRequest(Exception):
    """The request is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def invalid_params() -> RefusedRequest:
    return RefusedRequest(INVALID_PARAMS, "Invalid request parameters", "")


def unknown_method(method: str) -> RefusedRequest:
    return RefusedRequest(METHOD_NOT_FOUND, "Method not found", method)


async def or_refused(answer: Awaitable[ResultT], *, modern: bool, uri: str | None = None) -> ResultT:
    """Await the answer; raises `RefusedRequest` for an error of Ullage's."""
    try:
        return await answer
    except UllageError as error:
        if isinstance(error, ProtocolError):
            # The text is a server's and may be of any length: checking it in a thread does not delay other clients.
            raise await anyio.to_thread.run_sync(partial(refusal, error, modern=modern, uri=uri)) from error
        raise refusal(error, modern=modern, uri=uri) from error


def refusal(error: UllageError, *, modern: bool, uri: str | None = None) -> RefusedRequest:
    """Convert an error to the protocol's; Ullage's own is in its `data`, with the requested address."""
    if isinstance(error, ProtocolError):
        data = escape_json(cast("Json", error.data))
        return RefusedRequest(error.number, escape_invisible(error.message), data)
    number = INVALID_PARAMS if isinstance(error, BadInput) else INTERNAL_ERROR
    if isinstance(error, UnknownResource) and uri is not None and not modern:
        number = _RESOURCE_NOT_FOUND
    data = cast("dict[str, Json]", escape_json(cast("Json", dict(error.wire()))))
    return RefusedRequest(number, escape_invisible(error.message), data | ({} if uri is None else {"uri": uri}))


LEVEL_KEY = "io.modelcontextprotocol/logLevel"
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_RANK: Final = {level: rank for rank, level in enumerate(LEVELS)}


def is_heard(params: JsonObject, threshold: str | None) -> bool:
    """Return whether a `notifications/message` is at or above the threshold; unknown levels pass."""
    if threshold is None:
        return False
    level = params.get("level")
    rank = _RANK.get(level) if isinstance(level, str) else None
    return rank is None or rank >= _RANK.get(threshold, 0)


def most_talkative(levels: Iterable[str]) -> str:
    """Return the lowest of these levels, which lets through what any of them would."""
    return min(levels, key=lambda level: _RANK.get(level, 0))


_ABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def can_be_asked(capabilities: JsonObject) -> bool:
    """Return whether the client has any ability that a server can ask it to use."""
    return any(ability in capabilities for ability in _ABILITY.values())


def require(capabilities: JsonObject, method: str, params: JsonObject) -> None:
    ability = _ABILITY.get(method)
    if ability is None:
        missing = method
    else:
        declared = capabilities.get(ability)
        if not isinstance(declared, Mapping):
            missing = ability
        else:
            # An elicitation ability that does not name `url` means forms.
            if method == "elicitation/create":
                special = "url" if params.get("mode") == "url" else "form" if "url" in declared else None
            else:
                special = "tools" if method == "sampling/createMessage" and params.get("tools") else None
            missing = None if special is None or special in declared else f"{ability}.{special}"
    if missing is not None:
        raise ClientLacksAbility(
            f"the tool asks for `{method}`, and this client does not support `{missing}`",
            suggestion="use a client that supports it, or call the tool with arguments for which it does not ask",
        )


def require_all(capabilities: JsonObject, needs: Needs) -> None:
    for _, method, params in requests_in(needs):
        require(capabilities, method, params)


def requests_in(needs: Needs) -> Iterator[tuple[str, str, JsonObject]]:
    """Yield key, method and params of each request; anything else is skipped."""
    for key, request in needs.requests.items():
        if isinstance(request, Mapping) and isinstance(method := request.get("method"), str):
            params = request.get("params")
            yield key, method, params if isinstance(params, dict) else {}


_ACTIONS = frozenset({"accept", "decline", "cancel"})
_ABILITIES = ("elicitation", "sampling", "roots", "experimental", "extensions", "tasks")
_FLAGS = ("toolsListChanged", "resourcesListChanged", "promptsListChanged")

Check = Callable[[Message], bool]


def has_envelope(params: Message) -> bool:
    """Return whether a request is of the later era: its `_meta` names a protocol version."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def check_envelope(params: Message) -> None:
    """Raise `RefusedRequest` if `_meta` lacks what every request of the later era must carry."""
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

    A method that no era has passes; the server refuses it where it has no handler.
    """
    check = (_MODERN if is_modern else _LEGACY).get(method)
    if check is None:
        if method in _LEGACY or method in _MODERN:
            raise unknown_method(method)
        return
    if is_modern:
        meta = params["_meta"]
        info, level = meta.get(CLIENT_INFO_KEY), meta.get(LOG_LEVEL_KEY)
        has_good_meta = (
            _is_token(meta.get("progressToken"))
            and _are_capabilities(meta[CAPABILITIES_KEY])
            and (info is None or _is_implementation(info))
            and (level is None or level in LEVELS)
        )
    else:
        meta = params.get("_meta")
        has_good_meta = meta is None or (
            isinstance(meta, dict) and _is_token(cast("Message", meta).get("progressToken"))
        )
    if not has_good_meta or not check(params):
        raise invalid_params()


def _is_token(token: object) -> bool:
    return token is None or isinstance(token, str | int)


def _are_capabilities(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    found = cast("Message", value)
    if not found:
        return True
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
    """Return whether a value is absent, or an object with only texts."""
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
    """Extend the check of a request that may be sent again with the answers to what it needed."""

    def both(params: Message) -> bool:
        answers = params.get("inputResponses")
        given = answers is None or (
            isinstance(answers, dict) and all(map(_is_input, cast("Message", answers).values()))
        )
        return given and _is_optional(params, "requestState", str) and check(params)

    return both


def _is_input(value: object) -> bool:
    """Return whether a value is a result of `elicitation/create`, `roots/list` or `sampling/createMessage`."""
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
