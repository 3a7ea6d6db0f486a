"""Listens on the configured address, or on a free port where the default one is taken; and for probes where wanted."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog
from aiohttp import web

from rampgate.http.connections import SECONDS_FOR_A_REQUEST, Connections
from rampgate.http.routes import Side, make_app
from rampgate.settings import Settings, SettingsError
from schemas.settings import is_loopback

log = structlog.get_logger(__name__)


@dataclass
class Listening:
    """`url` has no slash at its end. `probes` is the URL of the port for probes alone, None where there is none."""

    url: str
    probes: str | None
    _ports: Sequence[Port]

    async def close(self) -> None:
        for port in self._ports:
            await port.close()


class Port:
    """One application on one address."""

    def __init__(self, app: web.Application) -> None:
        self._connections = Connections()
        app.middlewares.insert(0, self._connections.middleware())
        self._runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=2.0, keepalive_timeout=SECONDS_FOR_A_REQUEST
        )
        self._listening: asyncio.Server | None = None

    async def open(self, address: str, field: str, *, any_port: bool = False) -> str:
        """Listen; return the URL. With `any_port` a free one takes the place of a port in use. Raises SettingsError."""
        await self._runner.setup()
        try:
            try:
                taken = await self._listen(*split(address))
            except OSError as error:
                if error.errno != errno.EADDRINUSE or not any_port:
                    raise
                taken = await self._listen(split(address)[0], 0)
                log.warning("http_port_taken", wanted=address, hint="name one with --http or RAMPGATE_HTTP")
        except OSError as error:
            await self.close()
            remedy = "name a free one" if error.errno == errno.EADDRINUSE else "name an address of this machine"
            named = f"--{field}, RAMPGATE_{field.upper()}" if field == "http" else f"RAMPGATE_{field.upper()}"
            raise SettingsError(f"{field}: can't listen on {address}: {error.strerror}; {remedy} ({named})") from error
        except BaseException:
            await self.close()
            raise
        return f"http://{f'[{taken[0]}]' if ':' in taken[0] else taken[0]}:{taken[1]}"

    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        server: Any = self._runner.server  # set by its setup
        accept = self._connections.accepting(server)
        self._listening = await asyncio.get_running_loop().create_server(accept, host, port, backlog=128)
        taken: tuple[str, int] = self._listening.sockets[0].getsockname()[:2]
        return taken

    async def close(self) -> None:
        if self._listening is not None:
            self._listening.close()
        await self._runner.cleanup()


async def listen(settings: Settings, side: Side) -> Listening:
    """Serve on the running loop until closed.

    Raises SettingsError for an address that can't be had, and for one beyond this machine without a token: anyone who
    reaches it could read all. A configured port that is in use can't be had; in place of the default port it takes a
    free one, and logs it.
    """
    host = split(settings.http)[0]
    side = replace(side, callers=settings.callers(), hosts=settings.hosts | {host.lower()})
    if not side.admission.callers and not is_loopback(host):
        raise SettingsError(
            f"http: {settings.http} is reached from other machines, and there is no token: set RAMPGATE_TOKEN_FILE or "
            "RAMPGATE_TOKENS_FILE, or listen on 127.0.0.1"
        )
    main = Port(make_app(side))
    url = await main.open(settings.http, "http", any_port="http" not in settings.model_fields_set)
    ports, probes = [main], None
    if settings.http_probes is not None:
        ports.append(Port(make_app(side, only_probes=True)))
        try:
            probes = await ports[-1].open(settings.http_probes, "http_probes")
        except BaseException:
            await main.close()
            raise
        log.info("probes_listening", url=probes)
    log.info("http_listening", url=url, with_token=bool(side.admission.callers))
    return Listening(url, probes, ports)


def split(address: str) -> tuple[str, int]:
    """The host, without brackets, and the port of address:port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
