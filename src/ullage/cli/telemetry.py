"""Where do the lines about delegating go?

To standard error, each as one object of JSON and nothing else, so that another program can read them there. What they
say is `delegate`'s affair.
"""

import logging
import sys

from ullage.config import Settings

from .terminal import LineFormatter

__all__ = ["show_telemetry"]

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


def show_telemetry(settings: Settings, *, only_if_said: bool = False) -> None:
    """`only_if_said` is for a person, who is told in words unless `ORCH_LOG_LEVEL` asks for more."""
    log, level = logging.getLogger("ullage.delegate"), settings.delegate.log_level
    log.propagate = False
    log.handlers.clear()
    if level is None and only_if_said:
        log.addHandler(logging.NullHandler())
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("%(message)s", is_json=True))
    log.addHandler(handler)
    log.setLevel(_LEVELS[level or "info"])
