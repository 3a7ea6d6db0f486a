"""`gate compare --verdicts topic`: a ramp that a worker decided is decided again by two versions of its judge, on a
real Kafka (PC5 §9.3)."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evalcore.registry.disk import today
from rampgate.local.demo.registry import seeded
from rampgate.local.services.http_services import LocalModel
from tests.stream.commands import Ran, in_process_of_its_own
from tests.stream.gates.ramp_rig import Rig, by_request, step, thumb, trace
from tests.unit.evalcore.registry.registry_disk import rewritten
from tests.unit.rampgate.registry.git_folders import committed

RULE = "rules/receipts/ux_quality.yaml"


@pytest.fixture
def registry_of_today(tmp_path: Path) -> Path:
    """A registry of its own, with its history, in place of the session's."""
    configs = seeded(tmp_path, today())
    committed(tmp_path)
    return configs


def said(response_id: str, version: str) -> dict[str, Any]:
    made = trace(response_id, version)
    made["output"]["messages"][-1]["content"][-1]["text"] = f"in your wallet, {response_id} #quality:0.8"
    return made


async def test_pc5_9_3_a_past_ramp_on_the_topic_is_decided_by_both_versions_on_its_own_traces(
    rig: Rig, registry_of_today: Path, tmp_path: Path
) -> None:
    traces = [said(f"r{number}", "v2") for number in range(120)]
    await rig.start()
    await rig.send("traces", *traces)
    await rig.send("thumbs", *(thumb(f"r{number}") for number in range(30)))
    await rig.joined(trace=120, thumbs=30)
    await rig.send("ramp-steps", step("ramp"), step("between", from_percent=5, to_percent=10))
    await rig.send("ramp-steps", step("another", agent_version="v1"))
    found = by_request(await rig.verdicts(3))
    assert found["ramp"]["gates"][0]["verdict"] == "pass", found["ramp"]["reasons"]
    await rig.send("verdicts", b"no json", {"agent_id": "assistant", "agent_version": "v2"}, found["ramp"])
    await rig.stop()

    file = tmp_path / "traces.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in traces))
    with LocalModel() as model:
        told = {
            "RAMPGATE_CONFIGS": str(registry_of_today), "RAMPGATE_KAFKA": rig.kafka.bootstrap,
            "RAMPGATE_MODEL_URL": model.url,
            "RAMPGATE_TOPIC_PREFIX": rig.settings.topic_prefix,
        }  # fmt: skip
        asked = ("gate", "compare", "--old", "main", "--traces", str(file), "--verdicts", "topic", "--json")

        async def compared(*words: str, **more: str) -> Ran:
            return await asyncio.to_thread(partial(in_process_of_its_own, told | more, *asked, *words))

        alike = await compared()
        assert (alike.code, alike.json["otherwise"]) == (0, 0), alike.err
        rewritten(registry_of_today / RULE, "threshold: 0.7", "threshold: 0.9")
        apart = await compared()
        archive = tmp_path / "verdicts.jsonl"  # the values, a line each, as docs/verdicts.md archives the history
        archive.write_text("".join(f"{json.dumps(found[name])}\n" for name in ("ramp", "between", "another")))
        archived = await compared("--verdicts", str(archive))
        away = await compared(RAMPGATE_TOPIC_PREFIX=f"{rig.settings.topic_prefix}nothing.")
    assert apart.code == 1, apart.err
    (ramp,) = apart.json["ramps"]
    assert (ramp["request_id"], ramp["agent_version"], ramp["milestone"]) == ("ramp", "v2", "pre_ramp")
    assert (ramp["decided"], ramp["old"], ramp["new"], ramp["otherwise"]) == ("pass", "pass", "fail", True)
    assert (ramp["traces"], ramp["same_sample"]) == (120, True), "they are the ones that the worker decided on"
    assert (archived.code, archived.json["ramps"]) == (1, apart.json["ramps"]), "PC5 §5.5: the archive tells the same"
    assert away.code == 2
    assert "--verdicts: Kafka: there is no topic" in away.err
