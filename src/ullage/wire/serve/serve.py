"""What a server says of itself and lists, for the transports and for a cache of the first answers."""

import os

from ullage.tool import ANONYMOUS

from ..jsonrpc import Message
from ..protocol import MODERN_VERSIONS
from .answering import Answering
from .envelope import Envelope
from .offers import Offers, offers_of
from .profile import Identity, Profile
from .shutdown import Activity

__all__ = ["Presentation", "envelope_of", "user_name"]


def user_name() -> str:
    """The operating system's name for whoever runs this; a number where it has none, as in many containers."""
    # As `getpass.getuser` does, whose import would cost every start some milliseconds.
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if name := os.environ.get(variable):
            return name
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError, OSError):
        return str(os.getuid())


def envelope_of(identity: Identity, offers: Offers) -> Envelope:
    return Envelope(identity.name, identity.version, identity.spoken, offers.capabilities)


class Presentation:
    """The first answers of a server, as plain JSON and without a client.

    They are the results that `serve_stdio` sends for the same profile at the same moment.
    """

    def __init__(self, profile: Profile) -> None:
        offers = offers_of(profile.source)
        self._envelope = envelope_of(profile.identity, offers)
        self._answering = Answering(profile.source, offers, lambda _: ANONYMOUS, Activity())

    def introduction(self, version: str) -> Message:
        """The result of `initialize` in a handshake revision, of `server/discover` in a later one."""
        return self._envelope.discovery() if version in MODERN_VERSIONS else self._envelope.initialization(version)

    async def tools_result(self, *, modern: bool) -> Message:
        """The result of `tools/list`. Raises what the source raises, as an error of the protocol."""
        result: Message = {"tools": await self._answering.tools(modern=modern)}
        return self._envelope.seal("tools/list", result) if modern else result
