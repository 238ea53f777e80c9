"""How is what was learnt forgotten?

In the store that the settings name, of whoever they let in: the user of this machine, and the tokens that they name. A
gateway that runs notices within a minute. What was learnt is not known here.
"""

from ullage.config import Settings
from ullage.gateway import StoredUses
from ullage.store import Database
from ullage.wire import user_name

__all__ = ["forget_uses"]


def forget_uses(settings: Settings) -> int:
    """How many uses there were. Blocks; raises `StoreFailed` where nothing could be forgotten."""
    database = Database.open(settings.store)
    try:
        return StoredUses(database).forget([user_name(), *(token.name for token in settings.tokens)])
    finally:
        database.close()
