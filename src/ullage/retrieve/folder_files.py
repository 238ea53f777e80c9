"""Walks the folders that the user named and reads their text files.

`Walk` goes through the folders in a stable order and yields the files to be searched, with their stamps. It follows no
links, does not enter excluded or ignored folders, and tolerates files that disappear meanwhile. It reads no files
except the folders' own `.gitignore`.

`Patterns` implements the language of `.gitignore`: `*.md` anywhere, `/docs` at the top, `build/` for folders, `**` for
any number of them, `!` to include again; the last pattern that matches decides. A path is matched part by part, so that
no pattern, whatever its source, takes long.

Files below a folder are opened without leaving it: every part of the path is opened by its name in the folder before,
without following links, so that a file swapped between the check and the reading is not read. Anything but a regular
file (a pipe, a device, a socket) is skipped without waiting.

Text is decoded as UTF-8, with U+FFFD for invalid bytes, or as UTF-16 and UTF-32 where a byte order mark says so. Binary
content has no lines.

`FileRoots` reads files that a caller names by path, inside folders that the user named. A path is resolved first,
including links, and must then be in a root; it is opened from that root part by part without following a link. A file
is refused if an ignore file names it, if its name or content looks like a secret, or if it is too large. An error names
the path as it was given, and never the content.
"""

import base64
import codecs
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from pathlib import Path

from ullage.errors import Denied, InvalidArguments, UnreadableFile
from ullage.table import clean

__all__ = [
    "EXCLUDED",
    "HEAD",
    "Bounds",
    "File",
    "FileRoots",
    "Image",
    "Parts",
    "Patterns",
    "RetrieveSettings",
    "Root",
    "Stamp",
    "Unread",
    "Walk",
    "decode_text",
    "is_binary",
    "lines_of",
    "open_below",
    "read_lines",
    "roots_of",
    "stamp_of",
]

Parts = tuple[str, ...]
"""A path below a folder, as its parts."""

_TRAILING = re.compile(r"(?<!\\) +$")
_ANYWHERE = 2
"""Number of segments of a pattern that is a name alone, after `**`. Most patterns are, and only the path's last part
needs to be matched."""
_LONGEST = 1_000
"""The longest pattern, in characters; longer lines are ignored."""
_TOKEN = re.compile(r"\*+|\[(?P<not>[!^]?)(?P<set>\]?(?>(?:\[:\w*:\]|\\.|[^]\\])*))\]|\\.|.", re.DOTALL)
"""Wildcards, sets such as `[a-z]`, escaped characters and plain ones."""
_MEMBER = re.compile(r"\[:\w*:\]|\\.|.", re.DOTALL)
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
"""The classes that a set may name, such as `[[:digit:]]`, as members of a regular expression's set."""


