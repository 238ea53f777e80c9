"""Serves a source as an MCP server over stdio or HTTP."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

from .http_auth import TOKENS_VARIABLE, Address, Tokens, listen
from .http_auth import Page as Page
from .request_handlers import Identity, Presentation, Profile, Profiles, Shutdown, single
from .stdio import serve_stdio

if TYPE_CHECKING:
    from .asgi_app import http_app, serve_http
else:
    __getattr__ = import_on_use(__name__, {"http_app": "asgi_app", "serve_http": "asgi_app"})

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
