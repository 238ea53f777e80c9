"""Which engine asks this database?

Nothing is connected to here; the sample shop is made where it is not there yet.
"""

from pathlib import Path

from ullage.options import SAMPLE, DatabaseSettings

from .dialect import file_of
from .embedded import EmbeddedEngine
from .engine import Engine
from .network import network_engine, warning
from .sample import make_sample

__all__ = ["lock_sentences", "open_engine"]


def open_engine(settings: DatabaseSettings, *, sample: Path) -> Engine:
    """`sample` is where the sample shop lies, or will."""
    if settings.url == SAMPLE:
        return EmbeddedEngine(make_sample(sample), dialect="sqlite", limits=settings.limits)
    file = file_of(settings)
    if file is None:
        return network_engine(settings)
    path, dialect = file
    return EmbeddedEngine(path, dialect=dialect, limits=settings.limits)


def lock_sentences(settings: DatabaseSettings) -> tuple[str, ...]:
    """One sentence where not every lock holds, none where all do."""
    if settings.url == SAMPLE or file_of(settings) is not None:
        return ()
    said = warning(settings)
    return () if said is None else (said,)
