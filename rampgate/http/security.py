"""Admits a request: asked by one of our names, not from another site, with a token (contracts §4).

The probes are open: whoever asks them asks by an address, without a token. No guard may hide that a process is ill.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from rampgate.http.wire import refuse

OPEN = frozenset({"/livez", "/readyz"})
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
}
CHALLENGE = 'Bearer realm="rampgate", Basic realm="rampgate: the token is the password"'
CALLER = "Rampgate-Caller"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
WHO = web.RequestKey("who", str)
"""Whose token an admitted request has."""
SHARED, ANYONE = "shared-token", "anyone"
"""Callers whose token, or lack of one, does not tell who they are."""
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?", re.ASCII | re.IGNORECASE)
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9._:-]", re.ASCII)
_OURS = ("same-origin", "none")
"""Values of Sec-Fetch-Site for a page of ours, and for an address that a person typed."""
_RECORDED = "/turns/"
"""Reading these may write an audit record, so a foreign page must not have a browser read them."""
_READS = frozenset({"GET", "HEAD"})


@dataclass(frozen=True)
class Admission:
    """What a request needs. `hosts` are names by which we are asked, besides loopback's and the address that the
    connection came to. `callers` maps tokens to names; where it is empty, no one needs a token."""

    hosts: frozenset[str] = frozenset()
    callers: Mapping[str, str] = field(default_factory=dict, repr=False)


def admitted(admission: Admission) -> Middleware:
    """Middleware that refuses a foreign Host (421), another site (403) and a request without a known token (401)."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        refused = None if request.path in OPEN else refusal(request, admission)
        response = refused or await handler(request)
        response.headers.update(HEADERS)
        return response

    return check


def refusal(request: web.Request, admission: Admission) -> web.Response | None:
    """The answer to a request that is not admitted. Else None, and `WHO` of the request says whose token it has."""
    if not asked_by_our_name(request, admission.hosts):
        return refuse(
            421, "misdirected_request", "this Host is none of ours; name it in RAMPGATE_HTTP_HOSTS if it should be"
        )
    if from_another_site(request, admission.hosts):
        return refuse(403, "cross_site", "a page of another site asked for this; ask from here, or without a browser")
    if not admission.callers:
        request[WHO] = ANYONE
        return None
    caller = caller_with(request.headers.get("Authorization"), admission.callers)
    if caller is None:
        response = refuse(401, "unauthorized", "send the header Authorization: Bearer <token>")
        response.headers["WWW-Authenticate"] = CHALLENGE
        return response
    request[WHO] = caller
    return None


def asked_by_our_name(request: web.Request, hosts: frozenset[str]) -> bool:
    """Tells whether the Host header names us: a page whose own name was made to lead here (DNS rebinding) can't send
    such a header."""
    name = host_name(request.headers.get("Host", ""))
    if name is None:
        return False
    came_to = request.transport.get_extra_info("sockname") if request.transport is not None else None
    address = came_to[0] if isinstance(came_to, tuple) else None
    return name in LOOPBACK or name in hosts or name == address


def host_name(header: str) -> str | None:
    """The name or address in a Host header, in small letters, without port and brackets; None for anything else."""
    found = _HOST.fullmatch(header.strip())
    return found[1].strip("[]").lower().rstrip(".") or None if found is not None else None


def from_another_site(request: web.Request, hosts: frozenset[str]) -> bool:
    """Tells whether a browser sent this for a page that is not ours. Following a link to read here is no such thing,
    except where reading leaves a record."""
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    foreign = (site is not None and site not in _OURS) or (origin is not None and not our_origin(request, hosts))
    followed = request.method in _READS and request.headers.get("Sec-Fetch-Mode") == "navigate"
    return foreign and not (followed and not request.path.startswith(_RECORDED))


def our_origin(request: web.Request, hosts: frozenset[str]) -> bool:
    """Tells whether the Origin is the Host that was asked, or a configured name, as behind a proxy."""
    try:
        parts = urlsplit(request.headers["Origin"])
    except ValueError:
        return False
    return bool(parts.netloc) and (
        parts.netloc.lower() == request.headers.get("Host", "").strip().lower() or (parts.hostname or "") in hosts
    )


def caller_with(header: str | None, callers: Mapping[str, str]) -> str | None:
    """The name of the caller whose token the header carries, None for none; in a time that tells nothing of a token.

    A browser can't send a bearer token, so a token also counts as a password, under any user's name.
    """
    scheme, _, given = (header or "").partition(" ")
    offered = given.strip().encode("utf-8", "surrogateescape")
    if scheme.lower() == "basic":
        try:
            offered = base64.b64decode(offered, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return None
    elif scheme.lower() != "bearer":
        return None
    found = [name for token, name in callers.items() if hmac.compare_digest(offered, token.encode())]
    return found[0] if found else None


def caller_of(request: web.Request) -> str:
    """The caller's name in the audit: whose token it has, what it calls itself, if anything, and its address."""
    said = _NOT_A_NAME.sub("_", request.headers.get(CALLER, ""))[:64]
    return f"{request.get(WHO, ANYONE)}{f' says {said}' if said else ''}@{request.remote or 'unknown'}"
