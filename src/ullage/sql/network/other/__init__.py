"""How is a database of any other kind asked?"""

from .session import OtherSession, open_engine

__all__ = ["OtherSession", "open_engine"]
