"""Which tool does a call of call_tool mean, and with which arguments?

`call_tool` has arguments of its own around the tool's, and models mix the two up: the tool's name inside `parameters`,
its arguments beside `tool_name`, everything in one string, `server__tool` as the server. This reads all of them and
says what it had to mend. It knows no tools: a name is kept as it was said, and where a tool has a parameter called like
one of the words for `parameters`, whoever knows the tool asks again (`Spoken.of_a_tool_with`).
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace

from ullage.errors import InvalidArguments
from ullage.tool import Json, JsonObject

from .heal import parsed

__all__ = ["Spoken", "read_call"]

_TOOL = ("tool_name", "toolName", "tool", "name")
_SERVER = ("server_name", "serverName", "server")
"""The last only beside parameters: where there are none, it may well be one itself."""
_PARAMETERS = ("parameters", "params", "arguments", "args", "input", "tool_input")
_KEYS = ("server_name", "tool_name", "parameters")
_LAYERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """What a call says."""

    tool: str
    """As it was said."""
    server: str | None = None
    parameters: Json = field(default_factory=dict[str, Json])
    """An object, or whatever else was sent in its place."""
    beside: JsonObject = field(default_factory=dict[str, Json])
    """What stood beside `parameters` and is none of call_tool's own arguments."""
    notes: tuple[str, ...] = ()
    said: JsonObject = field(default_factory=dict[str, Json])
    """All that was said besides the names."""
    read_from: str | None = None
    """The word that stood for `parameters`."""

    @property
    def bare(self) -> str:
        """The name out of a line that was copied whole: `name(args) — sentence [write]`."""
        name = self.tool.split("(", 1)[0].split(" — ", 1)[0].split(" [", 1)[0]
        return name.strip().strip("`'\"") or self.tool

    def of_a_tool_with(self, properties: Container[str]) -> "Spoken":
        """The same call of a tool that has these parameters: what is called like one of them is an argument.

        `parameters` itself is one only where the tool's others all stand beside it and none of them in it.
        """
        if self.read_from is None or self.read_from not in properties:
            return self
        all_beside = bool(self.beside) and all(name in properties for name in self.beside)
        if self.read_from == _PARAMETERS[0] and (not all_beside or self.holds_any(properties)):
            return self
        notes = tuple(note for note in self.notes if note != _read_as(self.read_from, _PARAMETERS[0]))
        words = tuple(word for word in _PARAMETERS if word not in properties)
        return _with_parameters(replace(self, notes=notes), words)

    def holds_any(self, properties: Container[str]) -> bool:
        """Whether any of these stands in what was read as the parameters."""
        inside = _opened(self.parameters)
        return isinstance(inside, dict) and any(name in properties for name in inside)


def read_call(arguments: JsonObject) -> Spoken:
    """Raises `InvalidArguments` where no tool is named."""
    for from_server in (False, True):
        for depth, (layer, outer) in enumerate(_layers(arguments)):
            spoken = _read(layer, outer, from_server=from_server)
            if spoken is not None:
                notes = ("the call stood inside `parameters`; taken out",) if depth else ()
                return replace(spoken, notes=(*notes, *spoken.notes))
    raise InvalidArguments(
        "`tool_name` is missing",
        suggestion='Give {"tool_name": "…", "parameters": {…}}; `find_tool` finds the name.',
        options=_KEYS,
    )


def _layers(arguments: JsonObject) -> Iterator[tuple[dict[str, Json], dict[str, Json]]]:
    """The call, then what stands inside its parameters, each with what was said around it."""
    layer, outer = dict(arguments), dict[str, Json]()
    for _ in range(_LAYERS):
        yield layer, outer
        key = next((key for key in _PARAMETERS if key in layer), None)
        inner = _opened(layer[key]) if key else None
        if key is None or not isinstance(inner, dict):
            return
        outer = outer | {name: value for name, value in layer.items() if name != key}
        layer = inner


def _read(layer: dict[str, Json], outer: dict[str, Json], *, from_server: bool) -> Spoken | None:
    """The call that this layer is, if it names a tool; `from_server` says to look for its name there too."""
    rest = outer | layer
    has_parameters = any(key in rest for key in _PARAMETERS)
    tool_key, tool = _taken(rest, _TOOL)
    server_key, server = _taken(rest, _SERVER if has_parameters else _SERVER[:-1])
    if tool is None and from_server:
        tool_key, tool, server_key, server = server_key, server, None, None
    if tool is None:
        return None
    read = ((tool_key, _TOOL[0]), (server_key, _SERVER[0]))
    notes = tuple(_read_as(key, own) for key, own in read if key not in (None, own))
    return _with_parameters(Spoken(tool=tool, server=server, said=rest, notes=notes), _PARAMETERS)


def _with_parameters(spoken: Spoken, words: tuple[str, ...]) -> Spoken:
    """The call with its parameters under the first of the words that was said, and the rest beside them."""
    beside = dict(spoken.said)
    key = next((word for word in words if word in beside), None)
    parameters = beside.pop(key) if key else None
    notes = () if key in (None, _PARAMETERS[0]) else (_read_as(key, _PARAMETERS[0]),)
    return replace(
        spoken,
        parameters={} if parameters is None or parameters == "" else parameters,
        beside=beside,
        read_from=key,
        notes=(*spoken.notes, *notes),
    )


def _read_as(key: str | None, own: str) -> str:
    return f"`{key}` read as `{own}`"


def _taken(layer: dict[str, Json], keys: tuple[str, ...]) -> tuple[str | None, str | None]:
    """The first of the keys that holds a text, with it; taken out of the layer, as is the first that holds nothing."""
    for key in keys:
        value = layer.get(key)
        if isinstance(value, str) and value.strip():
            del layer[key]
            return key, value.strip()
    if layer.get(keys[0]) in (None, ""):
        layer.pop(keys[0], None)
    return None, None


def _opened(value: Json) -> Json:
    return parsed(value) if isinstance(value, str) else value
