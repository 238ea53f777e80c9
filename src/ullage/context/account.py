"""What is said in the place of a head that is let go?

A summary by a model where one is given and answers, a digest where none is given or where the window is full. Beside
either, the identifiers that may be needed again, and how to find the rest. A model that keeps failing rests.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from anyio import get_cancelled_exc_class
from anyio.to_thread import run_sync

from ullage.messages import Text
from ullage.tokens import patiently

from .breaker import Breaker
from .carried import Carried, carried, read_carried
from .digest import digest
from .entry import Entry
from .identifiers import identifier_steps
from .options import DEFAULTS
from .shed import Tier
from .summarizer import Summarizer
from .summary import SummaryFailed, summarise
from .weighing import Scale

__all__ = ["Account", "Teller", "ledger_room"]

_LEDGER, _MOST_LEDGER = 0.12, 6_000
_SUMMARY, _MOST_SUMMARY = 0.08, 4_000
"""The share of the measure, and the tokens at most, of the identifiers and of the summary."""
_NOTHING, _MANY = "-", 10_000
"""What stands in a frame whose own size is wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    text: str | None
    """None where nothing can be said yet."""
    tier: Tier = "summarise"
    warning: str | None = None
    """Why it is not a model's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teller:
    scale: Scale
    summarizer: Summarizer | None
    breaker: Breaker
    generation: int = 1
    """The how-many-th compaction of the history this would be."""
    recalls: bool = False
    """Whether what is let go can be searched."""
    timeout: float = DEFAULTS.summary_timeout
    """Seconds that the summarizer may take for one answer."""

    def room(self, measure: int) -> int:
        """Tokens that an account may have, with what stands around it."""
        frame = self.scale.count(carried("", _NOTHING, self._receipt(_MANY)))
        return ledger_room(measure) + _summary_room(measure) + frame

    async def tell(self, head: Sequence[Entry], beside: Sequence[Entry], *, measure: int, must: bool) -> Account:
        """Of a head, for one who still has what is beside it; `must` where there is no going on without one."""
        room = _summary_room(measure)
        earlier, rest = _earlier(head)
        summary, warning = await self._summary(rest, earlier, room)
        if summary is not None:
            return Account(text=await self._carried(rest, earlier, summary, (beside, measure)))
        if self.summarizer is not None and not must:
            return Account(text=None, warning=warning)
        messages = [entry.message for entry in rest]
        said = await run_sync(partial(digest, messages, room=room, count=self.scale.count, earlier=earlier))
        return Account(text=await self._carried(rest, earlier, said, (beside, measure)), tier="digest", warning=warning)

    async def _carried(
        self, rest: Sequence[Entry], earlier: Carried | None, summary: str, around: tuple[Sequence[Entry], int]
    ) -> str:
        """The summary with the identifiers, which have what it leaves of its room, and with how to find the rest."""
        beside, measure = around
        spare = max(0, _summary_room(measure) - self.scale.count(summary))
        ledger = await patiently(
            identifier_steps(
                [entry.message for entry in rest],
                room=min(_MOST_LEDGER, ledger_room(measure) + spare),
                count=self.scale.count,
                earlier=(earlier.identifiers,) if earlier else (),
                beside=[entry.message for entry in beside],
            )
        )
        return carried(summary, ledger, self._receipt(len(rest)))

    def _receipt(self, messages: int) -> str:
        how = "; recall(query) finds them" if self.recalls else ""
        return f"{messages} messages let go, generation {self.generation}{how}"

    async def _summary(
        self, head: Sequence[Entry], earlier: Carried | None, room: int
    ) -> tuple[str | None, str | None]:
        """A model's summary; else why there is none."""
        if self.summarizer is None:
            return None, None
        if not self.breaker.allows():
            return None, "the head was not summarised: the model that does it failed too often and rests"
        try:
            said = await summarise(
                head,
                earlier,
                self.summarizer,
                count=self.scale.count,
                room=room,
                timeout=self.timeout,
                failures=self.breaker.left,
            )
        except SummaryFailed as failed:
            self.breaker.failed(failed.calls)
            return None, f"the head was not summarised: {failed.reason}"
        except get_cancelled_exc_class():
            # Whoever waits less long than a model that hangs takes would ask it before every call.
            self.breaker.failed()
            raise
        self.breaker.succeeded()
        return said, None


def _earlier(head: Sequence[Entry]) -> tuple[Carried | None, list[Entry]]:
    """What summaries in a head tell, which is brought up to date rather than summarised again, and the rest."""
    told, rest = list[Carried](), list[Entry]()
    for entry in head:
        read = read_carried(_text(entry)) if entry.kind == "summary" else None
        if read is not None:
            told.append(read)
        elif entry.kind != "bridge":
            rest.append(entry)
    whole = Carried("\n\n".join(one.summary for one in told), "\n".join(one.identifiers for one in told))
    return (whole if told else None), rest


def _text(entry: Entry) -> str:
    return "".join(part.text for part in entry.message.parts if isinstance(part, Text))


def ledger_room(measure: int) -> int:
    """Tokens that identifiers may have."""
    return min(_MOST_LEDGER, int(_LEDGER * measure))


def _summary_room(measure: int) -> int:
    return min(_MOST_SUMMARY, int(_SUMMARY * measure))
