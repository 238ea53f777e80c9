from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context.histories import CALLING, FORMATS, MODELS, SPOKEN, TURNS, USER, Turn, body, natives, system_and_tools
from ullage.context import Entry
from ullage.context.token_weights import Scale, changes_framing, read_fixed
from ullage.messages import Format, Message, Request, Text, plain, read_message, read_request
from ullage.models import shipped
from ullage.tokens import ZERO, Count, Meter, Method, drain, total, unheard
from ullage.tokens.count import Weight

pytestmark = pytest.mark.requirement("S2:usage")

METER = Meter(shipped(), reaches={})  # the band of a sum is not the sum of bands, see tokens.reach
LONG = "The committee met on Tuesday to go through fourteen proposals. " * 40
ROUND = [Turn(who="user", text="Why?"), Turn(who="tools", text="because", calls=2, thinking=True)]


def scale_of(model: str = "gpt-4o", form: Format = Format.OPENAI_CHAT) -> Scale:
    return Scale(METER, model, form)


def entry_of(scale: Scale, native: object) -> Entry:
    (entry,) = drain(scale.entries([native]))
    return entry


def weigh_whole(model: str, form: Format, messages: list[Any]) -> tuple[Count, tuple[Count, ...]]:
    """The weight of everything at once: in total, and of each message."""
    system, tools = system_and_tools(form)
    name = model if METER.models.get(model) else unheard(model)
    sent = [plain(one) for one in messages]
    whole = METER.weigh(read_request(body(form, name, system, tools, sent), form))
    return whole.total, whole.messages[len(whole.messages) - len(messages) :]


@pytest.mark.requirement("S2:usage")
@settings(max_examples=100)
@given(
    turns=TURNS,
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    form=st.sampled_from(FORMATS),
    model=st.sampled_from(MODELS),
)
def test_a_history_weighed_message_by_message_weighs_what_the_whole_request_weighs(
    turns: list[Turn], sizes: list[int], form: Format, model: str
):
    scale, messages, entries, step = scale_of(model, form), natives(turns, form), (), 0
    while len(entries) < len(messages):
        new = messages[len(entries) : len(entries) + sizes[step % len(sizes)]]
        entries, step = drain(scale.grown(entries, new)), step + 1
        whole, each = weigh_whole(model, form, messages[: len(entries)])
        assert tuple(entry.weight for entry in entries) == each
        fixed = drain(scale.fixed(*system_and_tools(form), entries))
        assert fixed.total + total(entry.weight for entry in entries) == whole
        assert all(sum(entry.shares.values()) == entry.weight.tokens for entry in entries)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    turns=st.lists(st.one_of(CALLING, SPOKEN, CALLING), min_size=2, max_size=12),
    last=USER,
    stretch=st.integers(1, 3),
    form=st.sampled_from(FORMATS),
    model=st.sampled_from(MODELS),
)
def test_a_turn_that_is_over_weighs_the_same_in_whatever_stretches(  # noqa: PLR0917
    monkeypatch: pytest.MonkeyPatch, turns: list[Turn], last: Turn, stretch: int, form: Format, model: str
):
    """A long one is weighed anew in stretches when the user speaks again."""
    monkeypatch.setattr("ullage.context.token_weights._STRETCH", stretch)
    scale, messages = scale_of(model, form), natives([*ROUND, *turns, last, *ROUND[1:]], form)
    for end in (len(messages) - len(natives(ROUND[1:], form)), len(messages)):
        entries = drain(scale.grown(drain(scale.entries(messages[: end - 1])), messages[end - 1 : end]))
        assert tuple(entry.weight for entry in entries) == weigh_whole(model, form, messages[:end])[1]
        again = drain(scale.together([replace(entry, weight=ZERO, shares={}) for entry in entries]))
        assert again == entries


