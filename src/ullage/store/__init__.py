"""Where do things live?"""

from typing import TYPE_CHECKING

from ullage.deferred import import_on_use

if TYPE_CHECKING:
    from .address import Address, read_url
    from .connection import Connection, in_list, upsert
    from .database import Database
    from .migrations import MIGRATIONS, Migration
    from .values import moment, seconds, storable
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Address": "address",
            "Connection": "connection",
            "in_list": "connection",
            "upsert": "connection",
            "Database": "database",
            "MIGRATIONS": "migrations",
            "Migration": "migrations",
            "moment": "values",
            "read_url": "address",
            "seconds": "values",
            "storable": "values",
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
