"""How is a database asked that another program serves?"""

from .opening import network_engine, warning

__all__ = ["network_engine", "warning"]
