"""What did each server offer the last time?"""

from .catalog import Catalogue
from .forms import StoredForms
from .kept import Kept

__all__ = ["Catalogue", "Kept", "StoredForms"]
