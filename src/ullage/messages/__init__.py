"""What is in this request, whoever's format it is?"""

from .detect import detect_format, detect_messages
from .fields import table_at, tables_at, text_at, tokens_at
from .native import plain, read_message
from .neutral import from_json, to_json
from .parts import (
    Format,
    Media,
    Message,
    Part,
    Request,
    Role,
    SealedAs,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Unknown,
)
from .read import read_request
from .response import Answer, read_answer
from .rewrite import results_of, with_results, with_texts
from .usage import read_usage
from .valid import faults
from .write import assistant_message, user_message, write_message, write_messages

__all__ = [
    "Answer",
    "Format",
    "Media",
    "Message",
    "Part",
    "Request",
    "Role",
    "SealedAs",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolDefinition",
    "ToolResult",
    "Unknown",
    "assistant_message",
    "detect_format",
    "detect_messages",
    "faults",
    "from_json",
    "plain",
    "read_answer",
    "read_message",
    "read_request",
    "read_usage",
    "results_of",
    "table_at",
    "tables_at",
    "text_at",
    "to_json",
    "tokens_at",
    "user_message",
    "with_results",
    "with_texts",
    "write_message",
    "write_messages",
]
