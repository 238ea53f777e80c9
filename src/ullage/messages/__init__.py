"""What is in this request, whoever's format it is?"""

from .parts import (
    Format,
    Json,
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

__all__ = [
    "Format",
    "Json",
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
]
