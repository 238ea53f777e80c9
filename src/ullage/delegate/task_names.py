"""The task and the session that a call belongs to, as its `_meta` names them.

`dev.ullage/task` is the task's name, or a table `{"name": …, "end": true}` for its last call; `dev.ullage/session` is
`{"end": true}` on the last call of a session, which is otherwise known by its caller. Both are scopes of budgets.
"""

from dataclasses import dataclass

from ullage.errors import InvalidArguments
from ullage.tool import Json, JsonObject

__all__ = ["SESSION", "TASK", "Scopes", "read_scopes"]

TASK = "dev.ullage/task"
SESSION = "dev.ullage/session"
_LONGEST = 200
"""Characters of a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scopes:
    task: str | None = None
    ends_task: bool = False
    """Whether the task is over once this call is."""
    ends_session: bool = False


def read_scopes(meta: JsonObject) -> Scopes:
    """Raises `InvalidArguments` for what is neither a name nor such a table."""
    said, session = meta.get(TASK), meta.get(SESSION)
    table: JsonObject = said if isinstance(said, dict) else {"name": said}
    name = table.get("name")
    is_named = isinstance(name, str) and bool(name.strip()) and len(name) <= _LONGEST
    if said is not None and (not is_named or not _is_end(table, ("name", "end"))):
        raise _unread(TASK, f'a name of up to {_LONGEST} characters, or {{"name": NAME, "end": true}}')
    if session is not None and not (isinstance(session, dict) and _is_end(session, ("end",))):
        raise _unread(SESSION, '{"end": true}')
    return Scopes(
        task=name if isinstance(name, str) else None,
        ends_task=table.get("end") is True,
        ends_session=isinstance(session, dict) and session.get("end") is True,
    )


def _is_end(table: JsonObject, known: tuple[str, ...]) -> bool:
    end: Json = table.get("end", False)
    return isinstance(end, bool) and set(table) <= set(known)


def _unread(key: str, wanted: str) -> InvalidArguments:
    return InvalidArguments(f"`{key}` of `_meta` cannot be read", suggestion=f"give {wanted}, or leave it out")
