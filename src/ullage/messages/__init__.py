"""What is in this request, whoever's format it is?"""

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

__all__ = [
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
    "read_request",
]
