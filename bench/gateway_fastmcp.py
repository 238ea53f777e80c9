"""How does fastmcp look as a gateway?

Run in fastmcp's own environment by `bench/gateway.py`: `gateway_fastmcp.py proxy|search NAME=COMMAND …` serves what the
commands serve, over standard input and output. Several servers are mounted one by one, each behind a proxy of its own;
its other way, one proxy of a configuration with several servers, starts every server anew at each call.
"""

# pyright: reportMissingImports=false
import shlex
import sys
from typing import Any

from fastmcp import FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
from fastmcp.server.transforms.search import BM25SearchTransform


def proxy(command: str) -> Any:  # noqa: ANN401
    program, *arguments = shlex.split(command)
    return create_proxy(StdioTransport(program, arguments))


def main(kind: str, *servers: str) -> None:
    named = [server.split("=", 1) for server in servers]
    if len(named) == 1:
        gateway = proxy(named[0][1])
    else:
        gateway = FastMCP("gateway")
        for name, command in named:
            gateway.mount(proxy(command), namespace=name)
    if kind == "search":
        gateway.add_transform(BM25SearchTransform())
    gateway.run(show_banner=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
