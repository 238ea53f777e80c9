"""Collects streamed text, reasoning and tool calls into an answer.

`Gathered` keeps the pieces that the reader of any wire collects in the order in which they arrived, because a provider
accepts its own reasoning back only in its original place.

`status_error` and `fail_in_band` classify an error by its HTTP status if it has one, else by its type or code. The text
is used only for what some providers express in no other way: that a prompt is too long, that an account has no credit
or daily quota left, that reasoning cannot be decrypted. Some providers put into details what others put into headers
and codes. Bodies are inspected but never passed on.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from ullage.messages import (
    Format,
    Message,
    Part,
    SealedAs,
    Text,
    Thinking,
    ToolCall,
    join_texts,
    read_usage,
    table_at,
    tables_at,
)
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from ..model_call import Completion, Event, FailureKind, Finish, Outgoing, ProviderFailed, TextDelta, ThinkingDelta

__all__ = [
    "Gathered",
    "UnfinishedCall",
    "before",
    "fail_in_band",
    "incomplete_error",
    "parse_event",
    "read_openai_usage",
    "status_error",
    "truncated_error",
]


@dataclass(slots=True)
class UnfinishedCall:
    """A tool call whose arguments are still arriving."""

    name: str = ""
    id: str | None = None
    arguments: list[str] = field(default_factory=list[str])

    def whole(self) -> ToolCall:
        """Return the complete call."""
        return ToolCall(name=self.name, arguments="".join(self.arguments) or "{}", id=self.id)


@dataclass(slots=True)
class Gathered:
    """The pieces of one answer."""

    calls: dict[int, UnfinishedCall] = field(default_factory=dict[int, UnfinishedCall])
    """Calls by the number that the wire gives them."""
    _said: list[list[str] | Thinking | UnfinishedCall] = field(
        default_factory=list["list[str] | Thinking | UnfinishedCall"]
    )
    """Text, complete reasoning and calls in the order of arrival."""
    _thought: list[str] = field(default_factory=list[str])

    @property
    def text_so_far(self) -> str:
        return "".join(piece for said in self._said if isinstance(said, list) for piece in said)

    def text(self, piece: str | None) -> tuple[Event, ...]:
        """Add a piece of text and return it as an event."""
        if not piece:
            return ()
        self.thought_ends()
        last = self._said[-1] if self._said else None
        if isinstance(last, list):
            last.append(piece)
        else:
            self._said.append([piece])
        return (TextDelta(piece),)

    def thinking(self, piece: str | None) -> tuple[Event, ...]:
        """Add a piece of reasoning and return it as an event."""
        if not piece:
            return ()
        self._thought.append(piece)
        return (ThinkingDelta(piece),)

    def thought_ends(self, signature: str | None = None, sealed_as: SealedAs | None = None) -> None:
        """End a piece of reasoning, which may consist of a signature only."""
        if self._thought or signature:
            kind = sealed_as if signature else None
            self._said.append(Thinking(text="".join(self._thought), signature=signature, sealed_as=kind))
            self._thought.clear()

    def call(self, number: int) -> UnfinishedCall:
        """Return the call with a number, which is added if it is new."""
        if number not in self.calls:
            self.thought_ends()
            self.calls[number] = UnfinishedCall()
            self._said.append(self.calls[number])
        return self.calls[number]

    def completion(
        self, finish: Finish, usage: Usage, *, model: str | None = None, reported_cost: str | None = None
    ) -> Completion:
        """Return the complete answer."""
        self.thought_ends()
        parts = list[Part]()
        for said in self._said:
            match said:
                case UnfinishedCall():
                    parts.append(said.whole())
                case Thinking():
                    parts.append(said)
                case _:
                    parts.append(Text("".join(said)))
        calls = tuple(part for part in parts if isinstance(part, ToolCall))
        return Completion(
            text=self.text_so_far,
            finish="tool_calls" if calls and finish in ("stop", "other") else finish,
            tool_calls=calls,
            message=Message(role="assistant", parts=tuple(parts)),
            usage=usage,
            model=model,
            reported_cost=reported_cost,
        )


def truncated_error() -> ProviderFailed:
    """Return the error for a stream that ended before its answer was complete."""
    return ProviderFailed("the stream ended before the answer did", kind="truncated")


def incomplete_error(reason: str) -> ProviderFailed:
    """Return the error for an answer that the provider itself reports as incomplete, although its stream is
    complete."""
    return ProviderFailed(f"broke off: `{reason[:40]}`", kind="truncated")


_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size|limit)|maximum (?:context|(?:prompt|model|input) length)"
    r"|(?:prompt|inputs?|request|messages?) (?:is|are|was)? ?too (?:long|large)|string too long|reduce the length"
    r"|too many (?:input |prompt )?tokens|range of input length|longer than the (?:model|maximum)"
    r"|(?:input|prompt|requested)[ _]tokens?(?: count)?\b[^.]{0,40}exceed|input token count"
    r"|(?:prompt|inputs?|request|messages?|text)\b[^.]{0,40} exceed(?:s|ed)? (?:(?:the|model|max(?:imum)?) )*"
    r"(?:(?:number of |message )?tokens|token limit|length)"
    r"|\binputs?\b[^.]{0,40}must (?:be <=|have less than)|exceeds? the (?:available|maximum|model)",
    re.IGNORECASE,
)
"""Wordings of providers and servers for a prompt that is too long."""
_NOTHING_LEFT = re.compile(
    r"your credit balance is too low|you have reached your specified .*usage limits", re.IGNORECASE | re.DOTALL
)
"""Anthropic's wording, sent with the status and type of an invalid request."""
_OF_A_DAY = re.compile(r"per[ -]day", re.IGNORECASE)
"""A limit that waiting does not lift, unless a wait is named: OpenRouter's free models have one."""
_SEALED = re.compile(r"encrypted content\b.*(?:could not be verified|is not supported)", re.IGNORECASE | re.DOTALL)
"""Wording of OpenAI's models that do not reason, and of Azure, without a code, if it cannot decrypt reasoning."""
_BY_STATUS: dict[int, FailureKind] = {
    **dict.fromkeys((301, 302, 303, 307, 308), "not_found"),
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
"""Kinds that a more exact code overrides, and how inexact each is."""
_DELAY = re.compile(r"(\d+(?:\.\d+)?)s")
_SAID = 200
"""Maximum characters of a provider's message that are passed on."""
_SECRET = re.compile(r"(?i)\b(?:sk|key|AIza|Bearer)[-_ ]?[A-Za-z0-9*_\-.]{6,}")


def status_error(status: int, body: Json, retry_after: float | None = None) -> ProviderFailed:
    """Return the error for a response with an HTTP error status."""
    said, words = _error_of(body)
    wait = _retry_delay(body) if retry_after is None else retry_after
    kind = _exact_kind(_status_kind(status), said, words, wait)
    return ProviderFailed(
        f"answered {status}{_tail(said)}", kind=kind, status=status, retry_after=wait, suggestion=_hint(kind)
    )


def fail_in_band(error: Json) -> None:
    """Raise `ProviderFailed` for an error within a stream; None and false are not errors."""
    if not error:
        return
    said, words = _error_of(error)
    # Some send an HTTP status as the code after the stream has begun.
    code = error.get("code") if isinstance(error, Mapping) else None
    kind = _word_kind(words) or (_status_kind(code) if isinstance(code, int) and 400 <= code < 600 else None)
    kind = _exact_kind(kind or ("context_length" if _TOO_LONG.search(said) else "server"), said, words)
    raise ProviderFailed(f"broke off with an error{_tail(said)}", kind=kind, suggestion=_hint(kind))


def _exact_kind(kind: FailureKind, said: str, words: tuple[str, ...], wait: float | None = None) -> FailureKind:
    """Return a more exact kind than the one from the status or type, if the message or codes contain it."""
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
    """Return the kind of an HTTP status; an unknown client error counts as refused, since another provider may
    accept."""
    return _BY_STATUS.get(status) or ("server" if status >= 500 else "refused")


def _word_kind(words: tuple[str, ...]) -> FailureKind | None:
    """Return the kind of the most exact word."""
    found = list[FailureKind]()
    for word in map(str.lower, words):
        # Google names the exceeded quotas, such as `GenerateRequestsPerDayPerProjectPerModel`; the wait it names with a
        # daily quota is as short as any other.
        kind: FailureKind | None = "exhausted" if "perday" in word else _BY_WORD.get(word)
        if kind is not None:
            found.append(kind)
    return min(found, key=lambda kind: _ROUGH.get(kind, 0), default=None)


def _error_of(body: Json) -> tuple[str, tuple[str, ...]]:
    """Return the error's message, and the words that may classify it."""
    if isinstance(body, list) and body:
        return _error_of(body[0])
    if isinstance(body, str):
        return body, ()
    if not isinstance(body, Mapping):
        return "", ()
    inner = body.get("error")
    if isinstance(inner, Mapping | str):
        return _error_of(cast("Json", inner))
    reasons: list[Json] = []
    for one in _details(body):
        reasons.extend((one.get("reason"), one.get("error_code")))
        reasons.extend(quota.get("quotaId") for quota in tables_at(one, "violations"))
    words = [*(body.get(key) for key in ("code", "type", "status")), *reasons]
    said = body.get("message") or body.get("detail") or ""
    return (said if isinstance(said, str) else ""), tuple(word for word in words if isinstance(word, str))


def _details(error: JsonObject) -> list[JsonObject]:
    """Return the details: a list from Google, a single object from Anthropic."""
    listed = error.get("details")
    return [one for one in (listed if isinstance(listed, list) else [listed]) if isinstance(one, dict)]


def _retry_delay(body: Json) -> float | None:
    """Return the wait in seconds that Google puts in the body: `"retryDelay": "31s"`."""
    if isinstance(body, list) and body:
        return _retry_delay(body[0])
    error = body.get("error") if isinstance(body, Mapping) else None
    said = [one.get("retryDelay") for one in _details(error)] if isinstance(error, dict) else []
    found = [_DELAY.fullmatch(one) for one in said if isinstance(one, str)]
    return next((float(one[1]) for one in found if one), None)


def _tail(said: str) -> str:
    """Return a provider's message on one line, shortened, and without what looks like a key."""
    line = _SECRET.sub("***", " ".join(said.split()))[:_SAID]
    return f": {line}" if line else ""


def _hint(kind: FailureKind) -> str:
    return {
        "unauthorized": "check the provider's key, what it may be used for and whether it is paid for",
        "exhausted": "top up the provider's account, raise its limit, or wait until the limit resets",
        "not_found": "check the model's name and the provider's address",
        "context_length": "shorten the prompt, or use a model with a larger window",
        "rate_limited": "wait, or add a fallback",
    }.get(kind, "")


def parse_event(data: str) -> JsonObject:
    """Return an event's data; raise `ProviderFailed` if it is not a JSON object."""
    try:
        try:
            value = cast("Json", json.loads(data))
        except ValueError:
            # Python refuses integers of more than 4,300 digits. As floats they are infinite, which is no count.
            value = cast("Json", json.loads(data, parse_int=float))
    except (ValueError, RecursionError) as error:
        raise ProviderFailed("an event of the stream is not JSON", kind="malformed") from error
    if not isinstance(value, dict):
        raise ProviderFailed("an event of the stream is not an object", kind="malformed")
    return value


def read_openai_usage(known: Usage, *places: JsonObject) -> Usage:
    """Return the usage from the first place that reports one, under the names of either OpenAI format.

    Args:
        known: the usage reported so far, which later reports of nothing do not replace.
        places: the objects that may have a `usage`; compatible servers put it in different ones.
    """
    said = next((usage for place in places if (usage := table_at(place, "usage"))), dict[str, Json]())
    is_chat = "prompt_tokens" in said or "completion_tokens" in said
    usage = read_usage(said, Format.OPENAI_CHAT if is_chat else Format.OPENAI_RESPONSES)
    return usage if usage.input or usage.output or known == Usage() else known


def before(outgoing: Outgoing) -> tuple[str, tuple[Message, ...]]:
    """Return the system's text, and the other messages."""
    system = [message for message in outgoing.messages if message.role in ("system", "developer")]
    rest = tuple(message for message in outgoing.messages if message.role not in ("system", "developer"))
    return "\n\n".join(filter(None, (join_texts(message.parts) for message in system))), rest