@pytest.mark.parametrize("form", [Format.ANTHROPIC, Format.GEMINI])
def test_the_end_of_a_long_turn_is_weighed_a_little_at_a_time(form: Format):
    """Its thinking is shown no more, so that all of it weighs otherwise at once."""

    class Watched(Meter):
        most = 0

        def weigh(self, request: Request, model: str | None = None) -> Weight:
            self.most = max(self.most, len(request.messages))
            return super().weigh(request, model)

    meter = Watched(shipped())
    scale = Scale(meter, "claude-opus-4-1" if form is Format.ANTHROPIC else "gemini-2.5-pro", form)
    turn = [Turn(who="user", text="Why?"), *[Turn(who="tools", text="So.", thinking=True, calls=1)] * 200]
    entries = drain(scale.entries(natives(turn, form)))
    assert len(entries) > 400
    last = natives([Turn(who="user", text="And now?")], form)
    changed = drain(scale.grown(entries, last))
    assert sum(new is not old for new, old in zip(changed, entries, strict=False)) > 100
    assert meter.most < 60


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("model", MODELS)
def test_whatever_is_said_weighs_something_in_every_format_for_every_model(model: str, form: Format):
    scale = scale_of(model, form)
    long = scale.count(LONG)

    def spent(*turns: Turn) -> Counter[str]:
        entries = drain(scale.entries(natives([Turn(who="user", text="Go."), *turns], form)))
        return Counter(name for entry in entries for name, tokens in entry.shares.items() for _ in range(tokens))

    assert 0.95 * long <= spent(Turn(who="user", text=LONG))["user"] <= 1.6 * long
    assert 0.95 * long <= spent(Turn(who="assistant", text=LONG))["assistant"] <= 1.6 * long
    twice = spent(Turn(who="tools", text=LONG, calls=2))
    assert 1.9 * long <= twice["tool_results"] <= 3.2 * long
    assert twice["tool_calls"] > 10
    shown = spent(Turn(who="user", text="Look.", image=True))["images"]
    assert shown == 0 if model == "deepseek-chat" else shown > 0, "DeepSeek's chat models cannot see"


@settings(max_examples=60)
@given(turns=st.lists(CALLING, min_size=1, max_size=4), form=st.sampled_from(FORMATS))
def test_what_a_message_is_spent_on_is_told_apart(turns: list[Turn], form: Format):
    entries = drain(scale_of("claude-sonnet-4-5", form).entries(natives([Turn(who="user", text="Go."), *turns], form)))
    for entry in entries:
        if entry.message.role == "user" and "user" in entry.shares:
            assert set(entry.shares) == {"user"}
        elif entry.message.role == "assistant":
            assert set(entry.shares) <= {"assistant", "tool_calls", "thinking"}
        else:
            assert set(entry.shares) == {"tool_results"}
    assert all(tokens >= 0 for entry in entries for tokens in entry.shares.values())


def test_thinking_of_a_turn_that_is_over_weighs_nothing_where_the_provider_shows_it_no_more():
    scale = scale_of("claude-sonnet-4-5", Format.ANTHROPIC)
    during = drain(scale.entries(natives(ROUND, Format.ANTHROPIC)))
    after = drain(scale.grown(during, [{"role": "user", "content": "And now?"}]))
    assert during[1].shares["thinking"] > 20
    assert after[1].weight.tokens == during[1].weight.tokens - during[1].shares["thinking"]
    assert after[1].shares["thinking"] == 0
    assert (after[0], after[2]) == (during[0], during[2])
    assert after[0] is during[0], "what weighs the same is the same"


def test_thinking_that_the_provider_goes_on_showing_is_left_as_it_is():
    scale = scale_of("claude-opus-4-5", Format.ANTHROPIC)
    during = drain(scale.entries(natives(ROUND, Format.ANTHROPIC)))
    after = drain(scale.grown(during, [{"role": "user", "content": "And now?"}]))
    assert all(new is old for new, old in zip(after, during, strict=False))


def test_new_entries_are_those_that_follow_and_nothing_given_is_changed():
    scale, messages = scale_of(), natives(ROUND, Format.OPENAI_CHAT)
    kept = [dict(message) for message in messages]
    before = drain(scale.entries(messages[:2]))
    new = drain(scale.entries(messages[2:], before))
    assert [entry.native for entry in new] == messages[2:]
    assert all(entry.native is message for entry, message in zip((*before, *new), messages, strict=True))
    assert messages == kept


def test_what_was_learnt_between_two_messages_makes_no_earlier_one_anew():
    scale = scale_of("never-heard-of", Format.OPENAI_CHAT)
    before = drain(scale.entries(natives([*ROUND, *ROUND], Format.OPENAI_CHAT)))
    scale.learn(Count.within(5_000, 0.3, Method.ESTIMATED), 6_500)
    after = drain(scale.grown(before, [{"role": "tool", "tool_call_id": "c1-1", "content": "once more"}]))
    assert all(new is old for new, old in zip(after, before, strict=False))


def test_only_estimates_learn_from_what_was_reported():
    for model, learns in (("claude-sonnet-4-5", False), ("gpt-4o", False), ("nobody-knows-this-one", True)):
        scale = Scale(Meter(shipped()), model, Format.OPENAI_CHAT)
        before = scale.count(LONG)
        for _ in range(30):
            scale.learn(Count.within(scale.count(LONG), 0.3, Method.ESTIMATED), round(1.25 * before))
        assert abs(scale.count(LONG) / before - (1.25 if learns else 1.0)) < 0.01


