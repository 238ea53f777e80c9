"""Client connections to MCP servers over stdio and HTTP, for each protocol era."""

from .child_env import ChildEnvironment, WithheldVariables
from .era import era_of
from .redaction import redacted, secrets_of
from .stillborn import Stillborn
from .unsent import Unsent
from .upstream import Upstream, open_upstream

__all__ = [
    "ChildEnvironment",
    "Stillborn",
    "Unsent",
    "Upstream",
    "WithheldVariables",
    "era_of",
    "open_upstream",
    "redacted",
    "secrets_of",
]
