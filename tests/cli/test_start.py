"""What a start leaves for later: a client waits for its first answer, and some wait no longer than a second."""

import subprocess
import sys
from pathlib import Path

import pytest

from upstreams import settle_in, write_toml

LATER = ("sqlalchemy", "psycopg", "splintr", "numpy")

WARM = """
import os, sys
from pathlib import Path
import anyio
from ullage.app.build_gateway import open_gateway
from ullage.config import Flags, load

async def main():
    async with open_gateway(load(Flags(), os.environ, Path.cwd()), environment=os.environ) as gateway:
        print({module!r} in sys.modules)
        {begin}
        await anyio.sleep(0.05)
        print({module!r} in sys.modules)
        with anyio.fail_after(20):
            while {module!r} not in sys.modules:
                await anyio.sleep(0.05)
        print({module!r} in sys.modules)

anyio.run(main)
"""


def printed(code: str) -> list[str]:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return run.stdout.split()


def test_a_server_starts_without_what_only_some_requests_need():
    loaded = printed("import sys, ullage.cli.serve; print(*sys.modules)")
    assert not set(LATER) & set(loaded)


@pytest.mark.parametrize("words", ["'--version'", "'--help'", "", "'tolls'"])
def test_a_command_line_without_a_verb_imports_none(words: str):
    code = (
        "import contextlib, io, sys; from ullage.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): "
        f"main([{words}])\n"
        "print(*sys.modules)"
    )
    loaded = printed(code)
    assert not {"mcp", "sqlalchemy", "ullage.app", "ullage.cli.count"} & set(loaded)


def test_http_is_loaded_where_it_is_served():
    loaded = printed("import sys, ullage.cli.tools; print(*sys.modules)")
    assert not {"ullage.wire.serve.asgi_app"} & set(loaded)


def test_garbage_is_not_looked_for_among_what_importing_made():
    code = (
        "import gc; from ullage.cli.main import parser_of; parser_of('count');"
        "print(gc.isenabled(), gc.get_freeze_count() > 10_000); gc.unfreeze(); parser_of('count');"
        "print(gc.isenabled(), gc.get_freeze_count())"
    )
    assert printed(code) == ["True", "True", "True", "0"]


def test_what_searches_need_is_loaded_when_the_first_answers_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    settle_in(tmp_path, monkeypatch)
    write_toml(Path("ullage.toml"), "[clients.searching]\nmode = 'search'\n")
    warm = WARM.format(module="numpy", begin="await gateway.settle('searching')")
    assert printed(warm) == ["False", "False", "True"]
