"""The protocol's own conformance suite: against our own tools, and against the fixture server by itself."""

import subprocess
from pathlib import Path

import pytest
from test_serve import served_over_http

pytestmark = [pytest.mark.heavy]

SUITE = Path(__file__).parents[2] / ".bench" / "node" / "node_modules" / ".bin" / "conformance"
MODERN = ("tools-list", "dns-rebinding-protection", "http-header-validation")
LEGACY = ("tools-list", "dns-rebinding-protection", "server-initialize", "ping", "server-session-lifecycle")


@pytest.mark.parametrize(
    ("scenario", "revision"), [*((one, "2026-07-28") for one in MODERN), *((one, "2025-11-25") for one in LEGACY)]
)
def test_what_needs_no_fixture_passes_with_our_own_tools(scenario: str, revision: str):
    with served_over_http() as url:
        command = [SUITE, "server", "--url", url, "--scenario", scenario, "--spec-version", revision]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 failed" in run.stdout


@pytest.mark.parametrize(("revision", "scenarios"), [("2026-07-28", 37), ("2025-11-25", 30)])
def test_the_fixture_server_by_itself_passes_every_required_scenario(suite, fixture_url, revision, scenarios):
    outcome = suite(fixture_url, revision)
    assert len(outcome.required) == scenarios
    assert outcome.required - set(outcome.passed) == set(), outcome.output
