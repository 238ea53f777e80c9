import re
from dataclasses import replace

import pytest

from ullage.context import Breakdown, ContextUsage, ToolShare
from ullage.context.draw_usage import percent, render, render_grid, render_line, tokens
from ullage.tokens import Method

pytestmark = pytest.mark.requirement("S2:render")

USAGE = ContextUsage(
    model="anthropic/claude-3.5-sonnet",
    context_window=200_000,
    system_prompt=1_100,
    tool_definitions=3_200,
    messages=24_500,
    compact_threshold=65.0,
    will_compact=False,
    resolved=True,
    method=Method.CALIBRATED,
    low=27_000,
    high=30_600,
    weighed=28_800,
    reserve=30_000,
    breakdown=Breakdown(
        system=1_100,
        tools=(
            ToolShare(name="github__search_code", server="github", tokens=1_800),
            ToolShare(name="mcp__github__read", server="github", tokens=700),
            ToolShare(name="a_clock_with_a_name_that_no_one_can_remember", server=None, tokens=204),
        ),
        tools_added=496,
        messages={"user": 1_500, "assistant": 3_000, "tool_calls": 4_000, "tool_results": 16_000},
        free=171_200,
        reserve=30_000,
    ),
)


@pytest.mark.requirement("S2:render")
def test_the_bar_and_the_lines_are_those_of_the_contract():
    assert render(USAGE) == (
        "⛁ ⛀ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶  anthropic/claude-3.5-sonnet · 28.8k/200k tokens (14%)\n"
        "\n"
        "  ⛁ System prompt:    1.1k tokens (0.6%)\n"
        "  ⛁ Tool definitions: 3.2k tokens (1.6%)\n"
        "  ⛁ Messages:        24.5k tokens (12.3%)\n"
        "  ⛶ Free space:     171.2k tokens (85.6%)"
    )


@pytest.mark.requirement("S2:render")
@pytest.mark.parametrize(
    ("used", "bar"),
    [
        (0, "⛶⛶⛶⛶⛶⛶⛶⛶⛶⛶"),
        (1, "⛀⛶⛶⛶⛶⛶⛶⛶⛶⛶"),
        (20_000, "⛁⛶⛶⛶⛶⛶⛶⛶⛶⛶"),
        (20_001, "⛁⛀⛶⛶⛶⛶⛶⛶⛶⛶"),
        (199_999, "⛁⛁⛁⛁⛁⛁⛁⛁⛁⛀"),
        (200_000, "⛁⛁⛁⛁⛁⛁⛁⛁⛁⛁"),
        (900_000, "⛁⛁⛁⛁⛁⛁⛁⛁⛁⛁"),
    ],
)
def test_a_cell_is_full_begun_or_free(used: int, bar: str):
    shown = render(replace(USAGE, system_prompt=0, tool_definitions=0, messages=used))
    assert shown.partition("  ")[0].replace(" ", "") == bar


@pytest.mark.requirement("S2:render")
@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1k"),
        (1_049, "1k"),
        (1_050, "1.1k"),
        (28_800, "28.8k"),
        (200_000, "200k"),
        (999_949, "999.9k"),
        (999_950, "1M"),
        (1_048_576, "1M"),
        (2_097_152, "2.1M"),
        (-26_650, "-26.7k"),
    ],
)
def test_tokens_are_shown_in_thousands_with_halves_rounded_up(number: int, shown: str):
    assert tokens(number) == shown


@pytest.mark.requirement("S2:render")
@pytest.mark.parametrize(
    ("part", "whole", "fine", "coarse"),
    [
        (1_100, 200_000, "0.6%", "1%"),
        (24_500, 200_000, "12.3%", "12%"),
        (29_000, 200_000, "14.5%", "15%"),
        (25, 1_000, "2.5%", "3%"),
        (0, 1_000, "0.0%", "0%"),
        (-1, 100_000, "0.0%", "0%"),
        (-100, 1_000, "-10.0%", "-10%"),
    ],
)
def test_shares_are_shown_with_halves_rounded_up(part: int, whole: int, fine: str, coarse: str):
    assert (percent(part, whole), percent(part, whole, 1)) == (fine, coarse)


def test_a_window_that_nobody_knows_is_said_to_be_assumed():
    shown = render(replace(USAGE, resolved=False, context_window=128_000))
    assert shown.endswith("The window of `anthropic/claude-3.5-sonnet` is not known; 128k tokens are assumed.")
    assert "assumed" not in render(USAGE)


def test_a_status_bar_has_one_line():
    assert render_line(USAGE) == "⛁⛀⛶⛶⛶⛶⛶⛶⛶⛶ 28.8k/200k (14%) · 171.2k free · compacts at 65%"
    assert render_line(replace(USAGE, will_compact=True)).endswith("compacts now")


