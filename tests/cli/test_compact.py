"""`ullage compact` as a person meets it: what would be removed, and what is left."""

import json
import re
from collections.abc import Generator
from pathlib import Path

import anyio
import pytest

from app.loopback import Loopback, loopback
from approving import approve, main
from cli.talks import answered, asked, chat, session, turns, words
from delegate.policies import MODELS, POLICIES
from ullage.cli.compact import plan_compaction, write_remaining
from ullage.cli.session_stats import read_conversations_in
from ullage.clients import read_conversations
from ullage.context import Options, Session, SessionChanged
from ullage.messages import Format, faults
from upstreams import users_file

pytestmark = [pytest.mark.requirement("S2:formats")]
SMALL = ("--window", "20k")


@pytest.fixture
def folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("home")
    for name in ("CONFIG", "DATA", "CACHE", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(home / name.lower()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


@pytest.fixture
def full(folder: Path) -> Path:
    """A session of pi that fills a window of 20,000."""
    return session(folder / "full.jsonl", asked("Read all of it."), *turns(14, reported=False))


def own(path: Path, pairs: int = 14) -> Path:
    with Session.open(path, format=Format.OPENAI_CHAT, model="gpt-4o") as opened:
        opened.append(chat(pairs)[:2], pinned=True)
        opened.append(chat(pairs)[2:])
    return path


def compacted(capsys: pytest.CaptureFixture[str], *words: str):
    assert main(["compact", *words, *SMALL, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str):
    assert main(["compact", *words, "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    return json.loads(err)


def everything(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_dry_run_says_what_would_be_let_go_and_touches_nothing(full: Path, capsys: pytest.CaptureFixture[str]):
    before = everything(full.parent)
    assert main(["compact", "full.jsonl", "--dry-run", *SMALL]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("before  ⛁⛁")
    assert lines[1].startswith("after   ⛁")
    assert lines[3].split() == ["what", "messages", "tokens", "removed"]
    assert any(line.startswith("The prompt cache stays valid for ") for line in lines)
    assert max(map(len, lines)) <= 80
    assert err == "a dry run: nothing was written\n"
    assert everything(full.parent) == before


@pytest.mark.requirement("S2:compact:after")
def test_another_programs_session_becomes_one_of_ullages_and_stays_as_it_is(
    full: Path, capsys: pytest.CaptureFixture[str]
):
    before = full.read_bytes()
    found = compacted(capsys, "full.jsonl", "--output", "less.jsonl")
    assert found["compacted"] is True
    assert found["before"]["used"] > found["after"]["used"]
    assert found["after"]["usagePercent"] < 50
    assert (found["output"], found["generation"]) == ("less.jsonl", 1)
    assert [set(shed) for shed in found["shed"]] == [{"tier", "tokens", "messages", "brokeAt", "reread"}] * len(
        found["shed"]
    )
    assert full.read_bytes() == before
    (left,) = read_conversations(Path("less.jsonl"))
    assert (left.program, left.model, len(left.natives)) == ("ullage", "gpt-4o", found["messages"]["after"])
    assert faults(left.natives, left.format) == ()
    assert len(left.turns) > len(left.natives)
    with Session.open("less.jsonl") as opened:
        assert opened.verify().ok
        assert len(opened.history(full=True)) == found["messages"]["before"]


@pytest.mark.requirement("S2:compact:persist")
def test_a_session_of_ullages_own_is_changed_in_its_place_and_its_archive_keeps_the_rest(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    path = own(folder / "own.jsonl")
    with Session.open(path) as opened:
        originals = [record.message for record in opened.records]
    found = compacted(capsys, "own.jsonl")
    assert (found["output"], found["generation"]) == ("own.jsonl", 1)
    with Session.open(path) as opened:
        assert len(opened.records) == found["messages"]["after"]
        assert opened.records[0].message == originals[0] or opened.records[0].kind == "summary"
        assert originals[:2] == [record.message for record in opened.records if record.pinned]
        assert [record.message for record in opened.history(full=True)] == originals
    again = compacted(capsys, "own.jsonl")
    assert again["before"]["used"] < found["before"]["used"]


@pytest.mark.requirement("U:ledger")
def test_a_compaction_is_recorded_under_its_session_and_program_and_a_dry_run_is_not(
    full: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["compact", full.name, "--dry-run", *SMALL]) == 0
    capsys.readouterr()
    found = compacted(capsys, full.name, "--output", "less.jsonl")
    (conversation,) = read_conversations(full)
    assert main(["usage", "--json", "--by", "session"]) == 0
    (line,) = json.loads(capsys.readouterr().out)["lines"]
    saved = found["before"]["messages"] - found["after"]["messages"]
    assert (line["key"], line["client"]) == (conversation.id, "pi")
    assert line["saved"]["history"] == saved > 0


def test_a_session_of_ullages_own_may_go_elsewhere(folder: Path, capsys: pytest.CaptureFixture[str]):
    path = own(folder / "own.jsonl")
    before = path.read_bytes()
    assert compacted(capsys, "own.jsonl", "-o", "less.jsonl")["output"] == "less.jsonl"
    assert path.read_bytes() == before


def test_a_damaged_session_is_repaired_first(folder: Path, capsys: pytest.CaptureFixture[str]):
    path = own(folder / "own.jsonl")
    path.write_bytes(path.read_bytes()[:-40])
    assert compacted(capsys, "own.jsonl")["compacted"] is True
    with Session.open(path) as opened:
        assert opened.verify().ok


def test_a_session_that_somebody_else_compacts_meanwhile_is_left_to_them(folder: Path):
    path = own(folder / "own.jsonl")
    (found,) = read_conversations_in("own.jsonl")
    let_go = anyio.run(plan_compaction, found, Options(context_window=20_000), None)
    with Session.open(path) as opened:
        records = opened.records
        opened.replace(0, len(records), records[2:], snapshot=records)
    before = path.read_bytes()
    with pytest.raises(SessionChanged):
        write_remaining(let_go, path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("shape", ["list", "lines", "body"])
def test_a_list_or_a_body_is_written_as_it_was_with_fewer_words(
    shape: str, folder: Path, capsys: pytest.CaptureFixture[str]
):
    messages = chat(14)
    text = {
        "list": json.dumps(messages),
        "lines": "\n".join(map(json.dumps, messages)),
        "body": json.dumps({"model": "gpt-4o", "temperature": 0, "messages": messages}),
    }[shape]
    (folder / "m.json").write_text(text, encoding="utf-8")
    found = compacted(capsys, "m.json", "-o", "less.json")
    assert (found["compacted"], found["generation"]) == (True, None)
    text = (folder / "less.json").read_text(encoding="utf-8")
    if shape == "body":
        body = json.loads(text)
        assert (body["model"], body["temperature"]) == ("gpt-4o", 0)
        left = body["messages"]
    else:
        left = [json.loads(line) for line in text.splitlines()] if shape == "lines" else json.loads(text)
    assert len(left) == found["messages"]["after"]
    assert faults(left, Format.OPENAI_CHAT) == ()
    assert left[0] == messages[0]


def test_a_person_sees_where_the_rest_is(full: Path, folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compact", "full.jsonl", *SMALL, "-o", "less.jsonl"]) == 0
    said = capsys.readouterr().err
    assert re.fullmatch(r"less.jsonl: \d+ messages; what was removed is in its archive, generation 1\n", said)
    (folder / "m.json").write_text(json.dumps(chat(14)), encoding="utf-8")
    assert main(["compact", "m.json", *SMALL, "-o", "less.json"]) == 0
    assert re.fullmatch(r"less.json: \d+ messages\n", capsys.readouterr().err)


def test_why_less_did_not_do_is_said_and_so_is_what_failed(folder: Path, capsys: pytest.CaptureFixture[str]):
    talk = [line for minute in range(40) for line in (asked(words(100), minute), answered(minute))]
    session(folder / "s.jsonl", asked("Read."), *turns(12, start=50, reported=False), *talk)
    assert main(["compact", "s.jsonl", *SMALL, "--dry-run"]) == 0
    assert re.search(
        r"^Masking \d+ old results alone would free .*, which is not enough\.$", capsys.readouterr().out, re.M
    )
    body = {"model": "gpt-4o", "messages": [{"role": "system", "content": words(9_000)}, *chat(3)[1:]]}
    (folder / "b.json").write_text(json.dumps(body), encoding="utf-8")
    assert main(["compact", "b.json", *SMALL, "--dry-run"]) == 0
    assert "more than the window holds" in " ".join(capsys.readouterr().out.split())


def test_the_amount_to_keep_can_be_set(full: Path, capsys: pytest.CaptureFixture[str]):
    much, little = (
        compacted(capsys, "full.jsonl", "--dry-run", "--keep", keep, "--target", target)["after"]["used"]
        for keep, target in (("0.4", "0.6"), ("0.1", "0.2"))
    )
    assert little < much
    assert refused(capsys, "full.jsonl", "--dry-run", "--keep", "3")["error_code"] == "INVALID_ARGUMENTS"


def test_where_there_is_too_little_to_let_go_nothing_is_written(folder: Path, capsys: pytest.CaptureFixture[str]):
    session(folder / "s.jsonl", asked("Hi."))
    assert main(["compact", "s.jsonl", "-o", "less.jsonl"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err == "nothing to remove; nothing was written\n"
    assert not (folder / "less.jsonl").exists()


@pytest.mark.requirement("U:errors")
def test_another_programs_file_is_never_changed_and_no_file_written_over(
    full: Path, capsys: pytest.CaptureFixture[str]
):
    error = refused(capsys, "full.jsonl")
    assert (error["error_code"], "--output" in error["suggestion"]) == ("INVALID_ARGUMENTS", True)
    assert refused(capsys, "full.jsonl", "-o", "full.jsonl")["message"] == "`full.jsonl` already exists"
    assert refused(capsys, "-")["message"] == "standard input cannot be changed"
    assert refused(capsys, "nowhere.jsonl", "--dry-run")["error_code"] == "UNREADABLE_FILE"


def test_a_list_cannot_be_written_where_there_is_no_folder(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "m.json").write_text(json.dumps(chat(14)), encoding="utf-8")
    assert refused(capsys, "m.json", *SMALL, "-o", "no/less.json")["error_code"] == "UNREADABLE_FILE"


def test_of_several_sessions_one_must_be_named(folder: Path, capsys: pytest.CaptureFixture[str]):
    bodies = [{"model": "gpt-4o", "messages": chat(pairs)} for pairs in (1, 2)]
    (folder / "b.jsonl").write_text("\n".join(map(json.dumps, bodies)), encoding="utf-8")
    error = refused(capsys, "b.jsonl", "--dry-run")
    assert error["message"] == "`b.jsonl` holds 2 sessions"
    assert refused(capsys, "b.jsonl", "--dry-run", "--session", "s")["error_code"] == "UNKNOWN_RESOURCE"


@pytest.fixture
def provider(work: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Loopback]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    (work / "conf").mkdir()
    (work / "conf" / "models.json").write_text(json.dumps(MODELS), encoding="utf-8")
    (work / "conf" / "policies.json").write_text(json.dumps(POLICIES), encoding="utf-8")
    with loopback() as found:
        users_file(work.parent).write_text(found.providers(), encoding="utf-8")
        approve(work / "conf")
        yield found


@pytest.mark.requirement("S2:compact:how")
def test_a_model_of_the_users_puts_the_head_into_a_summary(
    provider: Loopback, work: Path, capsys: pytest.CaptureFixture[str]
):
    talk = (line for minute in range(60) for line in (asked(words(100), minute), answered(minute)))
    session(work / "full.jsonl", *talk)
    flags = ["full.jsonl", "--config", str(users_file(work.parent)), "--summarizer", "chat-premium"]
    assert compacted(capsys, *flags, "--dry-run")["shed"][0]["tier"] != "summarise"
    assert provider.asked == []
    assert main(["compact", *flags, *SMALL, "--dry-run"]) == 0
    assert "no model was called" in capsys.readouterr().err
    found = compacted(capsys, *flags, "-o", "less.jsonl")
    assert "summarise" in [shed["tier"] for shed in found["shed"]], found["warning"]
    assert "Hello there" in (work / "less.jsonl").read_text(encoding="utf-8")
    assert len(provider.asked) >= 1
    error = refused(capsys, *flags[:-1], "nobody", "-o", "more.jsonl")
    assert "nobody" in error["message"]


def test_a_window_that_is_far_too_full_is_brought_down(folder: Path, capsys: pytest.CaptureFixture[str]):
    session(folder / "s.jsonl", asked(words(50)), *turns(60, reported=False))
    found = compacted(capsys, "s.jsonl", "--dry-run")
    assert found["before"]["usagePercent"] == 100
    assert found["before"]["overflow"] > 1.5 * found["before"]["contextWindow"]
    assert found["after"]["usagePercent"] < 85
