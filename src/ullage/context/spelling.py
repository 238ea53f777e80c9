"""How is a name spelt in JSON?"""

__all__ = ["camel"]


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