def test_the_grid_shows_each_hundredth_of_the_window_and_what_it_is_spent_on():
    shown = render_grid(USAGE)
    rows = shown.splitlines()
    cells = "".join(row[:19] for row in rows[:10]).replace(" ", "")
    assert len(cells) == 100
    marks = {mark: cells.count(mark) for mark in dict.fromkeys(cells)}
    assert marks == {"⛁": 1, "⛃": 2, "▲": 1, "●": 2, "◇": 2, "◆": 8, "⛶": 69, "⛝": 15}
    assert rows[0].endswith("   anthropic/claude-3.5-sonnet · 28.8k/200k tokens (14%)")
    assert rows[2].endswith("   ⛁ System prompt: 1.1k tokens (0.6%)")
    assert "◆ Tool results: 16k tokens (8.0%)" in shown
    assert "⛝ Kept for the answer: 30k tokens (15.0%)" in shown
    assert "Thinking" not in shown, "what there is none of is left out"
    assert max(map(len, rows)) <= 80


def test_below_the_grid_stands_whose_tools_weigh_how_much():
    assert render_grid(USAGE).splitlines()[10:] == [
        "",
        "Tools, by tokens",
        "  github: 2.5k in 2 tools, search_code alone 1.8k",
        "  of no server: 204 in 1 tool, a_clock_with_a_name_…",
        "  their presence: 496",
    ]


def test_of_many_servers_the_lightest_are_summed():
    many = tuple(ToolShare(name=f"s{n}__t", server=f"s{n}", tokens=100 + n) for n in range(12))
    bare = replace(USAGE, breakdown=replace(USAGE.breakdown, tools=many, tools_added=0))
    lines = render_grid(bare).splitlines()[12:]
    assert len(lines) == 9
    assert lines[0] == "  s11: 111 in 1 tool, t"
    assert lines[-1] == "  4 more: 406"


def test_no_name_makes_a_line_longer_than_a_screen_is_wide():
    wide = tuple(ToolShare(name=f"{'s' * 60}__{'t' * 60}{n}", server="s" * 60, tokens=14_700) for n in range(400))
    shown = render_grid(replace(USAGE, breakdown=replace(USAGE.breakdown, tools=wide)))
    assert max(map(len, shown.splitlines())) <= 80


def test_a_grid_without_tools_ends_with_the_grid():
    shown = render_grid(replace(USAGE, breakdown=replace(USAGE.breakdown, tools=())))
    assert "Tools" not in shown
    assert len(shown.splitlines()) == 10


def test_a_legend_longer_than_the_grid_goes_on_below_it():
    spent = dict.fromkeys(("user", "assistant", "tool_calls", "tool_results", "images", "thinking", "summary"), 3_500)
    full = render_grid(replace(USAGE, breakdown=replace(USAGE.breakdown, messages=spent, tools=())))
    rows = full.splitlines()
    assert len(rows) == 13
    assert [(row[:22].strip(), row[22:24]) for row in rows[10:]] == [("", "≡ "), ("", "⛶ "), ("", "⛝ ")]
    assert "≡ Summary: 3.5k tokens (1.8%)" in full


def test_an_overfull_window_has_no_free_cell():
    over = replace(USAGE, messages=300_000, breakdown=replace(USAGE.breakdown, messages={"tool_results": 300_000}))
    cells = "".join(row[:19] for row in render_grid(over).splitlines()[:10])
    assert not set("⛶⛝") & set(cells)
    assert len(cells.replace(" ", "")) == 100
    assert "Free space: 0 tokens" in render_grid(over)


def test_a_nearly_full_window_shows_only_the_rest_as_kept_for_the_answer():
    nearly = replace(USAGE, messages=185_700, breakdown=replace(USAGE.breakdown, messages={"tool_results": 185_700}))
    cells = "".join(row[:19] for row in render_grid(nearly).splitlines()[:10]).replace(" ", "")
    assert len(cells) == 100
    assert (cells.count("⛝"), cells.count("⛶")) == (4, 0)


def test_colours_are_there_only_where_they_are_asked_for():
    plain, coloured = render_grid(USAGE), render_grid(USAGE, colour=True)
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain
    assert "\x1b[36m⛁\x1b[0m" in coloured


def test_figures_below_zero_have_a_sign_and_nothing_has_none():
    assert [tokens(number) for number in (-1, -950, -1_100, -2_000_000)] == ["-1", "-950", "-1.1k", "-2M"]
    assert [percent(part, 1_000) for part in (-1, -15, 0, 1)] == ["-0.1%", "-1.5%", "0.0%", "0.1%"]
    assert percent(-1, 10_000) == "0.0%"
    assert percent(-1, 1_000, 1) == "0%"


def test_a_slice_is_shown_from_its_first_token_on():
    kinds = ("user", "assistant", "tool_calls", "tool_results", "images", "thinking", "summary")
    names = ("User", "Assistant", "Tool calls", "Tool results", "Images", "Thinking", "Summary")
    for number, kind in enumerate(kinds):
        spent = replace(USAGE.breakdown, messages={each: int(each == kind) for each in kinds})
        drawn = render_grid(replace(USAGE, breakdown=spent))
        assert [name for name in names if re.search(rf"[^\w] {name}: +1 tokens", drawn)] == [names[number]]


