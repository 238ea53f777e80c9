"""What reaches a terminal, byte by byte, when the text comes from someone who would like to steer it."""

import json
import logging
import os
import pty
import re
import select
import sqlite3
import subprocess
import sys
import termios
import threading
from collections.abc import Generator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest

from app.loopback import Loopback, loopback
from cli.talks import answered, asked, result, session
from delegate.policies import MODELS, POLICIES
from ullage.cli import main
from ullage.cli.output import LineFormatter, TerminalStream, own_sequence
from ullage.control_characters import escape_controls, escape_json_controls
from ullage.invisible_characters import escape_invisible
from upstreams import scripted, tool, write_json, write_toml

TITLE = "\x1b]0;owned\x07"
HOSTILE = f"{TITLE}\x1b[2J\x1b[35;5mred\r\x9b2J\u202egnp.exe\u2066\u2028\x7f\x08end"
"""A title, a wiped screen, a colour of its own, an overwritten line, C1, bidirectional controls, separators."""
OWN_STYLES = re.compile(rb"\x1b\[(?:0|1|2|31;1|33;1|32|3[2-6]|9[0-5])m")
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffd]")
WAIT = 60.0


def command_on_terminal(*words: str, until: bytes = b"", stdin: bytes = b"") -> bytes:
    """Everything that a process writes to its terminal, raw; it is ended after the line with `until`, if there is."""
    person, terminal = pty.openpty()
    attributes = termios.tcgetattr(terminal)
    attributes[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)
    shown = b""
    with subprocess.Popen([sys.executable, *words], stdin=terminal, stdout=terminal, stderr=terminal) as process:
        os.close(terminal)
        if stdin:
            os.write(person, stdin)
        while select.select([person], [], [], WAIT)[0]:
            try:
                piece = os.read(person, 65_536)
            except OSError:  # Linux says so when the other side has closed it.
                break
            shown += piece
            if until and b"\n" in shown.partition(until)[2]:
                process.terminate()
                break
        os.close(person)
        process.wait(WAIT)
    return shown


def on_terminal(*words: str) -> bytes:
    """The same of a command that runs in this process, which spares its start."""
    person, terminal = pty.openpty()
    pieces = list[bytes]()

    def read() -> None:
        with suppress(OSError):
            while piece := os.read(person, 65_536):
                pieces.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    with open(terminal, "w", encoding="utf-8") as stream, redirect_stdout(stream), redirect_stderr(stream):  # noqa: PTH123
        with suppress(SystemExit):
            main(words)
        stream.flush()
    reader.join(WAIT)
    os.close(person)
    return b"".join(pieces)


@pytest.fixture(autouse=True)
def _with_colours(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "xterm")


def is_harmless(shown: bytes) -> bool:
    """Whether nothing steers the terminal but our own styles and the line ends that the terminal itself adds."""
    text = OWN_STYLES.sub(b"", shown).replace(b"\r\x1b[K", b"").replace(b"\r\n", b"\n").decode("utf-8", "replace")
    return STEERING.search(text) is None


@pytest.fixture
def servers(work: Path) -> Path:
    """Servers with hostile tools and last words, in the user's own file."""
    tools = [
        tool("echo", f"Says it again. {HOSTILE}"),
        tool(f"evil{TITLE}", HOSTILE),
        tool(
            "give", inputSchema={"type": "object", "properties": {HOSTILE: {"type": "string", "description": HOSTILE}}}
        ),
    ]
    dying = {"command": sys.executable, "args": ["-c", f"import sys; sys.exit({HOSTILE!r} + 'last words')"]}
    file = work.parent / "home" / "config" / "ullage" / "ullage.toml"
    file.parent.mkdir(parents=True)
    write_toml(file, notes=scripted(*tools), dying=dying)
    return work


def given(content: str, **more) -> str:
    return json.dumps({"result": {"content": [{"type": "text", "text": content}], **more}})


