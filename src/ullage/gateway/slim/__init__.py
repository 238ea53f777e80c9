"""Shrinks tool definitions."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .render import one_line, signature
    from .shrink import slim
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "one_line": "render",
            "signature": "render",
            "slim": "shrink",
        },
    )

__all__ = ["one_line", "signature", "slim"]