_NOTHING = re.compile("(?!)")
"""Stands after the last segment, where no part of a path matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pattern:
    segments: tuple[re.Pattern[str] | None, ...]
    """One a part of the path; None matches any number of parts."""
    negated: bool
    folders_only: bool

    def fits(self, parts: Parts, *, is_folder: bool) -> bool:
        if self.folders_only and not is_folder:
            return False
        first, last = self.segments[0], self.segments[-1]
        if first is None and last is not None and len(self.segments) == _ANYWHERE:
            return last.match(parts[-1]) is not None
        reached = self._skip_any_depth({0})
        for part in parts:
            following = set[int]()
            for at in reached:
                segment = self.segments[at] if at < len(self.segments) else _NOTHING
                if segment is None:
                    following.add(at)
                elif segment.match(part):
                    following.add(at + 1)
            reached = self._skip_any_depth(following)
        return len(self.segments) in reached

    def _skip_any_depth(self, reached: set[int]) -> set[int]:
        """Add the segments after one that can match nothing."""
        for at in sorted(reached):
            end = at
            while end < len(self.segments) and self.segments[end] is None:
                end += 1
                reached.add(end)
        return reached


class Patterns:
    """A list of patterns, of which the last that matches decides."""

    def __init__(self, lines: Iterable[str], *, any_case: bool = False) -> None:
        flags = re.IGNORECASE if any_case else re.NOFLAG
        found = [_read(line, flags) for line in lines]
        self._backwards = [pattern for pattern in reversed(found) if pattern is not None]

    def __bool__(self) -> bool:
        return bool(self._backwards)

    def says(self, parts: Parts, *, is_folder: bool) -> bool | None:
        """Return whether the patterns include a path; None where none matches. The folders around the path are not
        considered."""
        for pattern in self._backwards:
            if pattern.fits(parts, is_folder=is_folder):
                return not pattern.negated
        return None

    def covers(self, parts: Parts) -> bool:
        """Return whether the patterns include a file, or a folder around it."""
        said = self.says(parts, is_folder=False)
        if said is not None:
            return said
        return any(self.says(parts[:end], is_folder=True) for end in range(len(parts) - 1, 0, -1))


def _read(line: str, flags: re.RegexFlag) -> _Pattern | None:
    text = _TRAILING.sub("", line.rstrip("\r\n"))
    if not text or text.startswith("#") or len(text) > _LONGEST:
        return None
    negated = text.startswith("!")
    text = text[negated:]
    tokens = [found[0] for found in _TOKEN.finditer(text)]
    if "[" in tokens or tokens[-1:] == ["\\"]:
        # Git lets such a pattern match nothing.
        return None
    segments: list[list[str]] = [[]]
    for token in tokens:
        if token == "/":
            segments.append([])
        else:
            segments[-1].append(token[:2] if token.startswith("*") else token)
    if not any(segments):
        return None
    is_name = "/" not in text.rstrip("/")
    segments = [segment for segment in segments if segment]
    if is_name:
        segments.insert(0, ["**"])
    if segments[-1] == ["**"]:
        segments.append(["*"])
    try:
        compiled = tuple(_compile_segment(segment, flags) for segment in segments)
    except KeyError:
        return None
    return _Pattern(segments=compiled, negated=negated, folders_only=text.endswith("/"))


def _compile_segment(tokens: list[str], flags: re.RegexFlag) -> re.Pattern[str] | None:
    """Return the expression of one part; None for `**`, which any number of parts match.

    What follows a `*` is found at its first place, and not sought again, so that matching takes linear time.

    Raises:
        KeyError: A set names a class that does not exist.
    """
    if tokens == ["**"]:
        return None
    pieces = [""]
    for token in tokens:
        if token.startswith("*"):
            pieces.append("")
        elif token == "?":
            pieces[-1] += "."
        elif token.startswith("["):
            found = _TOKEN.fullmatch(token)
            members = _translate_members(_MEMBER.findall(found["set"] if found else ""))
            if found and found["not"]:
                pieces[-1] += f"[^{members}]" if members else "."
            else:
                pieces[-1] += f"[{members}]" if members else "(?!)"
        else:
            pieces[-1] += re.escape(token.removeprefix("\\") or token)
    first, *others = pieces
    middle = "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece)
    last = f".*{others[-1]}" if others else ""
    return re.compile(rf"(?s:{first}{middle}{last})\Z", flags)


def _translate_members(members: list[str]) -> str:
    """Return the members of a set; a range whose end is before its beginning contains nothing more than that."""
    text, at = "", 0
    while at < len(members):
        member = members[at]
        if len(member) > 2:
            text += _CLASSES[member[2:-2]]
        else:
            low = member[-1]
            text += re.escape(low)
            if members[at + 1 : at + 2] == ["-"] and at + 2 < len(members):
                high = members[at + 2][:2][-1] if len(members[at + 2]) < 3 else "["
                text += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
                at += 2
        at += 1
    return text


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
    *(
        ".flaskenv",
        ".dev.vars",
        ".dev.vars.*",
        ".secrets",
        ".secrets.*",
        "*.secret",
        "*.agekey",
        "*.jwk",
        ".password-store/",
    ),
    *("kubeconfig", "*.kubeconfig", ".dockercfg", ".boto", ".s3cfg", ".databrickscfg", ".terraformrc", "terraform.rc"),
    *("application_default_credentials.json", "credentials.toml", "credentials.xml", "credentials.db", "rclone.conf"),
    *("auth.json", ".oci/", ".config/gcloud/", ".netlify/", ".fly/", ".dockerconfigjson", ".claude.json"),
    *("*credentials.json", "*credentials*.csv", "*credentials.y*ml", "*_credentials", "credentials.*.enc"),
    *("credentials.txt", "credentials.ini", "*adminsdk*.json", "*service*account*.json", "gcp-key*.json", "token.json"),
    *("secret.txt", "secret.json", "secret.toml", "secret.y*ml", "secrets.txt", "secrets.ini", "secrets.properties"),
    *("secrets.xml", "*.secrets.json", "local.settings.json", "*.tfvars.json", "settings-security.xml"),
    *("password.txt", "passwords.*", "*vault_pass*", "pgpass.conf", ".authinfo", ".*_history", "wallet.dat"),
    *("private_key*", "private-key*", "api_key*.txt", "apikey*.txt", "api-key*.txt", ".*_api_key", ".*_token"),
    *("ssh_host_*_key", "*_ecdsa", "*_dsa", "*.jceks", "kubeconfig.y*ml"),
    *(
        f"*.{kind}.{copy}"
        for kind in ("pem", "key", "p12", "json.enc")
        for copy in ("bak", "old", "orig", "txt", "save")
    ),
    *(f"{name}.{copy}" for name in ("credentials*", "secrets*") for copy in ("bak", "old", "orig")),
)
_MACHINERY = (".git", ".hg/", ".svn/", "node_modules/", ".venv/", ".tox/", "__pycache__/")
"""Files that programs write for programs; a worktree's `.git` is a file."""

