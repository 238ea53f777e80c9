"""How does MCP look, from both sides?"""

from .http import Address, listen, serve_http
from .serve import Identity
from .stdio import serve_stdio

__all__ = ["Address", "Identity", "listen", "serve_http", "serve_stdio"]
