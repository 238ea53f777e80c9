"""What does each message of a history weigh?

Each is weighed once, when it comes, beside the few that its weight depends on, and what it does to the weight of those
is put right at once: the weights are always those that the meter gives for the whole request. What they add up to,
`usage` says. Every number is the meter's.
"""

from collections.abc import Sequence
from dataclasses import replace

from ullage.messages import Format, Message, Request, ToolResult, Unknown, read_message
from ullage.tokens import ZERO, Count, Meter, Method, Steps, unheard

from .entry import Category, Entry
from .fixed import Fixed, fixed_of, read_fixed
from .neighbours import behind, beside, seam, unsettled
from .shares import apportioned, kind_of, parted

__all__ = ["Scale", "changes_framing"]

_AT_ONCE = 8
"""Messages that are weighed before others are let in; what is long in one of them is counted in steps of its own."""

_STRETCH = 32
"""The same for messages of a turn that is over, which were weighed already and may weigh otherwise now."""

_WORD = "tokens"
"""A text like any other."""


class Scale:
    """Weighs the messages of one format for one model; a model that nobody knows is weighed within a wide band."""

    __slots__ = ("_counted_as", "format", "meter", "model")

    def __init__(self, meter: Meter, model: str, format: Format) -> None:  # noqa: A002
        self.meter = meter
        self.model = model
        self.format = format
        self._counted_as = model if meter.models.get(model) is not None else unheard(model)

    def fixed(self, system: object = None, tools: Sequence[object] = (), entries: Sequence[Entry] = ()) -> Steps[Fixed]:
        """What the system prompt, each tool and the request itself weigh, natives of the format all.

        Some of that depends on whether there is a system message among the entries, or a document that is to be cited:
        ask again when the first of its kind joins them, as when the system prompt or the tools change.
        """
        given = read_fixed(system, tools, self.format)
        among = tuple(entry.message for entry in entries if changes_framing(entry.message))
        request = replace(given, messages=(*given.messages, *among))
        return fixed_of(given, (yield from self.meter.weigh_steps(request, self._counted_as)))

    def entries(self, natives: Sequence[object], after: Sequence[Entry] = ()) -> Steps[tuple[Entry, ...]]:
        """Entries for new natives that follow `after`."""
        return (yield from self.grown(after, natives))[len(after) :]

    def grown(self, before: Sequence[Entry], natives: Sequence[object]) -> Steps[tuple[Entry, ...]]:
        """A history with new natives at its end. Of the entries that were there before, those that now weigh otherwise
        are made anew (of the results of calls made at once, the first; of a turn that is over, thinking that is shown
        no more) and all others are the same objects."""
        whole = tuple(before)
        for start in range(0, len(natives), _AT_ONCE):
            fresh = map(self._unweighed, natives[start : start + _AT_ONCE])
            whole = yield from self._weighed((*whole, *fresh), len(whole))
            yield
        return whole

    def together(self, entries: Sequence[Entry]) -> Steps[tuple[Entry, ...]]:
        """Entries that were put side by side anew, at the weights they have there."""
        whole: tuple[Entry, ...] = ()
        for start in range(0, len(entries), _AT_ONCE):
            whole = yield from self._weighed((*whole, *entries[start : start + _AT_ONCE]), len(whole))
            yield
        return whole

    def remade(self, entry: Entry, native: object) -> Entry:
        """The same entry with another message in its place, at the weight by which the two differ."""
        message = read_message(native, self.format)
        weight = _moved(entry.weight, self._alone(entry.message), self._alone(message))
        changed = replace(entry, native=native, message=message, weight=weight)
        return replace(changed, shares=self._shares(changed))

    def count(self, text: str) -> int:
        """The tokens of a plain text, the middle of the band."""
        return self.meter.count(text, self._counted_as).tokens

    @property
    def has_vocabulary(self) -> bool:
        """Whether texts are counted with the model's own."""
        return self.meter.count("a", self._counted_as).method is Method.EXACT

    def around(self, answer: Message) -> int:
        """What stands around an answer that is sent back, and was no output of it. Claude's output has its frame in
        it, as recorded sessions show."""
        match = self.meter.models.get(self.model)
        is_claude = match is not None and match.card.provider == "anthropic"
        return 0 if is_claude else self._alone(replace(answer, parts=())).tokens

    def learn(self, ours: Count, reported: int) -> None:
        """Takes the provider's own count of what was just weighed here, as a lesson for what is weighed next.

        For a model whose texts can only be estimated: the calibrated ones were measured on more than one history tells
        (taught by a recorded session of Claude, call after call, they came to be 0.50 % off instead of 0.36 %).
        """
        if self.meter.count(_WORD, self._counted_as).method is Method.ESTIMATED:
            self.meter.learn(ours, reported, self._counted_as)

    def _unweighed(self, native: object) -> Entry:
        message = read_message(native, self.format)
        return Entry(native=native, message=message, weight=ZERO, kind=kind_of(message))

    def _weighed(self, entries: tuple[Entry, ...], since: int) -> Steps[tuple[Entry, ...]]:
        """All entries, those from `since` on weighed and those before put right.

        What was weighed before is compared with what it would weigh now without the new: the meter may have learnt
        something since, and that alone is no reason to make it anew.
        """
        messages = [entry.message for entry in entries]
        start = unsettled(messages, since)
        weights = yield from self._weigh(messages, start)
        if start < since:
            without = yield from self._weigh(messages[:since], start)
            known = (entry.weight for entry in entries[start:since])
            weights = (*map(_unless_equal, known, without, weights), *weights[since - start :])
        return (*entries[:start], *(yield from self._with_weights(entries[start:], weights)))

    def _weigh(self, messages: Sequence[Message], start: int) -> Steps[tuple[Count, ...]]:
        """What the messages from `start` on weigh, some at a time: each stretch beside what its weight depends on."""
        weights = list[Count]()
        while start < len(messages):
            end = seam(messages, start + _STRETCH)
            before, after = beside(messages[:end], start), behind(messages, end)
            request = self._request((*before, *messages[start:end], *after))
            weight = yield from self.meter.weigh_steps(request, self._counted_as)
            weights += weight.messages[len(before) : len(before) + end - start]
            start = end
            if start < len(messages):
                yield
        return tuple(weights)

    def _with_weights(self, entries: Sequence[Entry], weights: Sequence[Count]) -> Steps[list[Entry]]:
        made = list[Entry]()
        for entry, weight in zip(entries, weights, strict=True):
            made.append(self._with_weight(entry, weight))
            if not len(made) % _STRETCH:
                yield
        return made

    def _with_weight(self, entry: Entry, weight: Count) -> Entry:
        if entry.weight == weight and (entry.shares or not weight.tokens):
            return entry
        changed = replace(entry, weight=weight)
        return replace(changed, shares=self._shares(changed))

    def _shares(self, entry: Entry) -> dict[Category, int]:
        """Thinking is what the message would weigh less without it, for it may weigh nothing; the rest in the ratio of
        what each kind of part weighs alone."""
        parts = parted(entry.message, entry.kind)
        tokens, shares = entry.weight.tokens, dict[Category, int]()
        if len(parts) > 1 and parts.pop("thinking", None):
            rest = tuple(part for message in parts.values() for part in message.parts)
            shares["thinking"] = max(0, tokens - self._alone(replace(entry.message, parts=rest)).tokens)
            tokens -= shares["thinking"]
        alone = [self._alone(part).tokens for part in parts.values()] if len(parts) > 1 else [tokens]
        return shares | dict(zip(parts, apportioned(tokens, alone), strict=True))

    def _alone(self, message: Message) -> Count:
        return self.meter.weigh(self._request((message,)), self._counted_as).messages[0]

    def _request(self, messages: tuple[Message, ...]) -> Request:
        return Request(format=self.format, model=self._counted_as, messages=messages)


def changes_framing(message: Message) -> bool:
    """Whether what is added once a request may depend on the message."""
    inner = (part for one in message.parts for part in (one.parts if isinstance(one, ToolResult) else (one,)))
    return message.role in ("system", "developer") or (
        message.role != "assistant" and any(isinstance(part, Unknown) for part in inner)
    )


def _unless_equal(known: Count, without: Count, now: Count) -> Count:
    return known if without == now else now


def _moved(weight: Count, before: Count, now: Count) -> Count:
    """A weight that was `before` when it stood alone, and is `now`."""
    if weight == before:
        return now
    tokens = max(0, weight.tokens - before.tokens + now.tokens)
    method = (weight + now).method
    low = max(0, tokens - (now.tokens - now.low))
    return Count(tokens=tokens, method=method, low=min(low, tokens), high=tokens + now.high - now.tokens)
