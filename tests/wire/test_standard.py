import os
import pty
import socket
from pathlib import Path

import anyio
import pytest

from ullage.wire.serve.standard import Output, lines

pytestmark = pytest.mark.anyio

LONG = "x" * 300_000


async def read(descriptor: int) -> list[str]:
    with anyio.fail_after(20):
        return [line async for line in lines(descriptor)]


async def test_lines_come_whole_however_they_are_cut():
    reading, writing = os.pipe()
    os.write(writing, "one\ntwö\n\nlast".encode()[:6])
    os.write(writing, "one\ntwö\n\nlast".encode()[6:])
    os.close(writing)
    assert await read(reading) == ["one", "twö", "", "last"]
    os.close(reading)


async def test_what_is_no_pipe_is_read_too(tmp_path: Path):
    file = tmp_path / "asked"
    file.write_text("one\ntwo\n", encoding="utf-8")
    descriptor = os.open(file, os.O_RDONLY)
    assert await read(descriptor) == ["one", "two"]
    os.close(descriptor)
    near, far = socket.socketpair()
    far.sendall(b"three\n")
    far.close()
    assert await read(near.fileno()) == ["three"]
    near.close()


async def test_a_terminal_that_vanishes_is_an_end():
    near, far = pty.openpty()
    os.write(near, b"one\n")
    found: list[str] = []
    with anyio.fail_after(20):
        async for line in lines(far):
            found.append(line)
            os.close(near)
    assert found == ["one"]
    os.close(far)


async def test_a_reader_that_takes_its_time_holds_up_nobody_but_the_writer():
    reading, writing = os.pipe()
    output, ticks = Output(writing), 0
    got = bytearray()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(output.write, LONG + "\n")
        for _ in range(20):
            await anyio.sleep(0.01)
            ticks += 1
        while len(got) <= len(LONG):
            await anyio.wait_readable(reading)
            got += os.read(reading, 65_536)
    assert ticks == 20
    assert bytes(got) == LONG.encode() + b"\n"
    os.close(reading)
    os.close(writing)


async def test_a_reader_that_has_gone_closes_the_output():
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(anyio.ClosedResourceError):
        await Output(writing).write("anyone?\n")
    os.close(writing)


async def test_output_goes_to_a_file_as_well(tmp_path: Path):
    file = tmp_path / "answers"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT)
    output = Output(descriptor)
    await output.write(LONG)
    os.close(descriptor)
    assert file.read_text(encoding="utf-8") == LONG
