import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from ullage.errors import SourceFailed
from ullage.gateway import Server
from ullage.wire.jsonrpc import LineSplitter, TooLong
from ullage.wire.upstream import stdio_transport as group
from ullage.wire.upstream.stdio_transport import Pipe, Tail, open_pipe

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("S1:aggregate")]
ENVIRONMENT = dict(os.environ)


class Heard:
    """Keeps what a channel hands in."""

    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.reasons: list[str] = []
        self.unsent_numbers: list[object] = []
        self.ended = anyio.Event()

    def received(self, message: object) -> bool:
        if not isinstance(message, dict):
            return False
        self.messages.append(message)
        return True

    def lost(self, reason: str) -> None:
        self.reasons.append(reason)
        self.ended.set()

    def paused(self) -> None: ...

    def unsent(self, number: object, reason: str) -> None:
        assert number is not None, f"nothing was asked, and it is unsent: {reason}"
        self.unsent_numbers.append(number)


def running(code: str, **more) -> Server:
    return Server(name="one", transport="stdio", command=sys.executable, arguments=("-uc", code), **more)


@asynccontextmanager
async def piped(code: str, **more) -> AsyncIterator[tuple[Pipe, Heard]]:
    heard = Heard()
    async with open_pipe(running(code, **more), ENVIRONMENT, heard, patience=0.4) as pipe:
        yield pipe, heard


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not true():
            await anyio.sleep(0.01)


def is_running(process: int) -> bool:
    """Whether it does anything; one that ended and that nobody has looked at does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_messages_go_both_ways_a_line_each():
    async with piped("import sys\nfor line in sys.stdin: print(line, end='')") as (pipe, heard):
        assert pipe.post({"a": "ü\n\ud800"})
        await until(lambda: len(heard.messages) == 1)
        assert heard.messages == [{"a": "ü\n\ufffd"}]


async def test_what_is_no_message_is_skipped_counted_and_shown_once():
    code = r"""
