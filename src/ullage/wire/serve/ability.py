"""Can this client be asked that?

What a client says of itself, beside what a request to it takes. It asks nobody.
"""

from collections.abc import Iterator, Mapping

from ullage.errors import ClientCannot
from ullage.tool import Json, JsonObject, Needs

__all__ = ["can_be_asked", "requests_in", "require", "require_all"]

_ABILITY = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


def can_be_asked(capabilities: JsonObject) -> bool:
    """Whether there is anything at all to ask this client for."""
    return any(ability in capabilities for ability in _ABILITY.values())


def require(capabilities: JsonObject, method: str, params: JsonObject) -> None:
    missing = _missing(capabilities, method, params)
    if missing is not None:
        raise ClientCannot(
            f"the tool asks for `{method}`, and this client has not the ability `{missing}`",
            suggestion="use a client that has it, or call the tool so that it need not ask",
        )


def require_all(capabilities: JsonObject, needs: Needs) -> None:
    for _, method, params in requests_in(needs):
        require(capabilities, method, params)


def requests_in(needs: Needs) -> Iterator[tuple[str, str, JsonObject]]:
    """Each request with its key, its method and its params; what is not a request is none."""
    for key, request in needs.requests.items():
        if isinstance(request, Mapping) and isinstance(method := request.get("method"), str):
            params = request.get("params")
            yield key, method, params if isinstance(params, dict) else {}


def _missing(capabilities: JsonObject, method: str, params: JsonObject) -> str | None:
    ability = _ABILITY.get(method)
    if ability is None:
        return method
    declared = capabilities.get(ability)
    if not isinstance(declared, Mapping):
        return ability
    special = _special(method, params, declared)
    return None if special is None or special in declared else f"{ability}.{special}"


def _special(method: str, params: JsonObject, declared: Mapping[str, Json]) -> str | None:
    """The part of an ability that this request takes; an elicitation ability that does not name `url` means forms."""
    if method == "elicitation/create":
        if params.get("mode") == "url":
            return "url"
        return "form" if "url" in declared else None
    return "tools" if method == "sampling/createMessage" and params.get("tools") else None
