"""Which member's prompt has this name?

Prompts of all members in one list, named as tools are (`names`), found in the same spellings (`spelling`).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard, cast

import anyio
import anyio.to_thread

from ullage.errors import ToolChanged, UnknownResource
from ullage.tool import Block, JsonObject, PromptMessages, PromptRequest, PromptSource

from ..baseline import DefinitionChange, tool_changed
from ..sanitize import restore_arguments, sanitize_item
from ..spawn import Spawn
from .hearing import Question, Round, are_same_answers
from .names import NOBODY, Origin, Owned, listed_names, remembered
from .offers import has_prompts, lenient
from .spelling import Book, key
from .view import Member, Missing, only_unprefixed

__all__ = ["Prompt", "Prompts"]

_Offered = tuple[JsonObject, ...]
_Heard = tuple[tuple[Member, _Offered], ...]
_AT_ONCE = 200
"""Prompts of which a list is made at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt of one member."""

    listed: str
    original: str
    member: Member
    source: PromptSource
    definition: JsonObject
    """As clients see it."""
    originals: Mapping[str, str]
    """Names with invisible characters, by the escaped form that clients see."""
    aliases: tuple[str, ...] = ()

    @property
    def server(self) -> str:
        return self.member.name


class WithholdingPrompts(Protocol):
    """A source that leaves out prompts whose definitions are not the accepted ones."""

    def withheld_prompts(self) -> Mapping[str, DefinitionChange]: ...


def _withholds_prompts(source: object) -> TypeGuard[WithholdingPrompts]:
    return callable(getattr(source, "withheld_prompts", None))


class Prompts:
    """The prompts of all members."""

    def __init__(self, changed: Callable[[], None], spawn: Spawn | None, patience: float) -> None:
        self._round: Round[_Offered] = Round(_prompts_of, changed, spawn, patience)
        self._patience = patience
        self._given: Mapping[str, Origin] = NOBODY
        self._made: _Made | None = None
        self._making = anyio.Lock()

    def replace(self, members: tuple[Member, ...]) -> None:
        self._round.replace(members)

    def outdate(self, server: str) -> bool:
        """Whether the member has to be asked again."""
        return self._round.outdate(server)

    def ask_in_background(self) -> bool:
        return self._round.ask_in_background()

    def failed(self) -> tuple[Missing, ...]:
        return self._round.failed()

    async def prompts(self) -> _Offered:
        await self._round.gather(self._patience)
        await self.make_aside()
        return self.known()

    def known(self) -> _Offered:
        """The list as far as known, without asking."""
        return self._current().shown

    def is_long(self) -> bool:
        """Whether the list has to be made anew from so many prompts that others must not wait for it."""
        heard = self._round.known()
        if self._made is not None and self._made.is_of(heard):
            return False
        return sum(len(offered) for _, offered in heard) > _AT_ONCE

    async def make_aside(self) -> None:
        """Makes a long list in a worker thread, so that `known` finds it made."""
        while self.is_long():
            async with self._making:
                if self.is_long():
                    self._keep(await anyio.to_thread.run_sync(_make, self._round.known(), self._given))

    async def find(self, name: str) -> Prompt:
        await self.make_aside()
        found = self._current().book.find(name)
        if len(found) != 1:
            await self._round.gather(self._patience)
            await self.make_aside()
            found = self._current().book.find(name)
        if len(found) == 1:
            return found[0]
        if not found and (refusal := self._withheld(name)) is not None:
            raise refusal
        options = tuple(one.listed for one in found) or self._current().book.nearest(name)
        owner = None if options else only_unprefixed([member for member, _ in self._round.known()])
        if owner is not None and has_prompts(owner.source):
            # Perhaps it is not listed; if there is none, the server's own error is the client's.
            return Prompt(listed=name, original=name, member=owner, source=owner.source, definition={}, originals={})
        raise UnknownResource(
            f"no prompt is called `{name[:100]}`", suggestion="`prompts/list` shows what there is.", options=options
        )

    def _withheld(self, name: str) -> ToolChanged | None:
        """Why no prompt of that name can be had, where one is withheld because its definition changed."""
        for member, _ in self._round.known():
            if not _withholds_prompts(member.source):
                continue
            for original, change in member.source.withheld_prompts().items():
                listed = f"{member.prefix}__{original}" if member.prefix else original
                if key(name) in (key(original), key(listed)):
                    return tool_changed(listed, change)
        return None

    async def prompt(
        self, request: PromptRequest, blocks_shown: Callable[[str, tuple[Block, ...]], Awaitable[tuple[Block, ...]]]
    ) -> PromptMessages:
        found = await self.find(request.name)
        arguments = cast("Mapping[str, str]", restore_arguments(request.arguments, found.originals))
        answer = await found.source.prompt(replace(request, name=found.original, arguments=arguments))
        # One message has one block. Those without one keep their place.
        contents = [one.get("content") for one in answer.messages]
        blocks = tuple(content if isinstance(content, dict) else {} for content in contents)
        shown = await blocks_shown(found.server, blocks)
        messages = (
            one if new is old else {**one, "content": dict(new)}
            for one, old, new in zip(answer.messages, blocks, shown, strict=True)
        )
        return replace(answer, messages=tuple(messages))

    def _current(self) -> "_Made":
        heard = self._round.known()
        if self._made is None or not self._made.is_of(heard):
            return self._keep(_make(heard, self._given))
        return self._made

    def _keep(self, made: "_Made") -> "_Made":
        self._given = remembered(self._given, {(one.server, one.original): one.listed for one in made.prompts})
        self._made = made
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class _Made:
    """The prompts, the list of them as clients see it, and what they were made of."""

    heard: _Heard
    prompts: tuple[Prompt, ...]
    book: Book[Prompt]
    shown: _Offered

    def is_of(self, heard: _Heard) -> bool:
        """Whether nothing was heard since; looks at lists, not at what is in them."""
        return are_same_answers(self.heard, heard)


def _make(heard: _Heard, given: Mapping[str, Origin]) -> _Made:
    prompts = _named(heard, given)
    book = Book(prompts)
    book.find("")
    return _Made(heard=heard, prompts=prompts, book=book, shown=tuple(one.definition for one in prompts))


def _named(heard: _Heard, given: Mapping[str, Origin]) -> tuple[Prompt, ...]:
    owned = (
        Owned(server=member.name, prefix=member.prefix, names=tuple(dict.fromkeys(map(_name, offered))))
        for member, offered in heard
    )
    names = listed_names(owned, given=given)
    found: dict[Origin, Prompt] = {}
    for member, offered in heard:
        for one in reversed(offered) if has_prompts(member.source) else ():
            listed = names[member.name, _name(one)]
            safe, originals = sanitize_item(one)
            found[member.name, _name(one)] = Prompt(
                listed=listed,
                original=_name(one),
                member=member,
                source=cast("PromptSource", member.source),
                definition={**safe, "name": listed},
                originals=originals,
            )
    order = [(member.name, name) for member, offered in heard for name in dict.fromkeys(map(_name, offered))]
    return tuple(found[place] for place in order)


def _name(definition: JsonObject) -> str:
    return str(definition.get("name"))


def _prompts_of(member: Member) -> Question[_Offered] | None:
    return Question(lenient(member.source.prompts)) if has_prompts(member.source) else None