EXCLUDED = (*_SECRETS, *_MACHINERY)
"""Patterns that are never searched, in upper or lower case, unless the user includes one again with `!`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits on the files in memory. Whatever exceeds them is left out, and reported."""

    files: int = 20_000
    bytes: int = 100_000_000
    passages: int = 150_000
    entries: int = 500_000
    """Directory entries visited in all folders together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieveSettings:
    name: str
    folders: tuple[Path, ...] = ()
    """Folders to search, with everything in them except links."""
    files: tuple[Path, ...] = ()
    """Files to search regardless of the patterns."""
    include: tuple[str, ...] = ()
    """Patterns as in `.gitignore`; none for every text file."""
    exclude: tuple[str, ...] = ()
    """Patterns as in `.gitignore`, applied after `EXCLUDED`: `!notes.key` includes that file again."""
    gitignore: bool = True
    """Whether to leave out what the folders' own `.gitignore` files name."""
    max_file_bytes: int = 1_000_000
    within: Path | None = None
    """The project whose settings name the folders and files: a link in it that leads out of it is not followed."""
    bounds: Bounds = field(default_factory=Bounds)


HEAD = 8_192
"""Bytes at the beginning of a file by which text is recognised."""
_WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks, the longer first, because one begins like another."""
_UNREADABLE = "\ufffd"
_TOLERATED = 0.3
"""Share of a head's characters that may be invalid UTF-8 before the file counts as binary."""


def is_binary(head: bytes) -> bool:
    """Return whether a file is binary, by its first `HEAD` bytes."""
    if _wide(head) is not None:
        return False
    text = head.decode("utf-8", "replace")
    return b"\0" in head or text.count(_UNREADABLE) > _TOLERATED * len(text)


def decode_text(content: bytes) -> str | None:
    """Return the whole text, with its line breaks and byte order mark unchanged, so that a patch of it applies; None
    where some bytes are invalid."""
    try:
        return content.decode(_wide(content) or "utf-8")
    except UnicodeDecodeError:
        return None


def lines_of(content: bytes) -> list[str]:
    """Return the lines of a text as editors count them, without line breaks; never raises."""
    text = content.decode(_wide(content) or "utf-8-sig", "replace")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def _wide(content: bytes) -> str | None:
    return next((name for mark, name in _WIDE if content.startswith(mark)), None)


