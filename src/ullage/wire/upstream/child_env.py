"""Environment of the servers that Ullage starts.

A server gets the variables that a program needs to run at all (`GIVEN`), those its entry requests with `inherit_env`,
and those its entry sets with `env`. Relative folders in an inherited `PATH` or `PYTHONPATH` are left out: the working
folder may be a stranger's repository. All others are withheld, because the environment of a shell or a desktop contains
keys that belong to other programs. Values are never shown; names are, so that a user can see what is missing.

Standard error and stray output reach people and models, and servers often print their configuration. Secrets are
recognised by their names in the settings and in the environment that a server inherits; a value without such a name is
not masked.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from ullage.gateway import Server
from ullage.processes import LISTS_OF_FOLDERS, absolute_folders

__all__ = [
    "DEEPEST",
    "GIVEN",
    "SECRET_NAME",
    "ChildEnvironment",
    "WithheldVariables",
    "depth",
    "lines_to_add",
    "redacted",
    "secrets_of",
]

_MARK = "[secret]"
_SHORTEST = 6
_SHORTEST_INHERITED = 8
"""Minimum length of an inherited secret; longer, since the user did not choose these for the server, and a short one
may be an everyday word.
"""
_NAMED = re.compile(r"key|token|secret|pass|auth|cred|cookie|session|dsn|url|uri", re.IGNORECASE)
SECRET_NAME = re.compile(r"key|token|secret|(?<!ask)pass|pwd$|auth(?!or(?!iz))|cred|cookie|dsn", re.IGNORECASE)
"""Narrower, since a desktop environment sets many sessions and addresses."""
_OPTION = re.compile(r"-{1,2}(?P<name>[\w-]*)(?:=(?P<value>.*))?", re.DOTALL)
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_][\w-]*)\s*[=:]\s*(?P<value>.+)", re.DOTALL)
_TOKEN_LIKE = re.compile(r"[\w-]*?(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{12,}[\w-]*")
"""Letters and digits in one long run, which few plain arguments have."""


def secrets_of(server: Server, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the server's secrets, longest first; `environment` is what the server inherits."""
    inherited = {
        name: value for name, value in environment.items() if name not in server.environment and name not in _NOT_SECRET
    }
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
            # Also line by line, since a key in a file's format is printed and shown so.
            yield from (value, *value.splitlines())
        yield from _of_url(value)


def _words(value: str) -> Iterator[str]:
    """Yield a secret value; for one such as `Bearer X` also what follows the scheme, and for a cookie its values."""
    words = re.split(r"[\s;,]+", value)
    yield from (value, *words[1:])
    yield from (one.partition("=")[2] for one in words)


def _of_url(value: str) -> Iterator[str]:
    """Yield the parts of a URL that only its host should see: its password and the values of its query."""
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
    # An `API_KEY=x` of a container, or `Authorization: Bearer x` of a bridge.
    match = _ASSIGNED.fullmatch(argument)
    if match is not None and SECRET_NAME.search(match["name"]):
        yield from _words(match["value"])


DEEPEST = 4
"""Maximum number of gateways that start one another."""
_DEPTH = "ULLAGE_DEPTH"
_OWN = frozenset({"ULLAGE_TOKENS", "ULLAGE_STORE"})

