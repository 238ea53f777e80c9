"""Which tool does this, and how is it called?"""

from .find import Find
from .forms import EDITION
from .settings import FindSettings, Surroundings
from .surface import Decision
from .tools import NAMES

__all__ = ["EDITION", "NAMES", "Decision", "Find", "FindSettings", "Surroundings"]
