"""The dashboard: static pages, sign-in, and read-only JSON about one principal's rows.

`Host` and `Origin` were checked before a request arrives here. A browser signs in with a one-time code, which becomes
an HttpOnly cookie; `ullage dashboard` gets a code with the key that the server leaves for its user, or with a bearer
token. Everything but sign-in and sign-out is GET. The pages load nothing from elsewhere and contain no inline script or
style, and the policy forbids both.

`SignIns` keeps the one-time codes and the browser sessions they are exchanged for. A code is valid for five minutes and
for one exchange. Wrong codes are limited: a code has 39 bits, and after 20 wrong ones in a minute every exchange is
refused until the minute is over. Only hashes of codes and sessions are kept, in memory, so a restart signs everybody
out.
"""

import hmac
import importlib.resources
import json
import mimetypes
import secrets
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any, Protocol, cast

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ullage.errors import Denied, InvalidArguments, StoreFailed, UllageError, Unavailable, UnknownResource
from ullage.ledger import ledger_revision
from ullage.tool import Json
from ullage.wire import Tokens

from .usage_figures import Period, UsageFigures

__all__ = [
    "CODES_PATH",
    "CODE_SECONDS",
    "SESSION_SECONDS",
    "WRONG_SECONDS",
    "Dashboard",
    "GatewayFacts",
    "SignIns",
    "Viewer",
]

CODE_SECONDS = 300.0
SESSION_SECONDS = 12 * 3600.0
_ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""No 0, 1, I and O, which look alike."""
_CODE_LETTERS = 8
_MOST_CODES, _MOST_SESSIONS = 32, 256
_MOST_WRONG, WRONG_SECONDS = 20, 60.0


@dataclass(frozen=True, slots=True)
class Viewer:
    """The person who is signed in."""

    principal: str
    """Whose rows are shown."""
    is_operator: bool = False
    """Whether it is the user who runs the server, who also sees its settings: pending approvals and errors."""


class SignIns:
    """The codes and browser sessions of one server."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Create it; `clock` returns monotonic seconds."""
        self._clock = clock
        self._codes: OrderedDict[bytes, tuple[Viewer, float]] = OrderedDict()
        self._sessions: OrderedDict[bytes, tuple[Viewer, float]] = OrderedDict()
        self._wrong: deque[float] = deque()

    def make_code(self, viewer: Viewer) -> str:
        """Return a new code, such as `K7QF-2MXW`."""
        code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LETTERS))
        self._store_secret(self._codes, code, viewer, CODE_SECONDS, _MOST_CODES)
        return f"{code[:4]}-{code[4:]}"

    def exchange(self, code: str) -> str:
        """Return the secret of a new session for a code, which is used up.

        Raises:
            Denied: The code is unknown, used or expired.
            Unavailable: There were too many wrong codes in the last minute.
        """
        now = self._clock()
        while self._wrong and self._wrong[0] <= now - WRONG_SECONDS:
            self._wrong.popleft()
        if len(self._wrong) >= _MOST_WRONG:
            raise Unavailable("there were too many wrong codes", suggestion="wait a minute, then try again")
        viewer, until = self._codes.pop(
            _hash("".join(letter for letter in code[:64].upper() if letter in _ALPHABET)), (None, 0.0)
        )
        if viewer is None or until <= now:
            self._wrong.append(now)
            raise Denied("this code is unknown, used or expired", suggestion="print a new one with `ullage dashboard`")
        secret = secrets.token_urlsafe(32)
        self._store_secret(self._sessions, secret, viewer, SESSION_SECONDS, _MOST_SESSIONS)
        return secret

    def viewer(self, secret: str | None) -> Viewer | None:
        """Return who is signed in with this session; None for an unknown or expired one."""
        viewer, until = self._sessions.get(_hash(secret or ""), (None, 0.0))
        return viewer if until > self._clock() else None

    def sign_out(self, secret: str | None) -> None:
        self._sessions.pop(_hash(secret or ""), None)

    def _store_secret(
        self,
        kept: OrderedDict[bytes, tuple[Viewer, float]],
        secret: str,
        viewer: Viewer,
        lifetime: float,
        most: int,
    ) -> None:
        now = self._clock()
        for key in [key for key, (_, until) in kept.items() if until <= now]:
            del kept[key]
        while len(kept) >= most:
            kept.popitem(last=False)
        kept[_hash(secret)] = viewer, now + lifetime


def _hash(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "replace")).digest()


CODES_PATH = "/sign-in/codes"
_LONGEST_QUERY = 500
_LARGEST_FORM = 4_096
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_STATUS: Mapping[type[UllageError], int] = {
    Denied: 401,
    InvalidArguments: 400,
    UnknownResource: 404,
    Unavailable: 503,
}


