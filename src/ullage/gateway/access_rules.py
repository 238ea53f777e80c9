"""Enforces allow, ask and deny rules on tool calls.

By the user's rules for each server: allowed tools pass, denied ones are refused, and for the rest a person is
asked, each time. Where nobody can be asked, nobody has allowed it. Denied tools are neither listed nor found, which
`view` sees to. Who is calling makes no difference here.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Protocol

from ullage.errors import ClientCannot, Denied, ProtocolError
from ullage.tool import Call, Json, JsonObject, Listener, Listing, Reply

from .merge.tool_view import Entry, View
from .tool_source import Passing

__all__ = ["Consent", "Guardable", "Guarded", "asking"]

_LONGEST_VALUE = 160
_MOST_ARGUMENTS = 12
_MOST_REMEMBERED = 256
_FORM: dict[str, Json] = {
    "type": "object",
    "properties": {"allow": {"type": "boolean", "title": "Allow this call", "default": False}},
    "required": ["allow"],
}
"""One box to tick: every client can show that."""


class Guardable(Protocol):
    """What `Merge` offers, as far as it matters here."""

    async def tools(self) -> Listing: ...

    async def view(self, wait: float = 0.0) -> View: ...

    async def find(self, name: str, server: str | None = None) -> Entry: ...

    async def call_entry(self, entry: Entry, call: Call) -> Reply: ...

    def watch(self, listener: Listener) -> Callable[[], None]: ...

    async def close(self) -> None: ...


class Consent:
    """Asks a person about calls that are under `ask`; one that comes back needing something goes on without being
    asked about again."""

    def __init__(self) -> None:
        self._allowed: OrderedDict[Hashable, None] = OrderedDict()

    async def obtain(self, entry: Entry, call: Call) -> None:
        """Raises `Denied` where nobody has allowed it."""
        if entry.access == "ask" and not self._goes_on(entry, call):
            await _ask(entry, call)

    def note(self, entry: Entry, call: Call, reply: Reply) -> None:
        """What came of the call."""
        if entry.access == "ask" and reply.needs is not None and reply.needs.state is not None:
            self._remember(_sign(entry, call, reply.needs.state))

    def _goes_on(self, entry: Entry, call: Call) -> bool:
        """Whether it is the next round of a call that was allowed: the same in all but the answers."""
        if call.state is None:
            return False
        return self._allowed.pop(_sign(entry, call, call.state), self) is None

    def _remember(self, sign: Hashable) -> None:
        self._allowed[sign] = None
        if len(self._allowed) > _MOST_REMEMBERED:
            self._allowed.popitem(last=False)


class Guarded(Passing[Guardable]):
    """Sources merged, with the user's rules kept."""

    def __init__(self, inner: Guardable) -> None:
        self.inner = inner
        self._consent = Consent()

    async def tools(self) -> Listing:
        return await self.inner.tools()

    async def view(self, wait: float = 0.0) -> View:
        return await self.inner.view(wait)

    async def find(self, name: str, server: str | None = None) -> Entry:
        return await self.inner.find(name, server)

    async def call(self, call: Call) -> Reply:
        entry = await self.inner.find(call.tool)
        await self._consent.obtain(entry, call)
        reply = await self.inner.call_entry(entry, call)
        self._consent.note(entry, call, reply)
        return reply

    def watch(self, listener: Listener) -> Callable[[], None]:
        return self.inner.watch(listener)

    async def close(self) -> None:
        await self.inner.close()


def _sign(entry: Entry, call: Call, state: str) -> Hashable:
    arguments = json.dumps(dict(call.arguments), sort_keys=True)
    return call.caller.principal, call.caller.session, entry.server, entry.original, arguments, state


async def _ask(entry: Entry, call: Call) -> None:
    if call.ask is None:
        raise _refused(entry, "and nobody can be asked over this connection")
    try:
        answer = await call.ask("elicitation/create", asking(entry, call.arguments))
    except ClientCannot as error:
        raise _refused(entry, "and this client cannot ask them") from error
    except ProtocolError as error:
        raise _refused(entry, "and this client did not ask them") from error
    content = answer.get("content")
    if answer.get("action") != "accept" or not isinstance(content, dict) or content.get("allow") is not True:
        raise _refused(entry, "and they did not")


def _refused(entry: Entry, why: str) -> Denied:
    return Denied(
        f"`{entry.listed}` is called only when the user agrees, {why}",
        suggestion=(
            f"Do without it, or tell the user: `{entry.original}` of server `{entry.server}` is under `ask` in their "
            "rules, and under `allow` it would pass."
        ),
    )


def asking(entry: Entry, arguments: JsonObject) -> JsonObject:
    """The form in which a person is asked to allow a call."""
    lines = [f"Allow {_plain(entry.original)} of server {_plain(entry.server)} to be called?"]
    for name, value in list(arguments.items())[:_MOST_ARGUMENTS]:
        lines.append(f"{_plain(name)}: {_plain(json.dumps(value, ensure_ascii=False))}")
    if len(arguments) > _MOST_ARGUMENTS:
        lines.append(f"and {len(arguments) - _MOST_ARGUMENTS} more arguments")
    return {"message": "\n".join(lines), "requestedSchema": _FORM}


def _plain(text: str) -> str:
    """Short, in one line, and without characters that would hide or turn round what is read."""
    cut = len(text) - _LONGEST_VALUE
    kept = text if cut <= 0 else f"{text[: _LONGEST_VALUE // 2]}[…{cut} characters…]{text[-_LONGEST_VALUE // 2 :]}"
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in kept)
