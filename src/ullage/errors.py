"""The error tree.

    UllageError                      every error that Ullage raises on purpose
    ├── BadInput                     the caller can fix it by changing the request
    │   ├── InvalidArguments         a tool's or function's arguments do not fit
    │   │   └── TooLong              a prompt larger than every candidate's window (declared in `delegate`)
    │   ├── UnsupportedModel         no card, alias or family has that name
    │   ├── UnknownTool              no source offers a tool of that name
    │   ├── UnknownResource          no source offers a resource or a prompt of that name
    │   ├── Refused                  a statement that may not be run on a database
    │   │   └── UnknownName          a statement with a name that is not known, while values are masked
    │   ├── QueryFailed              a database's own error about a statement
    │   ├── UnknownHandle            no stored result has that handle, or it expired, or it is another caller's
    │   ├── OverBudget               a call would spend more than the user allows
    │   ├── Denied                   the settings, or the user who was asked, do not allow it
    │   ├── ToolChanged              a definition differs from the one the user accepted
    │   ├── ClientCannot             the client cannot be asked for what the tool needs
    │   │   └── ClientLacksAbility   it did not declare that capability
    │   ├── BadConfiguration         a settings file has an invalid value
    │   ├── UnreadableRequest        a request body in none of the four formats
    │   └── UnreadableFile           a file that does not exist or is not text
    └── Unavailable                  the caller did not cause it; trying later may help
        ├── DeadlinePassed           the call's deadline passed before the answer came
        ├── SourceFailed             a source died, hung or sent an invalid message
        │   ├── SignInNeeded         a user must sign in with OAuth
        │   ├── Stillborn            it did not start (declared in `wire`)
        │   └── Unsent               the request provably never reached it (declared in `wire`)
        ├── StoreFailed              the database cannot be opened, read or written
        │   └── SessionChanged       the messages to replace changed meanwhile (declared in `context.session`)
        ├── EmbedderFailed           the embedding model failed (declared in `search`)
        ├── SummaryFailed            no summary could be made (declared in `context`)
        ├── ProviderFailed           a model's provider gave no complete answer (declared in `delegate`, with its kinds)
        └── ProtocolError            a server or client answered with a JSON-RPC error; passed on unchanged

An error has `message` (what happened), `suggestion` (what to do) and `options` (what would have been accepted).
`wire()` returns the only format in which an error leaves the process. Protocol errors (JSON-RPC codes) are created
by the `wire` package, not here.
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
    """The JSON format of a failed result (contract U:errors)."""

    error_code: str
    message: str
    suggestion: str
    available_options: list[str]


class UllageError(Exception):
    """Base of all errors that Ullage raises on purpose. Raise a subclass; catch this at the wire and in the CLI.

    Args:
        message: What happened, with the value in backticks.
        suggestion: What to do about it.
        options: The values that would have been accepted.
    """

    code: ClassVar[str] = "INTERNAL_ERROR"

    def __init__(self, message: str, *, suggestion: str = "", options: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion
        self.options = options
        self.meta: dict[str, Any] = {}
        """Metadata for the client, never for the model; it becomes the `_meta` of the reply."""
        self.tool: tuple[str, str] | None = None
        """Server and name of the tool that was not called, for the ledger; None if the error is about no tool."""

    def wire(self) -> ErrorShape:
        """Return the error as JSON for a failed result."""
        return {
            "error_code": self.code,
            "message": self.message,
            "suggestion": self.suggestion,
            "available_options": list(self.options),
        }


class BadInput(UllageError):
    """Base of errors that the caller can fix by changing the request."""

    code = "BAD_INPUT"


class InvalidArguments(BadInput):
    """The arguments of a tool or function do not fit."""

    code = "INVALID_ARGUMENTS"


class UnsupportedModel(BadInput):
    """No model card, alias or family has that name."""

    code = "UNSUPPORTED_MODEL"


class UnknownTool(BadInput):
    """No source offers a tool of that name."""

    code = "UNKNOWN_TOOL"


class UnknownResource(BadInput):
    """No source offers a resource or a prompt of that name."""

    code = "UNKNOWN_RESOURCE"


class Refused(BadInput):
    """A statement is not allowed on a database."""

    code = "SQL_REFUSED"


class UnknownName(Refused):
    """A statement uses a name that is not known, while values are masked.

    The table or column may have been created since the names were read.
    """


class QueryFailed(BadInput):
    """A database reported an error about a statement."""

    code = "QUERY_FAILED"


class UnknownHandle(BadInput):
    """No stored result has that handle, or it expired, or it belongs to another caller."""

    code = "UNKNOWN_HANDLE"


class OverBudget(BadInput):
    """A call would spend more than the user allows, or its whole result is larger than that."""

    code = "OVER_BUDGET"


class Denied(BadInput):
    """The settings, or the user who was asked, do not allow the call."""

    code = "DENIED"


class ToolChanged(BadInput):
    """A definition differs from the one that the user accepted."""

    code = "TOOL_CHANGED"


class ClientCannot(BadInput):
    """The client cannot be asked for what the tool needs."""

    code = "CLIENT_CANNOT"


class ClientLacksAbility(ClientCannot):
    """The client did not declare the capability to be asked for this."""


class BadConfiguration(BadInput):
    """A settings file has an invalid value."""

    code = "BAD_CONFIGURATION"


class UnreadableRequest(BadInput):
    """A request body has none of the four formats."""

    code = "UNREADABLE_REQUEST"


class UnreadableFile(BadInput):
    """A file does not exist or is not text."""

    code = "UNREADABLE_FILE"


class Unavailable(UllageError):
    """Base of errors that the caller did not cause; trying later may help."""

    code = "UNAVAILABLE"


class DeadlinePassed(Unavailable):
    """The call's deadline passed before the answer came."""

    code = "DEADLINE_PASSED"


class SourceFailed(Unavailable):
    """A source died, hung, or sent an invalid message."""

    code = "SOURCE_FAILED"


class SignInNeeded(SourceFailed):
    """A remote server answered HTTP 401 and publishes OAuth metadata, so a user must sign in."""

    code = "SIGN_IN_NEEDED"


class StoreFailed(Unavailable):
    """The database cannot be opened, read or written."""

    code = "STORE_FAILED"


class ProtocolError(Unavailable):
    """A JSON-RPC error that a server or client sent; its number and data are passed on unchanged."""

    code = "PROTOCOL_ERROR"

    def __init__(self, message: str, *, number: int, data: object = None) -> None:
        super().__init__(message)
        self.number = number
        self.data = data
