"""Asks for a summary of dropped messages and judges the result.

The messages are shown to the model in as many passes as its window requires, usually one. Each pass updates the summary
of the passes before. An unusable answer is asked for again, and after three failed calls the summary is given up. The
prompt and the transcript are in `summary_text`.

`Summarizer` is the plug point: a user's model, the agent's own model, or a fake. `as_summarizer` makes one of a plain
function or of the client of a provider's SDK, so that no class has to be written. A model's name is resolved outside
of this package, where providers and their keys are known.

An answer is rejected if it is empty, cut off, a refusal, a tool call, an echo of the prompt, or too long. Whether an
accepted summary is a good one is not checked.

`Breaker` stops calling the model during a cooldown after three failed calls in a row; then one call tests whether it
works again. The clock is passed in.
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
    """What a summarizer is asked to do."""

    instructions: str
    """Instructions, for the system prompt."""
    text: str
    """The history to summarise. It is data and contains no instructions."""
    max_tokens: int
    """Most tokens of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryAnswer:
    """Answer of a summarizer."""

    text: str
    complete: bool = True
    """False if the answer was cut off at its token limit."""
    refused: bool = False
    cost: str | None = None
    """Cost in dollars; None if unknown."""


class Summarizer(Protocol):
    """Summarises histories. Implement it to use a model of your own; `as_summarizer` makes one of a function or a
    client."""

    @property
    def window(self) -> int | None:
        """Most tokens of request and answer together; None if unknown."""
        ...

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        """Summarise a history. May raise any exception: it counts as a failed call and never ends the session."""
        ...


class Breaker:
    """Stops calling a model that keeps failing, for a cooldown after `failures` failed calls in a row."""

    def __init__(self, clock: Callable[[], float], failures: int = 3, cooldown: float = 300.0) -> None:
        """`clock` and `cooldown` are in seconds."""
        self._clock, self._most, self._cooldown = clock, failures, cooldown
        self._failed = 0
        self._rests_until = 0.0

    @property
    def left(self) -> int:
        """Calls that may still fail before the cooldown: 0 during it, 1 after it."""
        if self._failed < self._most:
            return self._most - self._failed
        return 1 if self._clock() >= self._rests_until else 0

    def allows(self) -> bool:
        """Return whether the model may be called now."""
        return self.left > 0

    def failed(self, times: int = 1) -> None:
        """Record failed calls with no success between them."""
        if times > 0:
            self._failed += times
            self._rests_until = self._clock() + self._cooldown

    def succeeded(self) -> None:
        """Record a successful call, which resets the count of failures."""
        self._failed = 0


SummaryFunction = Callable[..., object]
"""Takes the prompt, or the instructions and the text, and returns the summary; it may be async."""


