import os
import pty
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from ullage.wire.serve.standard_streams import Input, Output

pytestmark = pytest.mark.anyio

LONG = b"x" * 300_000


async def read(descriptor: int, came: Callable[[], None] = lambda: None) -> bytes:
    got, ended = bytearray(), anyio.Event()

    def feed(chunk: bytes) -> None:
        got.extend(chunk)
        came()

    Input(descriptor, feed, ended.set).start()
    with anyio.fail_after(20):
        await ended.wait()
    return bytes(got)


async def test_a_pipe_a_file_and_a_socket_are_read_to_their_end(tmp_path: Path):
    reading, writing = os.pipe()
    os.write(writing, b"one\ntwo")
    os.close(writing)
    assert await read(reading) == b"one\ntwo"
    os.close(reading)
    file = tmp_path / "asked"
    file.write_bytes(LONG)
    descriptor = os.open(file, os.O_RDONLY)
    assert await read(descriptor) == LONG
    os.close(descriptor)
    near, far = socket.socketpair()
    far.sendall(b"three\n")
    far.close()
    assert await read(near.fileno()) == b"three\n"
    near.close()


@pytest.mark.parametrize("is_file", [True, False], ids=["file", "pipe"])
async def test_a_paused_input_hands_on_nothing_before_it_is_resumed(tmp_path: Path, *, is_file: bool):
    file = tmp_path / "asked"
    file.write_bytes(LONG)
    if is_file:
        descriptor = os.open(file, os.O_RDONLY)
    else:
        descriptor, writing = os.pipe()
        os.write(writing, LONG[:60_000])
        os.close(writing)
    got, ended = bytearray(), anyio.Event()

    def feed(chunk: bytes) -> None:
        got.extend(chunk)
        source.pause()

    source = Input(descriptor, feed, ended.set)
    source.start()
    await anyio.sleep(0.1)
    first = len(got)
    assert 0 < first < len(LONG)
    with anyio.fail_after(20):
        while not ended.is_set():
            source.resume()
            await anyio.sleep(0.005)
    assert len(got) == (len(LONG) if is_file else 60_000)
    os.close(descriptor)


async def test_a_terminal_that_vanishes_is_an_end():
    near, far = pty.openpty()
    os.write(near, b"one\n")
    assert await read(far, lambda: os.close(near)) == b"one\n"
    os.close(far)


async def test_a_reader_that_takes_its_time_holds_up_nobody():
    reading, writing = os.pipe()
    output, ticks = Output(writing), 0
    got = bytearray()
    output.send(LONG + b"\n")
    output.send(b"next\n")
    assert output.unwritten > 200_000
    for _ in range(20):
        await anyio.sleep(0.01)
        ticks += 1
    with anyio.fail_after(20):
        while len(got) < len(LONG) + 6:
            await anyio.wait_readable(reading)
            got += os.read(reading, 65_536)
    assert ticks == 20
    assert bytes(got) == LONG + b"\nnext\n"
    assert output.unwritten == 0
    os.close(reading)
    os.close(writing)


async def test_senders_wait_while_much_is_unwritten_and_no_longer_than_somebody_reads():
    reading, writing = os.pipe()
    output, passed = Output(writing), anyio.Event()
    for _ in range(10):
        output.send(LONG)

    async def wait() -> None:
        await output.wait_for_room()
        passed.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.sleep(0.05)
        assert not passed.is_set()
        os.close(reading)
        with anyio.fail_after(20):
            await passed.wait()
    assert output.is_abandoned
    os.close(writing)


async def test_a_reader_that_has_gone_is_noticed_with_and_without_writing():
    reading, writing = os.pipe()
    os.close(reading)
    output = Output(writing)
    output.send(b"anyone?\n")
    assert output.is_abandoned
    os.close(writing)
    reading, writing = os.pipe()
    output, told = Output(writing), anyio.Event()
    output.when_changed = told.set
    output.watch_closing()
    await anyio.sleep(0.05)
    assert not told.is_set()
    os.close(reading)
    with anyio.fail_after(20):
        await told.wait()
    assert output.is_abandoned
    os.close(writing)


async def test_output_goes_to_a_file_as_well(tmp_path: Path):
    file = tmp_path / "answers"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT)
    Output(descriptor).send(LONG)
    os.close(descriptor)
    assert file.read_bytes() == LONG


async def test_on_a_terminal_control_characters_are_escaped():
    near, far = pty.openpty()
    Output(far).send('{"a":"\x1b[8m\x9b"}\n'.encode())
    written = os.read(near, 1000)
    assert b"\x1b" not in written
    assert b"u001b" in written
    os.close(near)
    os.close(far)
