"""Serves a source as an MCP server over stdio or HTTP."""

from .address import Address, listen
from .bearer import TOKENS_VARIABLE, Tokens
from .http import http_app, serve_http
from .profile import Identity, Profile, Profiles, single
from .serve import Presentation, user_name
from .shutdown import Shutdown
from .stdio import serve_stdio

__all__ = [
    "TOKENS_VARIABLE",
    "Address",
    "Identity",
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
    "user_name",
]
