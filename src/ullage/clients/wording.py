"""How is said to a model what a program keeps as fields?

For programs whose messages are in no provider's format.
"""

from ullage.messages import Message, Text, text_at
from ullage.tool import JsonObject

__all__ = ["shown_command", "shown_file", "summary_message"]


def summary_message(summary: str) -> Message:
    """Marked as Ullage marks its own, so that a later summary takes it up."""
    return Message(role="user", parts=(Text(f"<context_summary>\n{summary}\n</context_summary>"),))


def shown_command(record: JsonObject) -> str:
    """A command that the user ran, with what came of it."""
    code = record.get("exitCode")
    ended = f"\nIt ended with {code}." if isinstance(code, int) and code else ""
    return f"$ {text_at(record, 'command') or ''}\n{text_at(record, 'output') or ''}{ended}"


def shown_file(path: str, content: str) -> str:
    return f'<file path="{path}">\n{content}\n</file>'
