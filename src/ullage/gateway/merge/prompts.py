"""Which member's prompt has this name?

Prompts of all members in one list, named as tools are (`names`), found in the same spellings (`spelling`).
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypeGuard, cast

from ullage.errors import ToolChanged, UnknownResource
from ullage.tool import Block, JsonObject, PromptMessages, PromptRequest, PromptSource

from ..baseline import DefinitionChange, tool_changed
from ..sanitize import restore_arguments, sanitize_item
from ..spawn import Spawn
from .hearing import Question, Round
from .names import NOBODY, Origin, Owned, listed_names, remembered
from .offers import has_prompts, lenient
from .spelling import Book, key
from .view import Member, Missing

__all__ = ["Prompt", "Prompts"]

_Offered = tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt of one member."""

    listed: str
    original: str
    member: Member
    source: PromptSource
    definition: JsonObject
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
        self._made: tuple[object, tuple[Prompt, ...], Book[Prompt]] | None = None
        self._shown: tuple[tuple[Prompt, ...], _Offered] | None = None
        """The prompts, and the list of them as clients see it."""

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
        return self.known()

    def known(self) -> _Offered:
        """The list as far as known, without asking."""
        prompts = self._current()[0]
        if self._shown is None or self._shown[0] is not prompts:
            shown = tuple({**sanitize_item(one.definition)[0], "name": one.listed} for one in prompts)
            self._shown = prompts, shown
        return self._shown[1]

    async def find(self, name: str) -> Prompt:
        found = self._current()[1].find(name)
        if len(found) != 1:
            await self._round.gather(self._patience)
            found = self._current()[1].find(name)
        if len(found) == 1:
            return found[0]
        if not found and (refusal := self._withheld(name)) is not None:
            raise refusal
        options = tuple(one.listed for one in found) or self._current()[1].nearest(name)
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
        originals = sanitize_item(found.definition)[1]
        arguments = cast("Mapping[str, str]", restore_arguments(request.arguments, originals))
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

    def _current(self) -> tuple[tuple[Prompt, ...], Book[Prompt]]:
        heard = self._round.known()
        if self._made is None or self._made[0] != heard:
            prompts = _named(heard, self._given)
            self._given = remembered(self._given, {(one.server, one.original): one.listed for one in prompts})
            self._made = heard, prompts, Book(prompts)
        return self._made[1:]


def _named(heard: tuple[tuple[Member, _Offered], ...], given: Mapping[str, Origin]) -> tuple[Prompt, ...]:
    owned = (
        Owned(server=member.name, prefix=member.prefix, names=tuple(dict.fromkeys(map(_name, offered))))
        for member, offered in heard
    )
    names = listed_names(owned, given=given)
    found = {
        (member.name, _name(one)): Prompt(
            listed=names[member.name, _name(one)],
            original=_name(one),
            member=member,
            source=member.source,
            definition=one,
        )
        for member, offered in heard
        if has_prompts(member.source)
        for one in reversed(offered)
    }
    order = [(member.name, name) for member, offered in heard for name in dict.fromkeys(map(_name, offered))]
    return tuple(found[place] for place in order)


def _name(definition: JsonObject) -> str:
    return str(definition.get("name"))


def _prompts_of(member: Member) -> Question[_Offered] | None:
    return Question(lenient(member.source.prompts)) if has_prompts(member.source) else None
