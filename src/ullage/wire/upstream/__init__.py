"""How is another server spoken to, whatever it runs on and whichever era it is of?"""

from .era import era_of
from .heirloom import depth, inherited
from .stillborn import Stillborn
from .unsent import Unsent
from .upstream import Upstream, open_upstream

__all__ = ["Stillborn", "Unsent", "Upstream", "depth", "era_of", "inherited", "open_upstream"]
