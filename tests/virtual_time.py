"""An event loop whose clock jumps to the next timer, so that a test of seconds takes none and no stall moves it."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class _NoWaiting(selectors.DefaultSelector):
    """Looks for what is ready without waiting, and lets the time pass that it was to wait."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing is ready, and no timer runs: this wait has no end"
        self.now += max(timeout, 0.0)
        return super().select(0)


class _VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._no_waiting = _NoWaiting()
        super().__init__(self._no_waiting)

    def time(self) -> float:
        return self._no_waiting.now


def virtual_time(test: Callable[Arguments, Coroutine[Any, Any, Result]]) -> Callable[Arguments, Result]:
    """Runs an async test by virtual time. It uses no sockets and no threads, and tells the time by `loop_time`."""

    @wraps(test)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with asyncio.Runner(loop_factory=_VirtualTimeLoop) as runner:
            return runner.run(test(*arguments, **named))

    return run


def loop_time() -> float:
    return asyncio.get_running_loop().time()
