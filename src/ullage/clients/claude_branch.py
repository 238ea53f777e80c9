"""Which lines of a Claude Code session lead to its end?

Its lines are a tree: each names the one before it, and going back or trying again leaves branches. What agents of its
own did (sidechains) is told by another file, or stands between the lines of this one.
"""

from collections.abc import Iterator, Sequence

from ullage.messages import table_at, tables_at, text_at
from ullage.tool import JsonObject

__all__ = ["answer_of", "branch", "main_lines"]

_SAID = ("user", "assistant")


def main_lines(records: Sequence[JsonObject]) -> list[JsonObject]:
    """Without sidechains, unless the file is one."""
    main = [record for record in records if record.get("isSidechain") is not True]
    return main if any(text_at(record, "type") in _SAID for record in main) else list(records)


def branch(records: Sequence[JsonObject]) -> list[JsonObject]:
    """The lines that lead to the last one, in their order."""
    named = [record for record in records if text_at(record, "uuid")]
    kept = set(_back(named))
    answers = {answer_of(record) for record in named if record["uuid"] in kept} - {None}
    # Results of calls that were made side by side hang on the tree each by itself, and so do the parts of one answer.
    calls = {block for record in named if answer_of(record) in answers for block in _called(record)}
    return [
        record
        for record in named
        if record["uuid"] in kept or answer_of(record) in answers or calls.intersection(_answered(record))
    ]


def _back(records: Sequence[JsonObject]) -> Iterator[str]:
    """The ids from the last line to the first. A link that leads nowhere is taken to mean the line before."""
    place = {str(record["uuid"]): index for index, record in enumerate(records)}
    index, seen = len(records) - 1, set[int]()
    while index >= 0 and index not in seen:
        seen.add(index)
        yield str(records[index]["uuid"])
        parent = text_at(records[index], "parentUuid") or text_at(records[index], "logicalParentUuid")
        if parent is None:
            return
        index = place.get(parent, index - 1)


def answer_of(record: JsonObject) -> tuple[str, str | None] | None:
    """Which answer of the model a line is a part of; None where it is none."""
    identity = text_at(table_at(record, "message"), "id")
    if record.get("type") != "assistant" or identity is None:
        return None
    return identity, text_at(record, "requestId") or text_at(record, "requestRef")


def _called(record: JsonObject) -> Iterator[str]:
    blocks = tables_at(table_at(record, "message"), "content")
    return (str(block.get("id")) for block in blocks if block.get("type") == "tool_use")


def _answered(record: JsonObject) -> Iterator[str]:
    if record.get("type") != "user":
        return iter(())
    blocks = tables_at(table_at(record, "message"), "content")
    return (str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result")
