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
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.heavy]

SUITE = (Path(__file__).parents[2] / ".bench" / "interaction").resolve()
"""Resolved, because pytest names the tests behind a link by their file alone, and two files have the same name."""
PARTS = ("lowlevel", "mcpserver")
LEAST = 170
"""Of 228 tests that the server passes by itself."""
LEAST_OVER_GATEWAY = 203
"""Of the 228 cells over streamable HTTP, with a whole gateway in direct mode that passes results on as they are."""
BOTH = ("2025-11-25", "2026-07-28")
ONE_PAGE = (
    "S1:aggregate: the lists of many servers are one list. The protocol: clients MUST NOT assume a fixed page size, "
    "and a missing nextCursor is the end of results"
)
OWN_STREAM = (
    "S1:live: a client's `subscriptions/listen` is a request to Ullage, open for as long as Ullage serves it, with the "
    "id that this client gave it; what one server behind ends or drops is asked for again"
)
PROGRESS = (
    "S1:call: Ullage wants progress itself, as a sign of life of a call that takes long. The protocol: whoever wants "
    "to receive progress updates for a request includes a progressToken"
)
INHERENT: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "test_next_cursor_round_trips_through_the_client": (ONE_PAGE, BOTH),
    "test_paginating_until_next_cursor_is_absent_yields_every_page": (ONE_PAGE, BOTH),
    "test_the_client_follows_opaque_cursors_through_pages_of_varying_sizes": (ONE_PAGE, BOTH),
    "test_prompts_list_supports_cursor_pagination": (ONE_PAGE, BOTH),
    "test_resources_list_supports_cursor_pagination": (ONE_PAGE, BOTH),
    "test_resource_templates_list_supports_cursor_pagination": (ONE_PAGE, BOTH),
    "test_a_graceful_server_close_ends_iteration_after_buffered_events": (OWN_STREAM, BOTH[1:]),
    "test_a_stream_dropped_after_the_ack_raises_subscription_lost": (OWN_STREAM, BOTH[1:]),
    "test_concurrent_listen_streams_each_receive_their_own_ack": (OWN_STREAM, BOTH[1:]),
    "test_the_subscription_id_is_the_listen_request_id_the_server_saw": (OWN_STREAM, BOTH[1:]),
    "test_no_progress_callback_means_no_token": (PROGRESS, BOTH),
    "test_request_meta_reaches_handler": (PROGRESS, BOTH[:1]),
    "test_initialize_returns_server_info": (
        "S1:aggregate: serverInfo is of the server that the client talks to, which is Ullage",
        BOTH[:1],
    ),
    "test_initialize_capabilities_reflect_registered_handlers": (
        "S1:live: Ullage's own lists change with its configuration, and it announces that",
        BOTH[:1],
    ),
    "test_initialize_minimal_server_advertises_no_capabilities": (
        "S1:live: Ullage has tools of its own, and another server may come at any moment",
        BOTH[:1],
    ),
    "test_client_progress_notification_reaches_server_handler": (
        "The protocol: progress notifications MUST only reference tokens that were provided in an active request",
        BOTH[:1],
    ),
    "test_progress_sent_after_the_response_is_not_delivered_to_the_callback": (
        "The protocol: progress notifications MUST stop after completion",
        BOTH[:1],
    ),
    "test_resource_updated_notification_reaches_client": (
        "The protocol: clients subscribe to specific resources and are notified when they change; this one never did",
        BOTH[:1],
    ),
}
"""Cells that no gateway can pass, by the name of the test: the requirement or the sentence of the protocol that makes
it so, and the revisions."""
MOST_INHERENT = 25


@dataclass(frozen=True, slots=True)
class Outcome:
    passed: frozenset[str]
    failed: frozenset[str]


def run_suite(front: str, cells: str = "in-memory", seconds: float = 280) -> Outcome:
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
        command,
        cwd=SUITE,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=seconds,
        check=False,
    )
    passed, failed = (re.findall(rf"^(?:{kind}) (\S+)", run.stdout, re.M) for kind in ("PASSED", "FAILED|ERROR"))
    assert passed, run.stdout + run.stderr
    return Outcome(frozenset(passed), frozenset(failed))


def test_all_cells_over_streamable_http_pass_through_a_gateway_but_those_that_none_can_pass():
    inherent = {f"{test}[asyncio-streamable-http-{era}]" for test, (_, eras) in INHERENT.items() for era in eras}
    assert len(inherent) <= MOST_INHERENT
    outcome = run_suite("gateway", "streamable-http and not stateless", seconds=900)
    failed = {cell.rpartition("::")[2] for cell in outcome.failed}
    assert failed - inherent == set()
    assert inherent - failed == set(), "these pass, and need not be listed"
    assert len(outcome.passed) >= LEAST_OVER_GATEWAY


def test_what_passes_with_the_sdks_server_in_front_passes_with_our_core():
    by_itself, over_http, over_stdio = (run_suite(front).passed for front in ("", "sdk", "core"))
    assert len(by_itself) == 228
    assert over_http - over_stdio == set()
    assert len(over_stdio) >= LEAST
