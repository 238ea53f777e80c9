"""Client connections to MCP servers over stdio and HTTP, for each protocol era."""

from .child_env import ChildEnvironment, WithheldVariables, redacted, secrets_of
from .rpc_peer import Unsent
from .server_connection import ServerConnection, era_of
from .upstream import Stillborn, Upstream, open_upstream

__all__ = [
    "ChildEnvironment",
    "ServerConnection",
    "Stillborn",
    "Unsent",
    "Upstream",
    "WithheldVariables",
    "era_of",
    "open_upstream",
    "redacted",
    "secrets_of",
]
