import shutil
import subprocess
from pathlib import Path
from random import Random

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
    ("x" * 1_000, "x" * 1_000, True),
    ("x" * 1_001, "x" * 1_001, False),
    ("a/**", "a/", False),
    ("**/a/*.md", "a/x.md", True),
    ("**/a/*.md", "b/a/x.md", True),
    ("**/a/*.md", "b/x.md", False),
    ("**", "x/y", True),
    ("a/**/b/**/c", "a/b/c", True),
    ("a/**/b/**/c", "a/x/b/y/z/c", True),
    ("a/**/b/**/c", "a/x/c", False),
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


GIT = shutil.which("git")
PIECES = (*"ab*?-x[]c!#. ", "**", "[ab]", "[!a]", "[^a]", "[a-c]", "[]a]", "[z-a]", r"\a", r"\*", r"\ ")
PIECES += ("[[:alpha:]]", "[^[:digit:]]", "[[:no:]]", r"[\]]", r"[a\-c]", "[a-]", "[a/b]")
NAMES = (*"abcx-^[*] AB1", "ab", "a b", "aa", "abc", "!a", "#a", "a*", "a]", "a ", "\\")


@pytest.mark.skipif(GIT is None, reason="needs git")
@pytest.mark.parametrize("seed", range(3))
def test_git_ignores_the_same_files(seed: int, tmp_path: Path):
    """Each folder has patterns of its own, so that one process of Git answers for all of them."""
    random = Random(seed)

    def pattern() -> str:
        segments = ("".join(random.choices(PIECES, k=random.randint(1, 3))) for _ in range(random.choice((1, 1, 2, 3))))
        return random.choice(("", "", "", "/", "!")) + "/".join(segments) + random.choice(("", "", "/"))

    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    asked = dict[str, bool]()
    for number in range(250):
        folder = tmp_path / f"folder{number}"
        folder.mkdir()
        lines = [pattern() for _ in range(random.randint(1, 3))]
        (folder / ".gitignore").write_text("\n".join(lines) + "\n", encoding="utf-8")
        patterns = Patterns(lines)
        for _ in range(40):
            parts = tuple(random.choices(NAMES, k=random.randint(1, 4)))
            folders = (patterns.says(parts[:depth], is_folder=True) for depth in range(1, len(parts)))
            asked["/".join((folder.name, *parts))] = any(folders) or bool(patterns.says(parts, is_folder=False))
    command = ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "--stdin", "-z"]
    answer = subprocess.run(command, input="\0".join(asked).encode(), capture_output=True, check=True).stdout
    ignored = set(answer.decode().split("\0"))
    assert [path for path, is_ignored in asked.items() if is_ignored != (path in ignored)] == []
