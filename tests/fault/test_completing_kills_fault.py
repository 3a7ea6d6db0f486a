"""A worker that completes traces with their workflows is killed amid its work: each trace is completed, and once (Done
when 3 of remediation workflows)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalcore.registry.disk import today
from rampgate.local.demo.registry import seeded
from streams.cluster.twin import written_objects
from tests.fault.rig import Rig, now_ms
from tests.fault.turns import Message
from tests.stream.gates.ramp_rig import trace
from tests.unit.agents.completing.completing_rig import analysis, proposal

TRACES, A_SECOND, KILLS = 160, 20, 3
OTHERS = 3
"""Traces that name no workflow, behind each that names one: the completed one comes far behind the bare one."""


def test_a_killed_reader_completes_each_trace_and_none_twice(make_rig: Callable[..., Rig], tmp_path: Path) -> None:
    configs = seeded(tmp_path / "configs", today())
    file = tmp_path / "cluster.yaml"
    at = now_ms()
    names = [f"w{number}" for number in range(TRACES)]
    ended = [proposal(name, "Analyzed=True", "Executed=True", "Verified=True", at=at, ended=at) for name in names]
    file.write_text(written_objects([*ended, *map(analysis, names)]))
    rig = make_rig(configs=configs, cluster_url=f"file:{file}", seal_key="a seal key of this test", write="false")
    project = f"{rig.prefix}project"
    (configs / "verticals" / "remediation.yaml").write_text(
        f"name: remediation\nproject: {project}\nproposal_namespaces: [shop]\n"
    )

    def messages() -> Any:
        for name in names:
            yield message(name, project, {"namespace": "shop", "name": name})
            for number in range(OTHERS):
                yield message(f"{name}-{number}", project, None)

    worker = rig.worker()
    rig.wait("it reads", lambda: rig.sharing("traces") > 0)
    sending = rig.sending([*messages()], A_SECOND * (1 + OTHERS))
    for kill in range(1, KILLS + 1):
        rig.wait("some are completed", lambda share=kill: len(completed(rig)) >= share * TRACES // 5, every=0.02)
        worker.kill()
        worker = rig.worker()
    sending.join()
    rig.wait("all are completed", lambda: len(completed(rig).keys()) == TRACES)
    rig.wait("all is joined", rig.drained)

    twice = {name: times for name, times in completed(rig).items() if times > 1}
    assert not twice
    assert worker.terminate() == 0
    assert rig.dead_letters() == []


def message(name: str, project: str, workflow: Any) -> Message:
    event = trace(name, "v1") | {"project_name": project}
    event["metadata"] |= {"vertical": "remediation", "category": "general_qa", "sub_agent": "remediation"}
    if workflow is not None:
        event["proposal"] = workflow
    return Message("traces", name.encode(), json.dumps(event).encode())


def completed(rig: Rig) -> Counter[str]:
    """How often each trace was completed, by its response."""
    events = (json.loads(record.value or b"{}") for record in rig.records("traces"))
    return Counter(event["response_id"] for event in events if "proposal_seal" in event)
