import difflib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ullage.delegate.code_tools import PatchFailed, apply_patches, framework_for, patch_of, read_patch
from ullage.delegate.consensus import agreement, groups

pytestmark = pytest.mark.requirement("S4:more")

FILE = "one\ntwo\nthree\nfour\nfive\n"


def patch(body: str, old: str = "a.txt", new: str = "a.txt") -> str:
    return f"diff --git a/{old} b/{new}\n--- a/{old}\n+++ b/{new}\n{body}"


def result(text: str, files: dict[str, str] | None = None) -> dict[str, str | None]:
    return apply_patches({"a.txt": FILE} if files is None else files, read_patch(text))


@pytest.mark.requirement("S4:more")
def test_a_patch_changes_what_it_says():
    assert result(patch("@@ -2,2 +2,2 @@\n two\n-three\n+THREE\n")) == {"a.txt": FILE.replace("three", "THREE")}


def test_shifted_hunks_are_found_by_their_lines():
    body = "@@ -1,2 +1,3 @@\n four\n+four and a half\n five\n"
    assert result(patch(body)) == {"a.txt": FILE.replace("four\n", "four\nfour and a half\n")}
    two = "@@ -1,1 +1,2 @@\n one\n+one and a half\n@@ -4,1 +5,1 @@\n-four\n+4\n"
    assert result(patch(two)) == {"a.txt": "one\none and a half\ntwo\nthree\n4\nfive\n"}


def test_files_are_made_removed_and_renamed():
    made = "diff --git a/b.txt b/b.txt\nnew file mode 100644\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1,2 @@\n+x\n+y\n"
    assert result(made) == {"b.txt": "x\ny\n"}
    gone = "diff --git a/a.txt b/a.txt\ndeleted file\n--- a/a.txt\n+++ /dev/null\n@@ -1,5 +0,0 @@\n" + "".join(
        f"-{line}\n" for line in FILE.split()
    )
    assert result(gone) == {"a.txt": None}
    assert result("diff --git a/a.txt b/c.txt\nrename from a.txt\nrename to c.txt\n") == {"a.txt": None, "c.txt": FILE}


def test_lines_are_only_ever_added_after_the_line_named():
    assert result(patch("@@ -2,0 +3,1 @@\n+between\n")) == {"a.txt": FILE.replace("two\n", "two\nbetween\n")}


