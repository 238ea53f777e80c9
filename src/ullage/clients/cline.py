"""Reads sessions of Cline.

A session is one JSON file of messages in Anthropic's format, with models and usage beside them. The session's own file
contains everything; the messages left by a compaction are in a file beside it, which can be read instead.
"""

from ullage.messages import Format, table_at, tables_at, text_at, tokens_at
from ullage.models import Usage
from ullage.tool import Json, JsonObject

from .conversation import Conversation, Document, Draft, moment, shown_file

__all__ = ["read", "recognises", "usage_of_metrics"]

_COMPACTED = frozenset({"compaction", "compaction_summary"})


def recognises(document: Document) -> bool:
    whole = document.whole
    return isinstance(whole, dict) and "sessionId" in whole and "agent" in whole and "messages" in whole


def read(document: Document) -> Conversation:
    whole = document.first
    draft = Draft()
    for message in tables_at(whole, "messages"):
        blocks = list[Json]()
        content = message.get("content")
        if isinstance(content, str):
            blocks.append({"type": "text", "text": content})
        for block in tables_at(message, "content"):
            if block.get("type") == "file":
                shown = shown_file(text_at(block, "path") or "", text_at(block, "content") or "")
                blocks.append({"type": "text", "text": shown})
            else:
                blocks.append(dict(block))
        native = {"role": message.get("role"), "content": blocks}
        at = moment(message.get("ts"))
        about = table_at(message, "metadata")
        if text_at(about, "kind") in _COMPACTED:
            draft.add_compaction([native], before=tokens_at(about, "tokensBefore"), at=at)
        else:
            place = draft.add(native, at)
            if message.get("role") == "assistant":
                usage = usage_of_metrics(table_at(message, "metrics"))
                model = text_at(table_at(message, "modelInfo"), "id")
                draft.add_answer(place, usage, model, at)
    return draft.complete(
        Conversation(
            program="cline",
            format=Format.ANTHROPIC,
            id=text_at(whole, "sessionId"),
            system=text_at(whole, "system_prompt"),
        )
    )


def usage_of_metrics(said: JsonObject) -> Usage | None:
    """Read the usage of a message. Its input includes cached tokens, except for some providers, for which it is smaller
    than them."""
    whole = tokens_at(said, "inputTokens")
    if whole is None:
        return None
    read, write = tokens_at(said, "cacheReadTokens") or 0, tokens_at(said, "cacheWriteTokens") or 0
    whole = whole if whole >= read + write else whole + read + write
    return Usage(input=whole, output=tokens_at(said, "outputTokens"), cache_read=read, cache_write=write)
