"""Shrinks tool definitions."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .shrink_definition import slim
    from .tool_signature import one_line, signature
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "one_line": "tool_signature",
            "signature": "tool_signature",
            "slim": "shrink_definition",
        },
    )

__all__ = ["one_line", "signature", "slim"]
