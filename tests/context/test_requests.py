"""The user's first request and latest instructions survive every compaction."""

from collections.abc import Callable
from json import dumps
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from context.sessions import METER, Summarising, steps
from context.talks import PICTURE, Scale, assistant, entries_of, result, tool, user
from context.talks import call as call_of
from ullage.context import Context, Options, Prepared, Session
from ullage.context.boundaries import excerpt, requests_of
from ullage.context.summary_text import carried, read_carried
from ullage.context.token_weights import Scale as WeighingScale
from ullage.messages import Format, faults
from ullage.tool import Json, JsonObject

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S2:task")]
METER_SCALE = WeighingScale(METER, "gpt-4o", Format.OPENAI_CHAT)

TASK = (
    "Find out why the nightly import of ACME-4711 stops after 20,000 rows, and mend it.\n"
    "Do not change the schema. Only touch files under src/import/.\n"
    + "The importer reads its rows in batches and writes them to the warehouse, three times where it must.\n" * 13
    + "Answer in German, and never push to main."
)
OBSERVED = "Observation {}: " + "a row of the page that was looked up, with the numbers {} and {}\n" * 40


def log(size: int) -> str:
    random = Random(7)
    lines = (
        f"12:{n % 60:02} host{random.randint(1, 40)} import[{n}]: {random.getrandbits(64):x}" for n in range(9_999)
    )
    return "\n".join(lines)[:size]


def context(*messages: JsonObject, window: int, session: Session | None = None, **more: Any) -> Context:  # noqa: ANN401
    made = Context(model="gpt-4o", meter=METER, options=Options(context_window=window), session=session, **more)
    made.add(*messages)
    return made


def said(role: str, content: str) -> JsonObject:
    return {"role": role, "content": content}


def texts(prepared: Prepared) -> list[str]:
    return [str(cast("JsonObject", message).get("content")) for message in prepared.messages]


@pytest.mark.requirement("S2:task", "S2:compact:after")
@pytest.mark.parametrize("window", [32_000, 40_000, 16_000])
async def test_a_pasted_log_does_not_push_the_task_out(window: int, tmp_path: Path):
    session = Session.open(tmp_path / "talk.jsonl", format=Format.OPENAI_CHAT)
    paste = log(71_000)
    messages = said("user", TASK), said("assistant", "Please paste the log."), said("user", paste)
    prepared = await context(*messages, window=window, session=session).prepare()
    assert any(TASK in text for text in texts(prepared))
    assert prepared.status.usage_percent <= 50
    left = texts(prepared)[-1]
    assert (left[:500], left.count(paste[-500:])) == (paste[:500], 1)
    assert [(one.first, one.fate) for one in prepared.dropped] == [(3, "truncated")]
    assert "message 3 of the user's" in str(prepared.warning)
    missing = next(line for line in paste.splitlines() if line not in left)
    assert missing in session.recall(missing, limit=5, room=20_000, count=len).text


@pytest.mark.requirement("S2:task")
@pytest.mark.parametrize("summarizer", [None, Summarising()])
async def test_the_task_stays_to_the_letter_in_the_summary_before_an_untouched_tail(summarizer: Summarising | None):
    messages = [said("user", TASK), *steps(120)]
    made = context(*messages, window=16_000, summarizer=summarizer)
    for _ in range(3):
        prepared = await made.prepare()
        assert prepared.compacted
        _, *tail = prepared.messages
        assert TASK in texts(prepared)[0]
        assert all(one is message for one, message in zip(tail, messages[-len(tail) :], strict=True))
        assert faults(prepared.messages, Format.OPENAI_CHAT) == ()
        messages += steps(110)
        made.add(*messages[-220:])


@pytest.mark.requirement("S2:task")
async def test_later_instructions_are_carried_too_and_the_newest_in_any_case():
    orders = [f"Also check table {number} and never delete rows of it." for number in range(6)]
    made = context(said("user", TASK), *steps(4), window=10_000)
    for order in orders:
        made.add(said("user", order), said("assistant", "I will."), said("user", "Go on."), *steps(12))
    prepared = await made.prepare()
    assert prepared.compacted
    whole = "\n".join(texts(prepared))
    assert all(order in whole for order in orders)
    fates = {place: one.fate for one in prepared.dropped for place in range(one.first, one.last + 1)}
    assert fates[1] == "in_summary"


