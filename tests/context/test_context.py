import json
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, current_thread, main_thread
from typing import Any, cast

import anyio
import pytest

from context.sessions import ASKED, METER, Summarising, result, steps, talk
from ullage.context import Context, Options, Session, SummaryAnswer, SummaryRequest
from ullage.errors import InvalidArguments, UnreadableRequest
from ullage.messages import Format, Message, Text, faults
from ullage.models import Usage
from ullage.tool import JsonObject

pytestmark = pytest.mark.anyio

WINDOW = 4_000
SMALL = Options(context_window=WINDOW)


def context(*messages: JsonObject, options: Options = SMALL, **others: Any) -> Context:  # noqa: ANN401
    made = Context(model="gpt-4o", meter=METER, options=options, **others)
    made.add(*messages)
    return made


def texts(messages: tuple[object, ...]) -> str:
    return json.dumps([cast("JsonObject", one) for one in messages])


@pytest.mark.requirement("S2:status")
async def test_under_the_threshold_everything_goes_out_as_it_was_given():
    messages = talk(3)
    prepared = await context(*messages).prepare()
    assert [id(one) for one in prepared.messages] == [id(one) for one in messages]
    assert prepared.event["type"] == "context_status"
    told = cast("JsonObject", prepared.event["context"])
    assert told["compacted"] is False
    assert "before" not in told
    assert told["used"] == prepared.status.used


@pytest.mark.requirement("S2:compact:when", "S2:compact:how", "S2:compact:after", "S2:status")
async def test_at_the_threshold_the_head_becomes_one_summary_and_the_tail_stays():
    messages, summarising = talk(60), Summarising()
    prepared = await context(*messages, summarizer=summarising).prepare()
    assert prepared.compacted
    first = cast("JsonObject", prepared.messages[0])
    assert first["role"] == "user"
    assert str(first["content"]).startswith("<context_summary>\n")
    assert str(first["content"]).endswith("\n</context_summary>")
    assert "Next steps: April." in str(first["content"])
    assert prepared.messages[-1] is messages[-1]
    assert prepared.status.usage_percent < 50
    assert prepared.before is not None
    assert prepared.before.usage_percent >= 65
    told = cast("JsonObject", prepared.event["context"])
    assert told["compacted"] is True
    assert cast("JsonObject", told["before"])["used"] == prepared.before.used


@pytest.mark.requirement("S2:compact:how", "S2:compact:when", "S2:task")
@pytest.mark.parametrize(("summarizer", "fate"), [(Summarising(), "summarised"), (None, "digested")])
async def test_each_message_of_the_head_is_reported_with_what_became_of_it(summarizer: Summarising | None, fate: str):
    messages = [{"role": "user", "content": ASKED}, *talk(60)]
    prepared = await context(*messages, summarizer=summarizer).prepare()
    tail = len(prepared.messages) - 1
    fates = {place: one.fate for one in prepared.dropped for place in range(one.first, one.last + 1)}
    assert sorted(fates) == [*range(1, len(messages) - tail + 1)]
    assert fates[1] == "in_summary"
    assert fate in fates.values()
    assert set(fates.values()) <= {fate, "in_summary", "excerpt_in_summary"}


