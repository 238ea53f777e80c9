import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from store.databases import ENGINES, fresh_place

# Machines are slow and shared: how long an example took is no reason to fail it.
# The same few examples each time; `HYPOTHESIS_PROFILE=thorough make test` takes many others.
settings.register_profile(
    "house", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.register_profile("thorough", max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
# For mutants, where it is enough that an example fails: a smaller one is not looked for, and few are tried.
settings.register_profile(
    "claims", settings.get_profile("house"), max_examples=25, phases=[Phase.explicit, Phase.generate]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))

# A shell that runs the tests in the background has them ignore SIGINT, and every process that a test starts as well.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    # Workers of pytest-xdist have the width of its terminal here, and tables would be cut to it. A test that wants a
    # width sets it.
    os.environ.pop("COLUMNS", None)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path: Path):
    """Where an empty database is, on each engine in turn."""
    with fresh_place(request.param, tmp_path) as where:
        yield where