_DESCENDS = os.open in os.supports_dir_fd
"""Whether a file can be opened by its name in an open folder; not possible on Windows."""
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_PLAIN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identifies a version of a file: equal stamps mean an unchanged file, as far as can be known without reading
    it."""

    modified: int
    """Nanoseconds, as is `touched`."""
    touched: int
    size: int
    inode: int


class Unread(Enum):
    """The reason why a file has no lines to be searched."""

    UNREADABLE = "unreadable"
    """The file is unreadable, gone, not a regular file, or behind a link."""
    BINARY = "binary"
    LARGE = "large"


def stamp_of(status: os.stat_result) -> Stamp:
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)


def read_lines(folder: Path, parts: Parts, most: int) -> list[str] | Unread:
    """Return the lines of a file below a folder that has at most `most` bytes; never raises."""
    try:
        descriptor = open_below(folder, parts)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return Unread.UNREADABLE
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                head = file.read(HEAD)
                if is_binary(head):
                    return Unread.BINARY
                content = head + file.read(max(0, most + 1 - len(head)))
        finally:
            os.close(descriptor)
    except (OSError, ValueError):
        return Unread.UNREADABLE
    return Unread.LARGE if len(content) > most else lines_of(content)


def open_below(folder: Path, parts: Parts) -> int:
    """Open a file below a folder without following a link, and return its descriptor; raises `OSError`."""
    if not _DESCENDS:
        return opened_plainly(folder, parts)
    at = os.open(folder, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER | _NO_LINK, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(parts[-1], _PLAIN | _NO_LINK, dir_fd=at)
    finally:
        os.close(at)


def opened_plainly(folder: Path, parts: Parts) -> int:
    """Open a file where folders cannot be opened; refuses a path that resolves to another."""
    path = Path(os.path.realpath(folder)).joinpath(*parts)
    if os.path.realpath(path) != str(path):
        raise PermissionError(path)
    return os.open(path, _PLAIN)


_GITIGNORE = ".gitignore"
_LARGEST_GITIGNORE = 100_000
"""The largest `.gitignore` that is read, in bytes; a larger one is ignored."""

_Ignoring = tuple[tuple[int, Patterns], ...]
"""Patterns of the folders around, each with its depth, the innermost first."""


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that the user named, or the folder of a named file."""

    folder: Path
    label: str
    """Prefix of its paths; empty where it is the only root."""
    only: str | None = None
    """The file, where a file was named."""


@dataclass(frozen=True, slots=True)
class File:
    path: str
    """The path as it is cited."""
    root: Root
    parts: Parts
    stamp: Stamp


def roots_of(settings: RetrieveSettings) -> tuple[Root, ...]:
    """Return the roots for the settings. A named path may be a link, and is cited by its target; a link in a project
    that leads out of it is left out."""
    folders = [Path(os.path.realpath(path)) for path in settings.folders if not _leads_out(path, settings.within)]
    files = [Path(os.path.realpath(path)) for path in settings.files if not _leads_out(path, settings.within)]
    # The folders' names, with a number where two are the same; none where there is only one folder.
    labels: dict[Path, str] = {}
    for folder in dict.fromkeys([*folders, *(path.parent for path in files)]):
        name = folder.name or settings.name
        same = sum((other.name or settings.name) == name for other in labels)
        labels[folder] = f"{name}-{same + 1}" if same else name
    if len(labels) == 1:
        labels = dict.fromkeys(labels, "")
    named = [Root(folder, labels[folder]) for folder in dict.fromkeys(folders)]
    return *named, *(Root(path.parent, labels[path.parent], path.name) for path in dict.fromkeys(files))


def _leads_out(path: Path, project: Path | None) -> bool:
    """Return whether a path in the project leads out of it."""
    if project is None or not Path(os.path.abspath(path)).is_relative_to(project):  # noqa: PTH100 - keeps links
        return False
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(project))


