"""Did a request that failed reach the server?

Where it provably did not, the connection says so with this error, and the request may go by another connection. Any
other failure leaves the question open, and nothing is sent twice.
"""

from ullage.errors import SourceFailed

__all__ = ["Unsent"]


class Unsent(SourceFailed):
    """The connection was found dead before anything was sent on it, or was refused by a server that did nothing."""