@pytest.mark.requirement("S2:status")
async def test_the_event_tells_all_that_is_known_of_the_window_and_of_what_was_let_go(tmp_path: Path):
    tools = [{"type": "function", "function": {"name": "clock", "description": "Tells the time.", "parameters": {}}}]
    made = context(
        *talk(60), summarizer=Summarising(), system="Be brief.", tools=tools, session=Session.open(tmp_path / "s.jsonl")
    )
    prepared = await made.prepare()
    status, before = prepared.status, prepared.before
    assert before is not None
    (shed,) = prepared.sheds
    expected = {
        **status.to_json(),
        "compacted": True,
        "before": before.to_json(),
        "shed": [
            {
                "tier": "summarise",
                "tokens": shed.tokens,
                "messages": shed.messages,
                "brokeAt": shed.broke_at,
                "reread": shed.reread,
            }
        ],
        "dropped": [
            {"first": one.first, "last": one.last, "fate": one.fate, "tokens": one.tokens} for one in prepared.dropped
        ],
        "generation": prepared.generation,
    }
    assert prepared.event == {"type": "context_status", "context": expected}
    assert prepared.dropped
    for usage in (status, before):
        told = cast("dict[str, Any]", usage.to_json())
        parts = told.pop("breakdown")
        assert told == {
            "model": "gpt-4o",
            "contextWindow": WINDOW,
            "systemPrompt": usage.system_prompt,
            "toolDefinitions": usage.tool_definitions,
            "messages": usage.messages,
            "used": usage.used,
            "free": max(0, WINDOW - usage.used),
            "usagePercent": min(100.0, 100 * usage.used / WINDOW),
            "compactThreshold": 65.0,
            "willCompact": usage is before,
            "overflow": max(0, usage.used - WINDOW),
            "resolved": True,
            "method": "exact",
            "low": usage.used,
            "high": usage.used,
            "reserve": 0.15 * WINDOW,
        }
        assert parts["tools"] == [{"name": "clock", "server": None, "tokens": parts["tools"][0]["tokens"]}]
        assert parts["system"] == usage.system_prompt
        assert usage.tool_definitions == parts["toolsAdded"] + parts["tools"][0]["tokens"]
        kinds = ("user", "assistant", "toolCalls", "toolResults", "images", "thinking", "summary")
        assert sum(parts[kind] for kind in kinds) == usage.messages
        assert (parts["images"], parts["thinking"]) == (0, 0)
        assert (parts["free"], parts["reserve"]) == (told["free"], told["reserve"])


@pytest.mark.requirement("S2:compact:when")
async def test_something_is_let_go_from_the_threshold_on_and_not_before_it():
    messages = talk(60)
    used = context(*messages).status().used
    for usual, least in (
        (Options(), 0.65),
        (Options(compact_threshold=0.8), 0.8),
        (Options(compact_threshold=0.7), 0.7),
    ):
        window = int(used / least)  # the largest window of which the history fills the threshold's share
        for more, is_compacted in ((0, True), (2, False)):
            options = replace(usual, context_window=window + more)
            made = context(*messages, options=options, summarizer=Summarising())
            assert made.status().will_compact is is_compacted
            assert (await made.prepare()).compacted is is_compacted


@pytest.mark.requirement("S2:compact:when")
async def test_15_hundredths_of_the_window_stay_free_whatever_the_threshold():
    messages = talk(60)
    used = context(*messages).status().used
    window = int(used / 0.85)
    for more, is_compacted in ((0, True), (3, False)):
        options = Options(context_window=window + more, compact_threshold=0.99)
        prepared = await context(*messages, options=options, summarizer=Summarising()).prepare()
        assert prepared.compacted is is_compacted
        assert prepared.status.used <= 0.85 * prepared.status.context_window


@pytest.mark.requirement("S2:compact:valid", "S2:compact:how")
async def test_what_remains_is_valid_and_the_users_words_stand_in_the_summary():
    messages = [{"role": "user", "content": ASKED}, *steps(60)]
    prepared = await context(*messages, summarizer=Summarising()).prepare()
    assert prepared.compacted
    assert faults(prepared.messages, Format.OPENAI_CHAT, original=messages) == ()
    summary, *tail = cast("list[JsonObject]", list(prepared.messages))
    assert ASKED in str(summary["content"])
    assert all(one is message for one, message in zip(tail, messages[-len(tail) :], strict=True))


@pytest.mark.requirement("S2:compact:how")
async def test_pinned_messages_stay_the_same_objects():
    made = context({"role": "user", "content": "Always answer in Portuguese."})
    pinned: JsonObject = {"role": "assistant", "content": "The key of the vault is 7-4-1."}
    made.add(pinned, pinned=True)
    made.add(*talk(60))
    prepared = await made.prepare()
    assert prepared.compacted
    assert any(one is pinned for one in prepared.messages)


@pytest.mark.requirement("S2:compact:when", "S2:options")
async def test_nothing_is_let_go_where_that_is_switched_off():
    prepared = await context(*talk(80), options=replace(SMALL, disable_compaction=True)).prepare()
    assert not prepared.compacted
    assert not prepared.status.will_compact


