from dataclasses import replace
from json import dumps

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context.talks import PICTURE, Scale, assistant, call, entries_of, refusals, result, talks, tool, user
from ullage.context import DEFAULTS, Entry
from ullage.context.context_options import Limits, limits_of
from ullage.context.tool_pairs import Call, gap, placeholder, query_of
from ullage.context.truncate_messages import Change, Dropped, Fate, mask, merge_dropped, weight_of
from ullage.messages import Format, Message, Text, ToolCall, ToolResult, Unknown, read_message
from ullage.tokens import drain

pytestmark = pytest.mark.requirement("S2:compact:after", "S2:compact:valid")

LONG = "a line of what the tool said\n" * 100


def limits(window: int, used: int = 10**9) -> Limits:
    return limits_of(DEFAULTS, window, fixed=0, used=used)


def loop(count: int, text: str = LONG) -> list[Message]:
    return [
        message
        for n in range(count)
        for message in (
            assistant(call(str(n), "read", f'{{"path": "src/{n}.py"}}')),
            tool(result(str(n), text)),
        )
    ]


def masked_in(entries: tuple[Entry, ...], change: Change | None) -> list[int]:
    assert change is not None
    return [place for place, (old, new) in enumerate(zip(entries, change.entries, strict=True)) if old is not new]


def said(entry: Entry) -> str:
    (part,) = entry.message.parts
    assert isinstance(part, ToolResult)
    (text,) = part.parts
    assert isinstance(text, Text)
    return text.text


@settings(max_examples=60, deadline=None)
@given(talks(most=4), st.data())
@pytest.mark.requirement("S2:compact:valid")
def test_masking_keeps_a_history_valid_and_all_but_old_results_as_they_were(
    messages: list[Message], data: st.DataObject
):
    pinned = data.draw(st.sets(st.integers(0, len(messages) - 1), max_size=3))
    entries = entries_of(messages, pinned=pinned)
    change = mask(entries, Scale(), limits(data.draw(st.integers(100, 9_000))), recalls=data.draw(st.booleans()))
    if change is None:
        return
    assert refusals([entry.message for entry in change.entries], messages) == []
    places = masked_in(entries, change)
    for place in places:
        old, new = entries[place].message, change.entries[place].message
        assert not entries[place].pinned
        assert any(isinstance(part, ToolResult) for part in old.parts)
        assert new.role == old.role
        assert [_bare(part) for part in new.parts] == [_bare(part) for part in old.parts]
    shed = change.shed
    assert shed.tokens == weight_of(entries) - weight_of(change.entries) > 0
    assert (shed.messages, shed.broke_at) == (len(places), places[0])
    assert shed.reread == weight_of(change.entries[places[0] :])


def _bare(part: object) -> object:
    return replace(part, parts=()) if isinstance(part, ToolResult) else part


def test_the_oldest_results_go_first_and_no_more_than_are_needed():
    entries = entries_of([user("go"), *loop(20)])
    weight = weight_of(entries)
    change = mask(entries, Scale(), limits(weight, weight))
    places = masked_in(entries, change)
    assert places == list(range(2, 2 + 2 * len(places), 2))
    assert change is not None
    assert weight // 2 - 800 < weight_of(change.entries) <= weight // 2


def test_the_newest_results_are_kept_whatever_the_window():
    entries = entries_of([user("go"), *loop(10)])
    assert masked_in(entries, mask(entries, Scale(), limits(500))) == [2, 4, 6, 8, 10, 12, 14]
    assert mask(entries_of([user("go"), *loop(2)]), Scale(), limits(500)) is None


@pytest.mark.requirement("S2:compact:how")
def test_what_the_tail_may_fill_is_kept():
    entries = entries_of([user("go"), *loop(20)])
    window = weight_of(entries)
    places = masked_in(entries, mask(entries, Scale(), replace(limits(window), target=1)))
    assert weight_of(entries[places[-1] :]) > 0.15 * window
    assert weight_of(entries[places[-1] + 2 :]) <= 0.15 * window


def test_a_small_gain_is_not_worth_a_broken_cache():
    entries = entries_of([user("go"), *loop(30)])
    assert mask(entries, Scale(), limits(200_000)) is None
    assert mask(entries, Scale(), limits(20_000)) is not None
    many = entries_of([user("go"), *loop(80)])
    change = mask(many, Scale(), limits(60_000))
    assert change is not None
    assert change.shed.tokens >= 60_000 // 8


