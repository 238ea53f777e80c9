import json
import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clients.config_texts import JsonWriter, random_servers, random_table, write_toml
from ullage.clients.configs import ChangeRecord, EditRefused, FileFormat, Put, Remove, edit_content, undo_change
from ullage.clients.configs.jsonc import edit_jsonc, parse_jsonc
from ullage.clients.configs.server_entries import apply_edits, fingerprint
from ullage.clients.configs.toml_text import edit_toml, parse_toml

pytestmark = pytest.mark.requirement("U:scan")

FORMATS: list[FileFormat] = ["json", "toml"]
OURS = {"command": "/opt/ullage", "args": ["serve", "--client", "x"], "env": {"A": "ü"}}


def comments_of(text: str) -> set[str]:
    return set(re.findall(r"c\d+:", text))


@given(st.randoms(use_true_random=False))
def test_json_edits_keep_every_other_byte(rng: Random):
    servers = random_servers(rng)
    document = {**random_table(rng), "mcpServers": servers, **random_table(rng)}
    writer = JsonWriter(rng)
    text = writer.document(document)
    assert parse_jsonc(text) == document
    gone = [name for name in servers if rng.random() < 0.5]
    edits = [
        *(Remove(("mcpServers", name)) for name in gone),
        Put(("mcpServers", "ullage"), OURS),
        Put(("mcp", "n"), 1),
    ]
    changed = edit_jsonc(text, edits)
    assert json.dumps(parse_jsonc(changed)) == json.dumps(apply_edits(document, edits))
    assert changed.startswith("\ufeff") == text.startswith("\ufeff")
    assert changed[-1] == text[-1]
    if writer.newline == "\r\n":
        assert "\n" not in changed.replace("\r\n", "") or "\r\n" not in text
    if not gone:
        assert comments_of(changed) == comments_of(text)
        # What was there is still there, in its order.
        rest = iter(changed)
        assert all(letter in rest for letter in text)
    # Taken back by hand, nothing is left of it.
    back = edit_jsonc(changed, [Remove(("mcpServers", "ullage"))])
    assert "ullage" not in parse_jsonc(back)["mcpServers"]  # type: ignore[index]


@given(st.randoms(use_true_random=False))
def test_toml_edits_keep_every_other_line(rng: Random):
    servers = random_servers(rng)
    before, after = {"model": "m", "n": 1.5}, {"tui": random_table(rng), "näme.x": {}}
    text = write_toml(rng, before, servers, after)
    document = parse_toml(text)
    gone = [name for name in servers if rng.random() < 0.5]
    edits = [
        *(Remove(("mcp_servers", name)) for name in gone),
        Put(("mcp_servers", "ullage"), OURS),
        Put(("tui", "z"), [1]),
    ]
    changed = edit_toml(text, edits)
    assert fingerprint(parse_toml(changed), is_ordered=False) == fingerprint(
        apply_edits(document, edits), is_ordered=False
    )
    assert changed.startswith("\ufeff") == text.startswith("\ufeff")
    newline = "\r\n" if "\r\n" in text else "\n"
    if newline == "\r\n":
        assert "\n" not in changed.replace("\r\n", "")
    lines = changed.split(newline)
    assert [line for line in text.split(newline) if line.endswith("# key") or line in ("# next", " 1, # ]")] == [
        line for line in lines if line.endswith("# key") or line in ("# next", " 1, # ]")
    ]


@given(st.randoms(use_true_random=False), st.sampled_from(FORMATS))
def test_undo_gives_the_bytes_back_or_merges(rng: Random, kind: FileFormat):
    servers = random_servers(rng)
    table = "mcpServers" if kind == "json" else "mcp_servers"
    if kind == "json":
        before = JsonWriter(rng).document({"model": "m", table: servers, "z": {}}).encode()
    else:
        before = write_toml(rng, {"model": "m"}, servers, {"tui": {}}).encode()
    removed = tuple((table, name) for name in servers if rng.random() < 0.6)
    ours = (table, "ullage")
    after = edit_content(before, kind, [*map(Remove, removed), Put(ours, OURS)])
    record = ChangeRecord(
        program="x",
        file="f",
        format=kind,
        before=before,
        after=after,
        removed=removed,
        added=(ours,),
    )
    exact = undo_change(record, after)
    assert (exact.content, exact.is_exact) == (before, True)
    theirs = edit_content(after, kind, [Put((table, "theirs"), {"command": "t"}), Put(("tui", "x"), 1)])
    merged = undo_change(record, theirs)
    assert merged.content is not None
    parse = parse_jsonc if kind == "json" else parse_toml
    found, old = parse(merged.content.decode()), parse(before.decode())
    expected = apply_edits(old, [Put((table, "theirs"), {"command": "t"}), Put(("tui", "x"), 1)])
    assert fingerprint(found, is_ordered=False) == fingerprint(expected, is_ordered=False)


