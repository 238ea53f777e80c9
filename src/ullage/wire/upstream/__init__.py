"""How is another server spoken to, whatever it runs on and whichever era it is of?"""

from .stillborn import Stillborn
from .unsent import Unsent
from .upstream import Upstream, open_upstream

__all__ = ["Stillborn", "Unsent", "Upstream", "open_upstream"]
