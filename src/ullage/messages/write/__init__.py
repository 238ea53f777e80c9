"""Writes neutral messages in a provider's format."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .writer import assistant_message, user_message, write_message, write_messages
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "assistant_message": "writer",
            "user_message": "writer",
            "write_message": "writer",
            "write_messages": "writer",
        },
    )

__all__ = ["assistant_message", "user_message", "write_message", "write_messages"]
