"""A remote MCP server that answers nobody who is not signed in; for tests and for the screens of the docs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["serve_sign_in"]


class _SignInNeeded(BaseHTTPRequestHandler):
    def refuse(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(401)
        self.send_header("www-authenticate", 'Bearer resource_metadata="http://127.0.0.1/metadata"')
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST = do_DELETE = refuse  # noqa: N815 - named by the base class

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the base class
        """Print nothing."""


@contextmanager
def serve_sign_in() -> Iterator[str]:
    """Serve on a free port, and yield the URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _SignInNeeded)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
    finally:
        server.shutdown()
        server.server_close()