class GatewayFacts(Protocol):
    """What the dashboard shows of the running gateway, beside its ledger."""

    async def servers(self) -> list[dict[str, Json]]:
        """Return every server with `name`, `tools` (names), `tokens` of their definitions, and `state`."""
        ...

    async def tools(self) -> dict[str, Json]:
        """Return the whole catalogue."""
        ...

    async def search(self, query: str, principal: str) -> dict[str, Json]:
        """Return what `find_tool` finds for the query, in its order, with the reasons. Records nothing."""
        ...

    async def approvals(self) -> dict[str, Json]:
        """Return what waits for the user's approval, with the command for each."""
        ...

    async def health(self, *, is_operator: bool) -> dict[str, Json]:
        """Return the state of the store and of every server; calls of all principals, and errors, for the operator
        only."""
        ...

    def revision(self, *, is_operator: bool) -> str:
        """Return a text that changes with what the viewer sees of the servers and the catalogue."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Dashboard:
    """The application behind `/`."""

    facts: GatewayFacts
    figures: UsageFigures | None
    """None where there is no store."""
    sign_ins: SignIns
    user: str
    """The principal of the user who runs the server."""
    key: str = field(repr=False)
    """The secret that the server leaves for its user, to ask for codes with."""
    tokens: Tokens | None = None
    version: str = ""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def application(self) -> Starlette:
        pages = {
            "overview": partial(self._figures, UsageFigures.overview),
            "sessions": partial(self._figures, UsageFigures.sessions),
            "session": self._session,
            "servers": self._servers,
            "results": partial(self._figures, UsageFigures.results),
            "models": partial(self._figures, UsageFigures.models),
            "tools": self._tools,
            "approvals": self._approvals,
            "health": self._health,
            "changes": self._changes,
            "me": self._me,
        }
        routes = [
            Route("/", self._page),
            Route("/static/{name}", self._static),
            Route("/sign-in", self._sign_in, methods=["POST"]),
            Route("/sign-out", self._sign_out, methods=["POST"]),
            Route(CODES_PATH, self._make_code, methods=["POST"]),
            *(Route(f"/api/{name}", partial(self._answer, answer)) for name, answer in pages.items()),
        ]
        return Starlette(routes=routes)

    def make_code(self, principal: str | None = None) -> str:
        """Return a one-time code for the user who runs the server, to see their own rows or a token's."""
        return self.sign_ins.make_code(Viewer(principal or self.user, is_operator=True))

    async def _page(self, request: Request) -> Response:
        name = "index.html" if self._viewer(request) is not None else "sign_in.html"
        return _file(name, {"Cache-Control": "no-store", "Vary": "Cookie"})

    async def _static(self, request: Request) -> Response:
        name = str(request.path_params["name"])
        if name not in _ASSETS:
            return _failure(UnknownResource("there is no such file"))
        tag = f'"{sha256(_read_asset(name)).hexdigest()[:32]}"'
        headers = {"Cache-Control": "no-cache", "ETag": tag}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=_HEADERS | headers)
        return _file(name, headers)

    async def _sign_in(self, request: Request) -> Response:
        try:
            code = (await _form(request)).get("code")
            secret = self.sign_ins.exchange(code if isinstance(code, str) else "")
        except Unavailable as error:
            limited = _failure(error, 429)
            limited.headers["Retry-After"] = str(int(WRONG_SECONDS))
            return limited
        except UllageError as error:
            return _failure(error)
        response = Response(status_code=204, headers=_HEADERS | {"Cache-Control": "no-store"})
        response.set_cookie(
            _cookie_name(request),
            secret,
            max_age=int(SESSION_SECONDS),
            path="/",
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return response

    async def _sign_out(self, request: Request) -> Response:
        self.sign_ins.sign_out(request.cookies.get(_cookie_name(request)))
        response = Response(status_code=204, headers=_HEADERS | {"Cache-Control": "no-store"})
        response.delete_cookie(_cookie_name(request), path="/", httponly=True, samesite="strict")
        return response

    async def _make_code(self, request: Request) -> Response:
        """Make a code for the holder of the server's key, or of a bearer token; a token's is for its own rows only."""
        authorization = request.headers.get("authorization", "")
        try:
            wanted = (await _form(request)).get("principal")
            if hmac.compare_digest(authorization.encode(), f"Bearer {self.key}".encode()):
                known = (self.user, *(self.tokens.hashes if self.tokens else ()))
                if wanted is not None and wanted not in known:
                    raise UnknownResource("no principal has this name", options=known)
                viewer = Viewer(str(wanted or self.user), is_operator=True)
            else:
                name = self.tokens.name_of(authorization) if self.tokens else None
                if name is None:
                    raise Denied("a code needs the server's key or a bearer token", suggestion="run `ullage dashboard`")
                viewer = Viewer(name)
        except UllageError as error:
            return _failure(error)
        code = self.sign_ins.make_code(viewer)
        return _json({"code": code, "principal": viewer.principal, "expiresInSeconds": CODE_SECONDS})

    def _viewer(self, request: Request) -> Viewer | None:
        return self.sign_ins.viewer(request.cookies.get(_cookie_name(request)))

    async def _answer(
        self, answer: Callable[[Request, Viewer], Awaitable[Mapping[str, Json]]], request: Request
    ) -> Response:
        viewer = self._viewer(request)
        if viewer is None:
            return _failure(Denied("you are not signed in", suggestion="open the page again"))
        try:
            return _json(await answer(request, viewer))
        except UllageError as error:
            return _failure(error)

    def _store(self) -> UsageFigures:
        if self.figures is None:
            raise StoreFailed("the store cannot be used", suggestion="run `ullage doctor`")
        return self.figures

    def _period(self, request: Request) -> Period:
        return Period.parse(request.query_params, self.now())

    async def _figures(
        self, read: Callable[[UsageFigures, str, Period], dict[str, Json]], request: Request, viewer: Viewer
    ) -> Mapping[str, Json]:
        return await run_in_threadpool(read, self._store(), viewer.principal, self._period(request))

    async def _session(self, request: Request, viewer: Viewer) -> Mapping[str, Json]:
        name = request.query_params.get("name", "")
        return await run_in_threadpool(self._store().session, viewer.principal, name)

    async def _servers(self, request: Request, viewer: Viewer) -> Mapping[str, Json]:
        """Join what each server's definitions weigh with what was used of it."""
        period = self._period(request)
        report, used = await run_in_threadpool(self._store().by_server, viewer.principal, period)
        lines, found = {line.key: line for line in report.lines}, list[Json]()
        for one in await self.facts.servers():
            names = one.get("names")
            line = lines.pop(str(one["name"]), None)
            unused = list[Json](
                name for name in (names if isinstance(names, list) else ()) if (one["name"], name) not in used
            )
            said: dict[str, Json] = {key: value for key, value in one.items() if key != "names"}
            found.append({**said, "unused": unused, "line": None if line is None else line.to_json()})
        for key, line in lines.items():
            if line.uses and key:
                gone: dict[str, Json] = {"name": key, "tools": None, "tokens": None, "state": "removed", "isOwn": False}
                found.append({**gone, "unused": [], "line": line.to_json()})
        return {**period.to_json(), "servers": found, "requests": report.total.requests}

    async def _tools(self, request: Request, viewer: Viewer) -> Mapping[str, Json]:
        query = request.query_params.get("query", "").strip()[:_LONGEST_QUERY]
        return await (self.facts.search(query, viewer.principal) if query else self.facts.tools())

    async def _approvals(self, _: Request, viewer: Viewer) -> Mapping[str, Json]:
        if not viewer.is_operator:
            return {"visible": False}
        return {"visible": True, **await self.facts.approvals()}

    async def _health(self, _: Request, viewer: Viewer) -> Mapping[str, Json]:
        return await self.facts.health(is_operator=viewer.is_operator)

    async def _changes(self, _: Request, viewer: Viewer) -> Mapping[str, Json]:
        """Return a text that changes whenever a figure or a state does, for pages to poll."""
        rows: tuple[int, ...] = ()
        if self.figures is not None:
            database = self.figures.database
            rows = await run_in_threadpool(ledger_revision, database, principal=viewer.principal, now=self.now())
        text = f"{rows}{self.facts.revision(is_operator=viewer.is_operator)}"
        return {"revision": sha256(text.encode()).hexdigest()[:16]}

    async def _me(self, _: Request, viewer: Viewer) -> Mapping[str, Json]:
        return {"principal": viewer.principal, "isOperator": viewer.is_operator, "version": self.version}


def _cookie_name(request: Request) -> str:
    """Return the name of the session's cookie: browsers share cookies among the ports of a host."""
    bound = request.scope.get("server")
    return f"ullage_{bound[1] if bound else 0}"


async def _form(request: Request) -> dict[str, Any]:
    """Return the JSON object that a request carries."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            raise InvalidArguments("the request is too large")
    try:
        value = json.loads(body or b"{}")
    except ValueError as error:
        raise InvalidArguments("the request is not JSON") from error
    if not isinstance(value, dict):
        raise InvalidArguments("the request is not a JSON object")
    return cast("dict[str, Any]", value)


def _json(value: Mapping[str, Json], status: int = 200) -> Response:
    return JSONResponse(dict(value), status_code=status, headers=_HEADERS | {"Cache-Control": "no-store"})


def _failure(error: UllageError, status: int | None = None) -> Response:
    known = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
    return _json(cast("dict[str, Json]", error.wire()), status or known)


_FOLDER = importlib.resources.files("ullage.web") / "static"
_ASSETS = frozenset(
    {
        "app.js",
        "charts.js",
        "dom.js",
        "sign_in.js",
        "style.css",
        "theme.js",
        "uplot.css",
        "uplot.js",
        "views.js",
        "icon.svg",
    }
)
_kept: dict[str, bytes] = {}


def _read_asset(name: str) -> bytes:
    if name not in _kept:
        _kept[name] = (_FOLDER / name).read_bytes()
    return _kept[name]


def _file(name: str, headers: Mapping[str, str]) -> Response:
    kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0] or "application/octet-stream"
    return Response(_read_asset(name), media_type=kind, headers={**_HEADERS, **headers})
