"""Who may ask: the bearer of the token, everywhere but at the probes (contracts §4)."""

from __future__ import annotations

import base64
import binascii
import hmac

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from rampgate.http.wire import refuse
from schemas.dead_letters import clean

OPEN = frozenset({"/livez", "/readyz"})
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}
CHALLENGE = 'Bearer realm="rampgate", Basic realm="rampgate: the token is the password"'
CALLER = "Rampgate-Caller"


def doorman(token: str | None) -> Middleware:
    """Middleware. Without a token everything is open, which is why the default address is a loopback one."""

    @web.middleware
    async def look(request: web.Request, handler: Handler) -> web.StreamResponse:
        if token is not None and request.path not in OPEN and not knows(request.headers.get("Authorization"), token):
            response: web.StreamResponse = refuse(401, "unauthorized", "send the header Authorization: Bearer <token>")
            response.headers["WWW-Authenticate"] = CHALLENGE
        else:
            response = await handler(request)
        response.headers.update(HEADERS)
        return response

    return look


def knows(header: str | None, token: str) -> bool:
    """Whether the header carries the token; takes as long for a wrong one as for a nearly right one.

    A browser can't send a bearer token, so the token is taken as a password too, under any user's name.
    """
    scheme, _, given = (header or "").partition(" ")
    offered = given.strip().encode("utf-8", "surrogateescape")
    if scheme.lower() == "basic":
        try:
            offered = base64.b64decode(offered, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return False
    elif scheme.lower() != "bearer":
        return False
    return hmac.compare_digest(offered, token.encode())


def caller_of(request: web.Request) -> str:
    """Who the audit names: what the caller says of itself, and where it asked from."""
    said = clean(request.headers.get(CALLER, ""), 96)
    return f"{said or 'http'}@{request.remote or 'unknown'}"