@pytest.mark.requirement("S2:compact:how")
async def test_where_masking_is_enough_no_model_is_asked():
    summarising = Summarising()
    messages = [*steps(24, words=700), {"role": "user", "content": "And now?"}]
    prepared = await context(
        {"role": "user", "content": ASKED},
        *messages,
        options=Options(context_window=30_000, keep=0.20),
        summarizer=summarising,
    ).prepare()
    assert prepared.compacted
    assert summarising.asked == []
    assert {shed.tier for shed in prepared.sheds} <= {"clamp", "mask"}
    assert prepared.status.usage_percent < 50
    assert "src/module_0.py" in texts(prepared.messages)


@pytest.mark.requirement("S2:compact:fail", "S2:compact:persist")
@pytest.mark.parametrize(
    "answer",
    [
        OSError("the line is dead"),
        "",
        "   \n",
        SummaryAnswer(text="I", complete=False),
        SummaryAnswer(text="I cannot help with that.", refused=True),
        "word " * 40_000,
    ],
)
async def test_a_summariser_that_fails_costs_three_calls_at_most_and_the_session_goes_on(
    answer: str | Exception | SummaryAnswer,
):
    summarising = Summarising(answers=(answer,))
    made = context(*talk(50), summarizer=summarising)
    for step in range(6):
        made.add({"role": "user", "content": f"Go on, step {step}."}, {"role": "assistant", "content": "Yes."})
        prepared = await made.prepare()
        assert prepared.messages
    assert 1 <= len(summarising.asked) <= 3


@pytest.mark.requirement("S2:compact:fail")
async def test_a_failure_is_told_in_the_event():
    summarising = Summarising(answers=(OSError("the line is dead"),))
    made = context(*talk(45), summarizer=summarising)
    prepared = await made.prepare()
    assert prepared.status.used < prepared.status.context_window * 0.85
    assert "the line is dead" in str(cast("JsonObject", prepared.event["context"])["warning"])


@pytest.mark.requirement("S2:compact:fail")
async def test_a_summariser_that_hangs_holds_a_call_no_longer_than_is_said():
    options = replace(SMALL, summary_timeout=0.05)
    made = context(*talk(45), options=options, summarizer=Summarising(hangs=True))
    with anyio.fail_after(5):
        prepared = await made.prepare()
    assert prepared.messages
    assert "no answer in 0.05 seconds" in str(cast("JsonObject", prepared.event["context"])["warning"])
    assert Options().summary_timeout == 60


@pytest.mark.requirement("S2:compact:fail", "S2:compact:how")
async def test_at_the_hard_limit_a_digest_takes_the_summarys_place():
    summarising = Summarising(answers=(OSError("the line is dead"),))
    prepared = await context(*talk(90), summarizer=summarising).prepare()
    assert prepared.compacted
    assert "digest" in {shed.tier for shed in prepared.sheds}
    assert prepared.status.used < 0.85 * WINDOW
    assert ASKED in texts(prepared.messages)


@pytest.mark.requirement("S2:long", "S2:compact:persist")
async def test_a_session_of_hundreds_of_messages_never_overflows():
    made = context({"role": "user", "content": ASKED}, summarizer=Summarising())
    compactions = 0
    for step in range(150):
        prepared = await made.prepare()
        assert prepared.status.used < WINDOW
        compactions += prepared.compacted
        call, answer = steps(1)
        made.add({**call}, {**answer, "content": result(step, 120)})
    assert compactions > 3


@pytest.mark.requirement("S2:compact:how")
async def test_an_earlier_summary_is_brought_up_to_date_and_not_summarised_again():
    summarising = Summarising(answers=("Decisions: the first.", "Decisions: the second."))
    made = context(*talk(60), summarizer=summarising)
    await made.prepare()
    made.add(*talk(60))
    prepared = await made.prepare()
    assert texts(prepared.messages).count("<context_summary>") == 1
    assert "Decisions: the second." in texts(prepared.messages)
    assert "Decisions: the first." in summarising.asked[1].text + summarising.asked[1].instructions


@pytest.mark.requirement("S2:compact:when")
async def test_a_load_above_the_threshold_is_told_and_not_looped_on():
    summarising = Summarising()
    made = context(*talk(3), summarizer=summarising, system=[{"role": "system", "content": "Mind the gap. " * 700}])
    for _ in range(3):
        prepared = await made.prepare()
        assert not prepared.compacted
        assert prepared.warning is not None
        assert "alone weigh" in prepared.warning
    assert summarising.asked == []


