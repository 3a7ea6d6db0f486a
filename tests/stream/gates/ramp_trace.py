"""Records which product files run for one ramp-step request in a worker of this process.

Every function that runs in a task which descends from the request's own is the request's, also one that other work uses
too. Probes, maintenance, heartbeats and other consumers run in tasks of their own, so they fall out, however often they
run meanwhile. A thread that a task waits for is not followed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary

from tests.root import ROOT

ROOMS = ("schemas", "evalcore", "agents", "streams", "rampgate")


class Tracer:
    """Install it on a worker's loop. `roots`: how names of the request's tasks begin; `ran`: what ran in them."""

    def __init__(self, *roots: str) -> None:
        self._roots = roots
        self.ran: set[CodeType] = set()
        self._parents: WeakKeyDictionary[asyncio.Task[Any], asyncio.Task[Any] | None] = WeakKeyDictionary()
        self._of_request: WeakKeyDictionary[asyncio.Task[Any], bool] = WeakKeyDictionary()

    @contextmanager
    def installed(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        def make_task(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
            parent = _current_task()
            task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
            self._parents[task] = parent
            return task

        loop.set_task_factory(make_task)
        sys.setprofile(self._called)
        try:
            yield
        finally:
            sys.setprofile(None)
            loop.set_task_factory(None)

    def _called(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call":
            return
        task = _current_task()
        if task is not None and self._descends(task):
            self.ran.add(frame.f_code)

    def _descends(self, task: asyncio.Task[Any]) -> bool:
        """Whether the task is the request's. It is asked when the task runs: a task gets its name after it is made."""
        known = self._of_request.get(task)
        if known is None:
            parent = self._parents.get(task)
            known = task.get_name().startswith(self._roots) or (parent is not None and self._descends(parent))
            self._of_request[task] = known
        return known


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # a thread without a loop
        return None


def product_files(codes: set[CodeType]) -> set[str]:
    """The files of the five packages that define these functions, relative to the repository; without `rampgate/local`,
    whose services the test itself uses."""
    found = set()
    for code in codes:
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in ROOMS:
            found.add(str(path.relative_to(ROOT)))
    return {file for file in found if not file.startswith("rampgate/local/")}
