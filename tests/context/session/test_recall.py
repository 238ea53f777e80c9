import json
from pathlib import Path
from typing import Any

import pytest

from context.session.crashing import Quick
from context.session.sessions import archive_of, opened, summary, user
from ullage.context.session import RECALL, Draft, DroppedMessage, Recalled, RecallSource, Recollection, Session
from ullage.context.session.session_file import Stamp
from ullage.errors import InvalidArguments, UnknownTool
from ullage.messages import Format, Media, Message, Text, Thinking, ToolCall, ToolResult, Unknown
from ullage.models import shipped
from ullage.testing import check_source
from ullage.tokens import Meter
from ullage.tool import Call, Json

pytestmark = pytest.mark.requirement("S2:compact:persist")

METER = Meter(shipped())


def tokens(text: str) -> int:
    return METER.count(text, "gpt-4o").tokens


def source_text(name: str, lines: int) -> str:
    return "\n".join(f"def {name}_{number}(): return {number * 7}" for number in range(lines))


CONVERSATION: list[dict[str, Json]] = [
    {"role": "user", "content": "Please find out why order ORD-20817 was never shipped to Gotland."},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "src/ferry.py"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": source_text("ferry", 120)}]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t2", "name": "query", "input": {"sql": "select 1"}}]},
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "t2",
                "content": [{"type": "text", "text": "id,state\nORD-20817,held at customs"}],
            }
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "It was held at customs; see src/ferry.py."}]},
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t3", "name": "read", "input": {"path": "src/ferry.py"}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t3", "content": "def ferry_new(): return 1"}]},
    {"role": "user", "content": "Thank you."},
]


def compacted(path: Path, last: int = 8, **options: Any) -> Session:  # noqa: ANN401 - whatever `open` takes
    session = opened(path, format=Format.ANTHROPIC, **options)
    session.append(CONVERSATION)
    session.replace(0, last, [summary()], snapshot=session.records)
    return session


def recall(
    memory: Session | Recollection, query: str, *, room: int = 2_000, limit: int = 50, skip: int = 0
) -> Recalled:
    found = memory.recall(query, limit=limit, room=room, count=tokens, skip=skip)
    assert tokens(found.text) <= room
    return found


@pytest.mark.requirement("S2:compact:persist")
def test_what_was_let_go_is_found_by_an_id_with_its_place(tmp_path: Path):
    found = recall(compacted(tmp_path / "s.jsonl"), "ORD-20817")
    assert found.text == (
        '[message 5 · query(sql="select 1") · lines 1–2 of 2]\nid,state\nORD-20817,held at customs\n\n'
        "[message 1 · user · line 1 of 1]\nPlease find out why order ORD-20817 was never shipped to Gotland.\n\n"
        "-- 2 of 2 passages"
    )
    first = found.passages[0]
    assert (first.message, first.speaker, first.generation, first.first, first.last) == (5, "query", 1, 1, 2)


def test_a_path_brings_back_the_results_of_the_calls_that_had_it_the_latest_first(tmp_path: Path):
    found = recall(compacted(tmp_path / "s.jsonl"), "src/ferry.py", room=10_000)
    places = [line for line in found.text.splitlines() if line.startswith("[message")]
    assert places[0] == '[message 8 · read(path="src/ferry.py") · line 1 of 1]'
    assert places[1] == '[message 3 · read(path="src/ferry.py") · lines 1–120 of 120]'
    assert source_text("ferry", 120) in found.text


def test_a_name_that_is_there_finds_nothing_that_only_resembles_it(tmp_path: Path):
    session = compacted(tmp_path / "s.jsonl")
    assert {passage.message for passage in recall(session, "ferry_77", room=9_000).passages} == {3}
    assert recall(session, "ferry_99999").found


