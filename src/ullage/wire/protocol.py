"""Names and numbers of the Model Context Protocol, as plain constants.

They are the same as the SDK's, which takes most of a second to import; a test compares the two.
"""

from typing import Final

__all__ = [
    "CAPABILITIES_KEY",
    "CLIENT_INFO_KEY",
    "CONNECTION_CLOSED",
    "HANDSHAKE_VERSIONS",
    "HEADER_MISMATCH",
    "LATEST_HANDSHAKE_VERSION",
    "LATEST_MODERN_VERSION",
    "LOG_LEVEL_KEY",
    "METHOD_HEADER",
    "MODERN_VERSIONS",
    "NAME_HEADER",
    "RESERVED_PREFIX",
    "SERVER_INFO_KEY",
    "SUBSCRIPTION_KEY",
    "UNSUPPORTED_VERSION",
    "VERSION_HEADER",
    "VERSION_KEY",
]

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions that are agreed on by `initialize`, oldest first."""
MODERN_VERSIONS: Final = ("2026-07-28",)
"""Stateless revisions: every request carries its version and the client's capabilities in `_meta`."""
LATEST_HANDSHAKE_VERSION: Final = HANDSHAKE_VERSIONS[-1]
LATEST_MODERN_VERSION: Final = MODERN_VERSIONS[-1]

RESERVED_PREFIX: Final = "io.modelcontextprotocol/"
"""Begins the keys of `_meta` that the protocol keeps for itself; they are about one hop."""
VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO_KEY: Final = "io.modelcontextprotocol/clientInfo"
SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"

VERSION_HEADER: Final = "mcp-protocol-version"
METHOD_HEADER: Final = "mcp-method"
NAME_HEADER: Final = "mcp-name"

CONNECTION_CLOSED: Final = -32000
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022
