"""Cache of the tools that each server last offered, kept in the store."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .cached_source import Kept
    from .catalog import Catalogue
    from .index_storage import StoredForms, StoredShapes, StoredUses, StoredVectors
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Catalogue": "catalog",
            "Kept": "cached_source",
            "StoredForms": "index_storage",
            "StoredShapes": "index_storage",
            "StoredUses": "index_storage",
            "StoredVectors": "index_storage",
        },
    )

__all__ = ["Catalogue", "Kept", "StoredForms", "StoredShapes", "StoredUses", "StoredVectors"]
