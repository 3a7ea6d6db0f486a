"""Builds the application; `start` serves it in the caller's loop, for tests and `rampgate dev`."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler

from rampgate.local.opik import account, datasets, experiments, projects, queues, rules, scores, traces
from rampgate.local.opik.account import authorization
from rampgate.local.opik.faults import Faults
from rampgate.local.opik.store import Store
from rampgate.local.opik.wire import STORE, Refusal, Routes, answer

log = logging.getLogger(__name__)
MAX_BODY = 64 * 1024 * 1024
ROUTES: Routes = [
    route
    for module in (account, projects, scores, traces, datasets, experiments, rules, queues)
    for route in module.ROUTES
]


@web.middleware
async def _refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every error as JSON; name and log a path that this server lacks."""
    try:
        return await handler(request)
    except Refusal as refusal:
        return answer(refusal.body, refusal.status)
    except web.HTTPException as error:
        if error.status in (404, 405):
            message = f"The local Opik stand-in doesn't serve {request.method} {request.path}"
            log.warning(message)
            return answer({"code": 404, "message": message}, 404)
        return answer({"code": error.status, "message": error.reason}, error.status)
    except Exception:
        log.exception("%s %s failed", request.method, request.path)
        return answer({"code": 500, "message": "The local Opik stand-in failed; its log has the traceback"}, 500)


@dataclass
class Running:
    """A server that listens. `url` ends in /api, as `opik.Opik(host=...)` wants it; the paths work without it too."""

    url: str
    port: int
    _runner: web.AppRunner
    _store: Store

    async def close(self) -> None:
        await self._runner.cleanup()
        self._store.close()


def application(store: Store, api_key: str | None = None, faults: bool = False) -> web.Application:
    middlewares = [_refusals, authorization(api_key)]
    controls = Faults(store) if faults else None
    if controls is not None:
        middlewares.insert(1, controls.middleware())
    app = web.Application(middlewares=middlewares, client_max_size=MAX_BODY)
    app[STORE] = store
    routes = ROUTES + (controls.routes() if controls is not None else [])
    for prefix in ("/api", ""):
        app.add_routes([web.route(method, prefix + path, handler) for method, path, handler in routes])
    return app


async def start(
    host: str = "127.0.0.1",
    port: int = 0,
    database: str = ":memory:",
    api_key: str | None = None,
    faults: bool = False,
) -> Running:
    """Listen on the running loop; port 0 takes a free one. The caller closes it.

    The official SDK's sync client blocks its thread: don't call it in this loop's thread.
    """
    store = Store(database)
    runner = web.AppRunner(application(store, api_key, faults), access_log=None, shutdown_timeout=1.0)
    try:
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
    except BaseException:
        await runner.cleanup()
        store.close()
        raise
    taken = int(runner.addresses[0][1])
    log.warning("%s, on http://%s:%s/api", account.LABEL, host, taken)
    return Running(f"http://{host}:{taken}/api", taken, runner, store)