def test_a_summary_is_known_by_how_it_begins():
    scale = scale_of()
    summary = entry_of(scale, {"role": "user", "content": "\n<context_summary>\nWe built it.\n</context_summary>"})
    assert (summary.kind, set(summary.shares)) == ("summary", {"summary"})
    said = entry_of(scale, {"role": "assistant", "content": "<context_summary>\nno\n</context_summary>"})
    assert (said.kind, set(said.shares)) == ("message", {"assistant"})


@pytest.mark.parametrize("form", [Format.OPENAI_CHAT, Format.ANTHROPIC])
@pytest.mark.parametrize("model", MODELS)
def test_a_part_of_no_known_kind_weighs_what_its_json_weighs(model: str, form: Format):
    scale = scale_of(model, form)
    odd = {"type": "hologram", "shows": LONG}
    entry = entry_of(scale, {"role": "user", "content": [{"type": "text", "text": "See:"}, odd]})
    assert entry.weight.tokens > 0.8 * scale.count(LONG)
    assert set(entry.shares) == {"user"}


def test_system_messages_among_the_others_are_told_apart():
    entry = entry_of(scale_of(), {"role": "developer", "content": "Be brief."})
    assert set(entry.shares) == {"system"}
    assert changes_framing(entry.message)
    assert not changes_framing(read_message({"role": "assistant", "content": "Yes."}, Format.OPENAI_CHAT))


def test_an_image_in_a_result_is_an_image():
    scale = scale_of("claude-sonnet-4-5", Format.ANTHROPIC)
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
    content = [{"type": "text", "text": "Here."}, image]
    entry = entry_of(
        scale, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": content}]}
    )
    assert entry.shares["images"] > entry.shares["tool_results"] > 0


def test_an_empty_message_weighs_its_frame():
    entry = entry_of(scale_of(), {"role": "user", "content": []})
    assert entry.shares == {"user": entry.weight.tokens}
    assert entry.weight.tokens > 0


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "llama-3.3-70b"])
def test_a_message_made_anew_weighs_what_it_would_have_weighed_at_once(model: str, form: Format):
    scale = scale_of(model, form)
    long = natives([Turn(who="user", text="Go."), Turn(who="tools", text=LONG, calls=1)], form)
    short = natives([Turn(who="user", text="Go."), Turn(who="tools", text="let go", calls=1)], form)
    before = tuple(replace(entry, pinned=True, kind="bridge") for entry in drain(scale.entries(long)))
    wanted = drain(scale.entries(short))
    for was, now, fresh in zip(before, short, wanted, strict=True):
        made = scale.remade(was, now)
        assert made.weight == fresh.weight
        assert (made.pinned, made.kind, made.native) == (True, "bridge", now)
        assert sum(made.shares.values()) == made.weight.tokens


def test_one_of_several_results_made_anew_weighs_less_by_what_was_cut():
    scale, turns = scale_of(), [Turn(who="user", text="Go."), Turn(who="tools", text=LONG, calls=3)]
    entries = drain(scale.entries(natives(turns, Format.OPENAI_CHAT)))
    made = scale.remade(entries[2], {"role": "tool", "tool_call_id": "c1-0", "content": "gone"})
    less = entries[2].weight.tokens - made.weight.tokens
    assert abs(less - scale.count(LONG)) < 10
    put_right = drain(scale.together((*entries[:2], made, *entries[3:])))
    assert put_right[3] is entries[3]
    assert abs(put_right[2].weight.tokens - made.weight.tokens) < 10


