"""How do many sources look like one small one?"""

from .server import Access, Rules, Server, Transport
from .signature import one_line, signature
from .slim import slim

__all__ = ["Access", "Rules", "Server", "Transport", "one_line", "signature", "slim"]