@pytest.mark.requirement("S2:usage")
async def test_reported_usage_anchors_the_next_figure():
    made = context(*talk(5))
    prepared = await made.prepare()
    answer: JsonObject = {"role": "assistant", "content": "April is right."}
    made.observe(
        {
            "choices": [{"message": answer}],
            "usage": {"prompt_tokens": prepared.status.used + 40, "completion_tokens": 5, "total_tokens": 0},
        }
    )
    status = made.status()
    assert status.method == "anchored"
    assert status.used >= prepared.status.used + 40
    assert made.messages[-1] == answer


@pytest.mark.requirement("S2:usage")
async def test_usage_and_answer_may_be_given_apart():
    made = context(*talk(5))
    prepared = await made.prepare()
    made.observe(usage=Usage(input=prepared.status.used, output=4), answer=[{"role": "assistant", "content": "Yes."}])
    assert made.status().method == "anchored"


@pytest.mark.requirement("S2:long")
async def test_an_overflow_teaches_the_window_and_the_next_call_fits_it():
    made = context(*talk(60), options=Options(context_window=None), summarizer=Summarising())
    assert not (await made.prepare()).compacted
    learnt = made.overflowed("This model's maximum context length is 3000 tokens. However, you asked for more.")
    assert learnt == 3_000
    prepared = await made.prepare()
    assert prepared.compacted
    assert prepared.status.context_window == 3_000
    assert prepared.status.used < 3_000


@pytest.mark.requirement("S2:long")
async def test_an_overflow_without_a_figure_makes_the_window_smaller_than_what_was_sent():
    made = context(*talk(30), options=Options(context_window=None))
    used = made.status().used
    assert made.overflowed("input is too long") < used


@pytest.mark.requirement("S2:compact:when")
async def test_a_plan_touches_nothing_and_asks_nobody():
    summarising = Summarising()
    made = context(*talk(60), summarizer=summarising)
    before = made.messages
    plan = await made.plan()
    assert plan.compaction.compacted
    assert plan.after.used < plan.before.used
    assert plan.to_json()["compacted"] is True
    assert summarising.asked == []
    assert all(now is then for now, then in zip(made.messages, before, strict=True))


@pytest.mark.requirement("S2:compact:when")
async def test_compacting_now_needs_no_threshold():
    made = context(*talk(60), options=Options(context_window=200_000))
    prepared = await made.compact()
    assert prepared.compacted
    assert prepared.before is not None
    assert prepared.status.used < 0.9 * prepared.before.used


@pytest.mark.requirement("S2:compact:persist", "S2:compact:how")
async def test_with_a_session_the_summary_replaces_the_originals_and_they_stay_recoverable(tmp_path: Path):
    session = Session.open(tmp_path / "talk.jsonl", format=Format.OPENAI_CHAT)
    messages = talk(60)
    made = context(*messages, session=session, summarizer=Summarising())
    prepared = await made.prepare()
    assert prepared.generation == 1
    again = Session.open(tmp_path / "talk.jsonl")
    assert [record.message for record in again.records] == list(prepared.messages)
    assert [record.message for record in again.history(full=True)] == messages
    assert again.verify().ok


