"""Who knows what texts mean here, and what if that cannot be had?

The table that comes with the package, or an encoder for those who want it: loaded when something is first embedded,
once for all clients, in whatever thread asks. What cannot be loaded, or fails later, is said once on the log and done
without: the table stands in for the encoder, and words alone for the table. What is made of them is not known here.
"""

import logging
import threading
from collections.abc import Callable, Mapping

from ullage.errors import UllageError
from ullage.options import IndexKind
from ullage.search import Embedder, load_encoder, load_table

__all__ = ["Embedders", "Loader"]

_log = logging.getLogger(__name__)

Loader = Callable[[], Embedder]

_LOADERS: Mapping[IndexKind, Loader] = {"static": load_table, "encoder": load_encoder}
_INSTEAD: Mapping[IndexKind, tuple[IndexKind, str]] = {
    "encoder": ("static", "tools are searched by the table that comes with the package"),
    "static": ("words", "tools are searched by words alone"),
}


class Embedders:
    """Safe to use from several threads."""

    def __init__(self, loaders: Mapping[IndexKind, Loader] = _LOADERS) -> None:
        self._loaders = loaders
        self._turn = threading.Lock()
        self._loaded: dict[IndexKind, Embedder | None] = {}

    def of(self, kind: IndexKind) -> Embedder | None:
        """What embeds for an index of that kind, None where nothing does; may take long."""
        with self._turn:
            return self._of(kind)

    def give_up(self, failed: Embedder, error: Exception) -> None:
        """Does without that one until the next start. Nothing is said of one that was given up before."""
        with self._turn:
            kinds: list[IndexKind] = [kind for kind, loaded in self._loaded.items() if loaded is failed]
            if kinds:
                instead, loss = _INSTEAD["static" if "static" in kinds else "encoder"]
                _log.warning("search by meaning goes on without what fails: %s; %s", error, loss)
                better = self._of(instead)
                for kind in kinds:
                    self._loaded[kind] = better

    def _of(self, kind: IndexKind) -> Embedder | None:
        if kind not in self._loaded and kind in self._loaders:
            self._loaded[kind] = self._load(kind)
        return self._loaded.get(kind)

    def _load(self, kind: IndexKind) -> Embedder | None:
        try:
            return self._loaders[kind]()
        except Exception as error:  # noqa: BLE001 - whatever is wrong with an install, words can be searched
            instead, loss = _INSTEAD[kind]
            hint = f" ({error.suggestion})" if isinstance(error, UllageError) and error.suggestion else ""
            _log.warning("search by meaning (`%s`) cannot be loaded: %s%s; %s", kind, error, hint, loss)
            return self._of(instead)