@pytest.mark.parametrize(
    "words",
    [
        ("call", "notes__give", given(HOSTILE)),
        ("call", "notes__give", given(HOSTILE, isError=True)),
        ("call", "notes__give", given(HOSTILE), "--json"),
        ("call", "notes__give", json.dumps({"result": {"content": [], "structuredContent": {"a": HOSTILE}}})),
        ("call", "notes__give", json.dumps({"result": {"content": [{"type": "resource", "uri": HOSTILE}]}})),
        ("call", f"notes__{HOSTILE}"),
        ("tools",),
        ("tools", "notes"),
        ("tools", "--json"),
        ("tools", HOSTILE),
        ("find", "say it again"),
        ("find", "say it again", "--why"),
        ("find", "say it again", "--json"),
        ("doctor",),
        ("doctor", "--json"),
        ("doctor", HOSTILE),
    ],
    ids=lambda words: " ".join(word[:12].encode("unicode_escape").decode() for word in words),
)
def test_what_servers_say_is_shown_and_not_obeyed(servers: Path, words: tuple[str, ...]):
    shown = on_terminal(*words)
    assert is_harmless(shown)
    assert b"\x1b[35" not in shown
    assert b"Traceback" not in shown
    # A search shows definitions, from which control characters are removed before a model sees them.
    assert words[0] == "find" or any(mark in shown for mark in (rb"\x1b", rb"\u001b"))


def test_a_pipe_gets_a_result_as_a_model_gets_it(servers: Path):
    command = [sys.executable, "-m", "ullage", "call", "notes__give", given(HOSTILE)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout == f"{escape_invisible(HOSTILE)}\n".encode()


def test_protocol_on_a_terminal_stays_json_and_steers_nothing(servers: Path):
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    called = {"name": "notes__echo", "arguments": {"text": HOSTILE}}
    lines = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 7, "method": "tools/call", "params": called},
    ]
    stdin = "".join(json.dumps({"jsonrpc": "2.0", **line}) + "\n" for line in lines).encode()
    shown = command_on_terminal("-m", "ullage", "serve", until=b'"id":7', stdin=stdin)
    shown = shown[: shown.rindex(b"\n") + 1]
    assert rb"\u009b2J" in shown
    assert is_harmless(shown)


@pytest.fixture
def provider(work: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Loopback]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    folder = work.parent / "home" / "config" / "ullage"
    folder.mkdir(parents=True)
    (work / "conf").mkdir()
    (work / "conf" / "models.json").write_text(json.dumps(MODELS), encoding="utf-8")
    (work / "conf" / "policies.json").write_text(json.dumps(POLICIES), encoding="utf-8")
    with loopback() as found:
        (folder / "ullage.toml").write_text(found.providers(), encoding="utf-8")
        yield found


@pytest.mark.parametrize("words", [(), ("--json",)], ids=["text", "json"])
def test_what_a_model_answers_is_shown_and_not_obeyed(provider: Loopback, words: tuple[str, ...]):
    provider.text = f"A\x1b[2J{HOSTILE}"
    shown = on_terminal("run", "What is this?", *words)
    assert is_harmless(shown)
    assert (rb"A\x1b[2J" in shown) or (rb"A\u001b[2J" in shown)


@pytest.mark.parametrize("words", [(), ("--csv",), ("--json",)], ids=["table", "csv", "json"])
def test_rows_of_a_database_are_shown_and_not_obeyed(work: Path, words: tuple[str, ...]):
    with sqlite3.connect(work / "shop.db") as connection:
        connection.execute('CREATE TABLE things (name TEXT, "col\x1b[2J" TEXT)')
        connection.execute("INSERT INTO things VALUES (?, ?)", (HOSTILE, "x"))
    write_toml(work / "shop.toml", f"[sources.shop]\ndatabase = {json.dumps(str(work / 'shop.db'))}\n")
    shown = on_terminal("sql", "shop", "SELECT * FROM things", *words, "--config", "shop.toml")
    assert is_harmless(shown)
    assert b"gnp.exe" in shown
    failed = on_terminal("sql", "shop", f"SELECT '{HOSTILE}' FROM nowhere\x1b[2J", "--config", "shop.toml")
    assert is_harmless(failed)