GIVEN: Mapping[str, tuple[str, ...]] = {
    "the user and the terminal": (
        "HOME", "LOGNAME", "USER", "SHELL", "TERM", "COLORTERM", "NO_COLOR", "PATH", "TMPDIR", "TEMP", "TMP",
    ),
    "language and time": ("LANG", "LANGUAGE", "LC_*", "LOCALE_ARCHIVE", "TZ", "TZDIR"),
    "Windows": (
        "ALLUSERSPROFILE", "APPDATA", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432", "COMSPEC",
        "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS", "PATHEXT", "PROCESSOR_ARCHITECTURE",
        "PROCESSOR_ARCHITEW6432", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "PSMODULEPATH",
        "PUBLIC", "SYSTEMDRIVE", "SYSTEMROOT", "USERDOMAIN", "USERNAME", "USERPROFILE", "WINDIR", "WSL_DISTRO_NAME",
        "WSL_INTEROP",
    ),
    "folders of the desktop": (
        "XDG_BIN_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_*_DIR",
    ),
    "the screen": (
        "DISPLAY", "WAYLAND_DISPLAY", "XDG_CURRENT_DESKTOP", "XDG_SESSION_TYPE",
    ),
    "proxies": (
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy",
        "ftp_proxy", "no_proxy", "NODE_USE_ENV_PROXY",
    ),
    "certificates": (
        "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "AWS_CA_BUNDLE", "PIP_CERT", "DENO_CERT",
        "DENO_TLS_CA_STORE", "CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE", "UV_NATIVE_TLS", "UV_SYSTEM_CERTS",
        "NPM_CONFIG_CAFILE", "npm_config_cafile",
    ),
    "places of programs and libraries": (
        "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "NIX_LD", "NIX_LD_LIBRARY_PATH",
        "NIX_PROFILES", "HOMEBREW_PREFIX", "HOMEBREW_CELLAR", "HOMEBREW_REPOSITORY", "PYTHONHOME", "PYTHONPATH",
        "PYTHONUTF8", "PYENV_ROOT", "PYENV_VERSION", "VIRTUAL_ENV", "CONDA_EXE", "CONDA_PREFIX", "MAMBA_ROOT_PREFIX",
        "PIPX_HOME", "PIPX_BIN_DIR", "PIP_CACHE_DIR", "UV_CACHE_DIR", "UV_OFFLINE", "UV_PYTHON",
        "UV_PYTHON_INSTALL_DIR", "UV_TOOL_BIN_DIR", "UV_TOOL_DIR", "NODE_PATH", "NVM_BIN", "NVM_DIR", "VOLTA_HOME",
        "FNM_DIR", "FNM_MULTISHELL_PATH", "N_PREFIX", "NODENV_ROOT", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR",
        "DENO_INSTALL_ROOT", "NPM_CONFIG_CACHE", "NPM_CONFIG_OFFLINE", "NPM_CONFIG_PREFIX", "npm_config_cache",
        "npm_config_offline", "npm_config_prefix", "COREPACK_HOME", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_CACHE_DIR",
        "MISE_CONFIG_DIR", "MISE_DATA_DIR", "RBENV_ROOT", "GEM_HOME", "GEM_PATH", "GOPATH", "GOROOT", "CARGO_HOME",
        "RUSTUP_HOME", "JAVA_HOME", "SDKMAN_DIR", "DOTNET_ROOT", "PLAYWRIGHT_BROWSERS_PATH",
        "PUPPETEER_EXECUTABLE_PATH", "CHROME_PATH", "DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST",
    ),
    "package indexes, where the address has no password": (
        "NPM_CONFIG_REGISTRY", "npm_config_registry", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL",
    ),
}  # fmt: skip
"""Variables that every server gets, by purpose: names, or patterns such as `LC_*`.

These state where something is, not an identity. Variables that authenticate are excluded: keys and tokens,
`SSH_AUTH_SOCK`, files and profiles of accounts (`AWS_PROFILE`, `KUBECONFIG`, `DOCKER_CONFIG`). A proxy's password is
the exception, since without it a server has no network.
"""
_INDEXES = frozenset(GIVEN["package indexes, where the address has no password"])
_NAMES = frozenset(name for names in GIVEN.values() for name in names if "*" not in name)
_PATTERNS = tuple(name for names in GIVEN.values() for name in names if "*" in name)

_PASSWORD_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s@]*:[^/\s@]+@", re.IGNORECASE)
_USER_IN_URL = re.compile(r"://[^/\s]*@")
_NOT_SECRET = frozenset({"PWD", "OLDPWD"})
"""Variables with a folder that every shell sets; their names only look like those of passwords."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LAUNCHERS = re.compile(
    r"(?:npx|npm|pnpm|bunx?|deno|node|uvx?|pipx|python[\d.]*|docker|podman|sh|bash)(?:\.exe|\.cmd)?"
)
_COMMON_WORDS = frozenset({
    "access", "account", "api", "app", "auth", "base", "bearer", "bin", "cert", "client", "code", "config", "cookie",
    "credential", "credentials", "default", "dir", "env", "file", "global", "home", "host", "http", "https", "id",
    "key", "keys", "lib", "local", "login", "mcp", "name", "node", "npm", "npx", "org", "pass", "passwd", "password",
    "pat", "path", "personal", "port", "private", "profile", "public", "python", "region", "root", "secret", "server",
    "service", "session", "sock", "token", "tokens", "url", "uri", "user", "username", "uvx", "version", "web",
})  # fmt: skip
"""Parts of variable and server names that do not identify an owner."""
_SHORT_FORMS = {"gh": "github", "gl": "gitlab", "hf": "huggingface", "pg": "postgres", "gcp": "google"}
_SHOWN = 4
"""Maximum names in one sentence."""


def depth(environment: Mapping[str, str]) -> int:
    """Return how many gateways started one another to reach this environment."""
    text = environment.get(_DEPTH, "").strip()
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WithheldVariables:
    """Names of variables that are set here and that one server does not get."""

    fitting: tuple[str, ...] = ()
    """Variables with a part of their name in the server's name or command, secret-looking ones first."""
    secret: tuple[str, ...] = ()
    """Other secret-looking variables."""

    def __bool__(self) -> bool:
        return bool(self.fitting or self.secret)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.fitting, *self.secret)

    def sentence(self, server: Server) -> str:
        """Return one line for the user: which variables the server does not get, and what to write if it needs them."""
        shown = (self.fitting or self.secret)[:_SHOWN]
        rest = len(self.names) - len(shown)
        listed = ", ".join(f"`{name}`" for name in shown) + (f" and {rest} more" if rest else "")
        wanted = shown if self.fitting else shown[:1]
        return f"does not get {listed}; if it needs one, {lines_to_add(server, wanted)}"


