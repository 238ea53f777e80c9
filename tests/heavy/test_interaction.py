"""The SDK's own interaction suite with Ullage between its client and its server.

Ullage introduces itself, lists everything on one page and keeps requests of one side from the other where that side has
not the ability, so not every test can pass through it. What passes with the SDK's server in front of the client, as
over HTTP, must pass with our own core as well.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytestmark = [pytest.mark.heavy]

SUITE = Path(__file__).parents[2] / ".bench" / "interaction"
PARTS = ("lowlevel", "mcpserver")
LEAST = 170
"""Of 228 tests that the server passes by itself."""
LEAST_OVER_GATEWAY = 175
"""Of the 228 cells over streamable HTTP, with a whole gateway in direct mode that passes results on as they are."""


def passed(front: str, cells: str = "in-memory") -> set[str]:
    if not (SUITE / "tests").exists():
        pytest.fail("the interaction suite is not there; run `make test-heavy`")
    environment: Mapping[str, str] = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent),
        "ULLAGE_TESTS_FRONT": front,
    }
    command = [
        *(sys.executable, "-m", "pytest", "-p", "interaction_plugin", "-p", "no:cacheprovider", "-c", os.devnull),
        *("--rootdir", str(SUITE), "--inline-snapshot=disable", "-q", "--tb=no", "-rA", "-k", cells),
        # Its clock is trio's, which is not among our dependencies.
        *("--ignore", "tests/interaction/lowlevel/test_timeouts.py"),
        *(f"tests/interaction/{part}" for part in PARTS),
    ]
    run = subprocess.run(
        command, cwd=SUITE, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=280, check=False
    )
    found = set(re.findall(r"^PASSED (\S+)", run.stdout, re.M))
    assert found, run.stdout + run.stderr
    return found


def test_most_cells_over_streamable_http_pass_through_a_gateway():
    assert len(passed("gateway", "streamable-http and not stateless")) >= LEAST_OVER_GATEWAY


def test_what_passes_with_the_sdks_server_in_front_passes_with_our_core():
    by_itself, over_http, over_stdio = passed(""), passed("sdk"), passed("core")
    assert len(by_itself) == 228
    assert over_http - over_stdio == set()
    assert len(over_stdio) >= LEAST
