"""Which tool does a call of call_tool mean, and with which arguments?

`call_tool` has arguments of its own around the tool's, and models mix the two up: the tool's name inside `parameters`,
its arguments beside `tool_name`, everything in one string, `server__tool` as the server. This reads all of them and
says what it had to mend. It knows no tools; whether the tool and its arguments fit, others say.
"""

from collections.abc import Iterator
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
    server: str | None = None
    parameters: Json = field(default_factory=dict[str, Json])
    """An object, or whatever else was sent in its place."""
    beside: JsonObject = field(default_factory=dict[str, Json])
    """What stood beside `parameters` and is none of call_tool's own arguments."""
    notes: tuple[str, ...] = ()


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
    key = next((key for key in _PARAMETERS if key in rest), None)
    parameters = rest.pop(key) if key else None
    read = ((tool_key, "tool_name"), (server_key, "server_name"), (key, "parameters"))
    return Spoken(
        tool=_bare(tool),
        server=server,
        parameters={} if parameters is None or parameters == "" else parameters,
        beside=rest,
        notes=tuple(f"`{key}` read as `{own}`" for key, own in read if key not in (None, own)),
    )


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


def _bare(name: str) -> str:
    """The name out of a line that was copied whole: `name(args) — sentence [write]`."""
    return name.strip().split("(", 1)[0].split(" — ", 1)[0].split(" [", 1)[0].strip().strip("`'\"") or name
