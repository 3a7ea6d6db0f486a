"""A TCP proxy for fault tests: it delays, cuts, loses and refuses, and each fault can be switched while it runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Literal, Self

from rampgate.local.services.ports import release_port, reserve_port

Direction = Literal["up", "down", "both"]
"""up: from client to server; down: the answers."""
_CHUNK = 65536


class TcpProxy:
    """Listens on a free port of 127.0.0.1, in a thread of its own, from its construction until close().

    Any thread may call any method; it has taken effect when it returns. Faults add up until `heal`.
    """

    def __init__(self, host: str, port: int) -> None:
        self.port = reserve_port()
        self._target = (host, port)
        self._delay = 0.0
        self._swallow: frozenset[str] = frozenset()
        self._links: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._closed = False
        self.accepted = 0
        """Connections accepted so far."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{self.port}", daemon=True)
        self._thread.start()
        self._do(self._listen())

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        return len(self._links) // 2

    def lead_to(self, host: str, port: int) -> None:
        """Lead new connections to another server; open ones stay where they are."""
        self._target = (host, port)

    def delay(self, seconds: float) -> None:
        """Delay each piece of data, in both directions."""
        self._delay = seconds

    def blackhole(self, direction: Direction = "both") -> None:
        """Lose the data in a direction (`down` loses answers). Connections stay open, and new ones are accepted."""
        self._swallow = frozenset(("up", "down")) if direction == "both" else frozenset((direction,))

    def cut(self) -> None:
        """Reset every open connection; new ones work."""
        self._do(self._cut())

    def refuse(self) -> None:
        """Reset every open connection and refuse new ones."""
        self._do(self._refuse())

    def heal(self) -> None:
        """End all faults. Reset connections that may have lost data, because their streams can't be repaired."""
        broken = bool(self._swallow)
        self._delay, self._swallow = 0.0, frozenset()
        if broken:
            self.cut()
        self._do(self._listen())

    def close(self) -> None:
        """End the thread and all connections. May be called twice."""
        if self._closed:
            return
        self.refuse()
        self._closed = True
        self._do(self._drain())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
        release_port(self.port)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    async def _cut(self) -> None:
        for writer in self._links:
            writer.transport.abort()

    async def _refuse(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._cut()

    async def _drain(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        links = {writer}
        self._links.add(writer)
        try:
            back_reader, back_writer = await asyncio.open_connection(*self._target)
            links.add(back_writer)
            self._links.add(back_writer)
            await asyncio.gather(self._pump(reader, back_writer, "up"), self._pump(back_reader, writer, "down"))
        except OSError:
            pass  # either side is gone: the other one learns it below
        finally:
            self._links -= links
            for link in links:
                link.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        """Copy data one way. Raises ConnectionResetError also at an orderly end, so that both ways end together."""
        while data := await reader.read(_CHUNK):
            if self._delay:
                await asyncio.sleep(self._delay)
            if way not in self._swallow:
                writer.write(data)
                await writer.drain()
        raise ConnectionResetError
