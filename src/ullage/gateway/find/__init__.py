"""Which tool does this, and how is it called?"""

from ullage.options import IndexKind

from .embedders import Embedders
from .find import Find
from .forms import EDITION
from .learning import Learning
from .searching import Explained
from .settings import FindSettings, Surroundings
from .surface import Decision
from .tools import NAMES

__all__ = [
    "EDITION",
    "NAMES",
    "Decision",
    "Embedders",
    "Explained",
    "Find",
    "FindSettings",
    "IndexKind",
    "Learning",
    "Surroundings",
]
