"""Judges' scores as events while workers die: none is lost, and a repeat has the id of the first (PC5 §9.4)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

from agents.keys import LIVE_MARK
from evalcore.registry.disk import read_tree, today
from evalcore.registry.registry import build
from evalcore.scoring.applicability import chosen, judges_of
from evalcore.scoring.sampling import share
from evalcore.validation import checked
from tests.fault.faulty_gates import CALLS, JUDGES, GateRig, Model, step
from tests.fault.held import PARTITIONS
from tests.fault.rig import Rig
from tests.fault.turns import Message
from tests.stream.gates.ramp_rig import trace

Make = Callable[..., Rig]
TRACES = 24
SCORES = "/traces/feedback-scores"
FOREVER = 600.0


def events(rig: Rig) -> list[dict[str, Any]]:
    """All that a plain consumer, such as PS-5's, reads."""
    return [json.loads(record.value or b"") for record in rig.records("judge-scores")]


def marks(rig: Rig) -> int:
    """Traces that are noted as judged."""
    return sum(1 for _ in rig.state.scan_iter(f"{rig.prefix}{LIVE_MARK.prefix}*", count=1000))


Score = tuple[str, str, str | None]
"""(trace, judge, dimension)."""


def asked(configs: Path, turn: dict[str, Any]) -> set[Score]:
    """What must come of a trace: the judges that score it, each once, and each of their dimensions."""
    files, _ = checked(read_tree(configs), today())
    who = chosen(judges_of(build(files), turn), turn, share(UUID(turn["trace_id"]).bytes), False)
    return {(turn["trace_id"], judge.id, one) for judge in who for one in (None, *judge.dimensions)}


def test_pc5_9_4_a_worker_killed_between_scoring_and_settling_loses_no_live_score(
    make_rig: Make, model: Model, registry_of_today: Path
) -> None:
    """Opik holds the scores back, so nothing is settled when the worker dies; the next one asks again."""
    rig = make_rig(model_url=model.url, model_key="secret", live_settle_seconds=1)
    rig.kafka.create_topics([f"{rig.prefix}{name}" for name in ("ramp-steps", "verdicts", "judge-scores")], PARTITIONS)
    rig.opik.fault(match={"method": "PUT", "path": SCORES}, delay_seconds=FOREVER)
    worker = rig.worker()
    turns = [trace(f"r{number}") for number in range(TRACES)]
    expected = set[Score]().union(*(asked(registry_of_today, turn) for turn in turns))
    assert len(expected) > TRACES
    rig.send(Message("traces", turn["response_id"].encode(), json.dumps(turn).encode()) for turn in turns)
    rig.wait("scores are events", lambda: events(rig))
    assert marks(rig) == 0, "nothing rests on them yet"
    worker.kill()
    before = len(events(rig))
    rig.opik.heal()
    rig.worker()
    rig.wait("every trace is judged and noted", lambda: marks(rig) == TRACES)
    found = events(rig)
    assert len(found) > before
    distinct = {one["event_id"]: one for one in found}
    assert len(found) > len(distinct), "what was sent and not settled comes again"
    scores = [(one["trace_id"], one["judge_id"], one.get("dimension")) for one in distinct.values()]
    assert Counter(scores) == Counter(expected)
    assert {one["source"] for one in found} == {"live"}


def test_pc5_9_4_a_worker_killed_among_its_gates_events_leaves_each_score_once_for_a_reader(
    make_rig: Make, model: Model
) -> None:
    """It dies as soon as an event is seen, so that some are sent and others not; a request has one verdict still."""
    gates = GateRig(make_rig, model)
    gates.rig.kafka.create_topics([f"{gates.rig.prefix}judge-scores"], PARTITIONS)
    worker = gates.rig.worker()
    gates.joined()
    gates.ask(step("r-1", deadline_seconds=600))
    gates.rig.wait("a gate's scores are events", lambda: events(gates.rig), every=0.01)
    worker.kill()
    gates.rig.worker()
    assert gates.one_each(["r-1"])["r-1"]["per_judge_scores"]
    found = events(gates.rig)
    distinct = {one["event_id"]: one for one in found}
    assert len(distinct) == CALLS
    assert Counter(one["judge_id"] for one in distinct.values()).most_common()[-1][1] == CALLS // JUDGES
    told = {(one["source"], one["request_id"], one["milestone"], one["agent_version"]) for one in found}
    assert told == {("gate", "r-1", "pre_ramp", "v2")}