@dataclass(slots=True)
class Walk:
    """One walk through all the folders."""

    settings: RetrieveSettings
    roots: tuple[Root, ...]
    looked_at: int = 0
    """Directory entries visited, in all folders together."""
    missing: list[str] = field(default_factory=list[str])
    """Named folders and files that cannot be read."""
    _excluded: Patterns = field(init=False)
    _included: Patterns = field(init=False)

    def __post_init__(self) -> None:
        self._excluded = Patterns((*EXCLUDED, *self.settings.exclude), any_case=True)
        self._included = Patterns(self.settings.include, any_case=True)

    @property
    def was_cut(self) -> bool:
        return self.looked_at >= self.settings.bounds.entries

    def files(self) -> Iterator[File | None]:
        """Yield each file once, and None now and then, to allow a pause."""
        for root in self.roots:
            if root.only is None:
                yield from self._walk_root(root)
                continue
            name, found = root.only, None
            try:
                found = File(_path(root, (name,)), root, (name,), stamp_of(os.lstat(root.folder / name)))
            except OSError:
                self.missing.append(name)
            yield found

    def _walk_root(self, root: Root) -> Iterator[File | None]:
        waiting: list[tuple[Parts, _Ignoring]] = [((), ())]
        while waiting:
            parts, around = waiting.pop()
            room = max(0, self.settings.bounds.entries - self.looked_at)
            try:
                with os.scandir(root.folder.joinpath(*parts)) as scan:
                    entries = list(islice(scan, room))
            except OSError:
                if not parts:
                    self.missing.append(root.label or root.folder.name)
                entries = list[os.DirEntry[str]]()
            self.looked_at += len(entries)
            # A name can be cited if it is valid text without hidden characters.
            entries = [one for one in entries if clean(one.name).text == one.name and not {"\n", "\t"} & set(one.name)]
            entries.sort(key=lambda entry: entry.name)
            ignoring = around
            if self.settings.gitignore and any(entry.name == _GITIGNORE for entry in entries):
                lines = read_lines(root.folder, (*parts, _GITIGNORE), _LARGEST_GITIGNORE)
                if not isinstance(lines, Unread):
                    ignoring = ((len(parts), Patterns(lines)), *around)
            yield None
            inner: list[tuple[Parts, _Ignoring]] = []
            for entry in entries:
                found = self._classify_entry(root, (*parts, entry.name), entry, ignoring)
                if isinstance(found, File):
                    yield found
                elif found:
                    inner.append(((*parts, entry.name), ignoring))
            waiting += reversed(inner)

    def _classify_entry(self, root: Root, parts: Parts, entry: os.DirEntry[str], ignoring: _Ignoring) -> File | bool:
        """Return the file if it is to be searched, else whether the entry is a folder to be entered."""
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not entry.is_file(follow_symlinks=False):
                return False
            if self._excluded.says(parts, is_folder=is_folder):
                return False
            said = (patterns.says(parts[depth:], is_folder=is_folder) for depth, patterns in ignoring)
            if next((one for one in said if one is not None), False):
                return False
            if is_folder:
                return True
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return False
        wanted = status.st_size and (not self._included or self._included.covers(parts))
        return File(_path(root, parts), root, parts, stamp_of(status)) if wanted else False


def _path(root: Root, parts: Parts) -> str:
    return "/".join((root.label, *parts) if root.label else parts)


_IGNORE_FILES = (".gitignore", ".ignore", ".aiignore", ".aiexclude", ".cursorignore", ".geminiignore")
_LARGEST_IGNORE_FILE = 100_000
"""The largest ignore file that is read, in bytes; with a larger one, no file around it is read either."""
_MOST_FILES = 50
_IMAGES: dict[str, re.Pattern[bytes]] = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
_DATA_URI = re.compile(r"data:(image/[a-z]+);base64,([A-Za-z0-9+/=\s]+)", re.IGNORECASE)
_KEYS_IN_TEXT = re.compile(
    rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
    rb"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    rb"|\bsk-(?:ant-|proj-|svcacct-)?[A-Za-z0-9_-]{32,}"
    rb"|\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{50,}|\bglpat-[A-Za-z0-9_-]{20,}"
    rb"|\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"
    rb"|\bgsk_[A-Za-z0-9]{40,}|\bxai-[A-Za-z0-9]{60,}|\bpplx-[A-Za-z0-9]{40,}|\br8_[A-Za-z0-9]{36,}"
    rb"|\bdop_v1_[a-f0-9]{64}|\bpypi-AgE[A-Za-z0-9_-]{50,}|\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|\bdckr_pat_[A-Za-z0-9_-]{20,}"
    rb"|\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|\bATATT3[A-Za-z0-9_=-]{100,}|\blin_api_[A-Za-z0-9]{40}"
    rb"|\bya29\.[A-Za-z0-9_-]{40,}|\bGOCSPX-[A-Za-z0-9_-]{28}|\bAGE-SECRET-KEY-1[0-9A-Z]{50,}"
    rb"|https://hooks\.slack\.com/services/T\w+/B\w+/\w{20,}|https://discord(?:app)?\.com/api/webhooks/\d+/[\w-]{60,}"
    rb"|aws_secret_access_key[\"']?\s*[=:]\s*[\"']?[A-Za-z0-9/+]{40}|\bAccountKey=[A-Za-z0-9/+]{80,}"
    rb"|PuTTY-User-Key-File-\d|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY"
    rb"|\bxox[abeprs]-[A-Za-z0-9-]{20,}|\bAIza[0-9A-Za-z_-]{35}\b|\bhf_[A-Za-z0-9]{30,}|\bnpm_[A-Za-z0-9]{36}\b"
)
"""Private keys, and keys of services that have a recognisable form."""
_EXCLUDED = Patterns(EXCLUDED, any_case=True)


