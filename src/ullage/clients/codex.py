"""Reads rollouts of Codex: JSONL below `~/.codex/sessions`.

A rollout contains items of OpenAI's Responses as they were sent and answered, the usage that the provider reported, and
at each compaction the whole content of the window after it. The program's own tools are not recorded.
"""

from collections.abc import Sequence
from typing import cast

from ullage.messages import Format, read_usage, table_at, tables_at, text_at, tokens_at
from ullage.tool import Json, JsonObject

from .conversation import Conversation, Document, Draft, moment

__all__ = ["read", "recognises"]

_LINES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_UNSENT = frozenset({"ghost_snapshot"})
_PRIVATE = frozenset({"internal_chat_message_metadata_passthrough"})
"""Fields of an item that are not sent to the provider."""
_USER = ("message", "user")


def recognises(document: Document) -> bool:
    return any(text_at(record, "type") in _LINES and "payload" in record for record in document.objects[:50])


def read(document: Document) -> Conversation:
    reader = _Reader(document.objects)
    reader.draft.unread["lines that are not JSON"] = document.broken
    for record in document.objects:
        reader.take(record)
    reader.close()
    meta = reader.meta
    instructions = table_at(meta, "base_instructions").get("text") or meta.get("instructions")
    return reader.draft.complete(
        Conversation(
            program="codex",
            format=Format.OPENAI_RESPONSES,
            id=text_at(meta, "id"),
            model=reader.model,
            window=reader.window,
            system=instructions,
        )
    )


class _Reader:
    def __init__(self, records: Sequence[JsonObject]) -> None:
        self.draft = Draft()
        self.meta: JsonObject = {}
        self.model: str | None = None
        self.window: int | None = None
        self._answer: int | None = None
        """The place where the current answer begins."""
        self._is_ended = False
        """Whether another item has followed the answer."""
        self._billed: JsonObject | None = None
        # Newer versions write each call's usage once; older ones sometimes repeat the last one.
        self._is_recorded = any(record.get("type") == "token_usage_record" for record in records)

    def take(self, record: JsonObject) -> None:
        payload = table_at(record, "payload")
        match record.get("type"):
            case "session_meta":
                self.meta = self.meta or payload
            case "turn_context":
                self.model = text_at(payload, "model") or self.model
            case "response_item":
                if text_at(payload, "type") not in _UNSENT:
                    place = self.draft.add(_drop_private_keys(payload), moment(record.get("timestamp")))
                    is_answer = payload.get("role") == "assistant" or (
                        payload.get("type") == "reasoning" or str(payload.get("type")).endswith("_call")
                    )
                    if not is_answer:
                        self._is_ended = True
                    elif self._answer is None or self._is_ended:
                        self.close()
                        self._answer, self._is_ended = place, False
            case "compacted":
                at = record.get("timestamp")
                made: list[object] = [_drop_private_keys(item) for item in tables_at(payload, "replacement_history")]
                kept = () if made else self._user_message_places()
                summary = {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": text_at(payload, "message") or ""}],
                }
                self.close()
                self.draft.add_compaction(made or [summary], kept=kept, at=moment(at))
            case "token_usage_record":
                self._record_usage(table_at(payload, "usage"), record.get("timestamp"))
            case "event_msg":
                self._take_event(payload, record.get("timestamp"))
            case _:
                pass

    def close(self) -> None:
        """Add the last answer even if no usage was reported for it."""
        if self._answer is not None:
            self.draft.add_answer(self._answer, None, self.model, self.draft.turns[self._answer].at)
        self._answer = None

    def _record_usage(self, said: JsonObject, at: Json) -> None:
        if self._answer is not None:
            # In the provider's form, with two inner figures moved to the top level.
            usage = read_usage(
                {
                    **said,
                    "input_tokens_details": {"cached_tokens": said.get("cached_input_tokens")},
                    "output_tokens_details": {"reasoning_tokens": said.get("reasoning_output_tokens")},
                },
                Format.OPENAI_RESPONSES,
            )
            self.draft.add_answer(self._answer, usage, self.model, moment(at))
        self._answer = None

    def _take_event(self, payload: JsonObject, at: Json) -> None:
        if payload.get("type") == "thread_rolled_back":
            turns = tokens_at(payload, "num_turns") or 0
            asked = self._user_message_places()
            if 0 < turns <= len(asked):
                place = asked[-turns]
                self._answer = None
                self.draft.unread["messages that were taken back"] += len(self.draft.turns) - place
                del self.draft.turns[place:]
                self.draft.calls = [call for call in self.draft.calls if call.place < place]
                self.draft.compactions = [one for one in self.draft.compactions if one.place < place]
        if payload.get("type") != "token_count":
            return
        info = table_at(payload, "info")
        self.window = tokens_at(info, "model_context_window") or self.window
        total = table_at(info, "total_token_usage")
        if not self._is_recorded and total and total != self._billed:
            self._billed = total
            self._record_usage(table_at(info, "last_token_usage"), at)

    def _user_message_places(self) -> list[int]:
        """Return places of the user's messages, which older versions kept at a compaction."""
        turns = self.draft.turns
        items = [cast("dict[str, Json]", turn.native) for turn in turns]
        return [place for place, item in enumerate(items) if (item.get("type"), item.get("role")) == _USER]


def _drop_private_keys(item: JsonObject) -> dict[str, Json]:
    return {key: value for key, value in item.items() if key not in _PRIVATE}
