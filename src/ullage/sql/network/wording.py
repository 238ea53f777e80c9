"""What of a database's message may be passed on?

Its first line, without what is secret and without values: a conversion that fails quotes the value, and so would hand
out a column that is masked. What the question itself says may be repeated. Where every server means the same, it is
said in the same words.
"""

from ullage.errors import DeadlinePassed, QueryFailed, SourceFailed

from ..wording import without_data

__all__ = ["LOCKED", "REACH", "encoded", "first_line", "late", "lost", "unreached", "without_data", "without_secrets"]

LOCKED = "another session holds a lock on it; ask again later"
REACH = "Check that the server runs and that host, port and TLS settings of the database's URL are right."


def first_line(text: str) -> str:
    """Drivers add the statement or a stack of hints below it."""
    return text.strip().partition("\n")[0].strip()


def without_secrets(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, "…")
    return text


def late() -> DeadlinePassed:
    return DeadlinePassed("the database ended the statement when its time was up")


def lost() -> SourceFailed:
    return SourceFailed("the connection to the database was lost before the answer came", suggestion="ask again")


def unreached(shown: str, said: str, suggestion: str) -> SourceFailed:
    return SourceFailed(f"`{shown}` cannot be reached: {said}", suggestion=suggestion)


def encoded(sql: str) -> bytes:
    try:
        return sql.encode()
    except UnicodeEncodeError:
        raise QueryFailed("the statement holds half a character", suggestion="leave it out") from None