def test_what_escapes_add_to_results_of_calls_made_at_once_counts_for_each_of_them():
    code = '\tconst value = this.settings.get("key"); // the\tcomment\n' * 400
    scale, turns = scale_of(), [Turn(who="user", text="Go."), Turn(who="tools", text=code, calls=2)]
    entries = drain(scale.entries(natives(turns, Format.OPENAI_CHAT)))
    first, second = (entry.weight.tokens for entry in entries[2:4])
    assert first > 1.1 * scale.count(code), "a tab is an escape in a list of results"
    assert abs(first - second) < 0.01 * first
    short = code[: len(code) // 10]
    made = scale.remade(entries[2], {"role": "tool", "tool_call_id": "c1-0", "content": short})
    put_right = drain(scale.together((*entries[:2], made, *entries[3:])))
    assert abs(made.weight.tokens - put_right[2].weight.tokens) < 0.1 * put_right[2].weight.tokens


def test_entries_put_side_by_side_weigh_what_they_weigh_there():
    scale = scale_of("deepseek-chat")
    first, second = (
        entry_of(scale, {"role": "user", "content": "One."}),
        entry_of(scale, {"role": "user", "content": "Two."}),
    )
    merged = drain(scale.together((first, second)))
    assert merged == drain(scale.entries([first.native, second.native]))
    assert merged[0] is first
    assert merged[1].weight.tokens != second.weight.tokens


@pytest.mark.parametrize("model", ["deepseek-chat", "gpt-4o"])
@pytest.mark.parametrize("form", [Format.OPENAI_CHAT, Format.OPENAI_RESPONSES])
def test_one_added_alone_is_weighed_beside_the_one_before(model: str, form: Format):
    turns = [Turn(who="user", text="Why?"), Turn(who="user", text="Or not?"), Turn(who="tools", text="so", calls=3)]
    scale, messages, entries = scale_of(model, form), natives(turns, form), ()
    for message in messages:
        entries = drain(scale.grown(entries, [message]))
    assert tuple(entry.weight for entry in entries) == weigh_whole(model, form, messages)[1]


def test_a_result_far_from_its_call_still_bears_its_name():
    scale = scale_of()
    call = {"id": "a", "type": "function", "function": {"name": "a_rather_long_name_of_a_tool", "arguments": "{}"}}
    said = [{"role": "assistant", "tool_calls": [call]}, *({"role": "user", "content": "wait"},) * 20]
    entries = drain(scale.entries(said))
    late = {"role": "tool", "tool_call_id": "a", "content": "done"}
    grown = drain(scale.grown(entries, [late]))
    assert tuple(entry.weight for entry in grown) == weigh_whole("gpt-4o", Format.OPENAI_CHAT, [*said, late])[1]


def test_the_system_prompt_and_each_tool_are_weighed_by_themselves():
    tools = [
        {"name": name, "description": "Looks.", "input_schema": {"type": "object"}}
        for name in ("github__search", "mcp__files__read", "plain", "__odd", "odd__")
    ]
    fixed = drain(scale_of("claude-sonnet-4-5", Format.ANTHROPIC).fixed(LONG, tools))
    assert [tool.server for tool in fixed.tools] == ["github", "files", None, None, None]
    assert fixed.system_prompt.tokens > 300
    assert fixed.tool_definitions.tokens - sum(tool.weight.tokens for tool in fixed.tools) > 400, "what Claude is told"


@pytest.mark.parametrize(
    ("form", "system"),
    [
        (Format.OPENAI_CHAT, [{"type": "text", "text": LONG}]),
        (Format.OPENAI_CHAT, {"role": "developer", "content": LONG}),
        (Format.OPENAI_CHAT, [{"role": "system", "content": LONG}, {"role": "system", "content": "Also."}]),
        (Format.OPENAI_RESPONSES, LONG),
        (Format.ANTHROPIC, [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]),
        (Format.GEMINI, {"parts": [{"text": LONG}]}),
        (Format.ULLAGE, Message(role="system", parts=(Text(LONG),))),
    ],
)
def test_a_system_prompt_may_have_any_shape_its_format_has(form: Format, system: object):
    scale = scale_of("gpt-4o", form)
    assert scale.count(LONG) <= drain(scale.fixed(system)).system_prompt.tokens < scale.count(LONG) + 30
    assert drain(scale.fixed(None)).system_prompt.tokens < 10
    assert read_fixed(None, (), form).messages == ()


def test_a_system_message_among_the_others_changes_how_tools_are_framed():
    scale, (_, tools) = scale_of(), system_and_tools(Format.OPENAI_CHAT)
    said = [{"role": "system", "content": "You are a careful clerk."}, {"role": "user", "content": "Go."}]
    entries = drain(scale.entries(said))
    whole = METER.weigh(read_request({"model": "gpt-4o", "messages": said, "tools": tools}))
    fixed = drain(scale.fixed(None, tools, entries))
    assert fixed.total + total(entry.weight for entry in entries) == whole.total
    assert drain(scale.fixed(None, tools)) != fixed


def test_weighing_a_long_history_lets_others_in():
    scale = scale_of("claude-sonnet-4-5", Format.ANTHROPIC)
    scale.count("a")
    turns = [Turn(who="user", text=f"{number} {LONG * 8}") for number in range(60)]
    pauses = sum(1 for _ in scale.entries(natives(turns, Format.ANTHROPIC)))
    assert pauses >= sum(len(turn.text) for turn in turns) // 20_000
    short = [Turn(who="user", text=f"{number}") for number in range(60)]
    assert sum(1 for _ in scale.entries(natives(short, Format.ANTHROPIC))) >= 7, "after every eight of them"
