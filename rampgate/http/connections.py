"""Bounds the open connections of a port, so that those that ask nothing don't keep others out.

A connection that sends its request slowly, or none, costs a descriptor of the process. When there are `most`, the
oldest connection that no handler works for makes room for the new one; so a probe is answered however many stay
half-open.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from typing import cast

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

log = structlog.get_logger(__name__)
SECONDS_FOR_A_REQUEST = 30.0
"""From the start of a connection, or the end of its last answer, until a request's headers have come whole."""
MOST = 256
SHARE_OF_DESCRIPTORS = 4


def bound() -> int:
    """Connections at once: `MOST`, and at most a quarter of the descriptors that this process may have."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if allowed == resource.RLIM_INFINITY else max(1, min(MOST, allowed // SHARE_OF_DESCRIPTORS))


class Connections:
    """The connections of one server."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most or bound()
        self._busy: set[asyncio.BaseProtocol] = set()
        self._told = False

    def middleware(self) -> Middleware:
        """Middleware that notes for which connections a handler works."""

        @web.middleware
        async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
            self._busy.add(request.protocol)
            try:
                return await handler(request)
            finally:
                self._busy.discard(request.protocol)

        return note

    def accepting(self, server: web.Server) -> Callable[[], asyncio.Protocol]:
        """What makes the protocol of each new connection; it closes an idle connection where there are too many, and
        the new one where none is idle."""

        def accept() -> asyncio.Protocol:
            held = [one for one in server.connections if one.transport is not None]
            surplus = len(held) - self._most + 1
            if surplus <= 0:
                return server()
            if not self._told:
                self._told = True
                log.warning("http_connections_full", most=self._most, hint="idle ones are closed for new ones")
            idle = [one for one in held if one not in self._busy][:surplus]
            for one in idle:
                if one.transport is not None:
                    one.transport.abort()  # closing alone would wait for a reader that never reads
                one.force_close()
            return server() if len(idle) == surplus else Refused()

        return accept


class Refused(asyncio.Protocol):
    """Closes its connection at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()