def test_names_and_contents_of_files_are_shown_and_not_obeyed(work: Path):
    name = HOSTILE.replace("/", "")
    (work / name).write_text(HOSTILE, encoding="utf-8")
    (work / "undecodable\udcff.txt").write_text("x", encoding="utf-8")
    for words in (
        ("count", name),
        ("count", "."),
        ("count", "missing" + HOSTILE),
        ("context", name),
        ("compact", name),
    ):
        shown = on_terminal(*words)
        assert is_harmless(shown), words
        assert b"Traceback" not in shown


def test_sessions_of_other_programs_are_shown_and_not_obeyed(work: Path):
    turns = [
        asked(f"{HOSTILE} what is this?"),
        answered(1, prompt=5_000, call=f"/tmp/{HOSTILE}"),
        result(1, HOSTILE * 300),
        answered(2, prompt=9_000),
    ]
    file = session(work / "talk.jsonl", *turns)
    text = file.read_text(encoding="utf-8").replace('"read"', json.dumps(f"read{HOSTILE}"))
    file.write_text(text, encoding="utf-8")
    for words in ((), ("--json",)):
        shown = on_terminal("context", str(file), *words)
        assert is_harmless(shown)
        assert b"Traceback" not in shown
    assert is_harmless(on_terminal("compact", str(file)))


@pytest.mark.parametrize(
    "text",
    [
        f"[gateway]\n{json.dumps(HOSTILE)} = 1\n",
        f"[servers.{json.dumps(HOSTILE)}]\ncommand = 'no-such-program'\ncomand = 1\n",
        f"[servers.{json.dumps(HOSTILE)}]\ncommand = {json.dumps(HOSTILE)}\n",
        f"[gateway]\nmodel = {json.dumps(HOSTILE)}\n",
        f"[servers.a]\ncommand = 'x'\nenv = {{ A = {json.dumps('${NOT_SET}' + HOSTILE)} }}\n",
        f"[clients.{json.dumps(HOSTILE)}]\nmode = {json.dumps(HOSTILE)}\n",
        f"not toml {HOSTILE}\n",
    ],
    ids=["key", "server key", "server", "model", "variable", "client", "no toml"],
)
def test_settings_are_shown_and_not_obeyed(work: Path, text: str):
    # TOML has no \u escape for what JSON leaves as it is, and a raw control character is an error of its own.
    (work / "bad.toml").write_text(text.replace("\x7f", "\\u007f"), encoding="utf-8")
    for words in (("doctor",), ("tools",)):
        shown = on_terminal(*words, "--config", "bad.toml")
        assert is_harmless(shown)
        assert b"Traceback" not in shown


def test_arguments_that_are_echoed_are_shown_and_not_obeyed(work: Path):
    for words in (
        (f"models{HOSTILE}",),
        ("models", f"zzz{HOSTILE}"),
        ("models", "a", HOSTILE, f"--{HOSTILE}"),
        ("serve", "--mode", HOSTILE),
        ("serve", "--http", HOSTILE),
        ("tools", "--client", HOSTILE),
        ("tools", "--include", HOSTILE),
        ("tools", "--store", HOSTILE),
        ("route", "x", "--model", HOSTILE),
        ("count", "--model", HOSTILE, "x"),
    ):
        shown = on_terminal(*words)
        assert is_harmless(shown), words
        assert b"Traceback" not in shown


def test_styles_of_our_own_are_still_there(work: Path):
    shown = on_terminal("models", "zzz")
    assert b"\x1b[31;1merror\x1b[0m: " in shown