@pytest.mark.requirement("S2:compact:persist")
async def test_a_context_takes_up_what_its_session_holds(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    context(*talk(4), session=Session.open(path, format=Format.OPENAI_CHAT)).status()
    resumed = context(session=Session.open(path))
    assert list(resumed.messages) == talk(4)


async def test_neutral_messages_come_back_as_they_were(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    message = Message(role="user", parts=(Text("hello"),))
    made = Context(model="gpt-4o", meter=METER, session=Session.open(path, format=Format.ULLAGE))
    made.add(message)
    resumed = Context(model="gpt-4o", meter=METER, session=Session.open(path))
    assert resumed.messages == (message,)


@pytest.mark.requirement("S2:compact:persist")
async def test_what_another_process_wrote_is_taken_in(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    made = context(*talk(2), session=Session.open(path, format=Format.OPENAI_CHAT))
    Session.open(path).append([{"role": "user", "content": "from elsewhere"}])
    prepared = await made.prepare()
    assert prepared.messages[-1] == {"role": "user", "content": "from elsewhere"}


@pytest.mark.requirement("S2:compact:persist")
async def test_what_another_process_let_go_is_let_go_here_too(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    made = context(*talk(60), session=Session.open(path, format=Format.OPENAI_CHAT))
    other = await context(session=Session.open(path)).prepare()
    prepared = await made.prepare()
    assert list(prepared.messages) == list(other.messages)


@pytest.mark.requirement("S2:compact:persist", "S2:compact:how")
async def test_what_is_added_while_a_summary_is_made_is_kept(tmp_path: Path):
    session = Session.open(tmp_path / "talk.jsonl", format=Format.OPENAI_CHAT)
    late: JsonObject = {"role": "assistant", "content": "I came late."}
    made = context(*talk(60), session=session)

    class Meanwhile(Summarising):
        async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
            made.add(late)
            return await super().summarize(request)

    made.summarizer = Meanwhile()
    await made.prepare()
    assert (await made.prepare()).messages[-1] == late
    assert Session.open(session.path).records[-1].message == late


async def test_the_format_is_told_anew_when_more_is_known():
    made = Context(model="some-model", meter=METER)
    made.add({"role": "user", "content": "hello"})
    made.status()
    made.add({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]})
    made.add({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "seen"}]})
    assert made.status().breakdown.messages["tool_results"] > 0


@pytest.mark.requirement("S2:compact:persist")
async def test_recall_is_offered_where_something_can_be_found(tmp_path: Path):
    session = Session.open(tmp_path / "talk.jsonl", format=Format.OPENAI_CHAT)
    (source,) = context(session=session).tools_of_its_own
    assert [tool.name for tool in (await source.tools()).tools] == ["recall"]
    assert context().tools_of_its_own == ()
    assert context(session=Session.open(tmp_path / "other.jsonl", archive=False)).tools_of_its_own == ()


@pytest.mark.requirement("S2:compact:persist")
async def test_where_another_lets_go_of_the_same_meanwhile_nothing_is_lost(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    messages = talk(60)
    made = context(*messages, session=Session.open(path, format=Format.OPENAI_CHAT))

    class Meanwhile(Summarising):
        async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
            other = context(session=Session.open(path), summarizer=Summarising())
            await other.prepare()
            return await super().summarize(request)

    made.summarizer = Meanwhile()
    prepared = await made.prepare()
    assert prepared.compacted
    assert "somebody else" in str(prepared.warning)
    again = await made.prepare()
    assert list(again.messages) == [record.message for record in Session.open(path).records]
    assert [record.message for record in Session.open(path).history(full=True)] == messages


@pytest.mark.requirement("S2:compact:persist")
async def test_what_is_added_and_asked_for_while_a_history_is_weighed_is_kept():
    made, late = context(*talk(200)), {"role": "assistant", "content": "I came late."}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.prepare)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        made.add(late)
        made.status()
    assert made.messages[-1] is late


@dataclass
class Waiting(Summarising):
    """Is done when it is told."""

    def __post_init__(self) -> None:
        self.begun, self.may_end = anyio.Event(), anyio.Event()

    async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
        self.begun.set()
        await self.may_end.wait()
        return await super().summarize(request)


@pytest.mark.requirement("S2:compact:how")
async def test_two_tasks_that_prepare_at_once_have_one_summary_made_and_lose_nothing():
    waiting = Waiting()
    made, late = context(*talk(60), summarizer=waiting), {"role": "user", "content": "One thing more."}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.prepare)
        tasks.start_soon(made.prepare)
        await waiting.begun.wait()
        made.add(late)
        made.status()
        waiting.may_end.set()
    assert len(waiting.asked) == 1
    assert made.messages[-1] is late
    assert faults(made.messages, Format.OPENAI_CHAT) == ()


