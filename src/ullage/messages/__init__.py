"""Message formats of model providers: detects them, reads them into neutral parts, and writes them back."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .message_formats import detect_format, detect_messages, plain, read_message, read_request
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
    from .response import Answer, read_answer, read_usage, table_at, tables_at, text_at, tokens_at
    from .rewrite import results_of, with_arguments, with_results, with_texts
    from .validate_history import faults
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
            "detect_format": "message_formats",
            "detect_messages": "message_formats",
            "faults": "validate_history",
            "from_json": "neutral",
            "join_texts": "parts",
            "plain": "message_formats",
            "read_answer": "response",
            "read_message": "message_formats",
            "read_request": "message_formats",
            "read_usage": "response",
            "results_of": "rewrite",
            "table_at": "response",
            "tables_at": "response",
            "text_at": "response",
            "to_json": "neutral",
            "tokens_at": "response",
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
