import os

import pytest
from hypothesis import HealthCheck, settings

# Machines are slow and shared: how long an example took is no reason to fail it.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
