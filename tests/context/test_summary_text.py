"""How texts of a summary are cut, shared out, framed and read back."""

import pytest

from ullage.context.summary_text import (
    Carried,
    Section,
    beginning,
    carried,
    clipped,
    ending,
    fitted,
    line_of,
    read_carried,
    read_sections,
    readable,
    shared,
    write_sections,
)

pytestmark = pytest.mark.requirement("S2:compact:how", "S2:compact:fail")


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        ("one two", 7, "one two"),
        ("one two", 6, "one"),
        ("one two", 3, "one"),
        ("one two", 4, "one "),
        ("one two three", 8, "one two "),
        ("onetwo", 3, "one"),
        ("a " + "b" * 50, 42, "a"),
        ("a " + "b" * 50, 43, "a " + "b" * 41),
        ("one two", 0, ""),
    ],
)
def test_a_beginning_ends_with_a_word_if_one_is_near(text: str, most: int, cut: str):
    assert beginning(text, most) == cut


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        ("one two", 7, "one two"),
        ("one two", 6, "two"),
        ("one two", 4, " two"),
        ("one two", 3, "two"),
        ("one two", 2, "wo"),
        ("b" * 50 + " a", 42, "a"),
        ("b" * 50 + " a", 43, "b" * 41 + " a"),
        ("one", 9, "one"),
    ],
)
def test_an_end_begins_with_a_word_if_one_is_near(text: str, most: int, cut: str):
    assert ending(text, most) == cut


@pytest.mark.parametrize(
    ("length", "most", "cut"),
    [
        (10, 10, "x" * 10),
        (10, 9, "xxxx…xxxx"),
        (10, 8, "xxxx…xxx"),
        (10, 1, "…"),
        (10, 0, ""),
        (10, -1, ""),
        (400, 399, "x" * 199 + "…" + "x" * 199),
        (401, 400, "x" * 176 + " [… 49 characters left out …] " + "x" * 176),
        (5_000, 401, "x" * 177 + " [… 4,647 characters left out …] " + "x" * 176),
    ],
)
def test_a_clipped_text_loses_its_middle(length: int, most: int, cut: str):
    assert clipped("x" * length, most) == cut
    assert len(clipped("x" * length, most)) <= max(0, most)


def test_a_readable_text_has_one_kind_of_line_break_and_nothing_that_cannot_be_shown():
    assert readable("a\r\nb\rc\u2028d\u2029e\x85f\tg") == "a\nb\nc\nd\ne\nf\tg"
    assert readable("\x1b[31mred\x1b[0m \x1b[?25lx") == "red x"
    assert readable("a\x00\x01b\x7fc\ud800d") == "a\ufffdb\ufffdc\ufffdd"


def test_a_text_is_fitted_by_counting_little_of_it():
    counted = list[int]()

    def count(text: str) -> int:
        counted.append(len(text))
        return (len(text) + 3) // 4

    assert fitted("short", 2, count) == "short"
    long = fitted("x" * 100_000, 100, count)
    assert count(long) <= 100
    assert len(long) >= 0.85 * 400
    assert counted[0] == 5
    assert max(counted) == 786, "eight characters of a token at most"
    assert fitted("x" * 9, 0, count) == ""


def test_a_line_has_no_breaks_and_its_length():
    assert line_of(" a\n b\t\tc ", 10) == "a b c"
    assert line_of("abcdef", 5) == "ab…ef"
    assert line_of("\n" * 100 + "x", 5) == "… x"
    assert line_of("a" * 20, 5) == line_of("a" * 2_000, 5) == "aa…aa"


@pytest.mark.parametrize(
    ("sizes", "worths", "leasts", "room", "given"),
    [
        ([], [], [], 10, []),
        ([10, 10], [1, 1], [2, 2], 20, [10, 10]),
        ([10, 10], [1, 1], [2, 2], 10, [5, 5]),
        ([10, 10], [3, 1], [2, 2], 12, [8, 4]),
        ([10, 10], [1, 3], [2, 2], 12, [4, 8]),
        ([3, 10], [1, 1], [2, 2], 10, [3, 7]),
        ([10, 10], [1, 2], [6, 6], 10, [0, 10]),
        ([10, 10], [1, 1], [6, 6], 10, [0, 10]),
        ([10, 10], [2, 1], [6, 6], 10, [10, 0]),
        ([10, 10], [1, 1], [5, 5], 10, [5, 5]),
        ([10], [1], [6], 3, [3]),
        ([10, 10], [1, 1], [6, 6], 3, [0, 3]),
        ([10, 10], [1, 1], [6, 6], 0, [0, 0]),
        ([10, 10], [1, 1], [6, 6], -5, [0, 0]),
        ([1, 10], [2, 1], [6, 6], 7, [1, 6]),
        ([10, 10, 10], [1, 1, 1], [1, 1, 1], 9, [3, 3, 3]),
        ([100, 100], [3, 1], [0, 0], 0, [0, 0]),
    ],
)
def test_room_is_shared_by_worth_after_everyone_has_the_least(
    sizes: list[int], worths: list[float], leasts: list[int], room: int, given: list[int]
):
    assert shared(sizes, worths, leasts, room) == given


