"""The protocol's own conformance suite against Ullage with the fixture server behind it, passed on as it is.

Over HTTP, and on standard input and output through a bridge.
"""

import pytest

pytestmark = [pytest.mark.heavy]


@pytest.mark.requirement("S1:call")
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_the_gateway_passes_every_scenario_that_the_server_behind_it_passes(suite, fixture_url, gateway_url, revision):
    direct = suite(fixture_url, revision)
    through = suite(gateway_url, revision)
    assert direct.required - set(direct.passed) == set(), direct.output
    fewer = {name: (count, through.passed.get(name)) for name, count in direct.passed.items()}
    # A check that is skipped or warned of is one check passed less, though its scenario fails none.
    assert {name: counts for name, counts in fewer.items() if counts[1] is None or counts[1] < counts[0]} == {}, (
        through.output
    )


OF_HTTP = frozenset(
    {
        "dns-rebinding-protection",
        "http-custom-header-server-validation",
        "http-header-validation",
        "server-session-lifecycle",
        "server-sse-multiple-streams",
        "server-sse-polling",
    }
)
"""Scenarios that judge an HTTP server, which is the bridge's here."""


@pytest.mark.requirement("S1:call")
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_the_gateway_passes_them_on_standard_input_and_output_too(suite, fixture_url, stdio_url, revision):
    direct = suite(fixture_url, revision)
    through = suite(stdio_url, revision)
    fewer = {name: (count, through.passed.get(name)) for name, count in direct.passed.items() if name not in OF_HTTP}
    assert {name: counts for name, counts in fewer.items() if counts[1] is None or counts[1] < counts[0]} == {}, (
        through.output
    )


@pytest.mark.requirement("S1:call")
@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
def test_the_sdks_everything_server_passes_as_much_through_the_gateway(
    suite, everything_url, everything_gateway_url, revision
):
    direct, through = suite(everything_url, revision), suite(everything_gateway_url, revision)
    assert direct.required - set(direct.passed) == set(), direct.output
    fewer = {name: (count, through.passed.get(name)) for name, count in direct.passed.items()}
    assert {name: counts for name, counts in fewer.items() if counts[1] is None or counts[1] < counts[0]} == {}, (
        through.output
    )
