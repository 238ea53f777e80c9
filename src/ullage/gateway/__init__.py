"""How do many sources look like one small one?"""

from .signature import one_line, signature
from .slim import slim

__all__ = ["one_line", "signature", "slim"]