import sys
write = sys.stdout.buffer.write
write(b'Listening on port 3\n\n  \n[1]\n{"broken": \nnull\n\xff\xfe\n{"bytes": "\xff"}\r\n\xef\xbb\xbf{"bom": 1}\n')
write(b'[' * 100000 + b'\n {"last": 1}\n')
sys.stdout.flush()
sys.stdin.read()
"""
    async with piped(code) as (pipe, heard):
        await until(lambda: {"last": 1} in heard.messages)
        assert heard.messages == [{"bytes": "\ufffd"}, {"bom": 1}, {"last": 1}]
        assert pipe.notes() == (
            "printed 6 lines on standard output that are no messages; the first: Listening on port 3",
        )


async def test_a_server_inherits_what_we_were_given_and_adds_its_own(tmp_path: Path):
    code = "import os, json; print(json.dumps([dict(os.environ), os.getcwd()]).join(['{\"got\": ', '}'])); input()"
    server = running(code, environment={"B": "server's"}, directory=str(tmp_path))
    heard = Heard()
    async with open_pipe(server, {**ENVIRONMENT, "A": "ours", "B": "ours"}, heard):
        await until(lambda: bool(heard.messages))
    environment, folder = heard.messages[0]["got"]
    assert (environment["A"], environment["B"], folder) == ("ours", "server's", str(tmp_path))


async def test_a_command_is_looked_up_on_the_path_that_the_server_will_have(tmp_path: Path):
    program = tmp_path / "toy"
    program.write_text(f"#!{sys.executable}\nprint('{{\"up\": 1}}'); input()", encoding="utf-8")
    program.chmod(0o755)
    heard = Heard()
    by_path = Server(name="one", transport="stdio", command="toy", environment={"PATH": str(tmp_path)})
    async with open_pipe(by_path, ENVIRONMENT, heard):
        await until(lambda: bool(heard.messages))
    heard = Heard()
    by_place = Server(name="one", transport="stdio", command="./toy", directory=str(tmp_path))
    async with open_pipe(by_place, ENVIRONMENT, heard):
        await until(lambda: bool(heard.messages))


async def test_a_missing_command_is_named_and_its_arguments_are_not():
    server = Server(name="one", transport="stdio", command="no-such-thing", arguments=("--key", "hush"))
    with pytest.raises(SourceFailed, match="`no-such-thing` was not found") as caught:
        async with open_pipe(server, ENVIRONMENT, Heard()):
            pass
    assert "hush" not in str(caught.value.wire())
    assert "PATH" in caught.value.suggestion


@pytest.mark.parametrize("command", ["/no/such/place", "./no-such-place"])
async def test_a_place_where_there_is_no_file_is_said_to_be_none(command: str):
    with pytest.raises(SourceFailed, match=f"`{command}` does not exist") as caught:
        async with open_pipe(Server(name="one", transport="stdio", command=command), ENVIRONMENT, Heard()):
            pass
    assert "PATH" not in str(caught.value.wire())


async def test_a_secret_in_a_command_is_not_told():
    server = Server(name="one", transport="stdio", command="/nowhere/hush-hush")
    with pytest.raises(SourceFailed, match=r"`/nowhere/\[secret\]`"):
        async with open_pipe(server, {**ENVIRONMENT, "A_SECRET": "hush-hush"}, Heard()):
            pass


async def test_a_file_that_may_not_be_run_is_said_to_be_no_program(tmp_path: Path):
    place = tmp_path / "toy"
    place.write_text("", encoding="utf-8")
    with pytest.raises(SourceFailed, match="is no program that may be run") as caught:
        async with open_pipe(Server(name="one", transport="stdio", command=str(place)), ENVIRONMENT, Heard()):
            pass
    assert "executable" in caught.value.suggestion


@pytest.mark.parametrize("command", ["no-such-thing --port 3", "/no/such/place --port 3"])
async def test_a_command_line_in_place_of_a_command_is_understood_as_such(command: str):
    with pytest.raises(SourceFailed) as caught:
        async with open_pipe(Server(name="one", transport="stdio", command=command), ENVIRONMENT, Heard()):
            pass
    assert "put arguments into `args`" in caught.value.suggestion


async def test_a_gateway_that_starts_itself_comes_to_an_end():
    for depth in range(1, 6):
        async with open_pipe(running("input()"), {**ENVIRONMENT, "ULLAGE_DEPTH": str(depth)}, Heard()):
            pass
    with pytest.raises(SourceFailed, match="among its own servers"):
        async with open_pipe(running("input()"), {**ENVIRONMENT, "ULLAGE_DEPTH": "6"}, Heard()):
            pass


async def test_a_secret_is_taken_out_before_a_line_is_cut_short():
    code = "import sys; sys.stderr.write('x' * 295 + 'hush-hush-hush\\n'); print('y' * 295 + 'hush-hush-hush'); input()"
    async with piped(code, environment={"API_KEY": "hush-hush-hush"}) as (pipe, _):
        await until(lambda: bool(pipe.last_words() and pipe.printed()))
        assert pipe.last_words() == "x" * 295 + "[secr"
        assert pipe.printed() == "y" * 295 + "[secr"
        assert "hush" not in str(pipe.notes())


async def test_what_was_printed_is_told_only_of_a_server_that_sent_no_message():
    async with piped("print('Usage: toy FILE'); print('{}') if input() else 0; input()") as (pipe, heard):
        await until(lambda: bool(pipe.printed()))
        assert pipe.printed() == "Usage: toy FILE"
        pipe.post({})
        await until(lambda: bool(heard.messages))
        assert pipe.printed() == ""


DEAF_TO_ALL = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('{}'); time.sleep(60)"


async def test_a_server_that_ends_for_nothing_has_less_time_in_haste():
    heard = Heard()
    async with open_pipe(running(DEAF_TO_ALL), ENVIRONMENT, heard, patience=20, in_haste=lambda: True):
        await until(lambda: bool(heard.messages))
        start = time.monotonic()
    assert 0.9 < time.monotonic() - start < 15, "forty seconds where there is time"


async def test_a_server_that_ends_for_nothing_has_less_time_when_all_is_cut_off():
    heard, start = Heard(), 0.0
    with anyio.CancelScope() as scope:
        async with open_pipe(running(DEAF_TO_ALL), ENVIRONMENT, heard, patience=20):
            await until(lambda: bool(heard.messages))
            start = time.monotonic()
            scope.cancel()
            await anyio.sleep(1)
    assert time.monotonic() - start < 15, "forty seconds where there is time"


async def test_a_missing_folder_and_a_file_that_is_no_program_are_named(tmp_path: Path):
    with pytest.raises(SourceFailed, match="there is no folder"):
        async with piped("", directory=str(tmp_path / "gone")):
            pass
    program = tmp_path / "toy"
    program.write_bytes(b"\x00\x01")
    program.chmod(0o755)
    with pytest.raises(SourceFailed, match="cannot be started"):
        async with open_pipe(Server(name="one", transport="stdio", command=str(program)), ENVIRONMENT, Heard()):
            pass


async def test_a_server_that_ends_says_how():
    async with piped("import sys; sys.exit(3)") as (_, heard):
        await heard.ended.wait()
    assert heard.reasons[0] == "ended with exit status 3"
    async with piped("import os, signal; os.kill(os.getpid(), signal.SIGKILL)") as (_, heard):
        await heard.ended.wait()
    assert heard.reasons[0] == "was killed by signal 9"


async def test_what_a_server_wrote_before_its_end_is_read():
    async with piped("""print('{"a": "' + 'x' * 1000000 + '"}')""") as (_, heard):
        await heard.ended.wait()
    assert len(heard.messages[0]["a"]) == 1_000_000


@pytest.mark.requirement("U:bounded")
async def test_long_lines_are_read_in_order_and_with_everything_between_them():
    code = """
