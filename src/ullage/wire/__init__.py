"""The Model Context Protocol (MCP), server and client side."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

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
    listen,
    serve_stdio,
    single,
)
from .supervise import Health, Host, Supervised
from .upstream import ChildEnvironment, Upstream, WithheldVariables, open_upstream, redacted, secrets_of

if TYPE_CHECKING:
    from .serve import http_app, serve_http
else:
    __getattr__ = import_on_use(__name__, {"http_app": "serve", "serve_http": "serve"})

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
