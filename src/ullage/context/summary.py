"""Asks for a summary of dropped messages and judges the result.

It is shown to the model in as many passes as its window wants, mostly one, each of which brings the summary of
those before up to date. An answer that will not do is asked for again, and after three calls in vain it is given
up. What is asked, what is shown and what will do, other files know.

The plug point for whoever puts the head of a history into fewer words.

A model of the user's, the agent's own, or a fake; `summarizers` makes one of a function or of a client. What is asked
and what counts as an answer, `summary` knows.

Summarizers made of what a user has at hand: a plain function, or the client of a provider's SDK.

Nobody has to write a class to have a history summarised. A model's name is made into one where providers and their keys
are known, outside of this package.

Not if there is nothing in it, if it is cut off, a refusal, a call, an echo of what was asked, or too long. What is left
may still be a bad summary: nobody here can tell.

After three failed calls in a row it rests for a while; then one call may show whether it is well again. Pure: the clock
is passed in.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from json import loads
from secrets import token_hex
from typing import Any, Protocol, cast

import anyio
from anyio.to_thread import run_sync

from ullage.errors import InvalidArguments, UllageError, Unavailable
from ullage.messages import Format, Text, plain, read_answer, read_message, tables_at, text_at

from .context_options import DEFAULTS
from .summary_text import Carried, fitted, instructions, line_of, passes, pieces, read_sections, readable, request_text
from .token_weights import Entry

__all__ = [
    "Breaker",
    "ClientSummarizer",
    "Fault",
    "FunctionSummarizer",
    "Judge",
    "Summarizer",
    "SummaryAnswer",
    "SummaryFailed",
    "SummaryFunction",
    "SummaryRequest",
    "as_summarizer",
    "failure",
    "summarise",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    instructions: str
    """What to do; meant for the system's place."""
    text: str
    """What it is done to: history, which is data and no instruction."""
    max_tokens: int
    """That the answer may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAnswer:
    text: str
    complete: bool = True
    """False where the answer ended for want of room."""
    refused: bool = False
    cost: str | None = None
    """In dollars; None where nobody knows."""


class Summarizer(Protocol):
    @property
    def window(self) -> int | None:
        """Tokens that request and answer may have together; None where nobody knows."""
        ...

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        """May raise anything; whatever it raises is a failure and never the end of the session."""
        ...


class Breaker:
    def __init__(self, clock: Callable[[], float], failures: int = 3, cooldown: float = 300.0) -> None:
        """The clock and the cooldown are in seconds."""
        self._clock, self._most, self._cooldown = clock, failures, cooldown
        self._failed = 0
        self._rests_until = 0.0

    @property
    def left(self) -> int:
        """Calls that may fail before it rests: none while it does, and one when it has."""
        if self._failed < self._most:
            return self._most - self._failed
        return 1 if self._clock() >= self._rests_until else 0

    def allows(self) -> bool:
        return self.left > 0

    def failed(self, times: int = 1) -> None:
        """So many calls came to nothing, with no success between them."""
        if times > 0:
            self._failed += times
            self._rests_until = self._clock() + self._cooldown

    def succeeded(self) -> None:
        self._failed = 0


SummaryFunction = Callable[..., object]
"""Takes the prompt, or the instructions and the text, and returns the summary; it may be async."""


def as_summarizer(given: object, *, model: str, window: int | None = None) -> Summarizer | None:
    """A summarizer made of what a user has at hand.

    Args:
        given: A `Summarizer`, which is returned as it is; a function; a client of the OpenAI, Anthropic or Google SDK,
            sync or async; or None.
        model: The model that a client is asked for.
        window: Tokens that request and answer may have together, where that is known.

    Raises:
        InvalidArguments: It is none of these.
    """
    if given is None or callable(getattr(given, "summarize", None)):
        return cast("Summarizer | None", given)
    create = _create_of(given)
    if create is not None:
        return ClientSummarizer(create=create[1], format=create[0], model=model, window=window)
    if callable(given) and not isinstance(given, type):
        return FunctionSummarizer(given, window)
    raise InvalidArguments(
        f"`{type(given).__name__}` cannot summarise",
        suggestion="give a model's name, a client of OpenAI's, Anthropic's or Google's SDK, or a function "
        "that takes a prompt and returns a text",
    )


@dataclass(frozen=True, slots=True)
class FunctionSummarizer:
    """A plain function, sync or async.

    With one parameter it gets the whole prompt, with two the instructions and the text, and a parameter that is
    annotated as `SummaryRequest` gets that. It returns the summary's text or a `SummaryAnswer`. A sync function runs in
    a thread.
    """

    function: SummaryFunction
    window: int | None = None

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        given = await _called(partial(self.function, *_arguments(self.function, request)))
        if isinstance(given, SummaryAnswer):
            return given
        if not isinstance(given, str):
            raise TypeError(f"the function that summarises returned {type(given).__name__}, not a text")
        return SummaryAnswer(text=given)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSummarizer:
    """The client of a provider's SDK, sync or async."""

    create: Callable[..., object]
    """Its method that makes an answer."""
    format: Format
    model: str
    window: int | None = None

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        answered = plain(await _called(partial(self.create, **_BODIES[self.format](self.model, request))))
        said = [read_message(one, self.format) for one in read_answer(answered, self.format).natives]
        choice = next(iter((*tables_at(answered, "choices"), *tables_at(answered, "candidates"))), answered)
        reasons = (text_at(choice, key) for key in ("finish_reason", "finishReason", "stop_reason"))
        ended = next(filter(None, reasons), "").lower()
        return SummaryAnswer(
            text="".join(part.text for message in said for part in message.parts if isinstance(part, Text)),
            complete=ended not in ("length", "max_tokens"),
            refused=ended in ("content_filter", "refusal", "safety", "prohibited_content"),
        )


