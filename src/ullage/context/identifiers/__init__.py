"""What may an agent need again to the letter, once the words around it are gone?"""

from .fitting import identifier_steps, identifiers
from .ledger import Item, read_identifiers
from .structure import is_record, read_structure, scalars, write_value

__all__ = [
    "Item",
    "identifier_steps",
    "identifiers",
    "is_record",
    "read_identifiers",
    "read_structure",
    "scalars",
    "write_value",
]