def test_small_results_and_short_errors_are_kept():
    messages = [
        user("go"),
        assistant(call("a"), call("b"), call("c")),
        user(
            result("a", "short"), result("b", "no such file " * 60, is_error=True), result("c", LONG * 5, is_error=True)
        ),
        *loop(5),
    ]
    entries = entries_of(messages)
    change = mask(entries, Scale(), limits(4_000))
    assert change is not None
    first, second, third = change.entries[2].message.parts
    assert (first, second) == messages[2].parts[:2]
    assert "removed" in str(third)


def test_a_placeholder_is_never_masked_again():
    entries = entries_of([user("go"), *loop(20)])
    once = mask(entries, Scale(), replace(limits(2_000), target=1), recalls=True)
    assert once is not None
    assert mask(once.entries, Scale(), replace(limits(100), target=1), recalls=True) is None


def test_a_placeholder_names_the_call_its_size_and_how_to_get_it_back():
    entries = entries_of([user("go"), *loop(10)])
    with_recall = mask(entries, Scale(), limits(2_000), recalls=True)
    without = mask(entries, Scale(), limits(2_000))
    assert with_recall is not None
    assert without is not None
    assert said(with_recall.entries[2]) == (
        '[read(path="src/0.py") gave 725 tokens, removed to make room; recall("src/0.py") brings them back]'
    )
    assert said(without.entries[2]) == (
        '[read(path="src/0.py") gave 725 tokens, removed to make room; call it again if needed]'
    )


def test_a_placeholder_counts_what_was_clamped_before():
    clamped = f"{LONG}{gap(10_000, (), None)}\n{LONG}"
    entries = entries_of([user("go"), *loop(1, clamped), *loop(5)])
    change = mask(entries, Scale(), limits(2_000))
    assert change is not None
    assert "gave 11,461 tokens" in said(change.entries[2])


def test_pictures_go_with_their_result_and_are_named():
    shown = ToolResult(call_id="a", parts=(PICTURE, PICTURE))
    both = ToolResult(call_id="b", parts=(Text("see"), PICTURE))
    entries = entries_of([user("go"), assistant(call("a"), call("b")), tool(shown), tool(both), *loop(4)])
    change = mask(entries, Scale(), limits(2_000), recalls=True)
    assert change is not None
    assert said(change.entries[2]).endswith("gave 2 images, removed to make room; call it again if needed]")
    assert " gave 1 tokens and 1 image, " in said(change.entries[3])


def test_what_the_user_said_beside_a_result_is_kept_whole_while_it_is_the_last():
    said_beside = user(result("x", LONG * 9), "stop, do this instead")
    entries = entries_of([user("go"), assistant(call("x")), said_beside, *loop(6)])
    assert masked_in(entries, mask(entries, Scale(), replace(limits(2_000), target=1))) == [4, 6, 8]


def test_results_that_are_no_texts_to_anyone_are_left_alone():
    searched = ToolResult(call_id="s", name="web_search_tool_result", parts=(Text(LONG),))
    reference = ToolResult(call_id="r", parts=(Text(LONG), Unknown({"type": "tool_reference", "tool_name": "x"})))
    shot = [
        assistant(Unknown({"type": "computer_call", "call_id": "c", "action": {"type": "click"}})),
        tool(ToolResult(call_id="c", parts=(PICTURE,))),
        assistant(Unknown({"type": "shell_call", "call_id": "o"})),
        assistant(Unknown({"type": "shell_call_output", "call_id": "o", "output": []})),
        tool(ToolResult(call_id="orphan", parts=(Text(LONG),))),
    ]
    head = [user("go"), assistant(call("s"), searched, call("r")), user(reference), *shot]
    entries = entries_of([*head, *loop(8)])
    assert min(masked_in(entries, mask(entries, Scale(), limits(2_000)))) > len(head)


def test_a_summary_is_no_result():
    entries = entries_of([user(result("0", LONG)), *loop(8)])
    told = (replace(entries[0], kind="summary"), *entries[1:])
    assert 0 not in masked_in(told, mask(told, Scale(), limits(2_000)))


@pytest.mark.parametrize("format", list(Format))
def test_masking_works_on_messages_as_their_provider_writes_them(format: Format):  # noqa: A002
    natives = _natives(format)
    entries = drain(Scale(format).entries(natives))
    copy = dumps(natives)
    change = mask(entries, Scale(format), limits(1_000), recalls=True)
    places = masked_in(entries, change)
    assert dumps(natives) == copy
    assert change is not None
    assert len(places) == 3
    for place in places:
        written = dumps(change.entries[place].native, ensure_ascii=False)
        assert "removed to make room" in written
        assert "line of what" not in written
        assert read_message(change.entries[place].native, format) == change.entries[place].message


