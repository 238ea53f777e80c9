"""What is in this request, whoever's format it is?"""

from .fields import table_at, tables_at, text_at, tokens_at
from .parts import (
    Format,
    Media,
    Message,
    Part,
    Request,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
    Unknown,
)
from .read import detect_format, read_request
from .response import Answer, read_answer
from .usage import read_usage

__all__ = [
    "Answer",
    "Format",
    "Media",
    "Message",
    "Part",
    "Request",
    "Role",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolDefinition",
    "ToolResult",
    "Unknown",
    "detect_format",
    "read_answer",
    "read_request",
    "read_usage",
    "table_at",
    "tables_at",
    "text_at",
    "tokens_at",
]
