"""Cache of the tools that each server last offered, kept in the store."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .catalog import Catalogue
    from .forms import StoredForms
    from .kept import Kept
    from .uses import StoredUses
    from .vectors import StoredVectors
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Catalogue": "catalog",
            "Kept": "kept",
            "StoredForms": "forms",
            "StoredUses": "uses",
            "StoredVectors": "vectors",
        },
    )

__all__ = ["Catalogue", "Kept", "StoredForms", "StoredUses", "StoredVectors"]