@dataclass(frozen=True, slots=True)
class Image:
    media_type: str
    data: str
    """Base64."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRoots:
    """Reads files in the folders that the user named. Links in the folders' paths are resolved at each reading."""

    folders: tuple[Path, ...]
    max_bytes: int = 1_000_000
    """Bytes of the largest text."""
    max_image_bytes: int = 5_000_000
    secrets: tuple[str, ...] = ()
    """Values that no file may contain, such as the providers' own keys."""

    def texts(self, paths: tuple[str, ...]) -> dict[str, str]:
        """Return the contents of files by path from the root; by the full path where another root has the same.

        Args:
            paths: Absolute, or relative to a root; where two roots have the file, the first is used.

        Raises:
            Denied: A file is outside the roots, is ignored, or its name or content looks like a secret.
            UnreadableFile: A file does not exist, is not text, or is larger than `max_bytes`.
            InvalidArguments: There are more files than can be read at once.
        """
        _check_number(paths, "files")
        found, places = dict[str, str](), dict[str, Path]()
        for path in paths:
            place, name, content = self._read(path, self.max_bytes)
            text = decode_text(content)
            if text is None or "\0" in text:
                raise UnreadableFile(
                    f"`{path[:200]}` is no text in UTF-8",
                    suggestion="save it as UTF-8, or give the part that matters in the prompt; for images use `images`",
                )
            if text.encode("utf-8", "replace") != content:
                self._check_secrets(path, text.encode("utf-8", "replace"))
            if places.setdefault(name, place) != place:
                name = place.as_posix()
            found[name] = text
        return found

    def images(self, names: tuple[str, ...]) -> tuple[Image, ...]:
        """Return images, each named by a path or a `data:` URI. A file whose first bytes are not an image's is
        refused."""
        _check_number(names, "images")
        images = list[Image]()
        for name in names:
            given = _DATA_URI.fullmatch(name)
            if given is None:
                shown, (_, _, content) = name, self._read(name, self.max_image_bytes)
            else:
                shown = "the image"
                try:
                    content = base64.b64decode(given[2])
                except ValueError as error:
                    raise InvalidArguments("an image is not base64", suggestion="give a path instead") from error
            kind = next((kind for kind, begins in _IMAGES.items() if begins.match(content)), None)
            if kind is None or len(content) > self.max_image_bytes:
                why = "is no image" if kind is None else f"has more than {self.max_image_bytes:,} bytes"
                raise UnreadableFile(f"`{shown[:200]}` {why}", suggestion=f"give one of {', '.join(_IMAGES)}")
            images.append(Image(kind, base64.b64encode(content).decode("ascii")))
        return tuple(images)

    def _read(self, path: str, most: int) -> tuple[Path, str, bytes]:
        """Return a file's location, its path from its root, and its content."""
        try:
            root, parts = self._place(path)
        except OSError as error:
            raise UnreadableFile(
                f"`{path[:200]}` cannot be read: {error.strerror}", suggestion="check the path"
            ) from error
        asked = Path(path).parts
        for names in (parts, tuple(part for part in asked if part not in ("/", "..", "."))):
            # A later pattern may include a file again, but not what is in an excluded folder.
            folders = (_EXCLUDED.says(names[:depth], is_folder=True) for depth in range(1, len(names)))
            if names and (any(folders) or _EXCLUDED.says(names, is_folder=False)):
                raise Denied(
                    f"`{path[:200]}` is called as secrets and machinery are, and is not read",
                    suggestion="give the part that matters in the prompt, if it may be sent",
                )
        _check_ignored(path, root, parts)
        try:
            descriptor = open_below(root, parts)
        except (OSError, ValueError) as error:
            raise UnreadableFile(
                f"`{path[:200]}` cannot be read", suggestion="check the path, which begins at one of the roots"
            ) from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnreadableFile(
                    f"`{path[:200]}` is not a regular file", suggestion="name the files in it one by one"
                )
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(most + 1)
        finally:
            os.close(descriptor)
        if len(content) > most:
            raise UnreadableFile(
                f"`{path[:200]}` has more than {most:,} bytes", suggestion="give the part that matters in the prompt"
            )
        self._check_secrets(path, content)
        return root.joinpath(*parts), "/".join(parts), content

    def _check_secrets(self, path: str, content: bytes) -> None:
        if _KEYS_IN_TEXT.search(content) or any(
            secret.encode() in content for secret in self.secrets if len(secret) > 5
        ):
            raise Denied(
                f"`{path[:200]}` contains what looks like a key",
                suggestion="move the key out of the file, or give the part that matters in the prompt",
            )

    def _place(self, path: str) -> tuple[Path, Parts]:
        """Return the root that contains a file once every link is followed, and its path from there."""
        roots = [Path(os.path.realpath(folder.expanduser())) for folder in self.folders]
        if "\0" in path or not path.strip():
            raise InvalidArguments("a path is empty or no text", suggestion="give paths inside the roots")
        asked = Path(path).expanduser() if path.startswith("~/") else Path(path)
        places = [Path(os.path.realpath(root / asked)) for root in roots]
        inside = [
            (root, place.relative_to(root).parts)
            for place in dict.fromkeys(places)
            for root in roots
            if place != root and place.is_relative_to(root)
        ]
        if not inside:
            raise Denied(
                f"`{path[:200]}` lies outside the folders that files may be read from",
                suggestion="give a path inside one of them; `ullage config --why` shows `delegate.file_roots`",
            )
        return next(((root, parts) for root, parts in inside if root.joinpath(*parts).is_file()), inside[0])