def test_a_name_of_21_characters_is_whole_and_a_longer_one_ends_in_an_ellipsis():
    def drawn(name: str) -> str:
        share = ToolShare(name=f"x__{name}", server="x", tokens=100)
        return render_grid(replace(USAGE, breakdown=replace(USAGE.breakdown, tools=(share,))))

    assert "n" * 21 in drawn("n" * 21)
    assert "n" * 20 + "…" in drawn("n" * 22)
    assert "n" * 21 not in drawn("n" * 22)


EVERY_KIND = dict.fromkeys(("user", "assistant", "tool_calls", "tool_results", "images", "thinking", "summary"), 3_500)


def test_the_grid_is_drawn_to_the_letter():
    full = replace(USAGE, breakdown=replace(USAGE.breakdown, messages=EVERY_KIND))
    assert render_grid(full).splitlines() == [
        "⛁ ⛃ ⛃ ▲ ▲ ● ● ◇ ◇ ◆   anthropic/claude-3.5-sonnet · 28.8k/200k tokens (14%)",
        "◆ ▣ ▣ ○ ○ ≡ ≡ ⛶ ⛶ ⛶",
        "⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶   ⛁ System prompt: 1.1k tokens (0.6%)",
        "⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶   ⛃ Tool definitions: 3.2k tokens (1.6%)",
        "⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶   ▲ User: 3.5k tokens (1.8%)",
        "⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶   ● Assistant: 3.5k tokens (1.8%)",
        "⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶   ◇ Tool calls: 3.5k tokens (1.8%)",
        "⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶ ⛶   ◆ Tool results: 3.5k tokens (1.8%)",
        "⛶ ⛶ ⛶ ⛶ ⛶ ⛝ ⛝ ⛝ ⛝ ⛝   ▣ Images: 3.5k tokens (1.8%)",
        "⛝ ⛝ ⛝ ⛝ ⛝ ⛝ ⛝ ⛝ ⛝ ⛝   ○ Thinking: 3.5k tokens (1.8%)",
        "                      ≡ Summary: 3.5k tokens (1.8%)",
        "                      ⛶ Free space: 141.2k tokens (70.6%)",
        "                      ⛝ Kept for the answer: 30k tokens (15.0%)",
        "",
        "Tools, by tokens",
        "  github: 2.5k in 2 tools, search_code alone 1.8k",
        "  of no server: 204 in 1 tool, a_clock_with_a_name_…",
        "  their presence: 496",
    ]
    nearly = render_grid(replace(USAGE, context_window=30_000)).splitlines()
    assert [row[:19] for row in nearly[:10]] == [
        "⛁ ⛁ ⛁ ⛁ ⛃ ⛃ ⛃ ⛃ ⛃ ⛃",
        "⛃ ⛃ ⛃ ⛃ ⛃ ▲ ▲ ▲ ▲ ▲",
        "● ● ● ● ● ● ● ● ● ●",
        "◇ ◇ ◇ ◇ ◇ ◇ ◇ ◇ ◇ ◇",
        "◇ ◇ ◇ ◆ ◆ ◆ ◆ ◆ ◆ ◆",
        "◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆",
        "◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆",
        "◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆",
        "◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆ ◆",
        "◆ ◆ ◆ ◆ ◆ ◆ ⛝ ⛝ ⛝ ⛝",
    ], "of the answer's room, what is left"


def test_each_kind_has_a_colour_of_its_own():
    full = replace(USAGE, breakdown=replace(USAGE.breakdown, messages=EVERY_KIND))
    found = {mark: int(code) for code, mark in re.findall(r"\x1b\[(\d+)m(\S)", render_grid(full, colour=True))}
    kinds = {"▲": 32, "●": 34, "◇": 33, "◆": 93, "▣": 95, "○": 94, "≡": 92}
    assert found == {"⛁": 36, "⛃": 35, **kinds, "⛶": 90, "⛝": 90}


def test_what_is_over_is_said_to_the_letter():
    spent = replace(USAGE.breakdown, messages={"tool_results": 300_000}, tools=())
    over = replace(USAGE, messages=300_000, resolved=False, breakdown=spent)
    assert render(over) == (
        "⛁ ⛁ ⛁ ⛁ ⛁ ⛁ ⛁ ⛁ ⛁ ⛁  anthropic/claude-3.5-sonnet · 304.3k/200k tokens (100%)\n"
        "\n"
        "  ⛁ System prompt:    1.1k tokens (0.6%)\n"
        "  ⛁ Tool definitions: 3.2k tokens (1.6%)\n"
        "  ⛁ Messages:         300k tokens (150.0%)\n"
        "  ⛶ Free space:          0 tokens (0.0%)\n"
        "\n"
        "  More than the window holds: 104.3k tokens are over.\n"
        "  The window of `anthropic/claude-3.5-sonnet` is not known; 200k tokens are assumed."
    )
    assert render_line(over) == "⛁⛁⛁⛁⛁⛁⛁⛁⛁⛁ 304.3k/200k (100%) · 104.3k over · compacts at 65%"
    assert (over.usage_percent, over.overflow, over.free) == (100.0, 104_300, 0)
    assert (USAGE.usage_percent, USAGE.overflow, USAGE.free) == (14.4, 0, 171_200)
