"""What is a server called, here and in other programs' rules?

Other programs allow any name; here it must be able to stand in a tool's name. Rules written elsewhere name the server
as that program spells it, so names are compared folded, never as they were made to fit.
"""

import re

__all__ = ["clean", "folded"]


def clean(name: str) -> str:
    """What cannot stand in a tool's name becomes a dash."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-") or "server"


def folded(name: str) -> str:
    """With `_` for whatever is no letter or digit, as Claude Code writes servers; two where its strings have two."""
    return re.sub(r"[^A-Za-z0-9]", lambda match: "__" if match.group() > "\uffff" else "_", name)