def _natives(format: Format) -> list[object]:  # noqa: A002
    def step(n: int) -> list[object]:
        asked, name = {"path": f"src/{n}.py"}, "read"
        match format:
            case Format.OPENAI_CHAT:
                function = {"name": name, "arguments": dumps(asked)}
                return [
                    {"role": "assistant", "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}]},
                    {"role": "tool", "tool_call_id": f"c{n}", "content": LONG},
                ]
            case Format.OPENAI_RESPONSES:
                return [
                    {"type": "function_call", "call_id": f"c{n}", "name": name, "arguments": dumps(asked)},
                    {"type": "function_call_output", "call_id": f"c{n}", "output": LONG},
                ]
            case Format.ANTHROPIC:
                used = {"type": "tool_use", "id": f"c{n}", "name": name, "input": asked}
                given_back = {"type": "tool_result", "tool_use_id": f"c{n}", "content": LONG}
                return [{"role": "assistant", "content": [used]}, {"role": "user", "content": [given_back]}]
            case Format.GEMINI:
                response = {"name": name, "response": {"result": LONG}}
                return [
                    {"role": "model", "parts": [{"functionCall": {"name": name, "args": asked}}]},
                    {"role": "user", "parts": [{"functionResponse": response}]},
                ]
            case Format.ULLAGE:
                called = {"type": "tool_call", "name": name, "arguments": dumps(asked), "id": f"c{n}"}
                answer = {"type": "tool_result", "call_id": f"c{n}", "parts": [{"type": "text", "text": LONG}]}
                return [{"role": "assistant", "parts": [called]}, {"role": "tool", "parts": [answer]}]

    return [native for n in range(6) for native in step(n)]


@pytest.mark.parametrize(
    ("arguments", "query"),
    [
        ('{"path": "src/a.py"}', "src/a.py"),
        ('{"path": "/home/someone/work/' + "deep/" * 20 + 'src/tui/view.ts", "offset": 300}', "src/tui/view.ts 300"),
        ('{"from": "JFK", "to": "SEA", "direct": true, "filters": {"days": ["2024-05-25"]}}', "JFK SEA 2024-05-25"),
        ('{"query": "' + "many words " * 40 + '"}', " ".join(["many words"] * 7)),
        ("not JSON at all", "not JSON at all"),
        ("{}", "read"),
        ("[" * 100_000, "[" * 80),
    ],
)
def test_the_query_that_finds_a_result_again_is_what_the_call_was_given(arguments: str, query: str):
    assert query_of(Call(place=0, name="read", arguments=arguments)) == query


def test_long_arguments_are_shown_without_their_middle():
    path = "/home/someone/" + "x" * 100 + "/view.ts"
    shown = placeholder(_called(dumps({"path": path, "text": "y" * 500, "more": "z" * 500})), 9, (), recalls=False)
    assert "/view.ts" in shown
    assert len(shown) < 300
    assert len(placeholder(_called("w" * 5_000), 9, (), recalls=False)) < 300


def test_arguments_nested_however_deep_are_shown_somehow():
    shown = {
        placeholder(_called('{"a": ' + "[" * depth + "]" * depth + "}"), 9, (), recalls=True)[:12]
        for depth in range(700, 1_100)
    }
    assert shown <= {"[write(a=[[[", "[write(a=…) ", '[write({"a":'}


def _called(arguments: str) -> Call:
    made = ToolCall(name="write", arguments=arguments)
    return Call(place=0, name=made.name, arguments=made.arguments)


def test_arguments_of_160_characters_stay_whole_in_a_placeholder_and_longer_ones_end_in_an_ellipsis():
    for length, shown in ((160, "w" * 160), (161, "w" * 159 + "…"), (500, "w" * 159 + "…")):
        line = placeholder(_called("w" * length), 9, (), recalls=False)
        assert line.startswith(f"[write({shown}) gave 9 tokens, "), length


def test_a_value_of_60_characters_stays_whole_in_a_placeholder_and_a_longer_one_loses_its_middle():
    for length, shown in ((58, '"' + "v" * 58 + '"'), (59, '"' + "v" * 19 + "…" + "v" * 29 + '"')):
        line = placeholder(_called(dumps({"a": "v" * length})), 9, (), recalls=False)
        assert line.startswith(f"[write(a={shown}) gave 9 tokens, "), length


def lost(part: ToolResult, *, name: str = "read", limit: Limits | None = None) -> bool:
    """Whether a result is masked that stands before five long ones in a small window."""
    entries = entries_of([user("go"), assistant(call("a", name)), tool(part), *loop(5)])
    change = mask(entries, Scale(), limit or limits(4_000))
    assert change is not None
    return change.entries[2] is not entries[2]


LINE = placeholder(
    Call(place=1, name="read", arguments='{"path": "src/a.py"}', id="a"), 125, (Text("x"),), recalls=False
)


@pytest.mark.parametrize(("more", "is_masked"), [(99, False), (100, True)])
def test_a_result_is_masked_where_that_saves_a_hundred_tokens(more: int, *, is_masked: bool):
    line = (len(LINE) + 3) // 4
    assert lost(result("a", "x" * 4 * (line + more))) is is_masked


@pytest.mark.parametrize(
    ("tokens", "is_error", "is_masked"), [(500, True, False), (501, True, True), (500, False, True)]
)
def test_an_error_of_500_tokens_is_kept(tokens: int, *, is_error: bool, is_masked: bool):
    assert lost(result("a", "x" * 4 * tokens, is_error=is_error)) is is_masked


def test_pictures_words_of_the_user_and_sealed_parts_decide_apart_from_size():
    assert lost(result("a", PICTURE))
    assert lost(result("a", "few words", PICTURE))
    assert not lost(result("a", PICTURE, Unknown({"x": 1})))
    assert not lost(result("a", "<feedback>no</feedback>" + "x" * 100))
    assert not lost(replace(result("a", LONG), call_id="nobody"))


def test_a_masked_message_keeps_its_first_text_alone():
    talk = [
        user("go"),
        *(m for n in range(6) for m in (assistant(f"<run>{n}</run>"), user(f"Output: {LONG}", " ", "b"))),
    ]
    entries = entries_of(talk)
    change = mask(entries, Scale(), limits(4_000))
    assert change is not None
    texts = [part.text for part in change.entries[2].message.parts if isinstance(part, Text)]
    assert texts[0].startswith('[run(command="0") gave 728 tokens')
    assert texts[1:] == [" ", "…"]


@pytest.mark.parametrize(
    ("window", "results", "is_masked"),
    # Each mask saves 703 tokens; all but the newest three may go, and at least an eighth of the window must.
    [(5_631, 4, True), (5_632, 4, False), (11_255, 5, True), (11_256, 5, False)],
)
def test_masks_must_save_an_eighth_of_a_small_window(window: int, results: int, *, is_masked: bool):
    entries = entries_of([user("go"), *loop(results)])
    change = mask(entries, Scale(), replace(limits(window), keep=1))
    assert (change is not None) is is_masked


def test_masking_stops_at_its_goal_and_not_before_its_least():
    entries = entries_of([user("go"), *loop(10)])
    whole = weight_of(entries)
    far = replace(limits(6_000), keep=1, target=whole - 1)
    change = mask(entries, Scale(), far)
    assert masked_in(entries, change) == [2, 4], "an eighth of the window at least"
    near = replace(limits(4_000), keep=1, target=whole - 1)
    change = mask(entries, Scale(), near)
    assert masked_in(entries, change) == [2]
    assert change is not None
    saved = change.shed.tokens
    at = mask(entries, Scale(), replace(near, target=whole - saved))
    below = mask(entries, Scale(), replace(near, target=whole - saved - 1))
    assert [masked_in(entries, one) for one in (at, below)] == [[2], [2, 4]]


@pytest.mark.parametrize(
    ("single", "merged"),
    [
        ([], []),
        ([(1, 1, "masked", 5)], [(1, 1, "masked", 5)]),
        ([(1, 1, "masked", 5), (2, 2, "masked", 3)], [(1, 2, "masked", 8)]),
        ([(1, 1, "masked", 5), (3, 3, "masked", 3)], [(1, 1, "masked", 5), (3, 3, "masked", 3)]),
        ([(1, 1, "masked", 5), (2, 2, "dropped", 3)], [(1, 1, "masked", 5), (2, 2, "dropped", 3)]),
        ([(1, 2, "dropped", 5), (3, 4, "dropped", 3), (5, 5, "dropped", 1)], [(1, 5, "dropped", 9)]),
    ],
)
def test_adjacent_messages_of_one_fate_are_reported_together(
    single: list[tuple[int, int, Fate, int]], merged: list[tuple[int, int, Fate, int]]
):
    found = merge_dropped(Dropped(first=a, last=b, fate=fate, tokens=tokens) for a, b, fate, tokens in single)
    assert [(one.first, one.last, one.fate, one.tokens) for one in found] == merged
    assert [one.to_json() for one in found] == [
        {"first": a, "last": b, "fate": fate, "tokens": tokens} for a, b, fate, tokens in merged
    ]
