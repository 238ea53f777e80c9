"""Serves a source as an MCP server over stdio or HTTP."""

from .http_auth import TOKENS_VARIABLE, Address, Tokens, listen
from .http_auth import Page as Page
from .http_entry import http_app, serve_http
from .request_handlers import Identity, Presentation, Profile, Profiles, Shutdown, single
from .stdio import serve_stdio

__all__ = [
    "TOKENS_VARIABLE",
    "Address",
    "Identity",
    "Page",
    "Presentation",
    "Profile",
    "Profiles",
    "Shutdown",
    "Tokens",
    "http_app",
    "listen",
    "serve_http",
    "serve_stdio",
    "single",
]
