"""How is a database told to a model in few tokens?"""

from .choosing import choose, find_table, spell
from .full import full, routine_line
from .line import line
from .original import schema_json, table_json, triggers_json
from .within import DETAILS, Detail, describe
from .words import full_name

__all__ = [
    "DETAILS",
    "Detail",
    "choose",
    "describe",
    "find_table",
    "full",
    "full_name",
    "line",
    "routine_line",
    "schema_json",
    "spell",
    "table_json",
    "triggers_json",
]
