"""The doorman: workspace and key, as self-hosted Opik checks them. There is one workspace, `default`."""

from __future__ import annotations

import hmac

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from rampgate.localopik.refusals import coded

WORKSPACE = "default"
CONTROL = "/_"  # where the fault paths begin
OPEN = ("/is-alive/", CONTROL)


def doorman(api_key: str | None) -> Middleware:
    """Without a key (auth off) only the workspace is looked at. Health and the fault paths are open."""

    @web.middleware
    async def look(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not request.path.removeprefix("/api").startswith(OPEN):
            workspace = request.headers.get("Comet-Workspace") or request.query.get("workspace_name")
            if api_key is None:
                if workspace and workspace != WORKSPACE:
                    raise coded(404, "Workspace not found")
            else:
                _check(api_key, workspace, request.headers.get("Authorization"))
        return await handler(request)

    return look


def _check(api_key: str, workspace: str | None, given: str | None) -> None:
    if not workspace:
        raise coded(403, "Workspace name should be provided")
    if not given:
        raise coded(401, "API key should be provided")
    if not hmac.compare_digest(given.encode(), api_key.encode()):
        raise coded(401, "User not allowed to access Opik: the API key is not valid")
    if workspace != WORKSPACE:
        raise coded(403, "User is not allowed to access workspace")