def test_a_name_comes_before_longer_ones_that_begin_alike(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl", format=Format.OPENAI_CHAT)
    session.append([user("ORD-1 is small, ORD-1!"), *(user(f"ORD-1{number} ORD-1{number}") for number in range(20))])
    session.append([user("the end")])
    session.replace(0, 21, [summary()], snapshot=session.records)
    assert recall(session, "ORD-1").passages[0].message == 1


def test_words_find_what_is_near_them(tmp_path: Path):
    found = recall(compacted(tmp_path / "s.jsonl"), "why was nothing shipped to the island of Gotland?")
    assert found.passages[0].message == 1


def test_words_in_quotes_are_found_as_they_stand(tmp_path: Path):
    found = recall(compacted(tmp_path / "s.jsonl"), 'where does it say "held at customs" again')
    assert {passage.message for passage in found.passages[:2]} == {5, 6}


def test_one_line_of_a_long_result_is_found_with_its_lines(tmp_path: Path):
    found = recall(compacted(tmp_path / "s.jsonl"), "ferry_77")
    first = found.passages[0]
    assert first.first <= 78 <= first.last
    assert first.last - first.first < 60
    assert "def ferry_77(): return 539" in found.text


def test_more_is_shown_where_the_last_answer_ended(tmp_path: Path):
    session = compacted(tmp_path / "s.jsonl")
    first = recall(session, "src/ferry.py", room=900)
    seen = len(first.passages)
    assert first.text.endswith(f"-- {seen} of {first.found} passages; skip={seen} shows more")
    rest = recall(session, "src/ferry.py", room=9_000, skip=seen)
    assert rest.text.endswith(f"-- {rest.found} of {rest.found} passages")
    assert not set(first.passages) & set(rest.passages)
    assert len(first.passages) + len(rest.passages) == first.found
    assert recall(session, "src/ferry.py", skip=99).text == f"-- there are only {first.found} passages"


def test_no_more_than_so_many_passages_are_shown(tmp_path: Path):
    found = recall(compacted(tmp_path / "s.jsonl"), "src/ferry.py", limit=2, room=9_000)
    assert len(found.passages) == 2


@pytest.mark.parametrize("room", [1, 3, 10, 20, 40, 80, 160, 320, 640])
def test_an_answer_is_never_over_its_budget(tmp_path: Path, room: int):
    session = compacted(tmp_path / "s.jsonl")
    for query in ("src/ferry.py", "ferry_3", "nothing like it", "customs"):
        recall(session, query, room=room)


def test_of_a_passage_that_does_not_fit_its_first_lines_are_shown(tmp_path: Path):
    found = recall(compacted(tmp_path / "s.jsonl"), "ferry_0", room=120)
    (passage,) = found.passages
    assert 1 <= passage.last < 40
    assert found.text.startswith(
        f'[message 3 · read(path="src/ferry.py") · lines 1–{passage.last} of 120]\ndef ferry_0()'
    )


def test_of_a_line_that_does_not_fit_its_beginning_is_shown():
    memory = holding(ToolResult(parts=(Text(LONG),), name="dump"))
    found = recall(memory, "02999:244", room=200)
    (passage,) = found.passages
    assert 100 <= len(passage.text) < 700
    assert LONG.find(passage.text) > 0


def test_a_budget_for_nothing_is_said_to_be_one(tmp_path: Path):
    found = recall(compacted(tmp_path / "s.jsonl"), "ferry_0", room=15)
    assert found.text == "-- 15 tokens are too few to show any"
    assert found.passages == ()


def test_what_is_still_before_the_model_is_not_recalled(tmp_path: Path):
    session = compacted(tmp_path / "s.jsonl", last=3)
    assert {passage.message for passage in recall(session, "src/ferry.py", room=9_000).passages} == {2, 3}
    assert recall(session, "customs").text == "-- nothing that was removed has these words"


def test_as_long_as_nothing_was_let_go_it_says_so(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl", format=Format.ANTHROPIC)
    session.append(CONVERSATION)
    assert recall(session, "ORD-20817").text == "-- nothing was removed yet: the whole conversation is still before you"


def test_what_is_let_go_later_is_found_too_and_what_comes_back_is_not(tmp_path: Path):
    session = compacted(tmp_path / "s.jsonl", last=3)
    assert recall(session, "customs").found == 0
    other = opened(session.path)
    records = other.records
    other.replace(0, len(records), [summary("again")], snapshot=records)
    found = recall(session, "customs")
    assert {passage.generation for passage in found.passages} == {2}
    session.restore(1)
    assert recall(session, "customs").found == 0
    session.restore(0)
    assert recall(session, "ferry_77").text.startswith("-- nothing was removed yet")


def test_a_masked_result_is_found_by_what_its_call_asked_for(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl")
    session.append(CONVERSATION)
    records = session.records
    masked = {**CONVERSATION[4], "content": [{"type": "tool_result", "tool_use_id": "t2", "content": "[let go]"}]}
    session.replace(4, 5, [Draft(message=masked, of=records[4].id)], snapshot=records)
    assert recall(session, "select 1").passages[0].text == "id,state\nORD-20817,held at customs"


def test_summaries_are_not_recalled(tmp_path: Path):
    session = compacted(tmp_path / "s.jsonl")
    session.append([user("more"), user("and more")])
    session.replace(0, 3, [summary("second")], snapshot=session.records)
    assert "context_summary" not in recall(session, "what was said").text


def test_an_archive_that_was_spoilt_is_passed_over(tmp_path: Path):
    session = compacted(tmp_path / "s.jsonl")
    for path in archive_of(session).iterdir():
        path.write_bytes(path.read_bytes()[:-9])
    assert recall(session, "ORD-20817").found == 0


def test_a_message_that_is_too_deep_to_be_read_is_found_as_json(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl", format=Format.ANTHROPIC)
    deep: Json = "ORD-20817"
    for _ in range(700):
        deep = [deep]
    session.append([{"role": "user", "content": deep}, user("x")])
    session.replace(0, 1, [], snapshot=session.records)
    assert '"ORD-20817"' in recall(session, "ORD-20817").text


def test_other_files_in_the_folder_of_archives_are_passed_over(tmp_path: Path):
    session = compacted(tmp_path / "s.jsonl")
    (archive_of(session) / "notes.txt").write_text("ORD-20817", encoding="utf-8")
    assert recall(session, "ORD-20817").found == 2


def holding(*parts: Any, role: Any = "assistant") -> Recollection:  # noqa: ANN401
    memory = Recollection()
    gone = DroppedMessage(id="a", number=4, message=Message(role=role, parts=parts), generation=2)
    memory.hold({"a": gone})
    return memory


@pytest.mark.parametrize(
    ("part", "query"),
    [
        (Text("the ferry_id is F-17"), "F-17"),
        (Thinking(text="perhaps it is F-17"), "F-17"),
        (ToolCall(name="write", arguments='{"path": "a.py", "content": "x = \\"F-17\\"\\ny = 2"}'), 'x = "F-17"'),
        (ToolCall(name="write", arguments="not json, F-17"), "F-17"),
        (ToolCall(name="write_F17", arguments=""), "write_F17"),
        (ToolCall(name="write", arguments="[17171]"), "17171"),
        (ToolResult(parts=(Text("F-17"), Media(kind="image")), name="look"), "F-17"),
        (ToolResult(parts=(ToolResult(parts=(Text("F-17"),)),), call_id="nobody's"), "F-17"),
        (Unknown({"strange": ["F-17"]}), "F-17"),
    ],
)
def test_every_kind_of_part_is_found_letter_for_letter(part: Any, query: str):  # noqa: ANN401
    found = recall(holding(part), query)
    assert found.found == 1
    assert query in found.text


def test_what_has_no_text_has_no_passage():
    assert recall(holding(Text("  \n"), Media(kind="image")), "image").found == 1
    assert recall(holding(Text("")), "anything").found == 0


LONG = "".join(f"[{number:05}:{number * 31 % 997}]," for number in range(3_000))


@pytest.mark.parametrize("number", [0, 104, 1_500, 2_999])
def test_a_line_without_end_is_cut_where_no_name_is_cut(number: int):
    memory = holding(ToolResult(parts=(Text(LONG),), name="dump"))
    wanted = f"{number:05}:{number * 31 % 997}"
    found = recall(memory, wanted)
    assert wanted in found.passages[0].text
    assert found.text.startswith(f"[message 4 · dump · line 1 of 1, piece {found.passages[0].piece}]")
    assert len(found.passages[0].text) <= 1_500


def test_a_blob_is_cut_anywhere_and_whole_with_its_neighbours():
    blob = "".join(f"{number:x}" for number in range(2_000))
    assert len(recall(holding(Text(blob)), blob[1_450:1_540], room=9_000).passages) >= 1


def test_long_calls_are_shown_in_short():
    call = ToolCall(name="write", arguments=json.dumps({"content": "y" * 500}), id="c1")
    memory = Recollection()
    result = DroppedMessage(
        id="r",
        number=2,
        message=Message(role="tool", parts=(ToolResult(parts=(Text("done F-17"),), call_id="c1"),)),
        generation=1,
    )
    memory.hold({"r": result}, [Message(role="assistant", parts=(call,))])
    place = recall(memory, "F-17").text.splitlines()[0]
    assert len(place) < 160
    assert "yyy… · line 1 of 1]" in place


async def ask(source: RecallSource, **arguments: Json) -> str:
    reply = await source.call(Call(tool="recall", arguments=arguments))
    return str(reply.content[0]["text"])


@pytest.mark.anyio
async def test_recall_is_a_tool_that_is_always_there(tmp_path: Path):
    fresh = RecallSource(opened(tmp_path / "fresh.jsonl"), tokens)
    used = RecallSource(compacted(tmp_path / "s.jsonl"), tokens)
    assert await fresh.tools() == await used.tools()
    await check_source(used, Call(tool="recall", arguments={"query": "x"}))
    assert (await ask(fresh, query="ORD-20817")).startswith("-- nothing was removed yet")
    assert "held at customs" in await ask(used, query="ORD-20817")
    assert tokens(await ask(used, query="src/ferry.py", max_tokens=300)) <= 300
    assert await ask(used, query="ORD-20817", skip=2) == "-- there are only 2 passages"


def test_the_definition_is_short():
    written = {"name": RECALL.name, "description": RECALL.description, "input_schema": RECALL.input_schema}
    assert tokens(json.dumps(written)) <= 120


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "`query` must be a text"),
        ({"query": " "}, "`query` must be a text"),
        ({"query": "x", "skip": -1}, "`skip` must be a whole number from 0 on"),
        ({"query": "x", "max_tokens": 0}, "`max_tokens` must be a whole number from 1 on"),
        ({"query": "x", "max_tokens": True}, "`max_tokens` must be a whole number from 1 on"),
        ({"query": "x", "limit": 3}, "`limit` is not known"),
    ],
)
async def test_arguments_that_do_not_fit_are_refused(tmp_path: Path, arguments: dict[str, Json], message: str):
    source = RecallSource(opened(tmp_path / "s.jsonl"), tokens)
    with pytest.raises(InvalidArguments, match=message):
        await source.call(Call(tool="recall", arguments=arguments))
    with pytest.raises(UnknownTool):
        await source.call(Call(tool="remember"))


class Counting(Quick):
    """How often an archive was read."""

    read_archives = 0

    def read(self, path: Path, start: int = 0) -> tuple[bytes, Stamp]:
        self.read_archives += ".archive-" in path.parent.name
        return super().read(path, start)


def test_what_is_remembered_ahead_is_found_without_reading_it_again(tmp_path: Path):
    files = Counting()
    session = compacted(tmp_path / "s.jsonl", files=files)
    found = opened(tmp_path / "s.jsonl").recall("ferry", limit=20, room=500, count=tokens)
    session.remember()
    assert files.read_archives == 1
    assert session.recall("ferry", limit=20, room=500, count=tokens) == found
    assert files.read_archives == 1


def test_to_remember_where_nothing_was_let_go_is_no_error(tmp_path: Path):
    session = opened(tmp_path / "s.jsonl", format=Format.ANTHROPIC)
    session.remember()
    assert session.recall("ferry", limit=20, room=500, count=tokens).found == 0
