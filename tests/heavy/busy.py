"""A machine on which every core is busy."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_BURN = "import sys, time\nend = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < end: pass"


@contextmanager
def busy_cores(seconds: float = 600) -> Iterator[None]:
    """One process a core that does nothing but compute, for `seconds` at most if nobody ends it."""
    burners = [subprocess.Popen([sys.executable, "-c", _BURN, str(seconds)]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
        assert all(burner.poll() is None for burner in burners), "the cores were not busy all the time"
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
