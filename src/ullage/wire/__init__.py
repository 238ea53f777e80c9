"""How does MCP look, from both sides?"""

from .bearer import TOKENS_VARIABLE, Tokens
from .http import Address, http_app, listen, serve_http
from .profile import Identity, Profile, Profiles, single
from .serve import user_name
from .stdio import serve_stdio
from .supervise import Health, Host, Supervised
from .upstream import Upstream, open_upstream

__all__ = [
    "TOKENS_VARIABLE",
    "Address",
    "Health",
    "Host",
    "Identity",
    "Profile",
    "Profiles",
    "Supervised",
    "Tokens",
    "Upstream",
    "http_app",
    "listen",
    "open_upstream",
    "serve_http",
    "serve_stdio",
    "single",
    "user_name",
]
