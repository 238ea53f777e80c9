"""How is this message said in that format?"""

from .writing import assistant_message, user_message, write_message, write_messages

__all__ = ["assistant_message", "user_message", "write_message", "write_messages"]
