"""What stands in a history now, and what does it weigh?

Messages as they come, weighed when somebody asks and once each, with the system prompt and the tools that go along. It
remembers what the provider reported. When something is let go, and where it is kept, is not decided here.
"""

from collections.abc import Sequence
from dataclasses import replace

from ullage.errors import InvalidArguments
from ullage.messages import Format, detect_messages, plain, read_message
from ullage.models import Usage
from ullage.tokens import Meter, Steps

from .anchored import Anchored, observe
from .entry import Entry
from .fixed import Fixed
from .keeping import Coming, News
from .options import Options
from .usage import ContextUsage, usage_of
from .weighing import Scale, changes_framing

__all__ = ["History", "refuse_what_cannot_be_read"]


class History:
    """Between two steps of weighing others may add to it."""

    def __init__(
        self,
        *,
        model: str,
        meter: Meter,
        format: Format | None,  # noqa: A002
        system: object,
        tools: Sequence[object],
    ) -> None:
        self.model = model
        self.system, self.tools = system, tuple(tools)
        self.entries: tuple[Entry, ...] = ()
        """What is weighed."""
        self.coming: list[Coming] = []
        """What is not yet."""
        self.sent = 0
        """How many of the entries went out the last time; none where that were others."""
        self.anchored: Anchored | None = None
        self._meter = meter
        self._format = format
        self._scale: Scale | None = None
        self._fixed: Fixed | None = None

    @property
    def messages(self) -> tuple[object, ...]:
        return tuple(entry.native for entry in (*self.entries, *self.coming))

    @property
    def ids(self) -> list[str]:
        """Under which a session's file has them; it has none of what only stands in for something that it lost."""
        return [one.record for one in (*self.entries, *self.coming) if one.record is not None]

    def instruct(self, system: object) -> None:
        if system != self.system:
            self.system, self._fixed = system, None

    def offer(self, tools: Sequence[object]) -> None:
        if tuple(tools) != self.tools:
            self.tools, self._fixed = tuple(tools), None

    def see(self, news: News) -> None:
        """Takes in what a file holds; what is known already stays the same object."""
        held: dict[str | None, object] = {}
        if news.afresh:
            both = (*self.entries, *self.coming)
            held = {one.record: one.native for one in both if one.record and one.record not in news.retold}
            self.entries, self.coming, self.anchored, self.sent = (), [], None, 0
        self.coming += [replace(one, native=held.get(one.record, one.native)) for one in news.messages]

    def is_answer(self, native: object) -> bool:
        """What the model said could be asked for again; what the user said could not."""
        written = self._format or detect_messages((native,), model=self.model)
        return read_message(native, written).role == "assistant"

    @property
    def scale(self) -> Scale:
        return self._scale or self._told_anew()

    def _told_anew(self) -> Scale:
        """A format that nobody said is told from the messages, and again when there are more."""
        written = self._format or detect_messages(self.messages, model=self.model)
        if self._scale is None or self._scale.format is not written:
            again = [_coming(entry) for entry in self.entries]
            self.entries, self.coming = (), [*again, *self.coming]
            self.anchored, self._fixed, self.sent = None, None, 0
            self._scale = Scale(self._meter, self.model, written)
        return self._scale

    def weigh(self) -> Steps[None]:
        """Weighs what came, and what is sent along with every request where that may have changed.

        Between two steps others may add, weigh or instruct; what was weighed of a history that is no longer that one
        is put away.
        """
        while self.coming:
            scale, entries, coming = self._told_anew(), self.entries, list(self.coming)
            grown = yield from scale.grown(entries, [one.native for one in coming])
            if self.entries is entries and self.coming[: len(coming)] == coming:
                self._take(grown, coming)
        while self._fixed is None:
            scale, system, tools = self.scale, self.system, self.tools
            fixed = yield from scale.fixed(system, tools, self.entries)
            if self._scale is scale and self.system is system and self.tools is tools:
                self._fixed = fixed

    def _take(self, grown: tuple[Entry, ...], coming: Sequence[Coming]) -> None:
        known = len(self.entries)
        fresh = tuple(map(_known, grown[known:], coming))
        self.entries, self.coming = (*grown[:known], *fresh), self.coming[len(coming) :]
        if any(changes_framing(entry.message) for entry in fresh):
            self._fixed = None

    @property
    def fixed(self) -> Fixed:
        """When all is weighed."""
        assert self._fixed is not None
        return self._fixed

    @property
    def bare(self) -> int:
        """What a request without any message would be, as the provider counts: what it adds out of sight is no less
        when messages are let go."""
        return self.fixed.total.tokens if self.anchored is None else self.anchored.weigh(self.fixed, ()).tokens

    def usage(self, entries: Sequence[Entry], options: Options, learnt: int | None) -> ContextUsage:
        """When all is weighed. A provider that refused knows its window better than whoever said that it is larger."""
        said = options.context_window
        held = replace(options, context_window=min(said, learnt)) if said and learnt else options
        return usage_of(self.scale, self.fixed, entries, held, anchored=self.anchored, learnt=learnt)

    def report(self, usage: Usage, sent: int, *, is_next: bool) -> None:
        """Takes what the provider said of the first entries; `is_next` where nothing but its answer followed them."""
        self.anchored = observe(
            self.scale,
            usage,
            fixed=self.fixed,
            sent=self.entries[:sent],
            answer=self.entries[sent:] if is_next else (),
            before=self.anchored,
        )

    def since(self, snapshot: Sequence[Entry]) -> tuple[Entry, ...] | None:
        """What was added to a history; None where it is no longer that one, for the file was read anew meanwhile."""
        same = map(_is_same, self.entries, snapshot)
        return self.entries[len(snapshot) :] if len(self.entries) >= len(snapshot) and all(same) else None


def _known(entry: Entry, coming: Coming) -> Entry:
    kind = entry.kind if coming.kind == "message" else coming.kind
    return replace(entry, pinned=coming.pinned, kind=kind, record=coming.record)


def _coming(entry: Entry) -> Coming:
    return Coming(native=entry.native, pinned=entry.pinned, kind=entry.kind, record=entry.record)


def _is_same(entry: Entry, other: Entry) -> bool:
    return entry.native is other.native


def refuse_what_cannot_be_read(messages: Sequence[object]) -> None:
    """Before it is part of the history, which could not be sent with it."""
    for one in messages:
        if isinstance(one, list | tuple):
            raise InvalidArguments("a list of messages was given as one message", suggestion="add(*messages)")
        if not isinstance(one, str):
            plain(one)
