import base64
import os
from pathlib import Path

import pytest

from ullage.errors import Denied, InvalidArguments, UnreadableFile
from ullage.retrieve import FileRoots

pytestmark = pytest.mark.requirement("S4:more")

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("one\r\ntwo\n", newline="", encoding="utf-8")
    (tmp_path / "outside.txt").write_text("not for you", encoding="utf-8")
    return folder


def roots(*folders: Path, max_bytes: int = 1_000_000) -> FileRoots:
    return FileRoots(folders=folders, max_bytes=max_bytes)


@pytest.mark.requirement("S4:schema")
def test_a_file_is_read_by_its_path_from_a_root_or_from_the_file_system(root: Path):
    assert roots(root).texts(("src/a.py",)) == {"src/a.py": "one\r\ntwo\n"}
    assert roots(root).texts((str(root / "src" / "a.py"),)) == {"src/a.py": "one\r\ntwo\n"}
    assert roots(root).texts(("src/../src/a.py",)) == {"src/a.py": "one\r\ntwo\n"}
    assert roots(root.parent / "none", root).texts(("src/a.py",)) == {"src/a.py": "one\r\ntwo\n"}


@pytest.mark.requirement("S4:schema")
def test_files_of_two_roots_with_the_same_path_are_both_read(root: Path):
    other = root.parent / "other"
    (other / "src").mkdir(parents=True)
    (other / "src" / "a.py").write_text("another", encoding="utf-8")
    paths = (str(root / "src" / "a.py"), str(other / "src" / "a.py"), "src/../src/a.py")
    found = roots(root, other).texts(paths)
    assert found == {"src/a.py": "one\r\ntwo\n", (other.resolve() / "src" / "a.py").as_posix(): "another"}


@pytest.mark.requirement("S4:schema")
@pytest.mark.parametrize("path", ["../outside.txt", "/etc/passwd", "src/../../outside.txt", ".", "", "a\0b", "~root/x"])
def test_what_lies_outside_is_not_read(root: Path, path: str):
    with pytest.raises((Denied, InvalidArguments, UnreadableFile)) as refused:
        roots(root).texts((path,))
    assert "not for you" not in str(refused.value)
    if path.startswith(("..", "/", "src")):
        assert isinstance(refused.value, Denied)


@pytest.mark.requirement("S4:schema")
def test_a_text_is_read_in_its_encoding_or_not_at_all(root: Path):
    (root / "wide.txt").write_bytes("café".encode("utf-16"))
    (root / "marked.txt").write_bytes("\ufeffcafé".encode())
    (root / "old.txt").write_bytes("café".encode("latin-1"))
    (root / "key.txt").write_bytes("-----BEGIN PRIVATE KEY-----".encode("utf-16"))
    assert roots(root).texts(("wide.txt", "marked.txt")) == {"wide.txt": "café", "marked.txt": "\ufeffcafé"}
    with pytest.raises(UnreadableFile, match="UTF-8"):
        roots(root).texts(("old.txt",))
    with pytest.raises(Denied, match="key"):
        roots(root).texts(("key.txt",))


@pytest.mark.requirement("S4:schema")
def test_a_link_is_judged_by_where_it_leads(root: Path):
    (root / "out.txt").symlink_to(root.parent / "outside.txt")
    (root / "up").symlink_to(root.parent)
    (root / "in.py").symlink_to(root / "src" / "a.py")
    (root / ".env").write_text("TOKEN=1", encoding="utf-8")
    (root / "plain.txt").symlink_to(root / ".env")
    for path in ("out.txt", "up/outside.txt", "plain.txt"):
        with pytest.raises(Denied):
            roots(root).texts((path,))
    assert roots(root).texts(("in.py",)) == {"src/a.py": "one\r\ntwo\n"}
    other = root.parent / "link"
    other.symlink_to(root)
    assert roots(other).texts(("src/a.py",)) == {"src/a.py": "one\r\ntwo\n"}


@pytest.mark.requirement("S4:schema")
def test_what_is_swapped_for_a_link_after_the_check_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch):
    """The path is resolved as it was, and is a link by the time it is opened."""
    victim = root / "src" / "a.py"
    resolved = os.path.realpath

    def swapped(path: str | Path) -> str:
        found = resolved(path)
        if str(found).endswith("a.py") and not victim.is_symlink():
            victim.unlink()
            victim.symlink_to(root.parent / "outside.txt")
        return found

    monkeypatch.setattr(os.path, "realpath", swapped)
    with pytest.raises(UnreadableFile, match="cannot be read"):
        roots(root).texts(("src/a.py",))