@pytest.mark.requirement("S2:compact:how")
async def test_the_system_prompt_and_the_tools_may_change_while_a_summary_is_made():
    waiting = Waiting()
    made, told = context(*talk(60), summarizer=waiting), list[int]()

    async def prepare() -> None:
        told.append((await made.prepare()).status.system_prompt)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prepare)
        await waiting.begun.wait()
        made.instruct("Be brief. " * 30)
        made.offer([{"type": "function", "function": {"name": "look", "parameters": {}}}])
        waiting.may_end.set()
    assert told == [made.status().system_prompt]
    assert told[0] > 60


class Halting(Session):
    """Halts in a worker's thread where it is told to, until the event loop has done something."""

    halts_at: str | None = None

    def refresh(self):
        if self.halts_at == "refresh":
            self._halt()
        return super().refresh()

    def replace(self, *given: Any, **named: Any):  # noqa: ANN401
        made = super().replace(*given, **named)
        if self.halts_at == "replace":
            self._halt()
        return made

    def prepare_to_halt(self, at: str) -> None:
        self.halts_at, self.halted, self.goes_on = at, Event(), Event()

    def _halt(self) -> None:
        if current_thread() is not main_thread():
            self.halts_at = None
            self.halted.set()
            self.goes_on.wait(10)


@pytest.mark.requirement("S2:compact:persist")
@pytest.mark.parametrize("at", ["refresh", "replace"])
async def test_what_is_added_while_the_file_is_read_or_swapped_is_there_once(at: str, tmp_path: Path):
    session = Halting.open(tmp_path / "talk.jsonl", format=Format.OPENAI_CHAT)
    assert isinstance(session, Halting)
    made, late = context(*talk(60), session=session), {"role": "assistant", "content": "I came late."}
    session.prepare_to_halt(at)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.prepare)
        await anyio.to_thread.run_sync(session.halted.wait)
        made.add(late)
        session.goes_on.set()
    assert list(made.messages) == [record.message for record in Session.open(session.path).records]
    assert made.messages.count(late) == 1


@pytest.mark.requirement("S2:compact:persist")
async def test_what_another_process_left_untouched_is_the_same_object_still(tmp_path: Path):
    path, messages = tmp_path / "talk.jsonl", talk(60)
    made = context(*messages, session=Session.open(path, format=Format.OPENAI_CHAT))
    await context(session=Session.open(path)).prepare()
    prepared = await made.prepare()
    assert "<context_summary>" in texts(prepared.messages)
    assert prepared.messages[-1] is messages[-1]


@pytest.mark.requirement("S2:compact:persist")
async def test_a_file_that_is_gone_is_told_and_what_is_known_is_sent(tmp_path: Path):
    made = context(*talk(2), session=Session.open(tmp_path / "talk.jsonl", format=Format.OPENAI_CHAT))
    (tmp_path / "talk.jsonl").unlink()
    prepared = await made.prepare()
    assert list(prepared.messages) == talk(2)
    assert "is gone" in str(prepared.warning)


@pytest.mark.requirement("S2:compact:persist")
async def test_a_paste_larger_than_the_window_is_truncated_and_stays_whole_in_the_archive(tmp_path: Path):
    session = Session.open(tmp_path / "talk.jsonl", format=Format.OPENAI_CHAT)
    paste = "".join(f"line {number} of what was pasted\n" for number in range(1_500))
    prepared = await context({"role": "user", "content": paste}, session=session).prepare()
    (left,) = cast("list[JsonObject]", list(prepared.messages))
    assert prepared.status.usage_percent <= 50
    assert str(left["content"]).startswith("line 0 ")
    assert "line 1499 of what was pasted" in str(left["content"])
    assert [(one.first, one.fate) for one in prepared.dropped] == [(1, "truncated")]
    assert "message 1 of the user's" in str(prepared.warning)
    found = session.recall("line 700 of what was pasted", limit=3, room=500, count=len)
    assert "line 700 of what was pasted" in found.text
    assert session.history(full=True)[0].message["content"] == paste


@pytest.mark.requirement("S2:long")
@pytest.mark.parametrize("wrong", [talk(1), None, 7, object()])
async def test_what_is_no_message_is_refused_before_it_is_part_of_the_history(wrong: object):
    made = context(*talk(1))
    with pytest.raises((InvalidArguments, UnreadableRequest)):
        made.add(wrong)
    assert len((await made.prepare()).messages) == len(talk(1))