def test_the_mark_of_a_missing_end_of_line_is_no_line():
    assert result(patch("@@ -5,1 +5,1 @@\n-five\n\\ No newline at end of file\n+5\n")) == {
        "a.txt": FILE.replace("five", "5")
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Sure, here it is", "no `diff --git"),
        (patch(""), "no hunk"),
        (patch("@@ -1,1 +1,1 @@\n*one\n"), "begins with none of"),
        (patch("@@ -1,1 +1,1 @@\n-ONE\n+1\n"), "at line 1 the file has `one`, the patch `ONE`"),
        (patch("@@ -6,1 +6,1 @@\n-six\n+6\n"), "at line 6 the file ends"),
        (patch("@@ -1,1 +1,1 @@\n-one\n+1\n", "z.txt", "z.txt"), "`z.txt` is none of the files"),
        (
            "diff --git a/a.txt b/a.txt\n--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n",
            "is a new file in the patch, but already exists",
        ),
        ("diff --git a/a.txt b/b.txt\nrename from a.txt\nrename to b.txt\n", "`b.txt` is a new file"),
        (patch("@@ -1,1 +1,1 @@\n-one\n+1\n", new="../c.txt"), "`../c.txt` is outside"),
        ("diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n", "leaves lines of it"),
    ],
)
def test_what_does_not_fit_says_why(text: str, message: str):
    with pytest.raises(PatchFailed, match=message.replace("(", r"\(")):
        result(text, {"a.txt": FILE, "b.txt": ""})


def test_a_fence_within_what_is_changed_does_not_end_the_patch():
    body = "@@ -5,1 +5,5 @@\n five\n+```sh\n+ls\n+```\n+six\n"
    assert result(f"Here:\n```diff\n{patch(body)}```\nDone.") == {"a.txt": f"{FILE}```sh\nls\n```\nsix\n"}


def test_empty_lines_between_files_are_of_neither():
    made = "diff --git a/b.txt b/b.txt\n--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+x\n"
    assert result(patch("@@ -1,2 +1,2 @@\n-one\n+1\n two\n\n\n") + made) == {
        "a.txt": FILE.replace("one", "1"),
        "b.txt": "x\n",
    }


def test_two_patches_of_one_file_are_both_applied():
    twice = patch("@@ -1,1 +1,1 @@\n-one\n+1\n") + patch("@@ -5,1 +5,1 @@\n-five\n+5\n")
    assert result(twice) == {"a.txt": FILE.replace("one", "1").replace("five", "5")}


def test_a_line_without_an_end_keeps_none_unless_the_patch_gives_it_one():
    files = {"a.txt": FILE.removesuffix("\n")}
    assert result(patch("@@ -4,2 +4,2 @@\n-four\n+4\n five\n"), files) == {"a.txt": "one\ntwo\nthree\n4\nfive"}
    assert result(patch("@@ -5,1 +5,1 @@\n-five\n+5\n"), files) == {"a.txt": "one\ntwo\nthree\nfour\n5\n"}
    kept = patch("@@ -5,1 +5,1 @@\n-five\n+5\n\\ No newline at end of file\n")
    assert result(kept) == {"a.txt": "one\ntwo\nthree\nfour\n5"}


SLIPS = {
    "counts": (patch("@@ -1,9 +1,7 @@\n-one\n+1\n two\n"), FILE),
    "places": (patch("@@ -1,2 +1,2 @@\n four\n-five\n+5\n"), FILE),
    "no context": (patch("@@ -2,0 +3,1 @@\n+between\n"), FILE),
    "no mark of a missing end": (patch("@@ -4,2 +4,2 @@\n-four\n+4\n five\n"), FILE.removesuffix("\n")),
    "renamed": (patch("@@ -1,1 +1,1 @@\n-one\n+1\n", new="new name.txt"), FILE),
    "removed": ("diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-one\n", "one\n"),
    "made": ("diff --git a/b/é.txt b/b/é.txt\n--- /dev/null\n+++ b/b/é.txt\n@@ -0,0 +1,1 @@\n+x\n", FILE),
}


@pytest.mark.requirement("S4:more")
@pytest.mark.skipif(shutil.which("git") is None, reason="git says what applies")
@pytest.mark.parametrize("slip", SLIPS)
def test_what_is_handed_on_is_applied_by_git_whatever_slipped(slip: str, tmp_path: Path):
    text, content = SLIPS[slip]
    files = {"a.txt": content}
    (tmp_path / "a.txt").write_text(content, encoding="utf-8", newline="")
    said = patch_of(files, read_patch(text))
    alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(["git", "apply", "-"], input=said.encode(), cwd=tmp_path, check=True, env=alone)
    there = {str(one.relative_to(tmp_path)): one.read_bytes().decode() for one in tmp_path.rglob("*") if one.is_file()}
    assert there == {path: text for path, text in {**files, **result(text, files)}.items() if text is not None}


WINDOWS = "one\r\ntwo\r\nthree\r\nfour\r\nfive"
QUOTED = 'diff --git "a/caf\\303\\251.txt" "b/caf\\303\\251.txt"\n'
ODD = 'a b/c \\ "d".txt'
WRITTEN = {
    "no carriage returns": (
        {"a.txt": WINDOWS},
        patch("@@ -1,5 +1,6 @@\n one\n-two\n+2\n+and\n three\n four\n-five\n+5\n"),
        {"a.txt": "one\r\n2\r\nand\r\nthree\r\nfour\r\n5\r\n"},
    ),
    "a line after one without an end": (
        {"a.txt": "one\r\ntwo"},
        patch("@@ -2 +2,2 @@\n two\n+three\n\\ No newline at end of file\n"),
        {"a.txt": "one\r\ntwo\r\nthree"},
    ),
    "both kinds of endings": (
        {"a.txt": "one\r\ntwo\nthree\r\n"},
        patch("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"),
        {"a.txt": "one\r\n2\nthree\r\n"},
    ),
    "endings that are to change": (
        {"a.txt": "one\r\ntwo\r\n"},
        patch("@@ -1,2 +1,2 @@\n-one\r\n+one\n two\r\n"),
        {"a.txt": "one\ntwo\r\n"},
    ),
    "a byte order mark": (
        {"a.txt": "\ufeffone\r\ntwo\r\n"},
        patch("@@ -1,2 +1,2 @@\n-one\n+1\n two\n"),
        {"a.txt": "\ufeff1\r\ntwo\r\n"},
    ),
    "no header": (
        {"a.txt": FILE, "b.txt": "-- one\n"},
        (
            "```diff\n--- a/a.txt\t2026-01-01\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+1\n"
            "--- b.txt\n+++ b.txt\n@@ -1 +1 @@\n--- one\n+++ 1\n```"
        ),
        {"a.txt": FILE.replace("one", "1"), "b.txt": "++ 1\n"},
    ),
    "an empty file is made, another removed": (
        {"e": ""},
        (
            "diff --git a/n b/n\nnew file mode 100644\nindex 0000000..e69de29\n"
            "diff --git a/e b/e\ndeleted file mode 100644\nindex e69de29..0000000\n"
        ),
        {"n": ""},
    ),
    "quoted names": (
        {"café.txt": "one\n"},
        QUOTED + '--- "a/caf\\303\\251.txt"\n+++ "b/caf\\303\\251.txt"\n@@ -1 +1 @@\n-one\n+1\n',
        {"café.txt": "1\n"},
    ),
    "names that need quotes": (
        {ODD: "one\n"},
        f"diff --git a/{ODD} b/{ODD}\n--- a/{ODD}\t\n+++ b/{ODD}\t\n@@ -1 +1 @@\n-one\n+1\n",
        {ODD: "1\n"},
    ),
    "a copy": (
        {"a.txt": FILE},
        "diff --git a/a.txt b/c.txt\nsimilarity index 100%\ncopy from a.txt\ncopy to c.txt\n",
        {"a.txt": FILE, "c.txt": FILE},
    ),
}


