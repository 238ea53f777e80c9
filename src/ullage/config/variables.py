"""What stands for `${VAR}` in a setting?

`${VAR}`, `${env:VAR}` and `${VAR:-default}` are replaced, once and not again in what they gave; the default also
where the variable is empty, as in a shell. A bare `$VAR` is nobody's business but the program's it is handed to. What
cannot be replaced stays as it is and is named; no value ever is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Expanded", "expand", "variables_in"]

_PLACE = re.compile(
    r"\$\{(?:env:)?(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}|\$\{(?P<other>[A-Za-z]+:[\w.-]+)\}", re.ASCII
)

_VARIABLE = re.compile(r"\$\{(?:env:)?(?P<name>[A-Za-z_]\w*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Expanded:
    text: str
    unset: tuple[str, ...] = ()
    """Variables that have no value and no default."""
    foreign: tuple[str, ...] = ()
    """What only the program it was written for can replace: `input:token`."""


def expand(text: str, environment: Mapping[str, str]) -> Expanded:
    unset, foreign = list[str](), list[str]()

    def replace(match: re.Match[str]) -> str:
        if match["other"]:
            foreign.append(match["other"])
            return match.group()
        value = environment.get(match["name"])
        if match["default"] is not None:
            return value or match["default"]
        if value is None:
            unset.append(match["name"])
            return match.group()
        return value

    return Expanded(_PLACE.sub(replace, text), tuple(unset), tuple(foreign))


def variables_in(text: str) -> tuple[str, ...]:
    """The names of the variables that stand in a text, in their order."""
    return tuple(dict.fromkeys(match["name"] for match in _VARIABLE.finditer(text)))