def test_a_traceback_is_escaped_too():
    failing = f"from ullage.cli import main; main(); raise ValueError({HOSTILE!r})"
    shown = command_on_terminal("-c", failing, "models", "gpt-4o")
    assert rb"ValueError: \x1b" in shown
    assert is_harmless(shown)


@pytest.mark.parametrize("words", [("call", "notes__give", "RESULT"), ("doctor",)], ids=["call", "doctor"])
def test_the_real_command_is_as_harmless(servers: Path, words: tuple[str, ...]):
    shown = command_on_terminal("-m", "ullage", *(given(HOSTILE) if word == "RESULT" else word for word in words))
    assert is_harmless(shown)
    assert any(mark in shown for mark in (rb"\x1b", rb"\u001b"))


class Terminal:
    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def isatty(self) -> bool:
        return True


def test_a_foreign_sequence_cannot_pass_as_ours():
    terminal = Terminal()
    stream = TerminalStream(terminal)  # type: ignore[arg-type]
    ours = own_sequence("\x1b[1m", stream)  # type: ignore[arg-type]
    stream.write(ours)
    assert terminal.text == "\x1b[1m"
    stream.write("\x000123456789abcdef<\x1b[2J>\x00")
    assert "\x1b[2J" not in terminal.text
    assert own_sequence("\x1b[1m", sys.stderr) == "\x1b[1m"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain äöü 漢字 😀\ttab\nline", "plain äöü 漢字 😀\ttab\nline"),
        ("a\r\nb\rc", "a\nb\\rc"),
        ("\x1b[2J\x9b\x7f\x00", "\\x1b[2J\\x9b\\x7f\\x00"),
        ("\u202e\u2066\u200f\u061c\u2028\u2029\ud800", "\\u202e\\u2066\\u200f\\u061c\\u2028\\u2029\\ud800"),
    ],
)
def test_only_what_steers_is_escaped(text: str, shown: str):
    assert escape_controls(text) == shown
    assert "\n" not in escape_controls(text, keep_lines=False)


def test_json_means_the_same_after_escaping():
    value = {"a": f"{HOSTILE}\ud800 é"}
    written = escape_json_controls(json.dumps(value, ensure_ascii=False))
    assert json.loads(written) == value
    assert STEERING.search(written) is None


def test_a_record_is_one_line_and_a_traceback_is_indented():
    formatter = LineFormatter("ullage: %(message)s")
    error = ValueError("x\nullage: forged")
    record = logging.LogRecord(
        "x", logging.WARNING, "f", 1, "server `%s` failed", ("a\nullage: forged\x1b[2J",), (ValueError, error, None)
    )
    first, *rest = formatter.format(record).split("\n")
    assert first == r"ullage: server `a\nullage: forged\x1b[2J` failed"
    assert all(line.startswith("  ") for line in rest)
    record.exc_info = record.exc_text = None
    assert "\n" not in formatter.format(record)
    line = LineFormatter("%(message)s", is_json=True).format(
        logging.LogRecord("x", logging.INFO, "f", 1, "%s", (json.dumps({"a": "\x9b"}, ensure_ascii=False),), None)
    )
    assert line == r'{"a": "\u009b"}'


def test_a_hostile_name_in_a_clients_file_forges_no_line_of_the_log(work: Path):
    code = "import sys; sys.exit('CANARY_API_KEY is not set')"
    write_json(work / "mcp.json", **{"a\nullage: forged": {"command": sys.executable, "args": ["-c", code]}})
    done = subprocess.run(
        [sys.executable, "-m", "ullage", "tools", "--include", "mcp.json"],
        capture_output=True, text=True, check=False, env={**os.environ, "CANARY_API_KEY": "x"},
    )  # fmt: skip
    assert "CANARY_API_KEY" in done.stderr
    assert not [line for line in done.stderr.splitlines() if line.startswith("ullage: forged")]