@pytest.mark.requirement("S4:schema")
@pytest.mark.parametrize(
    "name",
    [
        *(".env", ".ENV.local", ".env~", ".env-prod", ".env_prod", "prod.env", ".envrc", "server.key", "cert.PEM"),
        *("AuthKey_1.p8", "http.keytab", "id_ed25519", ".ssh/config", ".git/config", ".npmrc"),
        *(".dev.vars", ".secrets", "db.secret", "kubeconfig", ".s3cfg", "sub/auth.json", ".config/gcloud/x.db"),
        *("application_default_credentials.json", ".cargo/credentials.toml", "rclone.conf", ".password-store/a.txt"),
        *("server.key.bak", "google-credentials.json", "x-firebase-adminsdk-1.json", "serviceAccountKey.json"),
        *("ssh_host_ecdsa_key", ".bash_history", "passwords.csv", "secret.yaml", "private_key.txt", "kubeconfig.yaml"),
    ],
)
def test_what_is_called_like_a_secret_is_refused(root: Path, name: str):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("anything", encoding="utf-8")
    with pytest.raises(Denied, match="called as secrets"):
        roots(root).texts((name,))


@pytest.mark.requirement("S4:schema")
@pytest.mark.parametrize(
    "secret",
    [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----",
        "sk_" + "live_" + "a1" * 12,
        "AKIA" + "A1B2C3D4E5F6G7H8",
        "ghp_" + "a1" * 18,
        "sk-ant-" + "x1" * 20,
        "gsk_" + "a1" * 26,
        "pypi-AgE" + "a1" * 40,
        "dop_v1_" + "a1" * 32,
        "AGE-SECRET-KEY-1" + "Q2" * 29,
        "aws_secret_access_key = " + "aB/1" * 10,
        "PuTTY-User-Key-File-3: ssh-ed25519",
        "https://hooks.slack.com/services/T0/B0/" + "a1" * 12,
        "my own provider key",
    ],
)
def test_what_holds_a_secret_is_refused_without_quoting_it(root: Path, secret: str):
    (root / "notes.txt").write_text(f"before\n{secret}\nafter", encoding="utf-8")
    with pytest.raises(Denied, match="looks like a key") as refused:
        FileRoots(folders=(root,), secrets=("my own provider key",)).texts(("notes.txt",))
    assert secret not in str(refused.value.wire())


