"""Exact counts with the vocabulary of the model."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .engine import BytePairEngine, default_engine
    from .worker import CountWorker
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "BytePairEngine": "engine",
            "CountWorker": "worker",
            "default_engine": "engine",
        },
    )

__all__ = ["BytePairEngine", "CountWorker", "default_engine"]
