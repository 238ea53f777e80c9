"""How is one line of a session's file written and read?

JSON with the checksum of its own bytes as the last key, so that a line can be checked without being written anew:
`{"v":1,"seq":7,"id":"…","ts":"…","type":"message","message":{…},"crc":"…"}`. A line of a type or version that is not
known here is a line all the same.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, get_args
from zlib import crc32

from ullage.errors import InvalidArguments
from ullage.tool import Json, JsonObject

from ..entry import Kind
from .record import Archive, Draft, Generation, Header, Record, WindowNote

__all__ = ["Line", "Pen", "compaction_line", "header_line", "message_line", "read_line", "window_line"]

_VERSION = 1
_KINDS = frozenset(get_args(Kind))
_CRC = b',"crc":"%08x"}\n'
_CRC_LENGTH = len(_CRC % 0)
_ID = 16
"""Hexadecimal digits of a line's id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    raw: bytes
    """With its line break."""
    id: str
    seq: int
    """0 where it says none."""
    sound: bool
    """Whether the checksum is that of the bytes."""
    header: Header | None = None
    record: Record | None = None
    generation: Generation | None = None
    window: WindowNote | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """Who writes, and when."""

    session: str
    ts: str
    generation: int = 0
    """0 for messages that are appended."""


def header_line(header: Header, ts: str) -> Line:
    about: dict[str, Json] = {"format": header.format, "model": header.model}
    about |= {} if header.window is None else {"window": header.window}
    return _sealed({"v": _VERSION, "seq": 0, "id": header.id, "ts": ts, "type": "session", **about})


def message_line(pen: Pen, draft: Draft, *, seq: int, place: int = 0) -> Line:
    """`place` tells apart what one compaction writes under one number."""
    about: dict[str, Json] = {"type": draft.kind}
    about |= {"pinned": True} if draft.pinned else {}
    about |= {"generation": pen.generation} if pen.generation else {}
    return _identified(pen, seq, {**about, "message": dict(draft.message)}, place)


def window_line(pen: Pen, note: WindowNote, *, seq: int) -> Line:
    """A version that does not know such lines keeps them."""
    return _identified(pen, seq, {"type": "window", "window": note.tokens, "model": note.model}, 0)


def compaction_line(generation: Generation, *, seq: int) -> Line:
    archive = generation.archive
    about: dict[str, Json] = {
        "type": "compaction",
        "session": generation.session,
        "generation": generation.number,
        "archive": None
        if archive is None
        else {"file": archive.file, "sha256": archive.sha256, "lines": archive.lines, "bytes": archive.bytes},
        "ids": list(generation.ids),
        "meta": dict(generation.meta),
    }
    return _identified(Pen(session=generation.session, ts=generation.ts), seq, about, 0)


def read_line(raw: bytes) -> Line | None:
    """None where it is none of ours, or not whole."""
    try:
        fields: dict[str, Any] = json.loads(raw)
        return _read(raw, fields) if isinstance(fields.get("type"), str) else None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _identified(pen: Pen, seq: int, about: Mapping[str, Json], place: int) -> Line:
    said = _json([pen.session, seq, pen.ts, place, dict(about)])
    return _sealed({"v": _VERSION, "seq": seq, "id": sha256(said).hexdigest()[:_ID], "ts": pen.ts, **about})


def _sealed(fields: Mapping[str, Json]) -> Line:
    """As it will be read, so that nobody goes by what he meant to write."""
    body = _json(fields)[:-1]
    raw = body + _CRC % crc32(body)
    return _read(raw, json.loads(raw))


def _json(value: Mapping[str, Json] | Sequence[Json]) -> bytes:
    try:
        return _encoded(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArguments(
            f"a message must be JSON: {error}", suggestion="give it as it would be sent to the provider"
        ) from error


def _encoded(value: Mapping[str, Json] | Sequence[Json]) -> bytes:
    """Half a surrogate has no bytes in UTF-8; escaped, it survives."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _read(raw: bytes, fields: dict[str, Any]) -> Line:
    kind, known = fields["type"], fields.get("v") == _VERSION
    seq, said = fields.get("seq"), fields.get("id")
    identifier = said if isinstance(said, str) and said else sha256(raw).hexdigest()[:_ID]
    number = seq if isinstance(seq, int) else 0
    return Line(
        raw=raw,
        id=identifier,
        seq=number,
        sound=raw[-_CRC_LENGTH:] == _CRC % crc32(raw[:-_CRC_LENGTH]),
        header=Header(
            id=identifier,
            format=fields.get("format"),
            model=fields.get("model"),
            window=_tokens(fields.get("window")),
        )
        if kind == "session" and {"v", "crc"} <= fields.keys()
        else None,
        record=_record(raw, identifier, number, fields) if kind in _KINDS and _is_message(fields) else None,
        generation=_generation(fields) if kind == "compaction" and known else None,
        window=_window(fields) if kind in ("session", "window") else None,
    )


def _window(fields: dict[str, Any]) -> WindowNote | None:
    tokens, model = _tokens(fields.get("window")), fields.get("model")
    return None if tokens is None else WindowNote(tokens, model if isinstance(model, str) else None)


def _tokens(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _is_message(fields: dict[str, Any]) -> bool:
    """A newer version may write something else there; this one does not."""
    is_object = isinstance(fields.get("message"), dict)
    if fields.get("v") == _VERSION and not is_object:
        raise TypeError("a message is an object")
    return is_object


def _record(raw: bytes, identifier: str, seq: int, fields: dict[str, Any]) -> Record:
    message: JsonObject = fields["message"]
    return Record(
        id=identifier,
        seq=seq,
        message=message,
        kind=fields["type"],
        pinned=fields.get("pinned") is True,
        generation=int(fields.get("generation") or 0),
        ts=str(fields.get("ts") or ""),
        line=raw,
    )


def _generation(fields: dict[str, Any]) -> Generation:
    archive = fields["archive"]
    return Generation(
        number=int(fields["generation"]),
        archive=None
        if archive is None
        else Archive(
            file=str(archive["file"]),
            sha256=str(archive["sha256"]),
            lines=int(archive["lines"]),
            bytes=int(archive["bytes"]),
        ),
        ids=tuple(map(str, fields["ids"])),
        ts=str(fields["ts"]),
        meta=dict(fields["meta"]),
        session=str(fields["session"]),
    )
