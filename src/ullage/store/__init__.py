"""Where do things live?"""

from .address import Address, read_url
from .database import Database
from .migrations import MIGRATIONS, Migration
from .upsert import insert_into
from .values import moment, seconds, storable

__all__ = ["MIGRATIONS", "Address", "Database", "Migration", "insert_into", "moment", "read_url", "seconds", "storable"]
