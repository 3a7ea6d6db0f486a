"""Listens on the configured address, or on a free port where the default one is taken."""

from __future__ import annotations

import errno
from dataclasses import dataclass

import structlog
from aiohttp import web

from rampgate.http.routes import Side, make_app
from rampgate.settings import Settings, SettingsError

log = structlog.get_logger(__name__)
LOCAL = ("127.0.0.1", "localhost", "::1")


@dataclass
class Listening:
    """`url` has no slash at its end."""

    url: str
    _runner: web.AppRunner

    async def close(self) -> None:
        await self._runner.cleanup()


async def listen(settings: Settings, side: Side) -> Listening:
    """Serve on the running loop until closed.

    Raises SettingsError for an address that can't be had. A configured port that is in use is such an address; in place
    of the default port it takes a free one, and logs it.
    """
    host, _, port = settings.http.rpartition(":")
    host = host.strip("[]")
    runner = web.AppRunner(make_app(side), access_log=None, shutdown_timeout=2.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, int(port)).start()
        except OSError as error:
            if error.errno != errno.EADDRINUSE or "http" in settings.model_fields_set:
                raise
            await web.TCPSite(runner, host, 0).start()
            log.warning("http_port_taken", wanted=settings.http, hint="name one with --http or RAMPGATE_HTTP")
    except OSError as error:
        await runner.cleanup()
        remedy = "name a free one" if error.errno == errno.EADDRINUSE else "name an address of this machine"
        raise SettingsError(
            f"http: can't listen on {settings.http}: {error.strerror}; {remedy} (--http, RAMPGATE_HTTP)"
        ) from error
    except BaseException:
        await runner.cleanup()
        raise
    taken = runner.addresses[0]
    shown = f"[{taken[0]}]" if ":" in taken[0] else taken[0]
    url = f"http://{shown}:{taken[1]}"
    if side.token is None and host not in LOCAL:
        log.warning(
            "http_open_to_all",
            address=url,
            hint="set RAMPGATE_TOKEN: without it anyone can read all",
        )
    log.info("http_listening", url=url, with_token=side.token is not None)
    return Listening(url, runner)