def _check_number(names: tuple[str, ...], argument: str) -> None:
    if len(names) > _MOST_FILES:
        raise InvalidArguments(f"`{argument}` has more than {_MOST_FILES}", suggestion="ask in several calls")


def _check_ignored(path: str, root: Path, parts: Parts) -> None:
    """Raise if the file is ignored by an ignore file in its own folder or any above, up to its repository's or the
    root's.

    Ignore files of each name are applied as Git applies its own: among those around a path the innermost that names it
    decides, and everything in an ignored folder is ignored, whatever deeper files say. A path that one kind of ignore
    file includes again may still be ignored by another. An ignore file that cannot be read (a link, or too large) may
    name anything, so nothing around it is read.
    """
    around = list(_folders_around(root, parts))
    for name in _IGNORE_FILES:
        rules = list[tuple[Patterns, Parts]]()
        for folder, below in around:
            lines = read_lines(folder, (name,), _LARGEST_IGNORE_FILE)
            if not isinstance(lines, Unread):
                rules.append((Patterns(lines), below))
            elif os.path.lexists(folder / name) and ((folder / name).is_symlink() or not (folder / name).is_dir()):
                raise Denied(
                    f"`{path[:200]}` is not read, because a {name} around it cannot be read",
                    suggestion=f"make the {name} a plain text file of less than {_LARGEST_IGNORE_FILE:,} bytes",
                )
        if _is_ignored(rules):
            raise Denied(
                f"`{path[:200]}` is named in a {name}, and is not read",
                suggestion="give the part that matters in the prompt, if it may be sent",
            )


def _is_ignored(rules: Sequence[tuple[Patterns, Parts]]) -> bool:
    """Return whether a file, or a folder around it, is ignored; `rules` are the innermost first, each with the path
    from its folder to the file."""
    depth = max((len(below) for _, below in rules), default=0)
    for left in range(depth - 1, -1, -1):
        said = (
            patterns.says(below[: len(below) - left], is_folder=left > 0)
            for patterns, below in rules
            if len(below) > left
        )
        if next((one for one in said if one is not None), False):
            return True
    return False


def _folders_around(root: Path, parts: Parts) -> Iterator[tuple[Path, Parts]]:
    """Yield the folders around a file, the innermost first, each with the file's path from there."""
    for depth in range(len(parts) - 1, -1, -1):
        yield root.joinpath(*parts[:depth]), parts[depth:]
    above = parts
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            return
        if not any((one / ".git").exists() for one in folder.parents):
            return
        above = (folder.name, *above)
        yield folder.parent, above
