"""Show where the dashboard is, with a one-time code to sign in.

Uses the gateway that `ullage serve --http` runs on this machine, and does not start one. The code is valid for five
minutes and for one sign-in. With --url, uses a gateway on another machine, with its bearer token from the variable
ULLAGE_TOKEN.
"""

import argparse
import os
import webbrowser

from ullage.app.build_dashboard import RunningServer, running_servers
from ullage.config import Places
from ullage.errors import InvalidArguments, Unavailable
from ullage.processes import absolute_folders

from .output import bold, dim, emit, emit_json

__all__ = ["arguments", "run"]

_TOKEN = "ULLAGE_TOKEN"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument("--principal", metavar="NAME", help="show the rows of the bearer token with this name")
    parser.add_argument(
        "--url", metavar="URL", help=f"address of a gateway on another machine, with its token in {_TOKEN}"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    server, code, lifetime = _request_code(arguments)
    # Browsers do not send what follows `#`, so no log of a server or proxy contains the code.
    link = f"{server.url}#{code}"
    if arguments.json:
        emit_json({"url": server.url, "code": code, "link": link, "expiresInSeconds": lifetime})
    else:
        emit(f"{bold('Dashboard')}  {link}")
        emit(dim(f"The code {code} signs in once, within {lifetime / 60:.0f} minutes."))
    if arguments.open:
        os.environ["PATH"] = absolute_folders(os.environ.get("PATH", os.defpath))
        webbrowser.open(link)
    return 0


def _request_code(arguments: argparse.Namespace) -> tuple[RunningServer, str, float]:
    if arguments.url is not None:
        token = os.environ.get(_TOKEN)
        if not token:
            raise InvalidArguments(f"the variable {_TOKEN} is not set", suggestion=f"export {_TOKEN}=TOKEN")
        if not arguments.url.startswith(("http://", "https://")):
            raise InvalidArguments(f"`{arguments.url}` is not an address", suggestion="write it as in https://box.lan")
        server = RunningServer(arguments.url.rstrip("/").removesuffix("/mcp") + "/", token)
        return server, *server.make_code(arguments.principal)
    for server in running_servers(Places.of_user()):
        try:
            return server, *server.make_code(arguments.principal)
        except Unavailable:
            continue
    raise Unavailable(
        "you have no gateway that serves HTTP on this machine",
        suggestion="start one with `ullage serve --http 8787`, then run this again",
    )
