"""Which words must not be repeated of what a server says?

Standard error and stray output reach people and models, and servers like to print what they were given. Secrets are
told by the names they are given under, in the settings and in the environment that a server inherits; a value without
such a name passes. Pure.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from ullage.gateway import Server

__all__ = ["SECRET_NAME", "redacted", "secrets_of"]

_MARK = "[secret]"
_SHORTEST = 6
_SHORTEST_INHERITED = 8
"""Longer, since nobody chose to hand these to the server, and a short one may be an everyday word."""
_NAMED = re.compile(r"key|token|secret|pass|auth|cred|cookie|session|dsn|url|uri", re.IGNORECASE)
SECRET_NAME = re.compile(r"key|token|secret|(?<!ask)pass|pwd$|auth(?!or(?!iz))|cred|cookie|dsn", re.IGNORECASE)
"""Narrower, since a desktop sets sessions and addresses by the dozen."""
_OPTION = re.compile(r"-{1,2}(?P<name>[\w-]*)(?:=(?P<value>.*))?", re.DOTALL)
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_][\w-]*)\s*[=:]\s*(?P<value>.+)", re.DOTALL)
_TOKEN_LIKE = re.compile(r"[\w-]*?(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{12,}[\w-]*")
"""Letters and digits in one long run, which few plain arguments are."""


def secrets_of(server: Server, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The longest first; `environment` is what the server inherits."""
    inherited = {name: value for name, value in environment.items() if name not in server.environment}
    found = {
        *_long(_SHORTEST, _of_environment(server.environment, _NAMED)),
        *_long(_SHORTEST_INHERITED, _of_environment(inherited, SECRET_NAME)),
        *_long(_SHORTEST, (part for value in server.headers.values() for part in _words(value))),
        *_long(_SHORTEST, _of_arguments(server.arguments)),
        *_long(_SHORTEST, _of_url(server.url or "")),
    }
    return tuple(sorted(found, key=lambda one: (-len(one), one)))


def redacted(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = text.replace(secret, _MARK)
    return text


def _long(shortest: int, values: Iterable[str]) -> Iterator[str]:
    return (one for one in values if len(one) >= shortest)


def _of_environment(environment: Mapping[str, str], named: re.Pattern[str]) -> Iterator[str]:
    for name, value in environment.items():
        if named.search(name):
            # By the line too, since a key in a file's form is printed and shown so.
            yield from (value, *value.splitlines())
        yield from _of_url(value)


def _words(value: str) -> Iterator[str]:
    """A secret value; of one such as `Bearer X` also what follows the manner, and of a cookie what it holds."""
    words = re.split(r"[\s;,]+", value)
    yield from (value, *words[1:])
    yield from (one.partition("=")[2] for one in words)


def _of_url(value: str) -> Iterator[str]:
    """What a URL says to the one host alone: its password and the values of its query."""
    if "://" not in value:
        return
    try:
        parts = urlsplit(value)
        password = parts.password
    except ValueError:
        yield value
        return
    if password:
        yield from (value, password)
    yield from (one.partition("=")[2] for one in parts.query.split("&"))


def _of_arguments(arguments: tuple[str, ...]) -> Iterator[str]:
    option = ""
    for argument in arguments:
        yield from _of_url(argument)
        match = _OPTION.fullmatch(argument)
        if match is None:
            yield from _of_argument(option, argument)
            option = ""
            continue
        option = match["name"]
        if match["value"] and SECRET_NAME.search(option):
            yield match["value"]


def _of_argument(option: str, argument: str) -> Iterator[str]:
    if SECRET_NAME.search(option) or _TOKEN_LIKE.fullmatch(argument):
        yield argument
    # A container's `API_KEY=x`, a bridge's `Authorization: Bearer x`.
    match = _ASSIGNED.fullmatch(argument)
    if match is not None and SECRET_NAME.search(match["name"]):
        yield from _words(match["value"])