@pytest.mark.parametrize("before", [None, b'model = "m"\n', b"[clients.cursor]\n"])
def test_undo_beside_others_removes_the_tables_it_created(before: bytes | None):
    path = ("clients", "cursor", "groups")
    after = edit_content(before, "toml", [Put(path, ["cursor"])])
    record = ChangeRecord(program="x", file="f", format="toml", before=before, after=after, added=(path,))
    theirs = edit_content(after, "toml", [Put(("servers", "theirs"), {"command": "t"})])
    merged = undo_change(record, theirs).content
    assert merged is not None
    expected = apply_edits(parse_toml((before or b"").decode()), [Put(("servers", "theirs"), {"command": "t"})])
    assert parse_toml(merged.decode()) == expected


@given(st.text(max_size=60) | st.text(alphabet='{}[]",:/*\n a1\\', max_size=40))
def test_any_text_is_edited_or_refused(text: str):
    for edit, parse, table in ((edit_jsonc, parse_jsonc, "mcpServers"), (edit_toml, parse_toml, "mcp_servers")):
        try:
            changed = edit(text, [Remove((table, "a")), Put((table, "ullage"), OURS)])
        except EditRefused:
            continue
        assert parse(changed)[table]["ullage"] == OURS  # type: ignore[index]


def test_json_layout_of_a_new_entry_follows_the_file():
    text = '{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"} // note\r\n\t},\r\n}\r\n'
    changed = edit_jsonc(text, [Put(("mcpServers", "b"), {"command": "y"})])
    assert changed == (
        '{\r\n\t"mcpServers": {\r\n\t\t"a": {"command": "x"}, // note\r\n'
        '\t\t"b": {\r\n\t\t\t"command": "y"\r\n\t\t}\r\n\t},\r\n}\r\n'
    )
    assert edit_jsonc(changed, [Remove(("mcpServers", "b"))]) == text


def test_json_comments_beside_a_removed_entry_stay():
    text = '{"mcpServers": {\n  // first\n  "a": {}, // about a\n  "b": {} /* about b */\n}}'
    assert edit_jsonc(text, [Remove(("mcpServers", "b"))]) == (
        '{"mcpServers": {\n  // first\n  "a": {} // about a\n   /* about b */\n}}'
    )


def test_toml_comment_of_the_next_table_stays():
    text = '[mcp_servers.a]\ncommand = "x"\n# inside\nargs = []\n\n# about tui\n[tui]\nx = 1\n'
    assert edit_toml(text, [Remove(("mcp_servers", "a"))]) == "# about tui\n[tui]\nx = 1\n"


def test_repeated_json_keys_are_all_removed():
    assert edit_jsonc('{"s": {"a": 1, "b": 2, "a": 3}}', [Remove(("s", "a"))]) == '{"s": {"b": 2}}'


@pytest.mark.parametrize("text", ['{"mcpServers": []}', "[1]", '{"mcpServers": {', '{"a": 1} x', "{'a': 1}"])
def test_what_cannot_be_edited_is_refused(text: str):
    with pytest.raises(EditRefused):
        edit_jsonc(text, [Put(("mcpServers", "ullage"), OURS)])


def test_deep_nesting_is_refused():
    with pytest.raises(EditRefused):
        edit_jsonc('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", [Put(("b",), 1)])


@pytest.mark.requirement("U:scan")
def test_documents_with_equal_content_have_equal_fingerprints():
    one, other = {"a": 1, "b": [1, 2]}, {"b": [1, 2], "a": 1}
    assert fingerprint(one, is_ordered=False) == fingerprint(other, is_ordered=False)
    assert fingerprint(one, is_ordered=True) != fingerprint(other, is_ordered=True)
    for changed in ({**one, "a": 2}, {**one, "b": [2, 1]}, {"a": 1}, {**one, "c": None}):
        assert fingerprint(changed, is_ordered=False) != fingerprint(one, is_ordered=False)
