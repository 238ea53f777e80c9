"""The Model Context Protocol (MCP), server and client side."""

from .jsonrpc import HANDSHAKE_VERSIONS, MODERN_VERSIONS, encode_line
from .serve import (
    TOKENS_VARIABLE,
    Address,
    Identity,
    Page,
    Presentation,
    Profile,
    Profiles,
    Shutdown,
    Tokens,
    http_app,
    listen,
    serve_http,
    serve_stdio,
    single,
)
from .supervise import Health, Host, Supervised
from .upstream import ChildEnvironment, Upstream, WithheldVariables, open_upstream, redacted, secrets_of

__all__ = [
    "HANDSHAKE_VERSIONS",
    "MODERN_VERSIONS",
    "TOKENS_VARIABLE",
    "Address",
    "ChildEnvironment",
    "Health",
    "Host",
    "Identity",
    "Page",
    "Presentation",
    "Profile",
    "Profiles",
    "Shutdown",
    "Supervised",
    "Tokens",
    "Upstream",
    "WithheldVariables",
    "encode_line",
    "http_app",
    "listen",
    "open_upstream",
    "redacted",
    "secrets_of",
    "serve_http",
    "serve_stdio",
    "single",
]
