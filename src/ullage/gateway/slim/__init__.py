"""How is a tool said in fewer words?"""

from .signature import one_line, signature
from .slim import slim

__all__ = ["one_line", "signature", "slim"]
