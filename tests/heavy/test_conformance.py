"""The protocol's own conformance suite against our server: what applies to one without the suite's fixture tools."""

import shutil
import subprocess
from pathlib import Path

import pytest
from test_serve import served_over_http

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]

SUITE = Path(__file__).parents[2] / ".bench" / "node" / "node_modules" / ".bin" / "conformance"
MODERN = ("tools-list", "dns-rebinding-protection", "http-header-validation")
LEGACY = ("tools-list", "dns-rebinding-protection", "server-initialize", "ping", "server-session-lifecycle")


@pytest.mark.skipif(shutil.which("node") is None, reason="the conformance suite needs Node.js")
@pytest.mark.parametrize(
    ("scenario", "revision"), [*((one, "2026-07-28") for one in MODERN), *((one, "2025-11-25") for one in LEGACY)]
)
def test_the_conformance_suite_passes(scenario: str, revision: str):
    with served_over_http() as url:
        command = [SUITE, "server", "--url", url, "--scenario", scenario, "--spec-version", revision]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 failed" in run.stdout