import json
for at in range(3):
    print(json.dumps({"at": at, "rows": [{"id": n, "half": "\\ud800"} for n in range(20_000)]}))
    print(json.dumps({"short": at}))
print("x" * 300_000)
print(json.dumps({"id": 7, "result": json.loads("[" * 150 + "]" * 150), "more": "x" * 300_000}))
print('{"id": 8, "result": ' + "[" * 300_000 + "]" * 300_000 + "}")
"""
    async with piped(code) as (pipe, heard):
        await heard.ended.wait()
    assert [one.get("at", one.get("short")) for one in heard.messages[:6]] == [0, 0, 1, 1, 2, 2]
    assert heard.messages[4]["rows"][19_999] == {"id": 19_999, "half": "\ufffd"}
    assert heard.messages[6]["id"] == 7
    assert "nested too deeply" in heard.messages[7]["error"]["message"]
    assert len(heard.messages) == 8
    assert "printed 1 lines" in pipe.notes()[0]


@pytest.mark.parametrize(("descriptor", "reason"), [(0, "closed its input"), (1, "closed its output")])
async def test_a_server_that_closes_its_ears_or_mouth_is_lost(descriptor: int, reason: str):
    async with piped(f"import os, time; os.close({descriptor}); time.sleep(60)") as (pipe, heard):
        await heard.ended.wait()
        assert heard.reasons[0] == reason
        assert pipe.post({}) is (descriptor == 1)


async def test_a_server_that_holds_the_pipe_open_through_a_child_is_lost_all_the_same():
    code = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    async with piped(code) as (_, heard):
        await heard.ended.wait()
    assert heard.reasons[0] == "ended with exit status 0"


async def test_a_line_without_end_ends_the_connection():
    code = "import sys\nwhile True: sys.stdout.write('x' * 1000000)"
    async with piped(code) as (_, heard):
        await heard.ended.wait()
    assert heard.reasons[0] == "sent a line longer than 64 MiB"


async def test_a_server_that_does_not_read_is_not_written_to_without_end():
    async with piped("import time; time.sleep(60)") as (pipe, heard):
        for number in range(3):
            assert pipe.post({"id": number, "method": "m", "params": {"a": "x" * 6_000_000}})
        await until(lambda: heard.unsent_numbers == [2])
        assert not pipe.post({"id": 3, "method": "m"})
        start = time.monotonic()
    assert time.monotonic() - start < 30, "the server would go on for a minute"


async def test_standard_error_never_blocks_and_only_its_end_is_kept():
    code = """
import sys
for _ in range(20): sys.stderr.write('y' * 1000000)
sys.stderr.write('\\nthe end, with hush-hush\\n')
print('{"done": 1}'); input()
"""
    async with piped(code, environment={"API_KEY": "hush-hush"}) as (pipe, heard):
        await until(lambda: bool(heard.messages) and "the end" in pipe.last_words())
        assert len(pipe.stderr_tail()) <= 65_536
        assert pipe.last_words() == "the end, with [secret]"
        assert "hush" not in pipe.stderr_tail()


async def test_a_flood_of_lines_leaves_the_event_loop_free():
    code = """
import sys
line = '{"a": 1}' + chr(10)
while True: sys.stdout.write(line * 1000)
"""
    most = 0
    async with piped(code) as (_, heard):
        with anyio.fail_after(30):
            while (before := len(heard.messages)) < 10_000:
                await anyio.sleep(0)
                most = max(most, len(heard.messages) - before)
    assert 0 < most <= 400, "two hundred in a turn of the loop, and between two turns of ours there may be two"


async def test_a_server_is_asked_before_it_is_forced(tmp_path: Path):
    mark = tmp_path / "asked"
    code = f"""
