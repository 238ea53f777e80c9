"""What is in this request, whoever's format it is?"""

from typing import TYPE_CHECKING

from ullage.deferred import import_on_use

if TYPE_CHECKING:
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
        join_texts,
    )
    from .read import read_request
    from .response import Answer, read_answer
    from .rewrite import results_of, with_arguments, with_results, with_texts
    from .usage import read_usage
    from .valid import faults
    from .write import assistant_message, user_message, write_message, write_messages
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Answer": "response",
            "Format": "parts",
            "Media": "parts",
            "Message": "parts",
            "Part": "parts",
            "Request": "parts",
            "Role": "parts",
            "SealedAs": "parts",
            "Text": "parts",
            "Thinking": "parts",
            "ToolCall": "parts",
            "ToolDefinition": "parts",
            "ToolResult": "parts",
            "Unknown": "parts",
            "assistant_message": "write",
            "detect_format": "detect",
            "detect_messages": "detect",
            "faults": "valid",
            "from_json": "neutral",
            "join_texts": "parts",
            "plain": "native",
            "read_answer": "response",
            "read_message": "native",
            "read_request": "read",
            "read_usage": "usage",
            "results_of": "rewrite",
            "table_at": "fields",
            "tables_at": "fields",
            "text_at": "fields",
            "to_json": "neutral",
            "tokens_at": "fields",
            "user_message": "write",
            "with_arguments": "rewrite",
            "with_results": "rewrite",
            "with_texts": "rewrite",
            "write_message": "write",
            "write_messages": "write",
        },
    )

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
    "join_texts",
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
    "with_arguments",
    "with_results",
    "with_texts",
    "write_message",
    "write_messages",
]
