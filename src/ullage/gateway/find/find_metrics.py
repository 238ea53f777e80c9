"""Token counts of searches and tool lists, and their ledger entries.

Counts with the tokenizer of the caller's reference model, keeps what a client's requests carry with and without
Ullage, and records searches and lists in the ledger. Savings are defined in `find_reply`.
"""

import hashlib
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio.to_thread

from ullage import ledger
from ullage.thread_pacing import run_in_worker
from ullage.tokens import Count, Meter
from ullage.tool import Caller, Listing, Tool

from ..merge.tool_view import Member, View
from ..reply_metadata import ASSUMED
from ..tool_source import definition_text
from .find_reply import Carried, Net, Savings
from .find_settings import OWN_SERVER, Surroundings, instructions_of
from .tool_forms import FIND
from .tool_index import Shelf

if TYPE_CHECKING:
    from .find_reply import Found, Weigh, WeighJoined

__all__ = ["Figures"]

_MODELS = 20
"""Most models for which figures are kept."""
_MOST_DUE = 500
"""Most sessions whose definitions are recorded together: fewer than are remembered."""


class Figures:
    """The token counts of one `Find`."""

    def __init__(self, meter: Meter, shelf: Shelf, around: Surroundings) -> None:
        self._meter = meter
        self._shelf = shelf
        self._around = around
        self._savings = Savings()
        self._carried: dict[str, tuple[tuple[str, ...], Carried]] = {}
        self._due: dict[tuple[str, str], Caller] = {}
        """Callers, by session, with requests whose definitions are not in the ledger yet."""

    def weigh(self, caller: Caller) -> "Weigh":
        """Return a function that counts tokens for the caller's reference model."""
        return partial(self._count, self.model(caller))

    def weigh_joined(self, caller: Caller) -> "WeighJoined":
        """Return a function that counts texts as if joined, for the caller's reference model."""
        model = self.model(caller)
        return lambda texts: self._meter.count_joined(texts, model)

    async def baseline(self, view: View, caller: Caller) -> int:
        """Return the tokens of all definitions that a search covers, including Ullage's own, which it may return
        too."""
        return sum(await self._weights(view, caller))

    async def _weights(self, view: View, caller: Caller) -> tuple[int, int]:
        model = self.model(caller)
        return await self._shelf.weights(view, model, self.weigh(caller), stored=model == ASSUMED.counted_as)

    async def carry(self, view: View, listing: Listing, instructions: str, caller: Caller) -> Carried:
        """Return what each request of a client carries with this list."""
        weigh, model, key = (
            self.weigh(caller),
            self.model(caller),
            (view.revision, listing.revision, instructions),
        )
        known = self._carried.get(model)
        if known is None or known[0] != key:
            count = partial(self._count_carried, view, listing, instructions, model)
            carried = await run_in_worker(count, items=len(view.entries))
            if carried is None:
                carried = Carried(
                    without=(await self._weights(view, caller))[0],
                    surface=await anyio.to_thread.run_sync(
                        lambda: sum(weigh(definition_text(tool)).tokens for tool in listing.tools)
                    ),
                    instructions=weigh(instructions).tokens,
                )
            # Earlier requests carried what was listed before.
            self.record_due_definitions()
            if len(self._carried) >= _MODELS:
                self._carried.clear()
            known = self._carried[model] = key, carried
        return known[1]

    def _count_carried(self, view: View, listing: Listing, instructions: str, model: str) -> Carried | None:
        """Count what the client's program sends with and without Ullage; None where that is not known."""
        members, tools = dict[str, Member](), dict[str, list[Tool]]()
        for entry in view.entries:
            if not entry.member.own:
                members[entry.server] = entry.member
                tools.setdefault(entry.server, []).append(replace(entry.tool, name=entry.original))
        write = self._around.request_texts
        without = write((name, tools[name], instructions_of(member) or "") for name, member in members.items())
        surface, whole = (write([(OWN_SERVER, listing.tools, said)]) for said in ("", instructions))
        if without is None or surface is None or whole is None:
            return None
        tokens, bare, dressed = (self._count_kept("".join(texts), model) for texts in (without, surface, whole))
        return Carried(without=tokens, surface=bare, instructions=dressed - bare)

    def _count_kept(self, text: str, model: str) -> int:
        """Count a text that is the same at most starts, or return its stored count."""
        cache, key = self._around.counts, hashlib.sha256(f"{model}\n{text}".encode()).hexdigest()
        stored = None if cache is None else cache.load([key]).get(key)
        known = None if stored is None else stored.get("tokens")
        if isinstance(known, int):
            return known
        tokens = self._count(model, text).tokens
        if cache is not None:
            cache.save({key: {"tokens": tokens}})
        return tokens

    def called(self, caller: Caller) -> None:
        """Count a call, which is one more request of its session."""
        known = self._carried.get(self.model(caller))
        self._savings.called(_session(caller), known[1] if known else None)

    def replied(self, caller: Caller, tokens: int, *, is_recorded: bool = False) -> None:
        """Count one of Ullage's own replies, which every later request of its session carries.

        With `is_recorded` the reply's own ledger entry charges it for the first of them.
        """
        self._savings.replied(_session(caller), tokens, is_recorded=is_recorded)

    def net(self, caller: Caller, carried: Carried) -> Net:
        """Return the net savings of a caller's session."""
        return self._savings.net(_session(caller), carried)

    def record_search(self, caller: Caller, found: "Found", milliseconds: float) -> None:
        """Record a search in the ledger."""
        self._around.recorder.record(
            ledger.Entry(
                time=self._around.now(),
                kind="search",
                principal=caller.principal,
                session=caller.session,
                session_inferred=caller.session_inferred,
                client=caller.client,
                tool=FIND.name,
                model=self._around.reference(caller).model,
                tokens=found.tokens.tokens,
                method=found.tokens.method,
                saved_tokens=-found.tokens.tokens,
                milliseconds=milliseconds,
                detail={
                    "covered_tokens": found.metrics.baseline_tokens,
                    "returned_tokens": found.metrics.returned_tokens,
                },
            )
        )

    def note_definitions(self, caller: Caller) -> None:
        """Note that a session made a request, for the next `record_due_definitions`."""
        self._due[_session(caller)] = caller
        if len(self._due) > _MOST_DUE:
            self.record_due_definitions()

    def record_due_definitions(self) -> list[Caller]:
        """Record what the noted sessions' requests carried, an entry for each session.

        Returns:
            The callers whose definitions are not counted yet; they stay noted.
        """
        due, self._due = self._due, {}
        for session, caller in due.items():
            known = self._carried.get(self.model(caller))
            if known is None:
                self._due[session] = caller
            else:
                self.record_definitions(caller, known[1])
        return list(self._due.values())

    def forget_carried(self) -> None:
        """Forget what requests carry, after the tools changed."""
        self.record_due_definitions()
        self._carried.clear()

    def record_definitions(self, caller: Caller, carried: Carried) -> None:
        """Record what the session's requests carried since the last entry: Ullage's tools, instructions and replies,
        and what they would have carried without Ullage."""
        requests, replies = self._savings.take_unrecorded(_session(caller))
        if not requests and not replies:
            return
        tokens, without = requests * (carried.surface + carried.instructions) + replies, requests * carried.without
        self._around.recorder.record(
            ledger.Entry(
                time=self._around.now(),
                kind="definitions",
                principal=caller.principal,
                session=caller.session,
                session_inferred=caller.session_inferred,
                client=caller.client,
                model=self._around.reference(caller).model,
                tokens=tokens,
                method=self.weigh(caller)(" ").method,
                baseline_tokens=without,
                saved_tokens=without - tokens,
                detail={"requests": requests, "replies": replies},
            )
        )

    def model(self, caller: Caller) -> str:
        """Return the caller's reference model, which texts are counted for."""
        return self._around.reference(caller).counted_as

    def _count(self, model: str, text: str) -> Count:
        return self._meter.count(text, model)


def _session(caller: Caller) -> tuple[str, str]:
    return caller.principal, caller.session
