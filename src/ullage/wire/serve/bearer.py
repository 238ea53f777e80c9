"""Who is this, by the token they carry?

Named bearer tokens, from an environment variable or a file. Only their hashes are kept, so that neither a log nor an
error can hold one. It speaks no HTTP and makes no tokens.
"""

import hmac
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from ullage.errors import BadConfiguration, UnreadableFile

__all__ = ["HOW_TO_MAKE", "TOKENS_VARIABLE", "Tokens"]

TOKENS_VARIABLE = "ULLAGE_TOKENS"
HOW_TO_MAKE = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"
_SHORTEST = 16
_UNNAMED = "token"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SECRET = re.compile(r"[A-Za-z0-9._~+/=-]+")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Who may come in."""

    hashes: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    """Name to the hash of that one's token."""
    warnings: tuple[str, ...] = ()
    """What a person should be told about how they are kept."""

    @classmethod
    def read(
        cls, environment: Mapping[str, str], file: Path | None = None, *, named: Mapping[str, str] | None = None
    ) -> "Tokens":
        """Those of `ULLAGE_TOKENS` and of a file (`NAME:TOKEN`, or `TOKEN` alone, one to a line or a comma), and those
        that the settings name."""
        text, warnings = ("", ()) if file is None else _opened(file)
        hashes: dict[str, bytes] = {}
        for name, secret, where in (
            *_parted(environment.get(TOKENS_VARIABLE, ""), f"the variable {TOKENS_VARIABLE}"),
            *_parted(text, f"`{file}`"),
            *((name, secret, "the settings") for name, secret in (named or {}).items()),
        ):
            _check(name, secret, where)
            if name in hashes:
                raise BadConfiguration(
                    f"{where} has a second token named `{name}`", suggestion="give each a name of its own"
                )
            hashes[name] = sha256(secret.encode()).digest()
        return cls(hashes, warnings)

    def __bool__(self) -> bool:
        return bool(self.hashes)

    def name_of(self, authorization: str | None) -> str | None:
        """The name of whoever sent this `Authorization` header; None for nobody we know.

        Every token is compared whatever the others said, so that the time taken tells nothing.
        """
        scheme, _, presented = (authorization or "").partition(" ")
        hashed = sha256(presented.strip().encode()).digest()
        found = [name for name, known in self.hashes.items() if hmac.compare_digest(hashed, known)]
        return found[0] if found and scheme.lower() == "bearer" else None


def _opened(file: Path) -> tuple[str, tuple[str, ...]]:
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UnreadableFile(f"cannot read tokens from `{file}`: {reason}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return text, (f"others on this machine may read the tokens in `{file}`: chmod 600 {file}",)
    return text, ()


def _parted(text: str, where: str) -> Iterable[tuple[str, str, str]]:
    lines = [line.strip() for line in text.replace(",", "\n").splitlines()]
    for number, line in enumerate(lines, start=1):
        if line and not line.startswith("#"):
            before, colon, after = line.partition(":")
            name, secret = (before.strip(), after.strip()) if colon else (_UNNAMED, before)
            yield name, secret, f"entry {number} of {where}"


def _check(name: str, secret: str, where: str) -> None:
    """Without ever repeating what was written there: either side of the colon may be the secret."""
    if not _NAME.fullmatch(name):
        raise BadConfiguration(
            f"{where} is not NAME:TOKEN", suggestion="a name has letters, digits, dots, dashes and underscores"
        )
    if not _SECRET.fullmatch(secret):
        raise BadConfiguration(f"the token in {where} has characters that a header cannot carry", suggestion=_make())
    if len(secret) < _SHORTEST:
        raise BadConfiguration(f"the token in {where} is shorter than {_SHORTEST} characters", suggestion=_make())


def _make() -> str:
    return f"make one with: {HOW_TO_MAKE}"
