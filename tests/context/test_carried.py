import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.context.summary_text import Carried, carried, read_carried

pytestmark = pytest.mark.requirement("S2:compact:how")

TAGS = (
    *("<context_summary>", "</context_summary>", "\n</context_summary>", "</ Context_Summary >", "< /context_summary"),
    *("\n\n<identifiers>\n", "\n</identifiers>", "\n\n<receipt>", "</receipt>\n</context_summary>"),
    *("&lt;/context_summary>", "&amp;lt;identifiers>", "&LT;receipt", "&AMP;lt;receipt", "&", "<", "/", "amp;", "lt;"),
    *("\n", " ", "a", "油彩", "\x00"),
)
HOSTILE = st.lists(st.sampled_from(TAGS), max_size=8).map("".join) | st.text(max_size=30)


@given(HOSTILE, HOSTILE, HOSTILE)
def test_whatever_stands_within_it_comes_back_as_it_was(summary: str, identifiers: str, receipt: str):
    assert read_carried(carried(summary, identifiers, receipt)) == Carried(summary, identifiers)


@given(HOSTILE, HOSTILE, HOSTILE)
def test_nothing_within_it_opens_or_closes_it_early(summary: str, identifiers: str, receipt: str):
    text = carried(summary, identifiers, receipt)
    assert text.startswith("<context_summary>\n")
    assert text.endswith("\n</context_summary>")
    assert text.lower().count("<context_summary") == 1
    assert "".join(text.lower().split()).count("</context_summary") == 1
    assert text.count("<receipt>") == 1


def test_it_is_a_summary_then_identifiers_then_a_line_of_receipt():
    assert carried("## Decisions\n- one", "files: a.py", "12 messages\nlet go") == (
        "<context_summary>\n## Decisions\n- one\n\n<identifiers>\nfiles: a.py\n</identifiers>\n\n"
        "<receipt>12 messages let go</receipt>\n</context_summary>"
    )


def test_without_identifiers_there_is_no_block_for_them():
    assert "<identifiers>" not in carried("Done.", "", "1 message let go")


@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("<context_summary>\nWe built it.\n</context_summary>", "We built it."),
        ("\n <context_summary>We built it.</context_summary>\n", "We built it."),
        ("<context_summary>\nThe end is lost", "The end is lost"),
        ("<context_summary>\nOne.\n</context_summary>\nGo on.", "One.\n\nGo on."),
        ("<context_summary>\nSee &lt;receipt> [3].\n[note]\n</context_summary>", "See &lt;receipt> [3].\n[note]"),
        ("<context_summary>", ""),
        ("<context_summary>\n<identifiers>\na.py\n</identifiers>", "<identifiers>\na.py\n</identifiers>"),
    ],
)
def test_all_of_anothers_is_summary(text: str, summary: str):
    assert read_carried(text) == Carried(summary)


def test_what_follows_ours_in_the_same_message_is_not_lost():
    assert read_carried(carried("One.", "a.py", "r") + "\nGo on.") == Carried("One.\nGo on.", "a.py")


@pytest.mark.parametrize("text", ["", "hello", "see <context_summary>", "<context_summaries>", "<summary>a</summary>"])
def test_what_is_none_is_not_read_as_one(text: str):
    assert read_carried(text) is None


def test_long_runs_of_space_cost_no_more_than_their_length():
    text = ("<" + " " * 20_000) * 3
    start = time.process_time()
    assert read_carried(carried(text, "", "r")) == Carried(text)
    assert time.process_time() - start < 8, "milliseconds, or twenty seconds where a run is looked at again and again"
