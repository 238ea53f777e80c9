"""Removal of the second copy from a stream that was sent more than once.

A proxy that asks two servers at once, or asks again after a break, may deliver two copies of one answer: one behind the
other, event by event, the second some events late, or begun anew in the middle. Copies are recognised by the event that
opens an answer, which no answer has twice. Ids and times may differ between copies.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence

from ullage.messages import table_at, tables_at, text_at
from ullage.tool import JsonObject

from .failure import ProviderFailed
from .providers.parsed import parsed
from .repeats import RawEvent

__all__ = ["single_copy"]

_IDENTITY = re.compile(
    r'"(?:id|responseId|item_id|created|created_at|sequence_number|obfuscation)":\s*(?:"[^"\\]*"|[\d.]+)'
)
"""What may differ between two copies of an event."""
_MARKERS = ('"message_start"', '"response.created"', '"role"')
"""Of a first event that has one, its copies have it too; most streams are known by that to be one copy."""
_OPENINGS = frozenset({"message_start", "response.created"})


def single_copy(events: Sequence[RawEvent]) -> list[RawEvent] | None:
    """The events of one copy in their order; None where the stream holds no more than one."""
    marker = next((one for one in _MARKERS if events and one in events[0][1]), "")
    if sum(marker in data for _, data in events) < 2:
        return None
    keys = [(name, _IDENTITY.sub("", data)) for name, data in events]
    if keys.count(keys[0]) < 2 or not _is_opening(keys, events):
        return None
    kept, places = _first_copy(keys, keep_pace=True)
    if any(place < len(kept) - 1 for place in places):
        kept, places = _first_copy(keys, keep_pace=False)
    if any(place < len(kept) // 2 for place in places):
        # The opening came again, and what followed it there does not follow here.
        return None
    # What is kept may be of several copies, and some readers take another id for another answer.
    return [_without_id(events[number]) for number in kept]


def _first_copy(keys: Sequence[RawEvent], *, keep_pace: bool) -> tuple[list[int], list[int]]:
    """The numbers of the events that are no repetition, and how far into them each further copy came.

    Args:
        keys: the events, alike where they are copies of each other.
        keep_pace: whether a copy that has caught up with the first goes on beside it, as in a stream that sends each
            event twice. A copy that began after a break becomes the answer instead.
    """
    kept, places = list[int](), list[int]()
    for number, key in enumerate(keys):
        copy = next((one for one, at in enumerate(places) if at < len(kept) and keys[kept[at]] == key), None)
        if copy is not None:
            places[copy] += 1
        elif kept and key == keys[0]:
            places.append(1)
        else:
            kept.append(number)
        if not keep_pace:
            places = [at for at in places if at < len(kept)]
    return kept, places


def _is_opening(keys: Sequence[RawEvent], events: Sequence[RawEvent]) -> bool:
    """Whether an answer can have its first event only once."""
    first = _read(events[0])
    if text_at(first, "type") in _OPENINGS:
        return True
    if _has_several_ids(events):
        return True
    following = next((_read(event) for key, event in zip(keys, events, strict=True) if key != keys[0]), None) or first
    if "candidates" in first:
        return table_at(first, "usageMetadata") != table_at(following, "usageMetadata")
    delta = _delta(first)
    return "role" in delta and (not text_at(delta, "content") or "role" not in _delta(following))


def _has_several_ids(events: Sequence[RawEvent]) -> bool:
    """Whether the events are of two answers or more, by their ids. A server that gives each event an id of its own has
    no id twice."""
    read = [_read(event) for event in events]
    ids = Counter(found for one in read if (found := text_at(one, "responseId") or text_at(one, "id")) is not None)
    return len(ids) > 1 and min(ids.values()) > 1


def _without_id(event: RawEvent) -> RawEvent:
    said = {key: value for key, value in _read(event).items() if key not in ("id", "responseId")}
    return event[0], json.dumps(said) if said else event[1]


def _delta(event: JsonObject) -> JsonObject:
    choices = tables_at(event, "choices")
    return table_at(choices[0], "delta") if choices else {}


def _read(event: RawEvent) -> JsonObject:
    try:
        return parsed(event[1])
    except ProviderFailed:
        return {}
