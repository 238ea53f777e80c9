"""How are many names written down without drowning in quotes?"""

__all__ = ["words"]


def words(text: str) -> frozenset[str]:
    """Those of a text, parted by white space."""
    return frozenset(text.split())