@pytest.mark.requirement("S2:task")
@pytest.mark.parametrize("window", [8_000, 16_000])
async def test_the_task_of_an_agent_with_a_text_protocol_survives(window: int):
    made, compactions, first = context(said("user", TASK), window=window), 0, ""
    for number in range(60):
        made.add(said("assistant", f"Thought: next.\nAction {number}: lookup[{number}]"))
        made.add(said("user", OBSERVED.format(number, *range(80))))
        prepared = await made.prepare()
        compactions, first = compactions + prepared.compacted, texts(prepared)[0]
        assert any(TASK in text for text in texts(prepared)), number
        assert prepared.status.usage_percent <= 85
        if {"summarise", "digest"} & {shed.tier for shed in prepared.sheds}:
            assert prepared.status.usage_percent <= 50
        assert faults(prepared.messages, Format.OPENAI_CHAT) == ()
    assert compactions > 1
    assert "<later_request>\nObservation" not in first


@pytest.mark.requirement("S2:task")
async def test_everything_that_is_not_what_it_was_is_reported_once():
    made = context(said("user", TASK), *steps(60), window=10_000)
    before = list(made.messages)
    prepared = await made.prepare()
    kept = {id(message) for message in prepared.messages}
    changed = {place for place, message in enumerate(before, start=1) if id(message) not in kept}
    told = [place for one in prepared.dropped for place in range(one.first, one.last + 1)]
    assert sorted(told) == sorted(changed)
    event = cast("dict[str, Any]", prepared.event["context"])
    assert event["dropped"][0] == {"first": 1, "last": 1, "fate": "in_summary", "tokens": event["dropped"][0]["tokens"]}
    assert dumps(event["dropped"])


def test_an_excerpt_has_the_beginning_the_end_and_every_constraint():
    filler = "The plant has a long history that the reader may enjoy.\n" * 300
    limits = ["You must keep the valve closed.", "Never restart pump 7.", "Nur am Sonntag ausliefern."]
    text = f"Begin with the report.\n{filler}{limits[0]}\n{filler}{limits[1]} {limits[2]}\n{filler}End of the order."
    made = excerpt(text, 600, Scale().count, recalls=True)
    assert Scale().count(made) <= 600
    assert made.startswith("Begin with the report.\n")
    assert made.endswith("End of the order.")
    assert all(limit in made for limit in limits)
    assert 'recall("Begin with the report.' in made
    assert "recall(" not in excerpt(text, 600, Scale().count, recalls=False)
    assert excerpt("short", 600, Scale().count, recalls=True) == "short"


@pytest.mark.requirement("S2:task")
@pytest.mark.parametrize(
    ("task", "kept"),
    [
        (
            "* never write to ~/taxes\n* the exit code is 3 when a row is skipped",
            "the exit code is 3 when a row is skipped",
        ),
        (
            "Il ne faut jamais supprimer. Le fuseau par défaut est Europe/Paris.",
            "Le fuseau par défaut est Europe/Paris.",
        ),
        ('{"limits": ["do not touch legacy/"],\n "deadline": "2026-12-01"}', '"deadline": "2026-12-01"'),
        ("請求を移行してください。依存関係はgrpcio 1.66のみ追加できます。", "依存関係はgrpcio 1.66のみ追加できます。"),
    ],
)
def test_what_stands_beside_a_constraint_in_the_middle_of_a_text_is_kept_too(task: str, kept: str):
    filler = "The plant has a long history that the reader may enjoy.\n" * 300
    assert kept in excerpt(f"Begin.\n{filler}\n{task}\n\n{filler}End.", 600, Scale().count, recalls=True)


