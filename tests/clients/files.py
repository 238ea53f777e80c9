"""Small session files, as the programs write them."""

import json
from pathlib import Path
from typing import Any

Object = dict[str, Any]


def lines(*records: Object | str) -> str:
    """JSONL; a text stands as it is."""
    return "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in records)


def written(path: Path, *records: Object | str) -> Path:
    path.write_text(lines(*records), encoding="utf-8")
    return path
