import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.retrieve.passages import cut, outline

pytestmark = pytest.mark.requirement("S4:more")

LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "# One", "## Two", "```", "def f():", "    class A:", "    x = 1", "- item", "===", "  ", "@x"]
        ),
        st.text(max_size=30).map(lambda text: text.replace("\n", "")),
        st.integers(1, 3_000).map("w".__mul__),
    ),
    max_size=120,
)
PARAGRAPH = "Some words that stand here to fill a paragraph until it is long enough to be a passage.\n" * 10


@given(LINES, st.sampled_from(["md", "py", "", "rst", "odd"]))
def test_every_line_is_in_exactly_one_passage_and_the_order_is_kept(lines: list[str], suffix: str):
    spans = cut(lines, suffix)
    assert [line for span in spans for line in range(span.start, span.end)] == list(range(len(lines)))


@given(LINES, st.sampled_from(["md", "py"]))
def test_a_passage_is_no_longer_than_it_may_be_unless_it_is_one_line(lines: list[str], suffix: str):
    for span in cut(lines, suffix):
        size = sum(len(line) + 1 for line in lines[span.start : span.end])
        assert size <= 1_500 or span.end - span.start == 1


def test_prose_is_cut_at_headings():
    lines = f"# Guide\n{PARAGRAPH}\n## Install\n{PARAGRAPH}\n## Use\n{PARAGRAPH}".split("\n")
    spans = cut(lines, "md")
    assert [lines[span.start] for span in spans] == ["# Guide", "## Install", "## Use"]
    assert [span.titles for span in spans] == [("Guide",), ("Guide", "Install"), ("Guide", "Use")]


def test_a_passage_in_the_midst_of_a_section_has_its_titles():
    lines = f"# Guide\n\n## Install\n{PARAGRAPH}\n{PARAGRAPH}\n{PARAGRAPH}".split("\n")
    assert [span.titles for span in cut(lines, "md")][-1] == ("Guide", "Install")


def test_code_is_cut_before_a_definition_with_what_belongs_to_it():
    body = "".join(f"    value_{number} = compute({number})\n" for number in range(30))
    lines = f"import os\n\ndef first():\n{body}\n\n# Why\n@cached\ndef second():\n{body}".split("\n")
    spans = cut(lines, "py")
    assert [lines[span.start] for span in spans] == ["import os", "# Why"]
    assert spans[1].titles == ("second",)


def test_a_method_is_found_under_its_class():
    body = "".join(f"        self.value_{number} = compute({number})\n" for number in range(24))
    lines = f"class Pool:\n    def open(self):\n{body}\n    def close(self):\n{body}".split("\n")
    assert [span.titles for span in cut(lines, "py")] == [("Pool", "open"), ("Pool", "close")]


def test_a_hash_in_fenced_code_is_no_heading():
    assert outline(["```sh", "# install", "```", "# Real"], "md").titles.keys() == {3}


@pytest.mark.parametrize(
    ("lines", "suffix", "titles"),
    [
        (["Title", "=====", "", "Part", "----"], "rst", [("Title", 1), ("Part", 2)]),
        (["\\section{One}", "\\subsection{Two}"], "tex", [("One}", 1), ("Two}", 2)]),
        (["public static class Foo {", "  private void x() {}"], "java", [("Foo", 0)]),
        (["export default async function load(a) {"], "ts", [("load", 0)]),
        (["pub(crate) fn run<T>() {", "impl Thing {"], "rs", [("run", 0), ("Thing", 0)]),
        (["CREATE OR REPLACE VIEW sales AS"], "sql", [("sales", 0)]),
        (["func (p *Pool) Get() {", "type Pool struct {"], "go", [("Pool", 0)]),
        (["\tdef inner(self):"], "py", [("inner", 4)]),
        (["classified = 1", "define(x)", "# a comment"], "py", []),
        (["* one", "* two"], "md", []),
    ],
)
def test_titles_are_known_by_the_look_of_a_line(lines: list[str], suffix: str, titles: list[tuple[str, int]]):
    assert [(title.text, title.depth) for title in outline(lines, suffix).titles.values()] == titles


@pytest.mark.requirement("S4:more")
def test_a_paragraph_begins_after_a_line_of_blanks():
    found = outline(["one", "two", "", "three", " \t", "four", "   five", "- six"], "md")
    plain = outline(["one", "two", "", "three", "", "four", "   five", "- six"], "md")
    assert found.strengths == plain.strengths
    first, second, _, third, _, fourth, *_ = found.strengths
    assert first == third == fourth > second