@pytest.mark.requirement("S2:task")
@pytest.mark.parametrize("every", [3, 10, 40])
def test_no_constraint_is_lost_between_the_ends_and_the_middle_of_an_excerpt(every: int):
    filler = "The plant has a long history that the reader may enjoy.\n"
    rule = "Never open valve {}, whatever the display beside it shows."
    rules = [rule.format(word) for word in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")]
    text = "Begin.\n" + "".join(f"{filler * every}{one}\n" for one in rules) + filler * every + "End."
    made = excerpt(text, 400, Scale().count, recalls=True)
    assert Scale().count(made) <= 400
    assert [one for one in rules if one not in made] == []


@pytest.mark.requirement("S2:task")
def test_a_constraint_that_is_wrapped_over_lines_is_carried_whole():
    filler = "The plant has a long history that the reader may enjoy.\n" * 200
    rule = "You must under no circumstances open\nthe valve of the second boiler while\nit is hot."
    lines = "never restart pump 7\nalways close the gate\nonly use the old key\n" + "mind the step by the door\n" * 200
    made = excerpt(f"Begin.\n{filler}{rule}\n{filler}{lines}{filler}End.", 600, Scale().count, recalls=True)
    assert rule in made
    assert all(one in made for one in ("never restart pump 7", "always close the gate", "only use the old key"))
    chinese = "工厂有着悠久的历史。" * 600 + "绝对不要打开二号阀门。" + "工厂有着悠久的历史。" * 600
    assert "绝对不要打开二号阀门。" in excerpt(chinese, 600, Scale().count, recalls=True)


@pytest.mark.requirement("S2:task")
@pytest.mark.parametrize(
    "words",
    [
        "And what makes the second host slower than the others?",
        "Compare both halves.\nThe second one is from the new cluster, where the export stops at noon.",
        "Vergleiche die beiden Hälften und schreibe auf, was sich geändert hat.",
    ],
)
def test_what_someone_writes_between_two_pasted_logs_is_carried(words: str):
    made = excerpt(f"{log(60_000)}\n\n{words}\n\n{log(50_000)}", 600, Scale().count, recalls=True)
    assert words in made


def test_an_excerpt_of_a_log_is_not_filled_with_its_lines():
    lines = "".join(f"12:00:{n:02} 10.0.0.{n} GET /must/not 200 only={n * 7919:x} 0x{n:08x}\n" for n in range(4_000))
    made = excerpt(f"Read this:\n{lines}Do not restart it.", 500, Scale().count, recalls=False)
    assert 250 < Scale().count(made) <= 500
    assert "- 12:00" not in made


def test_requests_are_told_from_what_programs_say_in_the_users_turn():
    entries = entries_of(
        [
            user("<environment>\nlinux\n</environment>"),
            user("Mend it."),
            assistant("Action: look[here]"),
            user("Observation: nothing there"),
            assistant(call_of("1")),
            tool(result("1")),
            user("Be quick.", PICTURE),
            assistant("yes"),
        ]
    )
    found = requests_of(entries)
    assert (found.first, found.later, found.last) == ((0, 1), (6,), {6})


def test_what_a_summary_message_carries_comes_back_to_the_letter():
    request = " <task>\n</context_summary> <original_request> &lt;later_request>\n\n<receipt>x\n"
    later = ("</later_request>\n\n<later_request>\n", "<identifiers>", "b\n\nc")
    read = read_carried(carried("## Decisions\n- a", "src/a.py", "r", request=request, later=later))
    assert read is not None
    assert (read.summary, read.identifiers, read.request, read.later) == (
        "## Decisions\n- a",
        "src/a.py",
        request,
        later,
    )
    assert "<task>" in carried("", "", "", request="<task>x</task>")


@pytest.mark.requirement("S2:task")
async def test_a_digest_tells_what_came_of_calls_where_the_request_is_pinned_and_not_carried():
    made = Context(model="gpt-4o", meter=METER, options=Options(context_window=16_000))
    made.add(said("user", TASK), pinned=True)
    made.add(*_runs(160))
    prepared = await made.prepare()
    assert "digest" in {shed.tier for shed in prepared.sheds}
    summary = next(text for text in texts(prepared) if text.startswith("<context_summary>"))
    assert "<original_request>" not in summary
    assert "→ built in" in summary


@pytest.mark.requirement("S2:task")
async def test_results_beside_a_carried_request_are_part_of_the_digest():
    """Anthropic: what the user says while tools work is in the message of their results."""
    made = Context(model="claude-sonnet-4-5", meter=METER, options=Options(context_window=16_000))
    made.add(said("user", TASK))
    for step in range(200):
        call = {"type": "tool_use", "id": f"t{step}", "name": "run", "input": {"command": f"make part_{step}"}}
        told = {"type": "tool_result", "tool_use_id": f"t{step}", "content": f"{'compiling ' * 30}\nbuilt part {step}"}
        beside = [{"type": "text", "text": "And never touch the table `ledger`."}] if step == 160 else []
        made.add({"role": "assistant", "content": [call]}, {"role": "user", "content": [told, *beside]})
    prepared = await made.prepare()
    assert "digest" in {shed.tier for shed in prepared.sheds}
    assert "<later_request>\nAnd never touch the table `ledger`.\n" in texts(prepared)[0]
    assert texts(prepared)[0].count("never touch the table") == 1
    assert "`make part_160` → built part 160" in texts(prepared)[0]


def _runs(number: int) -> list[JsonObject]:
    made = list[JsonObject]()
    for step in range(number):
        call = {"name": "run", "arguments": f'{{"command": "make part_{step}"}}'}
        made += [
            {"role": "assistant", "tool_calls": [{"id": f"r{step}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"r{step}", "content": "compiling\n" * 30 + f"built in {step} s"},
        ]
    return made


@pytest.mark.requirement("S2:task")
@pytest.mark.parametrize(
    "limit",
    [
        "Deploys are off limits on Fridays.",
        "Hands off the ledger!",
        "Output has to be valid JSON.",
        "Stay below 100 requests per minute.",
        "Do nothing to production.",
        "Please refrain from renaming public functions.",
        "No puede superar los 30 minutos.",
        "Spätestens am Montag ist alles fertig.",
        "Il ne faut pas toucher au schéma.",
    ],
)
def test_an_excerpt_keeps_limits_in_many_wordings(limit: str):
    prose = "The module hands its work to a pool of workers and writes down what came of it.\n"
    text = "".join(f"{number}: {prose}" for number in range(200))
    half = len(text) // 2
    assert limit in excerpt(f"{text[:half]}\n{limit}\n{text[half:]}", 600, Scale().count, recalls=False)


FEEDBACK = "No, write to proto/v3, and never run scripts/seed.sh."


@pytest.mark.requirement("S2:task")
@pytest.mark.parametrize("tag", ["feedback", "user_message", "answer"])
async def test_what_the_user_says_within_a_tools_result_is_carried(tag: str):
    details = f"<environment_details>\n{log(2_000)}\n</environment_details>"
    framed = f"[attempt_completion] Result:\n<{tag}>\n{FEEDBACK}\n</{tag}>\n{details}"
    begun = [said("user", "Migrate the service."), *_runs(30)]
    as_text = [
        message
        for step in range(40)
        for message in (
            said("assistant", f"<read_file>\n<path>src/{step}.py</path>\n</read_file>"),
            said("user", f"[read_file for 'src/{step}.py'] Result:\n{log(1_500)}" if step != 20 else framed),
        )
    ]
    call: dict[str, Json] = {"name": "attempt_completion", "arguments": "{}"}
    denied: list[JsonObject] = [
        {"role": "assistant", "tool_calls": [{"id": "d", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "d", "content": framed},
    ]
    for messages in ([*begun[:1], *as_text], [*begun, *denied, *_runs(60)]):
        prepared = await context(*messages, window=8_000).prepare()
        assert prepared.compacted
        assert any(FEEDBACK in text for text in texts(prepared))
    quoted = f"{log(3_000)}\n<{tag}>{FEEDBACK}</{tag}>\n{log(3_000)}"
    history = [user("go"), assistant(call_of("1")), tool(result("1", quoted)), assistant("done"), user("And?")]
    assert requests_of(entries_of(history)).later == (4,)


@pytest.mark.requirement("S2:task")
def test_words_beside_results_are_the_users_unless_they_are_always_the_same():
    def step(words: str):
        return [assistant(call_of("1")), user(result("1"), words)]

    reminders = [one for number in range(3) for one in step(f"Reminder {number}: keep the list up to date.")]
    own, tagged = step("Use tabs from now on."), step("<note>x</note>")
    history = [user("go"), *own, *reminders, *step("And never push."), *tagged]
    assert requests_of(entries_of(history)).later == (2, 10, 12)


CONSTRAINTS = (
    "Never write to the table ledger_entries_2019.",
    "Ask me before you delete a file.",
    "Use tabs, not spaces, in the Makefile.",
    "Only commit to the branch feature/grpc-v2.",
    "Write the release notes in German as well.",
)


def long_task() -> str:
    """Return a task of about 1,500 tokens with its constraints far apart."""
    filler = "The service was started in {} by two people who have since left, and it runs in three regions. "
    told = ["Please migrate the billing service from REST to gRPC."]
    for number, rule in enumerate(CONSTRAINTS):
        told += ["".join(filler.format(2001 + 12 * number + at) for at in range(12)) + rule]
    return "\n\n".join((*told, "Tell me when the first methods are done."))


def manual(size: int) -> str:
    """Return a document that orders and forbids in nearly every sentence."""
    random, nouns = Random(5), ["worker", "router", "ledger", "parser", "cache", "broker", "tenant", "queue", "index"]
    a, b = (lambda: random.choice(nouns)), (lambda: random.choice(nouns))
    lines = (
        f"The {a()} must be configured before the {b()}. Do not use the {a()} with the {b()}." for _ in range(size)
    )
    return "\n".join(lines)[:size]


def traceback(size: int) -> str:
    random, nouns = Random(6), ["worker", "router", "ledger", "parser", "cache", "broker", "tenant", "queue", "index"]
    pick = lambda: random.choice(nouns)  # noqa: E731
    lines = (
        f'  File "/srv/{pick()}/{pick()}.py", line {random.randint(1, 900)}, in {pick()}\n'
        f'    raise {pick().title()}Error("never call {pick()} twice")'
        for _ in range(size)
    )
    return "\n".join(lines)[:size]


@pytest.mark.parametrize("data", [log, manual, traceback])
@pytest.mark.parametrize("shape", ["{task}\n\n{data}", "{data}\n\n{task}", "{task}\n\n```\n{data}\n```\n\nGo on."])
def test_constraints_of_a_task_outlive_those_of_what_was_pasted_with_it(data: Callable[[int], str], shape: str):
    made = excerpt(shape.format(task=long_task(), data=data(60_000)), 900, Scale().count, recalls=True)
    assert [rule for rule in CONSTRAINTS if rule.rstrip(".") not in made] == []


@pytest.mark.parametrize("shape", ["{words}\n\n{data}", "{data}\n\n{words}", "{words}\n\n```\n{data}\n```\n\nGo on."])
def test_words_around_encoded_data_stay_whole_and_use_the_room(shape: str):
    words = "\n".join(f"This is sentence number {at} of what a person wrote around it." for at in range(24))
    data = "".join(Random(8).choices("ABCDEFGHabcdefgh0123456789+/", k=60_000))
    made = excerpt(shape.format(words=words, data=data), 900, METER_SCALE.count, recalls=True)
    assert words in made
    assert 600 <= METER_SCALE.count(made) <= 900


PIXEL = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE.data}"}}


def shown(text: str) -> JsonObject:
    return {"role": "user", "content": [{"type": "text", "text": text}, PIXEL]}


@pytest.mark.requirement("S2:task")
@pytest.mark.parametrize("summarizer", [None, Summarising()])
async def test_a_task_with_a_picture_survives_every_compaction(summarizer: Summarising | None, tmp_path: Path):
    task = shown(TASK)
    for generation in range(4):
        session = Session.open(tmp_path / "runs.jsonl", model="gpt-4o")
        made = context(*([task] if generation == 0 else []), window=16_000, session=session, summarizer=summarizer)
        made.add(*steps(20), said("assistant", "Done?"), said("user", "Not yet."), *steps(90))
        prepared = await made.prepare()
        assert prepared.compacted
        assert any(repr(TASK)[1:-1] in text and str(PICTURE.data) in text for text in texts(prepared))
        assert faults(prepared.messages, Format.OPENAI_CHAT) == ()
        session.close()


@pytest.mark.requirement("S2:task")
async def test_the_words_of_a_later_instruction_with_a_picture_are_carried_and_the_loss_of_it_is_reported():
    order = "The button must be as green as here, and nowhere else."
    made = context(said("user", TASK), *steps(10), said("assistant", "Done?"), shown(order), *steps(10), window=10_000)
    made.add(said("assistant", "Like this?"), said("user", "Yes. Go on."), *steps(60))
    prepared = await made.prepare()
    assert order in texts(prepared)[0]
    assert "[image]" in texts(prepared)[0]
    fates = {place: one.fate for one in prepared.dropped for place in range(one.first, one.last + 1)}
    assert fates[23] == "excerpt_in_summary"
    assert "the media of the user's message 23 dropped: the text is kept" in str(prepared.warning)


@pytest.mark.requirement("S2:compact:after")
async def test_results_of_one_turn_that_are_no_giants_each_are_cut_together():
    task = "\n".join(
        f"Rule {number}: never write to table t_{number}, and only read view v_{number}." for number in range(400)
    )
    lines = log(200_000)

    def turn(at: int) -> list[JsonObject]:
        """Two calls at once, with results that are each less than a tenth of the window."""
        calls: Json = [
            {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"part": {n}}}'}}
            for n in (at, at + 1)
        ]
        results = [
            {"role": "tool", "tool_call_id": f"c{n}", "content": lines[6_000 * n :][:5_700]} for n in (at, at + 1)
        ]
        return [{"role": "assistant", "content": lines[300 * at :][:300], "tool_calls": calls}, *results]

    words = [said(("assistant", "user")[n % 2], lines[2_000 * n :][:2_000]) for n in range(12)]
    made = context(said("user", task), *words, window=32_000, summarizer=Summarising())
    made.add(*(message for at in range(0, 8, 2) for message in turn(at)))
    prepared = await made.prepare()
    assert prepared.compacted
    assert prepared.status.usage_percent <= 50
