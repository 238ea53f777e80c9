"""Reads the session files of other agent programs."""

from .conversation import Call, Compaction, Conversation, Program, Turn
from .read_session import read_conversations, read_text, rewrite_text

__all__ = [
    "Call",
    "Compaction",
    "Conversation",
    "Program",
    "Turn",
    "read_conversations",
    "read_text",
    "rewrite_text",
]
