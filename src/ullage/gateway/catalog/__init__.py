"""What did each server offer the last time?"""

from .catalog import Catalogue
from .forms import StoredForms
from .kept import Kept
from .uses import StoredUses
from .vectors import StoredVectors

__all__ = ["Catalogue", "Kept", "StoredForms", "StoredUses", "StoredVectors"]