@pytest.mark.parametrize(
    "made",
    [
        Carried("summary"),
        Carried("summary", "ids: 1"),
        Carried("summary", "ids: 1", "Mend it."),
        Carried("summary", "", "Mend it.", ("And this.", "And that.")),
        Carried("summary", "", "", ("And this.",)),
        Carried("a </context_summary> and < receipt> & &lt;receipt> &amp;lt;/Identifiers", "<identifiers>"),
        Carried("<b>plain</b> & &lt;b&gt;", "", "</original_request>", ("</later_request>",)),
        Carried("two\n\nparts"),
    ],
)
def test_what_a_summary_message_carries_is_read_back(made: Carried):
    text = carried(made.summary, made.identifiers, "a\n receipt </receipt>", request=made.request, later=made.later)
    assert read_carried(text) == made
    assert read_carried(f"\n {text} \n") == made
    assert text.endswith("<receipt>a receipt &lt;/receipt></receipt>\n</context_summary>")
    assert text.count("<context_summary>") == text.count("</context_summary>") == 1


def test_words_behind_a_summary_message_stay_with_it():
    text = carried("summary", "", "r")
    assert read_carried(f"{text}\nAnd now?") == Carried("summary\nAnd now?")


def test_the_summary_of_another_program_is_all_between_its_tags():
    assert read_carried("<context_summary>\n theirs \n</context_summary>") == Carried("theirs")
    assert read_carried("<context_summary>theirs</context_summary> and more") == Carried("theirs and more")
    receipt = "<context_summary>theirs\n\n<receipt>r</receipt></context_summary>"
    assert read_carried(receipt) == Carried("theirs\n\n<receipt>r</receipt>")
    for other in ("", "theirs", "x <context_summary>y</context_summary>"):
        assert read_carried(other) is None


def test_sections_are_written_in_their_order_without_empty_ones():
    items = {Section.NEXT: ["ship"], Section.ASKED: [" mend\nit ", "- listed\n- item\n## Decisions"], Section.FILES: []}
    text = write_sections(items)
    assert text == "## Asked for\n- mend\nit\n- - listed\n  - item\n  ## Decisions\n\n## Next steps\n- ship"
    assert read_sections(text)[Section.NEXT] == ["ship"]
    assert read_sections(text)[Section.ASKED][0] == "mend\nit"


@pytest.mark.parametrize(
    ("text", "sections"),
    [
        ("", {}),
        (" \n", {}),
        (" plain text ", {Section.EARLIER: ["plain text"]}),
        ("- a\n- b", {Section.EARLIER: ["- a\n- b"]}),
        ("## Decisions\n- a\n* b\n  c\n- d", {Section.DECISIONS: ["a", "b\n  c", "d"]}),
        ("1. **Decisions**:\n- a", {Section.DECISIONS: ["a"]}),
        ("DECISIONS\nplain\nlines", {Section.DECISIONS: ["plain", "lines"]}),
        ("before\n## Decisions\n- a", {Section.EARLIER: ["before"], Section.DECISIONS: ["a"]}),
        ("## Decisions\n- a\n\n## Errors met\n- b", {Section.DECISIONS: ["a"], Section.ERRORS: ["b"]}),
        ("## Decisions\n- a\n## Decisions\n- b", {Section.DECISIONS: ["a", "b"]}),
        (" ## Decisions\n- a", {Section.EARLIER: ["## Decisions\n- a"]}),
        ("#" * 31 + "Decisions\n- a", {Section.DECISIONS: ["a"]}),
        ("#" * 32 + "Decisions\n- a", {Section.EARLIER: ["#" * 32 + "Decisions\n- a"]}),
        ("## Decisions made\n- a", {Section.EARLIER: ["## Decisions made\n- a"]}),
        ("## Decisions\nplain\n- a", {Section.DECISIONS: ["plain", "a"]}),
        ("## Decisions\n-a", {Section.DECISIONS: ["-a"]}),
    ],
)
def test_sections_are_read_by_their_headings(text: str, sections: dict[Section, list[str]]):
    assert read_sections(text) == sections
