"""Fakes and conformance checks for your own sources, engines and wrappers."""

from .conformance import (
    check_closing,
    check_completion,
    check_embedder,
    check_engine,
    check_index,
    check_prompts,
    check_recorder,
    check_resources,
    check_source,
    check_subscribed,
    check_watched,
)
from .fakes import FakeAnsweringSource, FakeEmbedder, FakeEngine, FakeIndex, FakeRecorder, FakeSource

__all__ = [
    "FakeAnsweringSource",
    "FakeEmbedder",
    "FakeEngine",
    "FakeIndex",
    "FakeRecorder",
    "FakeSource",
    "check_closing",
    "check_completion",
    "check_embedder",
    "check_engine",
    "check_index",
    "check_prompts",
    "check_recorder",
    "check_resources",
    "check_source",
    "check_subscribed",
    "check_watched",
]
