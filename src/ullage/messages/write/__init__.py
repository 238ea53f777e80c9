"""How is this message said in that format?"""

from typing import TYPE_CHECKING

from ullage.deferred import import_on_use

if TYPE_CHECKING:
    from .writing import assistant_message, user_message, write_message, write_messages
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "assistant_message": "writing",
            "user_message": "writing",
            "write_message": "writing",
            "write_messages": "writing",
        },
    )

__all__ = ["assistant_message", "user_message", "write_message", "write_messages"]
