import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.retrieve.folder_files import Patterns

pytestmark = pytest.mark.requirement("S4:more")

CASES = [
    # pattern, path (a folder's ends in a slash), whether it is meant
    ("*.md", "a.md", True),
    ("*.md", "docs/deep/a.md", True),
    ("*.md", "a.mdx", False),
    ("/a.md", "a.md", True),
    ("/a.md", "docs/a.md", False),
    ("docs/a.md", "docs/a.md", True),
    ("docs/a.md", "x/docs/a.md", False),
    ("build/", "build/", True),
    ("build/", "build", False),
    ("build/", "x/build/", True),
    ("**/logs", "x/y/logs", True),
    ("**/logs", "logs", True),
    ("logs/**", "logs/x/y", True),
    ("logs/**", "logs/", False),
    ("a/**/z", "a/z", True),
    ("a/**/z", "a/b/c/z", True),
    ("a/**/z", "a/b/c", False),
    ("a/**/**/z", "a/z", True),
    ("file?.txt", "file1.txt", True),
    ("file[0-9].txt", "fileA.txt", False),
    ("file[!0-9].txt", "fileA.txt", True),
    (r"\#notes", "#notes", True),
    (r"\!notes", "!notes", True),
    (r"a\*b", "a*b", True),
    (r"a\*b", "axb", False),
    ("spaces   ", "spaces", True),
    ("# a comment", "# a comment", False),
    ("", "x", False),
    ("/", "x", False),
    ("x" * 2_000, "x" * 2_000, False),
]


@pytest.mark.parametrize(("pattern", "path", "meant"), CASES)
def test_a_pattern_means_what_it_means_in_a_gitignore(pattern: str, path: str, meant: bool):  # noqa: FBT001
    parts = tuple(path.rstrip("/").split("/"))
    assert bool(Patterns((pattern,)).says(parts, is_folder=path.endswith("/"))) is meant


def test_the_last_pattern_that_fits_decides():
    patterns = Patterns(("*.log", "!keep.log"))
    assert patterns.says(("a.log",), is_folder=False) is True
    assert patterns.says(("keep.log",), is_folder=False) is False
    assert patterns.says(("a.txt",), is_folder=False) is None


def test_a_folder_covers_what_lies_in_it():
    patterns = Patterns(("src/gateway", "!src/gateway/old.py"))
    assert patterns.covers(("src", "gateway", "find", "fit.py"))
    assert not patterns.covers(("src", "gateway", "old.py"))
    assert not patterns.covers(("src", "gate.py"))


def test_case_matters_unless_it_is_said_not_to():
    assert Patterns(("*.PEM",)).says(("a.pem",), is_folder=False) is None
    assert Patterns(("*.PEM",), any_case=True).says(("a.pem",), is_folder=False) is True


def test_a_hostile_pattern_takes_no_time():
    pattern = "*a" * 100 + "b"
    assert Patterns((pattern, "/".join(["**"] * 100 + ["b"]))).says(("a" * 255,) * 50, is_folder=False) is None


@given(st.text(alphabet="ab*?[]!\\/#-^& ", max_size=20), st.lists(st.text("ab[]-", min_size=1), min_size=1, max_size=4))
def test_no_pattern_makes_it_fail(pattern: str, parts: list[str]):
    assert Patterns((pattern,)).says(tuple(parts), is_folder=True) in (True, False, None)
