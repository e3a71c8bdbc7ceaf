"""Who may ask the console for what. Everything is refused that is not the page that the operator opened.

- The address that the console prints has a token. Whoever opens it gets a cookie, and without that nothing is answered.
- `Host` must be the console's own: a name that an attacker points to this machine (DNS rebinding) is not.
- A browser says which site a request comes from (`Sec-Fetch-Site`). Other sites may not even read, and neither may
  other ports of this machine, to which cookies go as well.
- A POST also needs a header with a token that only the page knows, and an `Origin` that is the console's own.
- Nothing is changed unless the console was started for it.
- The page runs no script but its own, is shown in no frame, and sends data nowhere else (Content-Security-Policy).
"""

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from strandline.base.value import Value

TOKEN_HEADER = "x-strandline-token"
CHANGES = "/api/changes/"
OPEN = "open the address that `strandline console` printed"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-cache, private",
}


class Secrets(Value, frozen=True):
    """Three, so that none of them is more than it must be: what is in an address gets into histories, cookies go to all
    ports of a machine, and only the page itself has the third."""

    token: str  # in the address that is printed
    cookie_name: str
    cookie: str
    header: str  # of requests that change something

    @classmethod
    def new(cls) -> "Secrets":
        name = f"strandline-{secrets.token_hex(4)}"  # two consoles on one machine are one site to a browser
        return cls(secrets.token_urlsafe(24), name, secrets.token_urlsafe(24), secrets.token_urlsafe(24))


class Refusal(Value, frozen=True):
    status: int
    problem: str
    advice: str = ""


class Guard:
    """ASGI middleware around all routes."""

    def __init__(self, app: ASGIApp, known: Secrets, host: str, allow_changes: bool) -> None:
        """`host`: the address that the console listens at."""
        self.app = app
        self.secrets = known
        self.hosts = (host.lower(), *(LOOPBACK if is_loopback(host) else ()))
        self.allow_changes = allow_changes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there is no websocket here
            raise RuntimeError(f"the console does not speak {scope['type']}")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers = Headers(scope=scope)
        refusal = self.why_not_reached(scope, headers)
        if refusal is None and self.is_greeting(scope):
            await self.greeting()(scope, receive, send_guarded)
            return
        refusal = refusal or self.why_not_allowed(scope, headers)
        if refusal is not None:
            answer = {"problem": refusal.problem, "advice": refusal.advice}
            await JSONResponse(answer, refusal.status)(scope, receive, send_guarded)
            return
        await self.app(scope, receive, send_guarded)

    def why_not_reached(self, scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
        """Nobody gets past these, not even with the token."""
        if host_name(headers.get("host", "")) not in self.hosts:
            return Refusal(
                421, "this is not the console's address", "open the address that `strandline console` printed"
            )
        site = headers.get("sec-fetch-site", "none")
        is_opened = scope["path"] == "/" and headers.get("sec-fetch-mode") == "navigate" and scope["method"] == "GET"
        if site not in ("same-origin", "none") and not is_opened:
            return Refusal(403, "another site asks, and the console answers its own page alone")
        return None

    def is_greeting(self, scope: Scope) -> bool:
        """Is it the address that was printed?"""
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        return scope["path"] == "/" and scope["method"] == "GET" and same(given, self.secrets.token)

    def greeting(self) -> Response:
        """The address without the token, for the browser's history and for bookmarks."""
        answer = RedirectResponse("/", 303)
        answer.set_cookie(self.secrets.cookie_name, self.secrets.cookie, httponly=True, samesite="strict", path="/")
        return answer

    def why_not_allowed(self, scope: Scope, headers: Mapping[str, str]) -> Refusal | None:
        if not same(cookie(headers, self.secrets.cookie_name), self.secrets.cookie):
            return Refusal(401, "this browser is not known", OPEN)
        if scope["method"] in ("GET", "HEAD"):
            return None
        if headers.get("origin", "") != f"{scope['scheme']}://{headers['host']}":
            return Refusal(403, "another site asks, and the console answers its own page alone")
        if not same(headers.get(TOKEN_HEADER, ""), self.secrets.header):
            return Refusal(403, "the page is of a console that has ended", "load it again")
        if scope["path"].startswith(CHANGES) and not self.allow_changes:
            return Refusal(403, "this console is read-only", "start it with --allow-changes")
        return None


def same(given: str, known: str) -> bool:
    """In a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode(), known.encode())


def cookie(headers: Mapping[str, str], name: str) -> str:
    """Beside it may stand anything: cookies of programs at all other ports of this machine."""
    return cookie_parser(headers.get("cookie", "")).get(name, "")


def host_name(host: str) -> str:
    """Without the port: through a tunnel it is another one."""
    name, colon, port = host.rpartition(":")
    if colon and port.isdecimal():
        host = name
    return host.removeprefix("[").removesuffix("]").lower()


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