def as_summarizer(given: object, *, model: str, window: int | None = None) -> Summarizer | None:
    """Make a summarizer of a function or a client.

    Args:
        given: A `Summarizer`, which is returned unchanged; a function; a client of the OpenAI, Anthropic or Google SDK,
            sync or async; or None.
        model: The model that a client is asked for.
        window: Most tokens of request and answer together, if known.

    Returns:
        The summarizer, or None if `given` is None.

    Raises:
        InvalidArguments: `given` is none of these.
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
    """A plain function as a summarizer, sync or async.

    A function with one parameter gets the whole prompt, one with two gets the instructions and the text, and a
    parameter annotated as `SummaryRequest` gets the request. It returns the summary's text or a `SummaryAnswer`. A sync
    function runs in a thread.
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
    """The client of a provider's SDK as a summarizer, sync or async."""

    create: Callable[..., object]
    """The client's method that creates an answer."""
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
    """Call a function and return its result. A sync function runs in a thread, which is abandoned at the timeout."""
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
    """Return the method of a client that creates an answer, and its format; None if it is not a known client."""
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
    """Return a chat request without a token limit: models disagree on the limit's name, and the instructions state the
    length."""
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
"""Factor of the room that an answer may have."""
_SHORT = 400
"""Longest answer, in characters, that is checked for words of refusal."""
_LINE = 60
"""Characters of a line that is long enough not to match by chance."""
_REASON = 200
"""Characters of an error message that are reported."""
_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
"""Thinking that models without a separate field write into their answer."""
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
    """The reason, in a sentence without secrets."""
    retries: int = 1
    """How often asking again may help."""
    short: bool = False
    """Whether asking for a shorter summary may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    count: Callable[[str], int]
    room: int
    """Tokens of a summary; a small excess is accepted."""
    weight: int
    """Tokens of everything that the summary replaces."""
    nonce: str
    """A random text that no summary has a reason to contain."""

    def judge(self, answer: SummaryAnswer, instructions: str) -> str | Fault:
        """Return the summary, or what is wrong with the answer."""
        text = readable(answer.text or "").strip()
        # Some models put thinking before an answer, or an element or a code block around it.
        thought = _THOUGHT.match(text)
        text = text[thought.end() :].strip() if thought else text
        if (wrapped := _WRAPPED.fullmatch(text)) and not _CALL.match(text):
            text = (wrapped[1] or wrapped[3] or "").strip()
        if answer.refused or (len(text) <= _SHORT and _REFUSAL.match(text)):
            return Fault(reason="the model refused")
        if not answer.complete:
            return Fault(reason="the answer ended before it was whole", retries=2, short=True)
        return self._of_kind(text, instructions) or self._of_size(text) or text

    def _of_kind(self, text: str, instructions: str) -> Fault | None:
        # Headings without content count as empty.
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
    """Describe an error in a sentence. Text that looks like a secret is removed."""
    said = line_of(_SECRET.sub("…", str(error)[: 4 * _REASON]), _REASON)
    return f"the model that summarises failed: {said or type(error).__name__}"


def _is_json(text: str) -> bool:
    if not text.startswith(("{", "[")):
        return False
    try:
        return isinstance(loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


_WINDOW = 32_000
"""Tokens of a window that is assumed if it is unknown."""
_MARGIN = 0.92
"""Share of the window that is used, since the model may count differently."""
_SHARE = 3
"""The window divided by this is the largest room of an earlier summary."""
_ANSWER, _THINKING = 4, 6
"""The window divided by the first is the most for a summary. The window divided by the second, or a thousand tokens, is
always allowed for an answer, since the thinking of some models counts as output."""
_NONCE = 12
"""Characters of a text that cannot be guessed."""
_LEAST = 200
"""Fewest tokens of a record that is worth summarising."""


class SummaryFailed(Unavailable):
    """No summary could be made."""

    code = "SUMMARY_FAILED"

    def __init__(self, reason: str, calls: int) -> None:
        super().__init__(reason)
        self.reason = reason
        """The reason, in a sentence without secrets."""
        self.calls = calls
        """Number of failed calls; 0 if none was tried."""


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
    """Summarise a head together with the text of an earlier summary.

    Args:
        head: The messages to summarise.
        earlier: Content of the earlier summary, if any.
        summarizer: Writes the summary.
        count: Counts the tokens of a text.
        room: Tokens that the summary should have.
        timeout: Seconds for one call.
        failures: Failed calls in all after which the summary is given up.
        nonce: Makes a text that cannot be guessed.

    Raises:
        SummaryFailed: `failures` calls failed, or asking again would not help.
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
    """Parameters of a request: the length asked for and the room for the answer."""

    room: int
    max_tokens: int
    fault: str | None = None

    def after(self, fault: Fault) -> "_Demand":
        """Return the demand after a failed answer: shorter if it was too long, with more room to finish."""
        if not fault.short:
            return replace(self, fault=fault.reason)
        return _Demand(room=self.room * 2 // 3, max_tokens=2 * self.max_tokens, fault=fault.reason)


@dataclass(slots=True, kw_only=True)
class _Work:
    """The summarising of one head."""

    summarizer: Summarizer
    judge: Judge
    window: int
    timeout: float
    failures: int
    failed: int = 0
    """Number of failed calls."""

    def records(self, head: Sequence[Entry], earlier: str) -> list[str]:
        """Return what is shown in each pass."""
        count, nonce = self.judge.count, self.judge.nonce
        asked = count(instructions(room=self.judge.room, nonce=nonce, update=True, fault="x" * 100))
        before = max(self.judge.room, min(count(earlier), self.window // _SHARE))
        room = int(_MARGIN * self.window) - asked - before - self._max_tokens
        if room < _LEAST:
            raise SummaryFailed(f"a window of {self.window:,} tokens is too small to summarise in", 0)
        return passes(pieces([entry.message for entry in head]), room=room, count=count, mark=nonce)

    async def told(self, record: str, earlier: str) -> str:
        """Return the summary after a pass."""
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
        most = demand.max_tokens
        if most > self._max_tokens:
            # A raised limit is reduced to what the window has left.
            left = int(_MARGIN * self.window) - self.judge.count(told) - self.judge.count(text)
            most = max(self._max_tokens, min(most, left))
        asked = SummaryRequest(instructions=told, text=text, max_tokens=most)
        with anyio.move_on_after(self.timeout):
            try:
                return self.judge.judge(await self.summarizer.summarize(asked), told)
            except Exception as error:  # noqa: BLE001  whatever it is, a session does not end of it
                return Fault(reason=failure(error), retries=0 if isinstance(error, UllageError) else 1)
        return Fault(reason=f"the model that summarises gave no answer in {self.timeout:g} seconds", retries=0)
