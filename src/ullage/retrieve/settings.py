"""What did the user decide about folders to be searched?"""

from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["EXCLUDED", "Bounds", "RetrieveSettings"]

_SECRETS = (
    *(".env", ".env.*", ".env[-_~]*", "*.env", ".envrc", "!.env.example", "!.env.sample", "!.env.template"),
    *(
        "*.pem",
        "*.key",
        "*.p8",
        "*.keytab",
        "*.p12",
        "*.pfx",
        "*.jks",
        "*.keystore",
        "*.kdbx",
        "*.ppk",
        "*.asc",
        "*.gpg",
    ),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".ssh/", ".gnupg/", ".aws/", ".azure/", ".kube/", ".docker/"),
    *(".netrc", "_netrc", ".pgpass", ".my.cnf", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".vault-token"),
    *("credentials", "credentials.json", "secrets.json", "secrets.toml", "secrets.yaml", "secrets.yml"),
    *(
        "service-account*.json",
        "client_secret*.json",
        "*_rsa",
        "*_ed25519",
        "*.ovpn",
        "*.tfstate",
        "*.tfstate.*",
        "*.tfvars",
    ),
)
_MACHINERY = (".git", ".hg/", ".svn/", "node_modules/", ".venv/", ".tox/", "__pycache__/")
"""What programs write for programs; a worktree's `.git` is a file."""

EXCLUDED = (*_SECRETS, *_MACHINERY)
"""Never looked into, unless the user says `!` of it. In whatever case the name is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much is held in memory at the most. What lies beyond is left out, and said to be."""

    files: int = 20_000
    bytes: int = 100_000_000
    passages: int = 150_000
    entries: int = 500_000
    """Names looked at in all folders together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieveSettings:
    name: str
    folders: tuple[Path, ...] = ()
    """Looked through with all that lies in them, links excepted."""
    files: tuple[Path, ...] = ()
    """Looked through whatever the patterns say."""
    include: tuple[str, ...] = ()
    """Patterns as in `.gitignore`; none for every text."""
    exclude: tuple[str, ...] = ()
    """Patterns as in `.gitignore`, after `EXCLUDED`: `!notes.key` has that file searched all the same."""
    gitignore: bool = True
    """Whether what the folders' own `.gitignore` files name is left out."""
    max_file_bytes: int = 1_000_000
    within: Path | None = None
    """The project that named the folders and files: a link in it that leads out of it is not followed."""
    bounds: Bounds = field(default_factory=Bounds)
