"""A ramp step's way through the product's files, as `docs/ways.md` tells it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from rampgate.local.services.http_services import LocalModel
from rampgate.local.services.kafka import KafkaCluster
from tests.stream.gates.ramp_rig import Rig, by_request, ramp_rig, step, thumb, trace
from tests.stream.gates.ramp_trace import Tracer, product_files
from tests.ways import files_of

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
