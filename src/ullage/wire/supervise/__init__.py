"""Who owns the servers that Ullage starts, and what if one of them fails?"""

from .health import Health
from .host import Host, Supervised

__all__ = ["Health", "Host", "Supervised"]