@pytest.mark.skipif(shutil.which("git") is None, reason="git says what applies")
@pytest.mark.parametrize("way", WRITTEN)
def test_patches_are_read_in_every_way_that_they_are_written(way: str, tmp_path: Path):
    files, text, expected = WRITTEN[way]
    for path, content in files.items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8", newline="")
    said = patch_of(files, read_patch(text))
    alone = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    subprocess.run(["git", "apply", "-"], input=said.encode(), cwd=tmp_path, check=True, env=alone)
    there = {str(one.relative_to(tmp_path)): one.read_bytes().decode() for one in tmp_path.rglob("*") if one.is_file()}
    assert there == expected


def test_a_patch_that_changes_nothing_is_rejected():
    with pytest.raises(PatchFailed, match="changes nothing"):
        patch_of({"a.txt": FILE}, read_patch(patch("@@ -1,1 +1,1 @@\n-one\n+one\n")))


LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "+e", "-f", "@@ g"]), max_size=12)


@given(before=LINES, after=LINES)
def test_what_the_standard_library_writes_applies(before: list[str], after: list[str]):
    old, new = "".join(f"{line}\n" for line in before), "".join(f"{line}\n" for line in after)
    difference = list(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a/x", "b/x"))
    if not difference:
        return
    assert result(f"diff --git a/x b/x\n{''.join(difference)}", {"x": old}) == {"x": new}


def test_agreement_is_of_words_and_not_of_case_or_points():
    assert agreement(["Paris.", "paris"]) == 1.0
    assert agreement(["Paris", "Rome"]) == 0.0
    assert agreement(["Paris"]) is None
    long = "the quick brown fox jumps over the lazy dog and runs away"
    nearly = agreement([long, long.replace("lazy", "sleepy")])
    assert nearly is not None
    assert 0.7 < nearly < 1.0
    assert agreement(["", "a b c d e f g h i j"]) == 0.0
    assert groups(["Rome", "paris", "Paris!"]) == [[1, 2], [0]]


def test_the_framework_is_that_of_most_files():
    assert framework_for({"a.ts": "", "b.ts": "", "c.py": ""}) == "vitest"
    assert framework_for({"README": ""}) == "pytest"
