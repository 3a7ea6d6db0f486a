"""Answers a client's first requests: health, version, access, workspace.

`authorization` checks workspace and key as self-hosted Opik does. The only workspace is `default`.
"""

from __future__ import annotations

import hmac

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from rampgate.local.opik.wire import Routes, answer, coded, done

WORKSPACE = "default"
CONTROL = "/_"  # where the fault paths begin
OPEN = ("/is-alive/", CONTROL)
# The SDK compares this with the first version that takes parallel dataset uploads (2.2.8), so it has to be a version.
VERSION = "2.2.122-rampgate-local-stand-in"
LABEL = "Rampgate's local Opik: a stand-in for development and tests, not the Opik product"


def authorization(api_key: str | None) -> Middleware:
    """Middleware that checks the workspace, and the key where one is set, except on health and fault paths."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not request.path.removeprefix("/api").startswith(OPEN):
            workspace = request.headers.get("Comet-Workspace") or request.query.get("workspace_name")
            if api_key is None:
                if workspace and workspace != WORKSPACE:
                    raise coded(404, "Workspace not found")
            else:
                _check(api_key, workspace, request.headers.get("Authorization"))
        return await handler(request)

    return check


def _check(api_key: str, workspace: str | None, given: str | None) -> None:
    if not workspace:
        raise coded(403, "Workspace name should be provided")
    if not given:
        raise coded(401, "API key should be provided")
    if not hmac.compare_digest(given.encode(), api_key.encode()):
        raise coded(401, "User not allowed to access Opik: the API key is not valid")
    if workspace != WORKSPACE:
        raise coded(403, "User is not allowed to access workspace")


async def ping(request: web.Request) -> web.Response:
    return answer({"message": "Healthy Server", "healthy": True})


async def version(request: web.Request) -> web.Response:
    return answer({"version": VERSION, "stand_in": LABEL})


async def access(request: web.Request) -> web.Response:
    """The middleware has checked access before."""
    return done()


async def workspace(request: web.Request) -> web.Response:
    return answer({"workspace_name": WORKSPACE, "use_default_workspace_name": True})


ROUTES: Routes = [
    ("GET", "/is-alive/ping", ping),
    ("GET", "/is-alive/ver", version),
    ("GET", "/v1/private/auth", access),
    ("POST", "/v1/private/auth", access),
    ("GET", "/v1/private/auth/workspace", workspace),
]
