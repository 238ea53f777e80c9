"""Draw the picture of a terminal in the README, and print the captures in docs/install.md.

Sets up a home folder in which Codex has recorded servers, runs `ullage scan` and `ullage install` there in a
pseudo-terminal, and writes what they print as SVG. With `--captures`, it prints the screens of docs/install.md instead,
for which three of Codex's servers fail and Claude Code and a project have servers too:

    python scripts/terminal_pictures.py ../shared/data/catalogues docs/images
    python scripts/terminal_pictures.py ../shared/data/catalogues --captures
"""

import argparse
import html
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sign_in_server import serve_sign_in

ROOT = Path(__file__).parent.parent
REPLAY = ROOT / "tests" / "heavy" / "real_replay.py"
SERVERS = {
    "github": "github_github-mcp-server",
    "kubernetes": "kubernetes-mcp-server",
    "playwright": "playwright_mcp",
    "notion": "notionhq_notion-mcp-server",
    "chrome-devtools": "chrome-devtools-mcp",
    "git": "mcp-server-git",
    "context7": "upstash_context7-mcp",
}
PICTURES = {
    "before-and-after": [["scan", "codex"], ["install", "codex", "--yes"], ["scan", "codex"]],
}
COLUMNS = 92
CHARACTER, LINE, MARGIN, BAR = 8.4, 20, 18, 34
STYLES = {"1": "b", "2": "d", "31": "r", "32": "g", "33": "y"}
CSS = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d6dae2;"
    "white-space:pre}.b{font-weight:700;fill:#fff}.d{fill:#8b93a3}.r{fill:#ff7b72}.g{fill:#6bd58a}.y{fill:#e3b341}"
    ".p{fill:#6cb6ff}"
)


def make_home(home: Path, catalogues: Path, more: Mapping[str, Mapping[str, object]] | None = None) -> None:
    """Write Codex's configuration with the recorded servers, and with more entries."""
    entries: dict[str, Mapping[str, object]] = {name: replayed(catalogues / file) for name, file in SERVERS.items()}
    lines = ['model = "gpt-5.3-codex"', ""]
    for name, entry in {**entries, **(more or {})}.items():
        lines += [f"[mcp_servers.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items()), ""]
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "config.toml").write_text("\n".join(lines), encoding="utf-8")
    (home / "work").mkdir()


def replayed(catalogue: Path) -> dict[str, object]:
    """Return the entry of a server that lists the tools of a recorded catalogue."""
    return {"command": sys.executable, "args": [str(REPLAY), f"{catalogue.resolve()}.json"]}


def print_captures(catalogues: Path) -> None:
    """Print the screens of docs/install.md."""
    missing = "import sys; sys.exit('Error: DATABASE_URL is not set')"
    more = {
        "legacy": replayed(catalogues / "mcp-server-time"),
        "slow": {"command": sys.executable, "args": ["-c", "import time; time.sleep(600)"]},
        "postgres": {"command": sys.executable, "args": ["-c", missing]},
    }
    with tempfile.TemporaryDirectory() as folder, serve_sign_in() as url:
        home = Path(folder) / "home"
        home.mkdir()
        make_home(home, catalogues, more | {"sentry": {"url": url}})
        claude = {name: replayed(catalogues / SERVERS[name]) for name in ("github", "playwright", "notion", "git")}
        (home / ".claude.json").write_text(json.dumps({"mcpServers": claude}), encoding="utf-8")
        helper = {"mcpServers": {"helper": {"command": "npx", "args": ["-y", "shop-helper-mcp"]}}}
        (home / "work" / ".mcp.json").write_text(json.dumps(helper), encoding="utf-8")
        screens = [(["scan"], 80), ([], 80), (["scan", "codex"], 120), (["install", "codex", "--yes"], 80)]
        for words, columns in [*screens, (["status"], 80), (["uninstall", "codex"], 80)]:
            printed = run_in_terminal(words, home, columns)
            plain = re.sub(r"\x1b\[[0-9;]*m", "", printed)
            print(" ".join(["$ ullage", *words]), plain, sep="\n")


def run_in_terminal(words: Sequence[str], home: Path, columns: int = COLUMNS) -> str:
    """Return what a command prints on a terminal; what it writes to standard error is left out."""
    leader, follower = pty.openpty()
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "TERM": "xterm-256color", "COLUMNS": str(columns)}
    process = subprocess.Popen(
        [str(Path(sys.executable).parent / "ullage"), *words],
        stdout=follower, stderr=subprocess.DEVNULL, cwd=home / "work", env=environment,
    )  # fmt: skip
    os.close(follower)
    printed = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:
            break
        if not part:
            break
        printed += part
    os.close(leader)
    if process.wait():
        raise SystemExit(f"`ullage {' '.join(words)}` failed")
    return printed.decode().replace("\r\n", "\n")


def draw_line(line: str, y: float) -> str:
    """Return one line of output as an SVG text element, with its colours."""
    spans, style = list[str](), ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            style = " ".join(STYLES[code] for code in part[2:-1].split(";") if code in STYLES)
        elif part:
            text = html.escape(part)
            spans.append(f'<tspan class="{style}">{text}</tspan>' if style else text)
    return f'<text x="{MARGIN}" y="{y:g}" xml:space="preserve">{"".join(spans)}</text>'


def draw_picture(lines: Sequence[str], title: str) -> str:
    """Return an SVG of a terminal window with these lines."""
    width = 2 * MARGIN + COLUMNS * CHARACTER
    height = BAR + len(lines) * LINE + MARGIN
    dots = "".join(
        f'<circle cx="{MARGIN + 4 + 18 * at}" cy="17" r="5.5" fill="{colour}"/>'
        for at, colour in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    )
    body = "\n".join(draw_line(line, BAR + (at + 1) * LINE - 6) for at, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'role="img" aria-label="{html.escape(title)}">\n<style>{CSS}</style>\n'
        f'<rect width="100%" height="100%" rx="10" fill="#161a22"/>\n{dots}\n{body}\n</svg>\n'
    )


def record(commands: Sequence[Sequence[str]], home: Path) -> Iterator[str]:
    """Yield the lines of a terminal in which these commands are run one after another."""
    for number, words in enumerate(commands):
        if number:
            yield ""
        yield f"\x1b[2m$\x1b[0m \x1b[1mullage {' '.join(words)}\x1b[0m"
        yield from run_in_terminal(words, home).rstrip("\n").split("\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("catalogues", type=Path, help="folder of recorded catalogues")
    parser.add_argument("out", type=Path, nargs="?", default=ROOT / "docs" / "images", help="folder for the pictures")
    parser.add_argument("--captures", action="store_true", help="print the screens of docs/install.md instead")
    arguments = parser.parse_args()
    if arguments.captures:
        print_captures(arguments.catalogues)
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, commands in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            home.mkdir()
            make_home(home, arguments.catalogues)
            lines = list(record(commands, home))
        title = "; ".join(f"ullage {' '.join(words)}".strip() for words in commands)
        (arguments.out / f"{name}.svg").write_text(draw_picture(lines, title), encoding="utf-8")


if __name__ == "__main__":
    main()
