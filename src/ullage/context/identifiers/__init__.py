"""What may an agent need again to the letter, once the words around it are gone?"""

from .fitting import identifier_steps, identifiers
from .ledger import Item, read_identifiers

__all__ = ["Item", "identifier_steps", "identifiers", "read_identifiers"]
