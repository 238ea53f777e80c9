"""The error tree.

    UllageError                      every error that Ullage raises on purpose
    ├── BadInput                     the caller can mend it by asking differently
    │   ├── InvalidArguments         a tool's or function's arguments do not fit
    │   │   └── TooLong              a prompt that no candidate's window holds (declared in `delegate`)
    │   ├── UnsupportedModel         no card, alias or family has that name
    │   ├── UnknownTool              no source offers a tool of that name
    │   ├── UnknownResource          no source offers a resource or a prompt of that name
    │   ├── Refused                  a statement that may not be run on a database
    │   │   └── UnknownName          … as it names what nobody knows, and values are masked
    │   ├── QueryFailed              a database's own error about a statement
    │   ├── UnknownHandle            no held result has that handle, or not for this caller, or no longer
    │   ├── OverBudget               a call would spend more than the user allows
    │   ├── Denied                   the settings, or the person asked, do not allow it
    │   ├── ToolChanged              a definition is not the one the user accepted
    │   ├── ClientCannot             the client cannot be asked for what the tool needs
    │   │   └── ClientLacksAbility   it never said that it can be
    │   ├── BadConfiguration         a settings file says what cannot be meant
    │   ├── UnreadableRequest        a request body in none of the four formats
    │   └── UnreadableFile           a file that is not there, or is not text
    └── Unavailable                  the caller did nothing wrong; trying later may help
        ├── DeadlinePassed           the call's deadline came before its answer
        ├── SourceFailed             a source died, hung or spoke nonsense
        │   ├── SignInNeeded         it wants a user to sign in with OAuth
        │   ├── Stillborn            it never came up (declared in `wire`)
        │   └── Unsent               it provably never got the request (declared in `wire`)
        ├── StoreFailed              the database cannot be opened, read or written
        │   └── SessionChanged       somebody else let go of the same messages (declared in `context.session`)
        ├── EmbedderFailed           what knows what texts mean broke (declared in `search`)
        ├── SummaryFailed            no summary was to be had (declared in `context`)
        ├── ProviderFailed           a model's provider gave no whole answer (declared in `delegate`, with its kinds)
        └── ProtocolError            a server or client answered with an error of the protocol; passed on as it is

An error knows what happened (`message`), what to do (`suggestion`) and what would have been accepted
(`options`). `wire()` makes the only shape in which it leaves the process. Protocol errors (JSON-RPC codes)
are not made here: the wire does that.
"""

from typing import Any, ClassVar, TypedDict

__all__ = [
    "BadConfiguration",
    "BadInput",
    "ClientCannot",
    "ClientLacksAbility",
    "DeadlinePassed",
    "Denied",
    "ErrorShape",
    "InvalidArguments",
    "OverBudget",
    "ProtocolError",
    "QueryFailed",
    "Refused",
    "SignInNeeded",
    "SourceFailed",
    "StoreFailed",
    "ToolChanged",
    "UllageError",
    "Unavailable",
    "UnknownHandle",
    "UnknownName",
    "UnknownResource",
    "UnknownTool",
    "UnreadableFile",
    "UnreadableRequest",
    "UnsupportedModel",
]


class ErrorShape(TypedDict):
    """The one shape of a failed result, as JSON (contract U:errors)."""

    error_code: str
    message: str
    suggestion: str
    available_options: list[str]


class UllageError(Exception):
    """The root of the tree; raise a leaf, catch this at an edge."""

    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(self, message: str, *, suggestion: str = "", options: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion
        self.options = options
        self.meta: dict[str, Any] = {}
        """JSON for the client, beside the error and never for the model; the `_meta` of the reply."""

    def wire(self) -> ErrorShape:
        return {
            "error_code": self.code,
            "message": self.message,
            "suggestion": self.suggestion,
            "available_options": list(self.options),
        }


class BadInput(UllageError):
    code = "BAD_INPUT"


class InvalidArguments(BadInput):
    code = "INVALID_ARGUMENTS"


class UnsupportedModel(BadInput):
    code = "UNSUPPORTED_MODEL"


class UnknownTool(BadInput):
    code = "UNKNOWN_TOOL"


class UnknownResource(BadInput):
    code = "UNKNOWN_RESOURCE"


class Refused(BadInput):
    code = "SQL_REFUSED"


class UnknownName(Refused):
    """It may have been made since the names were read."""


class QueryFailed(BadInput):
    code = "QUERY_FAILED"


class UnknownHandle(BadInput):
    code = "UNKNOWN_HANDLE"


class OverBudget(BadInput):
    code = "OVER_BUDGET"


class Denied(BadInput):
    code = "DENIED"


class ToolChanged(BadInput):
    code = "TOOL_CHANGED"


class ClientCannot(BadInput):
    code = "CLIENT_CANNOT"


class ClientLacksAbility(ClientCannot):
    """The client never declared that it can be asked for this."""


class BadConfiguration(BadInput):
    code = "BAD_CONFIGURATION"


class UnreadableRequest(BadInput):
    code = "UNREADABLE_REQUEST"


class UnreadableFile(BadInput):
    code = "UNREADABLE_FILE"


class Unavailable(UllageError):
    code = "UNAVAILABLE"


class DeadlinePassed(Unavailable):
    code = "DEADLINE_PASSED"


class SourceFailed(Unavailable):
    code = "SOURCE_FAILED"


class SignInNeeded(SourceFailed):
    """A remote server that answers HTTP 401 and publishes OAuth metadata."""

    code = "SIGN_IN_NEEDED"


class StoreFailed(Unavailable):
    code = "STORE_FAILED"


class ProtocolError(Unavailable):
    """An error of the protocol that another program answered with; the wire hands on its number and data untouched."""

    code = "PROTOCOL_ERROR"

    def __init__(self, message: str, *, number: int, data: object = None) -> None:
        super().__init__(message)
        self.number = number
        self.data = data
