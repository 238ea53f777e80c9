"""How does an entry stand in the database?"""

import json
from collections.abc import Mapping
from typing import Any

from ullage.store import moment, seconds, storable
from ullage.tokens import Method

from .entry import Entry

__all__ = ["ADD_ENTRY", "entry_of", "row_of"]

_TEXTS = ("kind", "principal", "session", "client", "server", "tool", "model")
_FIGURES = ("tokens", "baseline_tokens", "saved_tokens", "milliseconds")

_FLAGS = ("session_inferred", "is_error", "cached")
_COLUMNS = ("time", "method", "detail", *_TEXTS, *_FIGURES, *_FLAGS)
ADD_ENTRY = (
    f"INSERT INTO ullage_entries ({', '.join(_COLUMNS)}) VALUES ({', '.join(f':{column}' for column in _COLUMNS)})"
)


def row_of(entry: Entry) -> dict[str, object]:
    texts = {name: getattr(entry, name) for name in _TEXTS}
    return {
        "time": seconds(entry.time),
        "method": entry.method.value,
        "detail": json.dumps(entry.small_detail()),
        **{name: text if text is None else storable(text) for name, text in texts.items()},
        **{name: getattr(entry, name) for name in (*_FIGURES, *_FLAGS)},
    }


def entry_of(row: Mapping[Any, Any]) -> Entry:
    return Entry(
        time=moment(row["time"]),
        method=Method(row["method"]),
        detail=json.loads(row["detail"]),
        session_inferred=bool(row["session_inferred"]),
        is_error=bool(row["is_error"]),
        cached=bool(row["cached"]),
        **{name: row[name] for name in (*_TEXTS, *_FIGURES)},
    )
