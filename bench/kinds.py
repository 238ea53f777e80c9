"""What is counted in the benchmark of speed?

Seven kinds of text, each as a list of distinct ones. Nothing written by others is kept in the repository: texts are
read where the benchmark runs (recordings in the shared data, Python's own sources, the machine's message catalogues),
and where a machine lacks them, put together from sentences of our own, which repeat themselves more than real text
does. `DATA` names a folder with one `.txt` a kind instead.
"""

import ast
import gettext
import json
import os
import random
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
LOCALES = Path("/usr/share/locale")
MESSAGE, FILE = 1_000, 32_000
"""Bytes of one text: about a chat message's, about a tool result's."""
PER_KIND = 1_000_000
_OWN = {
    "english": (
        "We moved the meeting to {} because the room was taken. Please bring the {} figures, and say if you can't.",
        "Nobody had read the {} report before it was sent, which explains the questions about {}.",
    ),
    "portuguese": (
        "Ontem discutimos a {} com a equipe, mas ninguém trouxe os números da {}.",
        "Você não poderia verificar a {} antes de amanhã? A reunião sobre a {} começa às nove horas.",
    ),
    "korean": (
        "어제 회의에서 {} 문제를 논의했지만 아무도 {} 자료를 가져오지 않았습니다.",
        "내일 아침까지 {} 보고서를 확인해 주시겠어요? {}에 관한 질문은 오후에 받겠습니다.",
    ),
    "chinese": (
        "昨天我们讨论了{}的问题，可是没有人带来{}的数据。",
        "请你在明天早上之前检查一下{}报告，好吗？关于{}的会议九点开始。",
    ),
}
_OWN_WORDS = {
    "english": ("quarterly", "shipping", "insurance", "weather", "migration", "harbour", "translation", "gardening"),
    "portuguese": ("viagem", "colheita", "tradução", "padaria", "biblioteca", "garantia", "floresta", "mudança"),
    "korean": ("여행", "수확", "번역", "도서관", "보증", "날씨", "이사", "항구"),
    "chinese": ("旅行", "收获", "翻译", "图书馆", "保险", "天气", "搬家", "港口"),
}


def kinds() -> dict[str, tuple[list[str], str]]:
    """Kind to its texts and where they come from."""
    folder = os.environ.get("DATA")
    if folder:
        files = sorted(Path(folder).glob("*.txt"))
        return {file.stem: (cut(file.read_text("utf-8"), _size(file.stem)), file.name) for file in files}
    return {
        "english": _first(_docstrings(), "english", MESSAGE, "docstrings of Python's library"),
        "chat": _first(_chat(), "english", MESSAGE, "recorded requests"),
        "json": _first(_catalogues(), "english", FILE, "tools/list of MCP servers"),
        "code": _first(_sources(), "english", FILE, "sources of Python's library"),
        "portuguese": _first(_catalogue("pt_BR"), "portuguese", MESSAGE, "message catalogues"),
        "korean": _first(_catalogue("ko"), "korean", MESSAGE, "message catalogues"),
        "chinese": _first(_catalogue("zh_CN", "zh_TW"), "chinese", MESSAGE, "message catalogues"),
    }


def cut(text: str, size: int) -> list[str]:
    """Distinct texts of about `size` bytes of UTF-8, in order."""
    width = max(1, round(size * len(text) / max(1, len(text.encode()))))
    return list(dict.fromkeys(text[start : start + width] for start in range(0, len(text) - width, width)))


def _size(kind: str) -> int:
    return FILE if kind in ("json", "code") else MESSAGE


def _first(parts: Iterable[str], own: str, size: int, source: str) -> tuple[list[str], str]:
    text = "\n".join(_until(parts, PER_KIND))
    if len(text.encode()) > PER_KIND // 4:
        return cut(text, size), source
    return cut("\n".join(_until(_sentences(own), PER_KIND)), size), "own sentences"


def _until(parts: Iterable[str], size: int) -> Iterator[str]:
    seen: set[str] = set()
    for part in parts:
        if size <= 0:
            return
        if part not in seen:
            seen.add(part)
            size -= len(part.encode())
            yield part


def _sentences(language: str) -> Iterator[str]:
    chance = random.Random(2026)
    while True:
        words = [chance.choice(_OWN_WORDS[language]) + str(chance.randrange(10_000)) for _ in range(2)]
        yield chance.choice(_OWN[language]).format(*words)


def _library() -> list[Path]:
    return sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))


def _sources() -> Iterator[str]:
    return (path.read_text("utf-8", "replace") for path in _library())


def _docstrings() -> Iterator[str]:
    kinds_of_node = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for source in _sources():
        for node in ast.walk(ast.parse(source)):
            text = ast.get_docstring(node) if isinstance(node, kinds_of_node) else None
            if text and len(text) > 200 and ">>>" not in text:
                yield text


def _chat() -> Iterator[str]:
    for path in sorted((SHARED / "usage").glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            for message in json.loads(line)["request"].get("messages") or ():
                content = message.get("content")
                if isinstance(content, str) and 100 < len(content) < 4_000:
                    yield content


def _catalogues() -> Iterator[str]:
    return (path.read_text("utf-8") for path in sorted((SHARED / "catalogues").glob("*.json")))


def _catalogue(*languages: str) -> Iterator[str]:
    for path in (path for name in languages for path in sorted(LOCALES.glob(f"{name}/LC_MESSAGES/*.mo"))):
        with path.open("rb") as file:
            messages: dict[Any, Any] = vars(gettext.GNUTranslations(file))["_catalog"]
        yield from (text for text in messages.values() if isinstance(text, str) and len(text) > 60)
