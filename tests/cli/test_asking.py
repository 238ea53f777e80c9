"""A person at a terminal who is asked whether a tool may be called."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from upstreams import scripted, tool, write_toml

TAKES_THE_TERMINAL = """
import fcntl, sys, termios
from ullage.cli import main
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.exit(main())
"""
ULLAGE = (sys.executable, "-c", TAKES_THE_TERMINAL, "call", "notes__echo", '{"text": "hello"}')


def until(reading: int, word: bytes) -> bytes:
    shown = b""
    while word not in shown:
        shown += os.read(reading, 4096)
    return shown


@pytest.mark.parametrize(
    ("keys", "code"), [(b"yes\n", 0), (b"no\n", 1), (b"\x04", 1), (b"\x03", 1)], ids=["yes", "no", "Ctrl-D", "Ctrl-C"]
)
def test_whoever_does_not_say_yes_has_said_no(work: Path, keys: bytes, code: int):
    write_toml(work / "ullage.toml", notes={**scripted(tool("echo")), "ask": ["echo"]})
    person, terminal = pty.openpty()
    with subprocess.Popen(ULLAGE, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True) as process:
        os.close(terminal)
        until(person, b"yes or no? ")
        os.write(person, keys)
        shown = until(person, b"ms\r\n" if code == 0 else b"they did not").decode()
        assert process.wait(20) == code
    os.close(person)
    assert "Traceback" not in shown
    assert "Fatal" not in shown