@pytest.mark.requirement("S4:schema")
def test_ignore_files_are_respected_up_to_the_repository(root: Path):
    (root.parent / ".git").mkdir()
    (root.parent / ".gitignore").write_text("*.log\n", encoding="utf-8")
    (root / ".gitignore").write_text("build/\n", encoding="utf-8")
    (root / "src" / ".cursorignore").write_text("private.py\n", encoding="utf-8")
    for name in ("run.log", "build/out.txt", "src/private.py", "src/deep/run.log"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x", encoding="utf-8")
        with pytest.raises(Denied, match="is named in a"):
            roots(root).texts((name,))
    assert roots(root).texts(("src/a.py",))


@pytest.mark.requirement("S4:schema")
def test_ignore_files_around_the_repository_are_not_its_own(root: Path):
    (root.parent / ".git").mkdir()
    (root.parent / ".gitignore").write_text("*.py\n", encoding="utf-8")
    with pytest.raises(Denied, match="is named in a"):
        roots(root).texts(("src/a.py",))
    (root / ".git").mkdir()
    assert roots(root).texts(("src/a.py",))
    assert roots(root / "src").texts(("a.py",))


@pytest.mark.requirement("S4:schema")
def test_ignore_files_above_a_root_without_a_repository_are_not_read(root: Path):
    (root.parent / ".gitignore").write_text("*.py\n", encoding="utf-8")
    assert roots(root).texts(("src/a.py",))


@pytest.mark.requirement("S4:schema")
@pytest.mark.parametrize(
    ("files", "is_read"),
    [
        ({".gitignore": "*.txt\n!a.txt\n"}, True),
        ({".gitignore": "*.txt", "in/.gitignore": "!a.txt"}, True),
        ({".gitignore": "!*", "in/.gitignore": "a.txt"}, False),
        ({".gitignore": "in/", "in/.gitignore": "!*"}, False),
        ({".gitignore": "deep", "in/.gitignore": "!deep/"}, True),
        ({".gitignore": "*.txt\n!a.txt\n", ".aiignore": "a.txt"}, False),
        ({"in/.gitignore": "!a.txt", ".cursorignore": "*.txt"}, False),
        ({".aiignore": "*.txt", ".gitignore": "!a.txt"}, False),
        ({".aiignore": "*.txt", "in/deep/.aiignore": "!a.txt"}, True),
        ({".gitignore": "other/a.txt"}, True),
        ({".gitignore": "in/a.txt"}, True),
        ({".gitignore": "in/**/a.txt"}, False),
        ({".gitignore": "**/a.txt"}, False),
        ({".gitignore": "/a.txt"}, True),
        ({".gitignore": "a.txt/"}, True),
        ({".gitignore": "in/deep/?.txt"}, False),
    ],
)
def test_a_file_is_taken_back_only_by_the_kind_of_ignore_file_that_names_it(
    root: Path,
    files: dict[str, str],
    is_read: bool,  # noqa: FBT001
):
    (root / "in" / "deep").mkdir(parents=True)
    (root / "in" / "deep" / "a.txt").write_text("x", encoding="utf-8")
    for name, content in files.items():
        (root / name).write_text(content, encoding="utf-8")
    if is_read:
        assert roots(root).texts(("in/deep/a.txt",)) == {"in/deep/a.txt": "x"}
    else:
        with pytest.raises(Denied, match="is named in a"):
            roots(root).texts(("in/deep/a.txt",))


@pytest.mark.requirement("S4:schema")
def test_nothing_is_read_around_an_ignore_file_that_cannot_be_read(root: Path):
    (root / "rules").write_text("a.py\n", encoding="utf-8")
    (root / ".gitignore").symlink_to(root / "rules")
    with pytest.raises(Denied, match=r"a \.gitignore around it cannot be read"):
        roots(root).texts(("src/a.py",))
    (root / ".gitignore").unlink()
    (root / "src" / ".aiignore").write_text("# much\n" * 20_000, encoding="utf-8")
    with pytest.raises(Denied, match=r"a \.aiignore around it cannot be read"):
        roots(root).texts(("src/a.py",))
    (root / "src" / ".aiignore").unlink()
    (root / ".ignore").mkdir()  # a folder of that name says nothing
    assert roots(root).texts(("src/a.py",))


@pytest.mark.requirement("S4:schema")
def test_what_is_too_large_no_text_or_no_file_is_refused(root: Path):
    (root / "big.txt").write_text("x" * 101, encoding="utf-8")
    (root / "raw.bin").write_bytes(b"\0\1\2")
    for name, why in (
        ("big.txt", "more than 100 bytes"),
        ("raw.bin", "no text"),
        ("src", "not a regular"),
        ("no", "cannot"),
    ):
        with pytest.raises(UnreadableFile, match=why):
            roots(root, max_bytes=100).texts((name,))
    os.mkfifo(root / "pipe")
    with pytest.raises(UnreadableFile, match="not a regular file"):
        roots(root).texts(("pipe",))
    with pytest.raises(InvalidArguments, match="more than 50"):
        roots(root).texts(("src/a.py",) * 51)


@pytest.mark.parametrize(
    "name", ["secrets.py", "tokens.json", ".env.example", "credentials.py", "known_hosts", "key.py"]
)
def test_source_files_about_secrets_are_read(root: Path, name: str):
    (root / name).write_text("task-runner-with-a-very-long-name-of-a-class", encoding="utf-8")
    assert roots(root).texts((name,)) == {name: "task-runner-with-a-very-long-name-of-a-class"}


@pytest.mark.requirement("S4:schema")
def test_a_path_that_no_file_system_takes_cannot_be_read(root: Path):
    with pytest.raises(UnreadableFile, match="cannot be read"):
        roots(root).texts(("a" * 5_000,))


@pytest.mark.requirement("S4:schema")
def test_an_image_is_one_by_its_first_bytes(root: Path):
    (root / "a.png").write_bytes(PNG)
    written = base64.b64encode(PNG).decode()
    (image,) = roots(root).images(("a.png",))
    assert (image.media_type, image.data) == ("image/png", written)
    assert roots(root).images((f"data:image/png;base64,{written}",)) == (image,)
    for name in ("src/a.py", "data:image/png;base64,aGVsbG8="):
        with pytest.raises(UnreadableFile, match="no image"):
            roots(root).images((name,))
    with pytest.raises(Denied):
        roots(root).images(("../outside.txt",))
