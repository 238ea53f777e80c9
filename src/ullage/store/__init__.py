"""The store: Ullage's own database."""

from typing import TYPE_CHECKING

from ullage.lazy_imports import import_on_use

if TYPE_CHECKING:
    from .connections import Address, Connection, in_list, moment, read_url, seconds, storable, upsert
    from .database import Database
    from .migrations import MIGRATIONS, Migration
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Address": "connections",
            "Connection": "connections",
            "in_list": "connections",
            "upsert": "connections",
            "Database": "database",
            "MIGRATIONS": "migrations",
            "Migration": "migrations",
            "moment": "connections",
            "read_url": "connections",
            "seconds": "connections",
            "storable": "connections",
        },
    )

__all__ = [
    "MIGRATIONS",
    "Address",
    "Connection",
    "Database",
    "Migration",
    "in_list",
    "moment",
    "read_url",
    "seconds",
    "storable",
    "upsert",
]