import signal, time, pathlib, sys
def asked(*_): pathlib.Path({str(mark)!r}).write_text('yes'); sys.exit()
signal.signal(signal.SIGTERM, asked)
print('{{"up": 1}}'); time.sleep(60)
"""
    heard, hurries = Heard(), iter((True, False))
    # It has little time to end by itself, and all it needs once it was asked.
    async with open_pipe(running(code), ENVIRONMENT, heard, patience=30, in_haste=lambda: next(hurries)) as pipe:
        await until(lambda: bool(heard.messages))
    assert mark.read_text(encoding="utf-8") == "yes"
    assert not is_running(pipe.process_id)


FAMILY = """
import subprocess, sys, signal, os
code = 'import signal, time; {deaf}; print(1); time.sleep(60)'
child = subprocess.Popen([sys.executable, '-uc', code], stdout=subprocess.PIPE)
child.stdout.readline()
print('{{"child": %d}}' % child.pid)
{then}
"""
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.mark.parametrize("then", ["os._exit(0)", "input()", f"{DEAF}; signal.pause()"])
@pytest.mark.parametrize("deaf", ["pass", DEAF])
async def test_nobody_of_the_family_is_left(then: str, deaf: str):
    async with piped(FAMILY.format(deaf=deaf, then=then)) as (pipe, heard):
        await until(lambda: bool(heard.messages))
    await until(lambda: not is_running(heard.messages[0]["child"]))
    assert not is_running(pipe.process_id)


async def test_nobody_is_left_after_a_cancellation_either():
    heard = Heard()
    deaf = running(FAMILY.format(deaf=DEAF, then=f"{DEAF}; signal.pause()"))

    async def hold() -> None:
        async with open_pipe(deaf, ENVIRONMENT, heard, patience=0.1):
            await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold)
        await until(lambda: bool(heard.messages))
        tasks.cancel_scope.cancel()
    await until(lambda: not is_running(heard.messages[0]["child"]))


async def test_a_group_that_is_gone_is_no_error():
    async with piped("input()") as (pipe, _):
        os.kill(pipe.process_id, signal.SIGKILL)
    group.ask_to_end(pipe.process_id)
    group.kill(pipe.process_id)
    assert not group.is_alive(pipe.process_id)


def test_lines_are_put_together_from_any_chunks():
    lines = LineSplitter(10)
    assert [list(lines.split(chunk)) for chunk in (b"ab", b"c\nd", b"e", b"\n\nf\n")] == [
        [],
        [b"abc"],
        [],
        [b"de", b"", b"f"],
    ]
    with pytest.raises(TooLong):
        list(lines.split(b"x" * 11))
    assert list(lines.split(b"y\n")) == [b"y"]


def test_a_tail_keeps_the_end():
    tail = Tail()
    assert (tail.text(), tail.last_line()) == ("", "")
    for _ in range(300):
        tail.add(b"z" * 1000 + b"\n")
    tail.add(b"last\n\n")
    assert len(tail.text()) == 65_536
    assert tail.last_line() == "last"


async def test_messages_behind_a_large_one_are_written_after_it():
    code = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    print(json.dumps([message["id"], line.isascii(), len(message.get("params", {}).get("a", ""))]))
"""
    async with piped(code) as (pipe, _):
        taken: list[object] = []
        pipe._take = lambda line, message: taken.append(message)
        pipe._lines._take = pipe._take
        assert pipe.post({"id": 1, "params": {"a": "ü\u200b" * 300_000}})
        assert pipe.post({"id": 2})
        assert pipe.post({"id": 3, "params": {"a": "x" * 500_000}})
        await until(lambda: len(taken) == 3)
        assert pipe.post({"id": 4})
        await until(lambda: len(taken) == 4)
    assert taken == [[1, True, 600_000], [2, True, 0], [3, True, 500_000], [4, True, 0]]


async def test_a_large_message_that_json_cannot_say_fails_alone():
    async with piped("import sys\nfor line in sys.stdin: print(line, end='')") as (pipe, heard):
        assert pipe.post({"id": 1, "method": "tools/call", "params": {"a": [float("nan")] * 50_000}})
        assert pipe.post({"id": 2})
        await until(lambda: len(heard.messages) == 2)
    refused, echoed = heard.messages
    assert refused["id"] == 1
    assert refused["error"]["code"] == -32602
    assert "cannot be written as JSON" in refused["error"]["message"]
    assert echoed == {"id": 2}
