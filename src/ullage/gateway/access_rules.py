"""Enforces the user's allow, ask and deny rules on tool calls.

Allowed tools pass. Denied tools are refused, and the view neither lists nor finds them. For tools under `ask`, the
user is asked before every call; where the client cannot ask, the call is refused. The rules are the same for every
caller.
"""

import json
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import UTC, datetime

from ullage.errors import ClientCannot, Denied, ProtocolError
from ullage.ledger import AuditEvent
from ullage.tool import Call, Json, JsonObject, Reply

from .merge.tool_view import Entry, MergedSource, MergedWrapper

__all__ = ["Consent", "Guarded", "consent_form"]

_LONGEST_VALUE = 160
_MOST_ARGUMENTS = 12
_MOST_REMEMBERED = 256
_FORM: dict[str, Json] = {
    "type": "object",
    "properties": {"allow": {"type": "boolean", "title": "Allow this call", "default": False}},
    "required": ["allow"],
}
"""Schema of the elicitation: one checkbox, which every client can show."""


class Consent:
    """Asks the user about calls of tools under `ask`.

    A call that needs further input from the client (`Reply.needs`) continues in a second round; that round is not asked
    about again.
    """

    def __init__(self) -> None:
        self._allowed: OrderedDict[Hashable, None] = OrderedDict()

    async def obtain(self, entry: Entry, call: Call) -> bool:
        """Ask the user about a call, unless it continues one that was allowed. Return whether the user was asked.

        Raises:
            Denied: The user did not allow the call, or cannot be asked.
        """
        if entry.access != "ask":
            return False
        if call.state is not None and self._allowed.pop(_call_identity(entry, call, call.state), self) is None:
            return False
        if call.ask is None:
            raise _not_allowed(entry, "and nobody can be asked over this connection")
        try:
            answer = await call.ask("elicitation/create", consent_form(entry, call.arguments))
        except ClientCannot as error:
            raise _not_allowed(entry, "and this client cannot ask them") from error
        except ProtocolError as error:
            raise _not_allowed(entry, "and this client did not ask them") from error
        content = answer.get("content")
        if answer.get("action") != "accept" or not isinstance(content, dict) or content.get("allow") is not True:
            raise _not_allowed(entry, "and they did not")
        return True

    def note(self, entry: Entry, call: Call, reply: Reply) -> None:
        """Remember an allowed call whose reply asks for further input."""
        if entry.access == "ask" and reply.needs is not None and reply.needs.state is not None:
            self._allowed[_call_identity(entry, call, reply.needs.state)] = None
            if len(self._allowed) > _MOST_REMEMBERED:
                self._allowed.popitem(last=False)


class Guarded(MergedWrapper):
    """Merged sources with the user's rules enforced."""

    def __init__(self, inner: MergedSource, audit: Callable[[AuditEvent], None] = lambda _: None) -> None:
        """Create the wrapper. `audit` is called with each call that the user allowed."""
        self.inner = inner
        self._consent = Consent()
        self._audit = audit

    async def call_entry(self, entry: Entry, call: Call) -> Reply:
        """Call a tool after its rules are applied.

        Raises:
            Denied: The user did not allow the call, or cannot be asked.
        """
        if await self._consent.obtain(entry, call):
            self._audit(
                AuditEvent(
                    time=datetime.now(UTC),
                    kind="approval",
                    principal=call.caller.principal,
                    session=call.caller.session,
                    client=call.caller.client,
                    server=entry.server,
                    subject=entry.original,
                    reason="the user allowed this call",
                )
            )
        reply = await self.inner.call_entry(entry, call)
        self._consent.note(entry, call, reply)
        return reply


def _call_identity(entry: Entry, call: Call, state: str) -> Hashable:
    """Everything about a call that stays the same in its next round."""
    arguments = json.dumps(dict(call.arguments), sort_keys=True)
    return call.caller.principal, call.caller.session, entry.server, entry.original, arguments, state


def _not_allowed(entry: Entry, why: str) -> Denied:
    error = Denied(
        f"`{entry.listed}` is called only when the user agrees, {why}",
        suggestion=(
            f"Do without it, or tell the user: `{entry.original}` of server `{entry.server}` is under `ask` in their "
            "rules, and under `allow` it would pass."
        ),
    )
    error.tool = entry.server, entry.original
    return error


def consent_form(entry: Entry, arguments: JsonObject) -> JsonObject:
    """The parameters of the `elicitation/create` request that asks the user to allow a call."""
    lines = [f"Allow {_printable(entry.original)} of server {_printable(entry.server)} to be called?"]
    for name, value in list(arguments.items())[:_MOST_ARGUMENTS]:
        lines.append(f"{_printable(name)}: {_printable(json.dumps(value, ensure_ascii=False))}")
    if len(arguments) > _MOST_ARGUMENTS:
        lines.append(f"and {len(arguments) - _MOST_ARGUMENTS} more arguments")
    return {"message": "\n".join(lines), "requestedSchema": _FORM}


def _printable(text: str) -> str:
    """The text shortened to one line, with control and bidirectional characters escaped."""
    cut = len(text) - _LONGEST_VALUE
    kept = text if cut <= 0 else f"{text[: _LONGEST_VALUE // 2]}[…{cut} characters…]{text[-_LONGEST_VALUE // 2 :]}"
    return "".join(letter if letter.isprintable() else f"\\u{ord(letter):04x}" for letter in kept)
