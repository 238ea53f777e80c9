"""What may an agent need again to the letter, once the words around it are gone?"""

from .ledger import read_identifiers
from .fitting import identifier_steps, identifiers

__all__ = ["identifier_steps", "identifiers", "read_identifiers"]
