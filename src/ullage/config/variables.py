"""What stands for `${VAR}` in a setting?

`${VAR}`, `${env:VAR}` and `${VAR:-default}` are replaced, once and not again in what they gave; the default also
where the variable is empty, as in a shell. A bare `$VAR` is nobody's business but the program's it is handed to. What
cannot be replaced stays as it is and is named; no value ever is.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

__all__ = ["Expanded", "RecordingEnvironment", "expand", "variables_in"]

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


class RecordingEnvironment(Mapping[str, str]):
    """Variables, and the names of those that were looked up, whether or not they are set."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.consulted: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.consulted.add(name)
        return self._variables[name]

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str):
            self.consulted.add(name)
        return name in self._variables

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


def variables_in(text: str) -> tuple[str, ...]:
    """The names of the variables that stand in a text, in their order."""
    return tuple(dict.fromkeys(match["name"] for match in _VARIABLE.finditer(text)))