@pytest.mark.requirement("S2:usage")
async def test_what_the_provider_adds_out_of_sight_is_no_less_after_a_compaction_and_is_reckoned_with():
    made, hidden = context(*talk(20), summarizer=Summarising()), 1_000
    prepared = await made.prepare()
    made.observe(usage=Usage(input=prepared.status.used + hidden, output=1))
    made.add(*steps(6))
    prepared = await made.prepare()
    assert prepared.compacted
    assert prepared.status.used >= prepared.status.weighed + hidden
    assert prepared.status.usage_percent < 50


@pytest.mark.requirement("S2:long")
@pytest.mark.parametrize("said", ["maximum context length is 3000 tokens", "maximum context length is 64000 tokens"])
@pytest.mark.parametrize("window", [None, 100_000])
@pytest.mark.parametrize("answer", ["Decisions: round half up. Next steps: April.", OSError("the line is dead")])
async def test_what_a_provider_refused_is_never_sent_again(said: str, window: int | None, answer: str | Exception):
    """Whatever the user said of the window, and however little we weigh what it refused."""
    summarising = Summarising(answers=(answer,))
    made = context(*talk(60), options=Options(context_window=window), summarizer=summarising)
    used = (await made.prepare()).status.used
    for _ in range(3):
        made.overflowed(said)
        prepared = await made.prepare()
        assert prepared.status.used < 0.9 * used
        used = prepared.status.used


async def test_a_summariser_that_outlasts_its_waiters_is_asked_three_times_at_most():
    scopes = list[anyio.CancelScope]()

    class Outlasting(Summarising):
        async def summarize(self, request: SummaryRequest) -> SummaryAnswer:
            scopes[-1].cancel()
            return await super().summarize(request)

    outlasting = Outlasting(hangs=True)
    made = context(*talk(50), summarizer=outlasting)
    for _ in range(5):
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await made.prepare()
    assert len(outlasting.asked) == 3
    assert made.status().used < WINDOW


@pytest.mark.requirement("S2:compact:persist", "S2:compact:when")
@pytest.mark.parametrize(
    ("name", "offered"), [("recall", True), ("context__recall", True), ("recall_order", False), (None, False)]
)
async def test_a_model_is_sent_to_recall_only_where_it_has_that_tool(
    name: str | None,
    offered: bool,  # noqa: FBT001
    tmp_path: Path,
):
    session = Session.open(tmp_path / "talk.jsonl", format=Format.OPENAI_CHAT)
    recall = {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    made = context(*talk(60), session=session, tools=[recall] if name else [])
    prepared = await made.prepare()
    assert prepared.compacted
    assert ("recall(" in texts(prepared.messages)) is offered


@pytest.mark.parametrize("offered", [True, False])
async def test_what_is_let_go_is_made_ready_for_a_model_that_can_ask_for_it(
    offered: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    session, remembered = Session.open(tmp_path / "talk.jsonl", format=Format.OPENAI_CHAT), list[int]()
    monkeypatch.setattr(session, "remember", lambda: remembered.append(session.generation))
    recall = {"type": "function", "function": {"name": "recall", "parameters": {"type": "object"}}}
    made = context(*talk(60), session=session, tools=[recall] if offered else [])
    assert (await made.prepare()).compacted
    assert remembered == ([1] if offered else [])


@pytest.mark.requirement("S2:window", "S2:compact:persist")
async def test_a_session_remembers_the_window_it_ran_in(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    with Session.open(path, format=Format.OPENAI_CHAT) as session:
        await context(*talk(2), session=session, options=Options(context_window=24_000)).prepare()
    with Session.open(path) as session:
        assert context(session=session, options=Options()).status().context_window == 24_000
        assert context(session=session, options=Options(context_window=64_000)).status().context_window == 64_000
        other = Context(model="gpt-4.1", meter=METER, session=session)
        assert other.status().context_window != 24_000
        again = context(*talk(40), session=session, options=Options())
        assert again.overflowed("This model's maximum context length is 9000 tokens.") == 9_000
        assert (await again.prepare()).compacted
    with Session.open(path) as session:
        assert session.window("gpt-4o") == 9_000
        assert session.verify().ok
        assert context(session=session, options=Options()).status().context_window == 9_000
