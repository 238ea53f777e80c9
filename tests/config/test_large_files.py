"""Large files that a project brings: reading one takes time in proportion to its size, whatever is in it."""

import json
from pathlib import Path

import pytest

from approving import examine
from ullage.config import Flags, Loaded, Places
from ullage.config.config_file import Page
from ullage.config.included_files import read_mcp_json
from ullage.config.ullage_toml import read_ullage_toml

pytestmark = pytest.mark.requirement("U:project", "U:bounded")


def page(file: str, text: str) -> Page:
    return Page(file=file, text=text, environment={}, absolute=str, expands=False)


def load(root: Path) -> Loaded:
    places = Places(home=root, config=root / ".config", data=root / ".data")
    return examine(Flags(), {}, root / "project", places=places)


def test_a_projects_file_that_is_too_large_is_not_read(tmp_path: Path):
    file = tmp_path / "project" / "ullage.toml"
    (tmp_path / "project" / ".git").mkdir(parents=True)
    entry = "[servers.x]\ncommand = 'x'\n"
    for size, count in ((512 * 1024, 1), (512 * 1024 + 1, 0)):
        file.write_text(entry + "#" * (size - len(entry)), encoding="utf-8")
        loaded = load(tmp_path)
        assert len(loaded.settings.servers) == count
        assert any("larger than 512 KiB" in issue.message for issue in loaded.issues) is (count == 0)


@pytest.mark.parametrize(
    "line",
    [
        "a" + ".a" * 200_000 + " = 1",
        "[servers" + ".'a b'" * 80_000 + "]",
        "x = 1 # it's\n" + "a" + " . a" * 100_000 + " = 1",
        "x = { a" + '."\\"."' * 80_000 + " = 1 }",
    ],
)
def test_a_key_of_many_parts_is_no_key(line: str):
    (issue,) = read_ullage_toml(page("ullage.toml", line)).issues
    assert "200 parts or more" in issue.message


def test_lines_with_many_points_in_a_text_are_read():
    text = '[delegate.prompts]\nrun = """\n' + ". . . and so on.\n" * 200 + '"""\n[gateway]\nmodel = "x"\n'
    layer = read_ullage_toml(page("ullage.toml", text))
    assert layer.issues == ()
    assert layer.values["gateway.model"] == "x"


def test_a_long_line_of_sentences_is_read():
    text = f"[servers.x]\ncommand = 'say'\nargs = ['{'One. ' * 300}', \"{'a.b' * 300}\"] # {'.a' * 300}\n"
    layer = read_ullage_toml(page("ullage.toml", text))
    assert layer.issues == ()
    assert list(layer.servers) == ["x"]


@pytest.mark.parametrize("line", ["a" * 500_000, '"' + '\\"' * 250_000, "'" * 500_001, "a = " + ". " * 250_000])
def test_a_line_that_is_not_toml_is_refused_in_linear_time(line: str):
    (issue,) = read_ullage_toml(page("ullage.toml", line)).issues
    assert "is not TOML" in issue.message


def test_the_line_is_looked_up_for_the_first_errors_of_a_large_file():
    text = "".join(f"[servers.s{number}]\nkey = 1\n" for number in range(20_000))
    issues = [one for one in read_ullage_toml(page("ullage.toml", text)).issues if "unknown key" in one.message]
    assert len(issues) == 20_000
    assert (issues[0].line, issues[-1].line) == (2, None)


def test_many_entries_get_names_of_their_own():
    named = json.dumps({"mcpServers": {f"a{'!' * number}b": {"command": "x"} for number in range(1, 700)}})
    assert list(read_mcp_json(page("mcp.json", named)).servers)[:3] == ["a-b", "a-b-2", "a-b-3"]
    many = json.dumps({"mcpServers": {f"s{number}": 1 for number in range(30_000)}})
    assert len(read_mcp_json(page("mcp.json", many)).servers) == 30_000
