"""What does an error mean, in whichever words a provider puts it?

By its HTTP status where there is one, else by its type or code; only then by its text, and that only for what some say
in no other way: that a prompt is too long, that an account has nothing left, today or at all, that thoughts cannot be
opened. Details say of some what headers and codes say of others. Bodies are looked into and never passed on.
"""

import re
from collections.abc import Iterator, Mapping
from typing import cast

from ullage.messages import tables_at
from ullage.tool import Json, JsonObject

from ..failure import FailureKind, ProviderFailed

__all__ = ["fail_in_band", "failed_with"]

_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens"
    r"|input token count|exceeds? the (?:available|maximum|model)|input is too long|reduce the length|string too long",
    re.IGNORECASE,
)
_NOTHING_LEFT = re.compile(
    r"your credit balance is too low|you have reached your specified .*usage limits", re.IGNORECASE | re.DOTALL
)
"""As Anthropic puts it, with the status and the type of a request that is wrong."""
_OF_A_DAY = re.compile(r"per[ -]day", re.IGNORECASE)
"""A limit that waiting does not mend, where no wait is named: OpenRouter's free models have one."""
_SEALED = re.compile(r"encrypted content\b.*(?:could not be verified|is not supported)", re.IGNORECASE | re.DOTALL)
"""As OpenAI's models say that they do not think, and Azure, without a code, that it cannot open what was thought."""
_BY_STATUS: dict[int, FailureKind] = {
    400: "bad_request",
    401: "unauthorized",
    402: "exhausted",
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
    "insufficient_quota": "exhausted",
    "exceeded_current_quota_error": "exhausted",
    "billing_hard_limit_reached": "exhausted",
    "billing_not_active": "exhausted",
    "billing_error": "exhausted",
    "enforced_spend_limit_reached": "exhausted",
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
    "invalid_encrypted_content": "sealed",
    "context_length_exceeded": "context_length",
    "exceed_context_size_error": "context_length",
    "request_too_large": "context_length",
}
_ROUGH: dict[FailureKind, int] = {"rate_limited": 1, "bad_request": 2}
"""What a status or a type says where a code beside it says more, and how rough that is."""
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_SAID = 200
"""Characters of a provider's message that are handed on."""
_SECRET = re.compile(r"(?i)\b(?:sk|key|AIza|Bearer)[-_ ]?[A-Za-z0-9*_\-.]{6,}")


def failed_with(status: int, body: Json, retry_after: float | None = None) -> ProviderFailed:
    """An answer with an HTTP status that is no success."""
    said, words = _error_of(body)
    wait = _retry_delay(body) if retry_after is None else retry_after
    kind = _exactly(_status_kind(status), said, words, wait)
    return ProviderFailed(
        f"answered {status}{_tail(said)}", kind=kind, status=status, retry_after=wait, suggestion=_hint(kind)
    )


def fail_in_band(error: Json) -> None:
    """Raises for an error in the middle of a stream; None and false are none."""
    if not error:
        return
    said, words = _error_of(error)
    kind = _word_kind(words) or _code_kind(error) or ("context_length" if _TOO_LONG.search(said) else "server")
    kind = _exactly(kind, said, words)
    raise ProviderFailed(f"broke off with an error{_tail(said)}", kind=kind, suggestion=_hint(kind))


def _exactly(kind: FailureKind, said: str, words: tuple[str, ...], wait: float | None = None) -> FailureKind:
    """What a status, or a type, says roughly."""
    if kind not in _ROUGH:
        return kind
    word = _word_kind(words)
    if word == "exhausted" or _NOTHING_LEFT.match(said):
        return "exhausted"
    if kind == "rate_limited":
        return "exhausted" if wait is None and _OF_A_DAY.search(said) else kind
    if word == "context_length" or _TOO_LONG.search(said):
        return "context_length"
    if word == "sealed" or _SEALED.search(said):
        return "sealed"
    return "unauthorized" if word == "unauthorized" else kind


def _status_kind(status: int) -> FailureKind:
    """What is neither known nor the server's trouble is this provider's way to say no; another may say yes."""
    return _BY_STATUS.get(status) or ("server" if status >= 500 else "refused")


def _code_kind(error: Json) -> FailureKind | None:
    """Of a code that is an HTTP status, as some put it into a stream that has begun."""
    code = error.get("code") if isinstance(error, Mapping) else None
    return _status_kind(code) if isinstance(code, int) and 400 <= code < 600 else None


def _word_kind(words: tuple[str, ...]) -> FailureKind | None:
    """Of the most exact of them."""
    found: list[FailureKind] = [kind for word in words if (kind := _kind_of(word.lower())) is not None]
    return min(found, key=lambda kind: _ROUGH.get(kind, 0), default=None)


def _kind_of(word: str) -> FailureKind | None:
    """Google names the quotas that were exceeded, such as `GenerateRequestsPerDayPerProjectPerModel`; the wait that it
    names beside one of a day is as short as any."""
    if "perday" in word:
        return "exhausted"
    return _BY_WORD.get(word)


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
    words = [*(body.get(key) for key in ("code", "type", "status")), *_reasons(_details(body))]
    return _message(body), tuple(word for word in words if isinstance(word, str))


def _details(error: JsonObject) -> list[JsonObject]:
    """A list at Google's, one alone at Anthropic's."""
    listed = error.get("details")
    return [one for one in (listed if isinstance(listed, list) else [listed]) if isinstance(one, dict)]


def _reasons(details: list[JsonObject]) -> Iterator[Json]:
    for one in details:
        yield from (one.get("reason"), one.get("error_code"))
        yield from (quota.get("quotaId") for quota in tables_at(one, "violations"))


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
        "exhausted": "top up the provider's account, raise its limit, or wait until that begins anew",
        "not_found": "check the model's name and the provider's address",
        "context_length": "shorten the prompt, or use a model with a larger window",
        "rate_limited": "wait, or add a fallback",
    }.get(kind, "")
