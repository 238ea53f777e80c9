"""Where do things live?"""

from typing import TYPE_CHECKING

from ullage.deferred import import_on_use

if TYPE_CHECKING:
    from .address import Address, read_url
    from .database import Database
    from .migrations import MIGRATIONS, Migration
    from .upsert import insert_into
    from .values import moment, seconds, storable
else:
    __getattr__ = import_on_use(
        __name__,
        {
            "Address": "address",
            "Database": "database",
            "MIGRATIONS": "migrations",
            "Migration": "migrations",
            "insert_into": "upsert",
            "moment": "values",
            "read_url": "address",
            "seconds": "values",
            "storable": "values",
        },
    )

__all__ = ["MIGRATIONS", "Address", "Database", "Migration", "insert_into", "moment", "read_url", "seconds", "storable"]
