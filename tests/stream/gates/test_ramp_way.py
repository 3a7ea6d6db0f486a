"""A ramp step's way through the product's files, as `docs/ways.md` tells it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from pydantic import SecretStr

from rampgate.local.services.http_services import LocalModel
from rampgate.local.services.kafka import KafkaCluster
from tests.root import ROOT
from tests.stream.gates.ramp_rig import Rig, by_request, ramp_rig, step, thumb, trace
from tests.ways import files_of

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


COMMITTED_SECONDS = 2.0


@pytest.fixture
async def rig(
    kafka: KafkaCluster,
    redis_url: str,
    local_opik: Any,
    topic_prefix: str,
    registry_of_today: Path,
    judges_model: LocalModel,
) -> AsyncIterator[Rig]:
    async with ramp_rig(kafka, redis_url, local_opik.url, topic_prefix, registry_of_today) as made:
        # With a secret that all workers have (docs/judging.md); without one Redis is asked for the installation's.
        own = {"model_url": judges_model.url, "seal_key": SecretStr("a secret of all workers")}
        made.settings = made.settings.model_copy(update=own)
        made.scoring = None  # what the settings say: a real model's client
        yield made


async def test_a_ramp_step_passes_the_files_of_its_page_and_no_other(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """With judges that call a model, so that three ways run: the step's, its judgements', and their events'."""
    # The operators' news read the verdicts' topic as a consumer of their own, after the way's end.
    monkeypatch.setattr("rampgate.worker.operators.Operators.start", lambda self: None)
    await rig.start()
    await rig.send("traces", *(trace(f"r{number}") for number in range(120)))
    await rig.send("thumbs", *(thumb(f"r{number}") for number in range(30)))
    await rig.joined(trace=120, thumbs=30)
    tracer = Tracer("gates ", "gate ")
    with tracer.installed(asyncio.get_running_loop()):
        await rig.send("ramp-steps", step("one"))
        found = by_request(await rig.verdicts(1))
        await asyncio.sleep(COMMITTED_SECONDS)
    assert [reason["code"] for reason in found["one"]["reasons"]] == ["gate_missing"], found
    ways = "A ramp step's way", "A judgement's way", "A score's way to the store of traces"
    told = {file for way in ways for file in files_of(way)}  # one may be on two of them
    ran = set(product_files(tracer.ran))
    assert (ran - told, told - ran) == (set(), set())
