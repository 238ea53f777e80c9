"""What does an error mean, in whichever words a provider puts it?

By its HTTP status where there is one, else by its type or code; only then by its text, and that only for a prompt that
is too long, which nobody says otherwise. Google says in details what others say in headers and codes. Bodies are looked
into and never passed on.
"""

import re
from collections.abc import Mapping
from typing import cast

from ullage.tool import Json, JsonObject

from ..failure import FailureKind, ProviderFailed

__all__ = ["fail_in_band", "failed_with"]

_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens"
    r"|input token count|exceeds? the (?:available|maximum|model)|input is too long|reduce the length|string too long",
    re.IGNORECASE,
)
_BY_STATUS: dict[int, FailureKind] = {
    400: "bad_request",
    401: "unauthorized",
    402: "unauthorized",
    403: "unauthorized",
    404: "not_found",
    408: "server",
    409: "server",
    413: "context_length",
    422: "bad_request",
    425: "server",
    429: "rate_limited",
    529: "overloaded",
}
_BY_WORD: dict[str, FailureKind] = {
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "resource_exhausted": "rate_limited",
    "insufficient_quota": "rate_limited",
    "overloaded_error": "overloaded",
    "unavailable": "overloaded",
    "invalid_request_error": "bad_request",
    "invalid_argument": "bad_request",
    "invalid_prompt": "bad_request",
    "authentication_error": "unauthorized",
    "permission_error": "unauthorized",
    "permission_denied": "unauthorized",
    "unauthenticated": "unauthorized",
    "invalid_api_key": "unauthorized",
    "api_key_invalid": "unauthorized",
    "not_found_error": "not_found",
    "model_not_found": "not_found",
    "not_found": "not_found",
    "context_length_exceeded": "context_length",
    "exceed_context_size_error": "context_length",
    "request_too_large": "context_length",
}
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_SAID = 200
"""Characters of a provider's message that are handed on."""
_SECRET = re.compile(r"(?i)\b(?:sk|key|AIza|Bearer)[-_ ]?[A-Za-z0-9*_\-.]{6,}")


def failed_with(status: int, body: Json, retry_after: float | None = None) -> ProviderFailed:
    """An answer with an HTTP status that is no success."""
    said, words = _error_of(body)
    kind = _status_kind(status)
    if kind == "bad_request" and (_word_kind(words) == "context_length" or _TOO_LONG.search(said)):
        kind = "context_length"
    elif kind == "bad_request" and _word_kind(words) == "unauthorized":
        kind = "unauthorized"
    return ProviderFailed(
        f"answered {status}{_tail(said)}",
        kind=kind,
        status=status,
        retry_after=_retry_delay(body) if retry_after is None else retry_after,
        suggestion=_hint(kind),
    )


def fail_in_band(error: Json) -> None:
    """Raises for an error in the middle of a stream; None and false are none."""
    if not error:
        return
    said, words = _error_of(error)
    kind = _word_kind(words) or _code_kind(error) or ("context_length" if _TOO_LONG.search(said) else "server")
    if kind == "bad_request" and _TOO_LONG.search(said):
        kind = "context_length"
    raise ProviderFailed(f"broke off with an error{_tail(said)}", kind=kind, suggestion=_hint(kind))


def _status_kind(status: int) -> FailureKind:
    """What is neither known nor the server's trouble is this provider's way to say no; another may say yes."""
    return _BY_STATUS.get(status) or ("server" if status >= 500 else "refused")


def _code_kind(error: Json) -> FailureKind | None:
    """Of a code that is an HTTP status, as some put it into a stream that has begun."""
    code = error.get("code") if isinstance(error, Mapping) else None
    return _status_kind(code) if isinstance(code, int) and 400 <= code < 600 else None


def _word_kind(words: tuple[str, ...]) -> FailureKind | None:
    found: list[FailureKind] = [_BY_WORD[word.lower()] for word in words if word.lower() in _BY_WORD]
    # The more exact of type and code, such as a code beside `invalid_request_error`.
    exact: list[FailureKind] = [kind for kind in found if kind != "bad_request"]
    return (*exact, *found, None)[0]


def _error_of(body: Json) -> tuple[str, tuple[str, ...]]:
    """Its message, and the words that may classify it."""
    if isinstance(body, list) and body:
        return _error_of(body[0])
    if isinstance(body, str):
        return body, ()
    if not isinstance(body, Mapping):
        return "", ()
    inner = body.get("error")
    if isinstance(inner, Mapping | str):
        return _error_of(cast("Json", inner))
    reasons = [one.get("reason") for one in _details(body)]
    words = [*(body.get(key) for key in ("code", "type", "status")), *reasons]
    return _message(body), tuple(word for word in words if isinstance(word, str))


def _details(error: JsonObject) -> list[JsonObject]:
    listed = error.get("details")
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []


def _retry_delay(body: Json) -> float | None:
    """Seconds, as Google puts it in the body: `"retryDelay": "31s"`."""
    if isinstance(body, list) and body:
        return _retry_delay(body[0])
    error = body.get("error") if isinstance(body, Mapping) else None
    said = [one.get("retryDelay") for one in _details(error)] if isinstance(error, dict) else []
    found = [_DELAY.fullmatch(one) for one in said if isinstance(one, str)]
    return next((float(one[1]) for one in found if one), None)


def _message(error: JsonObject) -> str:
    said = error.get("message") or error.get("detail") or ""
    return said if isinstance(said, str) else ""


def _tail(said: str) -> str:
    """What the provider said, on one line, short, and without what looks like a key."""
    line = _SECRET.sub("***", " ".join(said.split()))[:_SAID]
    return f": {line}" if line else ""


def _hint(kind: FailureKind) -> str:
    return {
        "unauthorized": "check the provider's key, what it may be used for and whether it is paid for",
        "not_found": "check the model's name and the provider's address",
        "context_length": "shorten the prompt, or use a model with a larger window",
        "rate_limited": "wait, or add a fallback",
    }.get(kind, "")
