"""Admits only the bearer of the token, except to the probes (contracts §4), and sets security headers."""

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


def authorization(token: str | None) -> Middleware:
    """Middleware that refuses requests without the token. Without a configured token it refuses none."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if (
            token is not None
            and request.path not in OPEN
            and not has_token(request.headers.get("Authorization"), token)
        ):
            response: web.StreamResponse = refuse(401, "unauthorized", "send the header Authorization: Bearer <token>")
            response.headers["WWW-Authenticate"] = CHALLENGE
        else:
            response = await handler(request)
        response.headers.update(HEADERS)
        return response

    return check


def has_token(header: str | None, token: str) -> bool:
    """Tells whether the header carries the token, in constant time.

    A browser can't send a bearer token, so the token also counts as a password, under any user's name.
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
    """The caller's name in the audit: what it calls itself, and its address."""
    name = clean(request.headers.get(CALLER, ""), 96)
    return f"{name or 'http'}@{request.remote or 'unknown'}"