async def _called(call: Callable[[], object]) -> object:
    """What a function gives: sync ones in a thread, which nobody waits for any longer when time is up."""
    is_async = inspect.iscoroutinefunction(cast("partial[object]", call).func)
    given = call() if is_async else await run_sync(call, abandon_on_cancel=True)
    return await cast("Awaitable[object]", given) if inspect.isawaitable(given) else given


def _arguments(function: SummaryFunction, request: SummaryRequest) -> tuple[object, ...]:
    try:
        wanted = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        wanted = []
    places = [one for one in wanted if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    required = [one for one in places if one.default is one.empty]
    if required and required[0].annotation in (SummaryRequest, SummaryRequest.__name__):
        return (request,)
    if len(required) > 1:
        return request.instructions, request.text
    return (f"{request.instructions}\n\n{request.text}",)


def _create_of(client: Any) -> tuple[Format, Callable[..., object]] | None:  # noqa: ANN401
    """The method of a client that makes an answer, and the format it speaks; None where it is no client."""
    for format, path in _METHODS:  # noqa: A001
        found = client
        for name in path:
            found = getattr(found, name, None)
        if callable(found):
            return format, found
    return None


_METHODS: tuple[tuple[Format, tuple[str, ...]], ...] = (
    (Format.OPENAI_CHAT, ("chat", "completions", "create")),
    (Format.ANTHROPIC, ("messages", "create")),
    (Format.GEMINI, ("models", "generate_content")),
)


def _chat_body(model: str, request: SummaryRequest) -> dict[str, object]:
    """Without a limit of tokens: models disagree on its name, and the instructions say how long the answer may be."""
    said = [{"role": "system", "content": request.instructions}, {"role": "user", "content": request.text}]
    return {"model": model, "messages": said}


def _anthropic_body(model: str, request: SummaryRequest) -> dict[str, object]:
    said = [{"role": "user", "content": request.text}]
    return {"model": model, "system": request.instructions, "messages": said, "max_tokens": request.max_tokens}


def _gemini_body(model: str, request: SummaryRequest) -> dict[str, object]:
    return {"model": model, "contents": request.text, "config": {"system_instruction": request.instructions}}


_BODIES: dict[Format, Callable[[str, SummaryRequest], dict[str, object]]] = {
    Format.OPENAI_CHAT: _chat_body,
    Format.ANTHROPIC: _anthropic_body,
    Format.GEMINI: _gemini_body,
}

_MUCH = 1.1
"""Of the room, that an answer may have."""
_SHORT = 400
"""Characters up to which words of refusal are all there is."""
_LINE = 60
"""Characters of a line that nobody writes by chance."""
_REASON = 200
"""Characters that are told of an error."""
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
"""What models without a place for thinking think aloud."""
_WRAPPED = re.compile(r"\s*(?:```\w*\n(.*)\n```|<(\w+)>(.*)</\2>)\s*", re.DOTALL)
_REFUSAL = re.compile(
    r"\W*(?:(?:i['’]m|i am|we['’]re) (?:very |so |really )?(?:sorry|unable|afraid|not able)|sorry\b|i apologi[sz]e"
    r"|(?:i|we) (?:can['’]?t|cannot|can not|won['’]t|will not|must decline|am not able)|unfortunately,? (?:i|we)\b"
    r"|as an ai\b|es tut mir leid|ich kann (?:das|dabei|dir|ihnen|diese)|lo siento|no puedo|je suis désolée?"
    r"|je ne peux pas|desculpe|não posso|mi dispiace|non posso|抱歉|对不起|我无法|我不能|申し訳|죄송|извините"
    r"|я не могу)",
    re.IGNORECASE,
)
_CALL = re.compile(
    r"\s*(?:```\w*\s*)?(?:<\W*(?:\w+:)?(?:tool|function|invoke)|<\|?tool|\[TOOL_|functions?\.\w+\s*\(|(?:to=)functions?\.)",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"\W*+(?:none|nothing|n/?a|not applicable|empty|tbd|unknown)?+\W*+", re.IGNORECASE)
_SECRET = re.compile(
    r"(?<=://)[^/@\s]+(?=@)|(?<=bearer )\S+|(?<=key[=:])\s*\S+|(?<=token[=:])\s*\S+|(?<=secret[=:])\s*\S+"
    r"|(?<=password[=:])\s*\S+|\b(?:sk|pk|rk|xai|gsk|ghp|hf)[-_][\w*-]{8,}|\b(?=\w*\d)(?=\w*[A-Za-z])\w{20,}",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    reason: str
    """In a sentence, with nothing in it that must stay secret."""
    retries: int = 1
    """How often asking again may help."""
    short: bool = False
    """Whether asking for less may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    count: Callable[[str], int]
    room: int
    """Tokens that a summary may have, a little more forgiven."""
    weight: int
    """Tokens of all that it is to stand for."""
    nonce: str
    """Which no summary has a reason to contain."""

    def judge(self, answer: SummaryAnswer, instructions: str) -> str | Fault:
        """The summary, or what is wrong with it."""
        text = _bare(answer.text or "")
        if answer.refused or (len(text) <= _SHORT and _REFUSAL.match(text)):
            return Fault(reason="the model refused")
        if not answer.complete:
            return Fault(reason="the answer ended before it was whole", retries=2, short=True)
        return self._of_kind(text, instructions) or self._of_size(text) or text

    def _of_kind(self, text: str, instructions: str) -> Fault | None:
        # Headings with nothing under them are nothing, too.
        is_empty = all(
            _NOTHING.fullmatch(line)
            for items in read_sections(text).values()
            for item in items
            for line in item.split("\n")
        )
        if is_empty:
            return Fault(reason="the answer was empty")
        if _CALL.match(text) or _is_json(text):
            return Fault(reason="the answer was a call or JSON and no prose")
        if self.nonce in text or any(line in text for line in instructions.split("\n") if len(line) > _LINE):
            return Fault(reason="the answer repeated what was asked")
        return None

    def _of_size(self, text: str) -> Fault | None:
        size = self.count(text)
        if size > _MUCH * self.room:
            reason = f"the answer has {size:,} tokens where {self.room:,} would do"
            return Fault(reason=reason, retries=2, short=True)
        if size >= self.weight:
            return Fault(reason="the answer is no shorter than what it was to stand for", retries=2, short=True)
        return None


def failure(error: Exception) -> str:
    """What went wrong, in a sentence; what looks like a secret is left out."""
    said = line_of(_SECRET.sub("…", str(error)[: 4 * _REASON]), _REASON)
    return f"the model that summarises failed: {said or type(error).__name__}"


def _bare(text: str) -> str:
    """Without what some models put around an answer."""
    text = readable(text).strip()
    thought = _THOUGHT.match(text)
    text = text[thought.end() :].strip() if thought else text
    wrapped = _WRAPPED.fullmatch(text)
    return (wrapped[1] or wrapped[3] or "").strip() if wrapped and not _CALL.match(text) else text


def _is_json(text: str) -> bool:
    if not text.startswith(("{", "[")):
        return False
    try:
        return isinstance(loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


_WINDOW = 32_000
"""Assumed where nobody knows."""
_MARGIN = 0.92
"""Of the window, for its model may count otherwise."""
_SHARE = 3
"""That part of the window is an earlier summary's at the most."""
_ANSWER, _THINKING = 4, 6
"""That part of the window is the most for a summary; that part, or a thousand tokens, an answer may always have, for
some models think before they write and it counts."""
_NONCE = 12
"""Characters that nobody guesses."""
_LEAST = 200
"""Tokens of a record under which there is no summarising."""


class SummaryFailed(Unavailable):
    """No summary was to be had."""

    code = "SUMMARY_FAILED"

    def __init__(self, reason: str, calls: int) -> None:
        super().__init__(reason)
        self.reason = reason
        """In a sentence, with nothing in it that must stay secret."""
        self.calls = calls
        """That came to nothing; none where it was not even tried."""


async def summarise(  # noqa: PLR0913
    head: Sequence[Entry],
    earlier: Carried | None,
    summarizer: Summarizer,
    *,
    count: Callable[[str], int],
    room: int,
    timeout: float = DEFAULTS.summary_timeout,
    failures: int = 3,
    nonce: Callable[[], str] = token_hex,
) -> str:
    """A summary of about `room` tokens of a head and of what an earlier summary told.

    Raises `SummaryFailed` when `failures` calls in all came to nothing, or when asking again would not help. A call may
    take `timeout` seconds. `nonce` gives words that nobody could guess.
    """
    told, window = earlier.summary.strip() if earlier else "", _window(summarizer)
    weight = sum(entry.weight.tokens for entry in head) + count(told)
    judge = Judge(count=count, room=min(room, window // _ANSWER), weight=weight, nonce=nonce()[:_NONCE])
    work = _Work(summarizer=summarizer, judge=judge, window=window, timeout=timeout, failures=failures)
    for record in await run_sync(work.records, head, told):
        told = await work.told(record, told)
    if not told:
        raise SummaryFailed("there is nothing to summarise", 0)
    return told


def _window(summarizer: Summarizer) -> int:
    try:
        return summarizer.window or _WINDOW
    except Exception as error:
        raise SummaryFailed(failure(error), 1) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """How it is asked for."""

    room: int
    max_tokens: int
    fault: str | None = None

    def after(self, fault: Fault) -> "_Demand":
        """For less where there was too much, with more room to end in."""
        if not fault.short:
            return replace(self, fault=fault.reason)
        return _Demand(room=self.room * 2 // 3, max_tokens=2 * self.max_tokens, fault=fault.reason)


@dataclass(slots=True, kw_only=True)
class _Work:
    """One head on its way to a summary."""

    summarizer: Summarizer
    judge: Judge
    window: int
    timeout: float
    failures: int
    failed: int = 0
    """Calls that came to nothing."""

    def records(self, head: Sequence[Entry], earlier: str) -> list[str]:
        """What is shown in each pass."""
        count, nonce = self.judge.count, self.judge.nonce
        asked = count(instructions(room=self.judge.room, nonce=nonce, update=True, fault="x" * 100))
        before = max(self.judge.room, min(count(earlier), self.window // _SHARE))
        room = int(_MARGIN * self.window) - asked - before - self._max_tokens
        if room < _LEAST:
            raise SummaryFailed(f"a window of {self.window:,} tokens is too small to summarise in", 0)
        return passes(pieces([entry.message for entry in head]), room=room, count=count, mark=nonce)

    async def told(self, record: str, earlier: str) -> str:
        """What a pass makes of the summary so far."""
        earlier = fitted(earlier, max(self.judge.room, self.window // _SHARE), self.judge.count)
        demand, tries = _Demand(room=self.judge.room, max_tokens=self._max_tokens), 0
        while True:
            verdict = await self._answer(record, earlier, demand)
            if isinstance(verdict, str):
                return verdict
            self.failed, tries = self.failed + 1, tries + 1
            if self.failed >= self.failures or tries > verdict.retries:
                raise SummaryFailed(verdict.reason, self.failed)
            demand = demand.after(verdict)

    @property
    def _max_tokens(self) -> int:
        return max(self.judge.room, min(1_000, self.window // _THINKING))

    async def _answer(self, record: str, earlier: str, demand: _Demand) -> str | Fault:
        nonce = self.judge.nonce
        told = instructions(room=demand.room, nonce=nonce, update=bool(earlier), fault=demand.fault)
        text = request_text(record, earlier, nonce)
        asked = SummaryRequest(instructions=told, text=text, max_tokens=self._allowed(demand, told, text))
        with anyio.move_on_after(self.timeout):
            try:
                return self.judge.judge(await self.summarizer.summarize(asked), told)
            except Exception as error:  # noqa: BLE001  whatever it is, a session does not end of it
                return Fault(reason=failure(error), retries=0 if isinstance(error, UllageError) else 1)
        return Fault(reason=f"the model that summarises gave no answer in {self.timeout:g} seconds", retries=0)

    def _allowed(self, demand: _Demand, told: str, text: str) -> int:
        """As many tokens as are asked for, where more than at first only as far as the window has them."""
        if demand.max_tokens <= self._max_tokens:
            return demand.max_tokens
        left = int(_MARGIN * self.window) - self.judge.count(told) - self.judge.count(text)
        return max(self._max_tokens, min(demand.max_tokens, left))