@dataclass(frozen=True, slots=True)
class ChildEnvironment:
    """Selects which variables of this process a server gets.

    Args:
        variables: The environment of this process.
        own: Names that no server gets, whatever its entry requests; Ullage's tokens and store are always included.
    """

    variables: Mapping[str, str] = field(repr=False)
    own: Set[str] = frozenset()

    def of(self, server: Server) -> dict[str, str]:
        """Return the variables that the server inherits, without those that its entry sets with `env`."""
        given = {
            name: absolute_folders(value) if name in LISTS_OF_FOLDERS else value
            for name, value in self.variables.items()
            if self._is_given(name, value, server)
        }
        return {**given, _DEPTH: str(depth(self.variables) + 1)}

    def _is_given(self, name: str, value: str, server: Server) -> bool:
        if name in _OWN or name in self.own:
            return False
        if any(
            fnmatchcase(name, pattern.upper() if sys.platform == "win32" else pattern) for pattern in server.inherit_env
        ):
            return True
        if name not in _NAMES and not any(fnmatchcase(name, pattern) for pattern in _PATTERNS):
            return False
        # A shell function is code, and is excluded as in the SDKs; a URL with a user name is a credential.
        return not value.startswith("()") and not (name in _INDEXES and _USER_IN_URL.search(value))

    def withheld(self, server: Server) -> WithheldVariables:
        """Return the variables that the server may miss: those that fit its name, and those that look like secrets."""
        if server.command is None:
            return WithheldVariables()
        words = _words_of(server)
        secret, fitting, fitting_secret = list[str](), list[str](), list[str]()
        for name in sorted(self._not_given(server)):
            is_secret = name not in _NOT_SECRET and bool(
                SECRET_NAME.search(name) or _PASSWORD_IN_URL.search(self.variables[name])
            )
            if _is_likely_meant(name, words, is_secret=is_secret):
                (fitting_secret if is_secret else fitting).append(name)
            elif is_secret:
                secret.append(name)
        return WithheldVariables(fitting=(*fitting_secret, *fitting), secret=tuple(secret))

    def hint(self, server: Server, text: str) -> str:
        """Return what to add to the server's entry if its output names a withheld variable; else an empty text."""
        if server.command is None:
            return ""
        mentioned = dict.fromkeys(_WORD.findall(text))
        missing = self._not_given(server)
        # `DEBUG` and the like are everyday words in a log.
        named = [name for name in mentioned if name in missing and ("_" in name.strip("_") or SECRET_NAME.search(name))]
        if not named:
            return ""
        listed = ", ".join(f"`{name}`" for name in named[:_SHOWN])
        return f"it names {listed}, which is set but not given to it: {lines_to_add(server, tuple(named[:_SHOWN]))}"

    def _not_given(self, server: Server) -> set[str]:
        given = {*self.of(server), *server.environment, *self.own, *_OWN}
        return {name for name in self.variables if name not in given}


def lines_to_add(server: Server, names: tuple[str, ...]) -> str:
    """Return what to add to which file so that the server gets these variables."""
    file, _, table = (server.came_from or "").rpartition(" [")
    quoted = ", ".join(f'"{name}"' for name in names)
    if server.origin == "user":
        kept = "".join(f'"{pattern}", ' for pattern in server.inherit_env)
        line = f"inherit_env = [{kept}{quoted}]"
    elif server.origin == "project":
        line = "env = { " + ", ".join(f'{name} = "${{{name}}}"' for name in names) + " }"
    elif file.endswith(".toml"):
        line = f"env_vars = [{quoted}]"
    else:
        line = '"env": { ' + ", ".join(f'"{name}": "${{{name}}}"' for name in names) + " }"
    return f"add `{line}` to " + (f"`[{table}` in {file}" if file else f"the entry of `{server.name}`")


def _words_of(server: Server) -> frozenset[str]:
    """Return the words in the server's name, command and arguments that may be part of a variable's name.

    Of a path only the last part counts, since the folders above it are a location. An argument that is no plain word,
    such as a script or JSON, is skipped.
    """
    command = re.split(r"[/\\]", server.command or "")[-1].lower()
    texts = [server.name, "" if _LAUNCHERS.fullmatch(command) else command]
    for argument in server.arguments:
        if len(argument) <= 200 and re.fullmatch(r"[\w@/\\:.=~+-]+", argument):
            is_path = argument[0] in "/.~\\" or argument[1:3] == ":\\"
            texts.append(re.split(r"[/\\]", argument)[-1] if is_path else argument)
    words = (word for text in texts for word in re.findall(r"[a-z][a-z0-9]+", text.lower()))
    return frozenset(words) - _COMMON_WORDS


def _is_likely_meant(name: str, words: frozenset[str], *, is_secret: bool) -> bool:
    """Return whether the variable seems to be the server's: a secret by any part of its name, others by the first."""
    parts = [_SHORT_FORMS.get(part, part) for part in name.lower().split("_")]
    if not is_secret:
        return len(parts) > 1 and parts[0] in words
    wanted = [part for part in parts if len(part) >= 3 and part not in _COMMON_WORDS]
    return any(part in words or (len(part) > 3 and any(part in word for word in words)) for part in wanted)
