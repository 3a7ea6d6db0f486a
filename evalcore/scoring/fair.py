"""A limit on calls at once that several gates share fairly: free places go round, one gate after the other."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairRoom:
    """`places` calls at once. A gate that comes late with few calls waits for its turn, not for all who came before."""

    def __init__(self, places: int) -> None:
        if places < 1:
            raise ValueError("a room needs at least one place")
        self._free = places
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def place(self, gate: str) -> AsyncIterator[None]:
        await self._take(gate)
        try:
            yield
        finally:
            self._leave()

    async def _take(self, gate: str) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(gate, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # the place was given in the moment in which nobody wanted it any more
            else:
                self._forget(gate, turn)
            raise

    def _leave(self) -> None:
        while self._waiting:
            gate, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[gate] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _forget(self, gate: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(gate)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[gate]
