"""Does all of it work without a network, in an empty home?

In processes where to open any socket that could leave the machine is an error, with a home directory that has nothing
in it: our rankings must answer there as they do here, and `ullage find` must find a tool of a server that it starts,
both when everything is new and when it starts again. What passes between Ullage and that server goes through pipes.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from search_elsewhere import answers_elsewhere, have_encoder, python_of
from search_ours import Kind
from search_sets import Set

__all__ = ["Offline", "measure", "report"]

_CLOSED = """
import socket, sys

def closed(event, arguments):
    if event == "socket.__new__" and arguments[1] != socket.AF_UNIX:
        raise OSError("sockets are closed")
    if event in {"socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}:
        raise OSError("sockets are closed")

sys.addaudithook(closed)
"""
"""Python imports it at the start of every process that has its folder on the path. What an event loop talks to itself
through, a pair of sockets of the machine's own family, stays open."""
_TRY = "import socket; socket.create_connection(('192.0.2.1', 80), 1)"
_SERVER = Path(__file__).with_name("gateway_server.py")
_CONFIG = """
[search]
index = "{kind}"

[servers.office]
command = '{python}'
args = ['{server}', "--name", "office", "--tools", "100"]
"""
_QUERY, _WANTED = "make a picture of every bill", "render_invoice"
_TOOLS = 400
_QUERIES = 50


@dataclass(frozen=True, slots=True)
class Offline:
    failures: Mapping[str, str]
    """What was tried, and what went wrong, empty where nothing did."""

    def missed(self) -> list[str]:
        return [f"{name}: {why}" for name, why in self.failures.items() if why]

    def to_json(self) -> Mapping[str, object]:
        return {name: why or "works" for name, why in self.failures.items()}


def measure(sets: Sequence[Set]) -> Offline:
    kinds: list[Kind] = ["static", "encoder"] if have_encoder() else ["static"]
    small = [Set(each.name, each.tools[:_TOOLS], each.queries[:_QUERIES]) for each in sets]
    with TemporaryDirectory() as folder:
        environment = _closed(Path(folder))
        return Offline(
            {
                "sockets are closed": _try_socket(environment),
                **{f"rankings, {kind}": _rank(kind, small, environment) for kind in kinds},
                **{
                    f"ullage find, {kind}, {when}": _find(kind, Path(folder), environment)
                    for kind in kinds
                    for when in ("everything new", "started again")
                },
            }
        )


def _closed(folder: Path) -> dict[str, str]:
    """Of an environment without a network and with nothing in its home."""
    for name in ("path", "home"):
        (folder / name).mkdir()
    (folder / "path" / "sitecustomize.py").write_text(_CLOSED, encoding="utf-8")
    return {"PYTHONPATH": str(folder / "path"), "HOME": str(folder / "home"), "PATH": os.defpath}


def _try_socket(environment: Mapping[str, str]) -> str:
    """A door that is not shut proves nothing, so that this is tried too."""
    done = subprocess.run([sys.executable, "-c", _TRY], env=environment, capture_output=True, text=True, check=False)
    return "" if "sockets are closed" in done.stderr else "a socket could be opened"


def _rank(kind: Kind, sets: Sequence[Set], environment: Mapping[str, str]) -> str:
    try:
        there = answers_elsewhere(kind, sets, environment=environment)
    except subprocess.CalledProcessError as error:
        return str(error)
    return "" if there == answers_elsewhere(kind, sets) else "answers differ from those with a network"


def _find(kind: Kind, folder: Path, environment: Mapping[str, str]) -> str:
    # The settings are outside the working folder, or they would be a project's and wait for approval.
    work, config = folder / f"work-{kind}", folder / f"{kind}.toml"
    work.mkdir()
    config.write_text(_CONFIG.format(kind=kind, python=sys.executable, server=_SERVER), encoding="utf-8")
    done = subprocess.run(
        [python_of(kind), "-m", "ullage", "find", "--json", "--config", str(config), _QUERY],
        env=environment,
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.strip()}"
    said = json.loads(done.stdout)
    shown = [tool["name"] for tool in said["tools"]] + said["more"]
    if done.stderr.strip():
        return done.stderr.strip()
    return "" if any(_WANTED in line for line in shown) else f"`{_WANTED}` is not found by `{_QUERY}`"


def report(offline: Offline) -> None:
    for name, why in offline.failures.items():
        print(f"  {name:40}{why or 'works'}")
