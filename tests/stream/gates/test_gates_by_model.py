"""Gates end to end in a worker process, with judges that call a model: the local stand-in (PC5 AC-4, §9.5)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.dev import DevStack
from tests.asking import HTTP
from tests.stream.gates.ramp_rig import step, thumb, trace
from tests.stream.local.dev_rig import calls, consumed, running, send, tell, verdicts
from tests.waiting import until

TRACES = 320


@pytest.fixture(scope="module")
def dev(served_today: Path) -> Iterator[DevStack]:
    """With short patience for a model that is down, which a test here waits for; as shipped in tests/fault."""
    with running(DevStack, MODEL_PATIENCE_SECONDS="6") as stack:
        send(stack, "traces", *(trace(f"r{n}") for n in range(TRACES)))
        send(stack, "thumbs", *(thumb(f"r{n}") for n in range(40)))
        until(lambda: consumed(stack, "trace") == TRACES and consumed(stack, "thumbs") == 40)
        yield stack


def verdict(dev: DevStack, request: dict[str, Any], seconds: float = 90.0) -> dict[str, Any]:
    send(dev, "ramp-steps", request)
    until(lambda: verdicts(dev, request["experiment_id"]), "a verdict", seconds)
    (found,) = verdicts(dev, request["experiment_id"])
    return found


@pytest.fixture(scope="module")
def judged_once(dev: DevStack) -> dict[str, Any]:
    return verdict(dev, step("r-1", experiment_id="e-model"))


def test_judges_are_asked_and_their_scores_decide(dev: DevStack, judged_once: dict[str, Any]) -> None:
    found = judged_once
    scores = found["per_judge_scores"]
    assert scores["ux_quality"]["n"] == 200
    assert all(0 <= score["score"] <= 1 for score in scores.values())
    assert found["verdict"] in ("warn", "fail")
    assert (found["verdict"] == "warn") == (found["failing_judges"] == []), "it only lacks the gate before"
    assert calls(dev) >= 200


@pytest.mark.usefixtures("judged_once")
def test_a_repeated_question_costs_nothing(dev: DevStack) -> None:
    """Another request about the same traces: the judges' answers are in the cache."""
    before = calls(dev)
    found = verdict(dev, step("r-2", experiment_id="e-again"), 20.0)
    assert found["per_judge_scores"]["ux_quality"]["n"] == 200
    assert calls(dev) == before
    page = HTTP.get(f"{dev.addresses['http']}/metrics").raise_for_status().text
    (line,) = (one for one in page.splitlines() if one.startswith("rampgate_judge_cache_hit_ratio "))
    assert 0.4 < float(line.split()[1]) < 1.0, "contracts §6: about half of all judgements were there"


def test_traces_whose_events_carry_no_text_are_judged_by_what_opik_has(
    dev: DevStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contracts §1: an event "without input/output, to be read from Opik"."""
    monkeypatch.setenv("OPIK_SENTRY_ENABLE", "false")
    monkeypatch.setenv("OPIK_ANALYTICS_ENABLE", "false")
    import opik

    events = [trace(f"lean{n}", "lean-1") for n in range(110)]
    sdk = opik.Opik(host=dev.addresses["opik"], project_name="receipts-eval")
    for event in events:
        said = {name: event.pop(name) for name in ("input", "output")}
        sdk.trace(id=event["trace_id"], name="turn", metadata=event["metadata"], **said).end()
    sdk.end()
    send(dev, "traces", *events)
    asked = step("r-lean", experiment_id="e-lean", agent_version="lean-1", deadline_seconds=90)
    found = verdict(dev, asked)
    while found["sample"] is None or found["sample"]["size"] < len(events):  # the join had not come to all of them
        number = found["request_id"].count("+") + 1
        assert number < 20, found["reasons"]
        time.sleep(1.0)
        asked = step("r-lean" + "+" * number, experiment_id=f"e-lean-{number}", agent_version="lean-1")
        found = verdict(dev, asked)
    assert found["per_judge_scores"]["ux_quality"]["n"] == len(events)
    assert {score["unscored"] for score in found["per_judge_scores"].values()} == {0}


@pytest.mark.parametrize(("name", "behaviour"), [("down", {"status": 503}), ("page", {"wrong": "no_completion"})])
def test_pc5_9_5_a_model_that_is_down_fails_closed_with_judge_unavailable_and_nothing_else(
    dev: DevStack, name: str, behaviour: dict[str, Any]
) -> None:
    before = consumed(dev, "trace")
    send(dev, "traces", *(trace(f"{name}{n}", f"v-{name}") for n in range(120)))
    until(lambda: consumed(dev, "trace") == before + 120)
    tell(dev, **behaviour)
    request = step(f"r-{name}", experiment_id=f"e-{name}", agent_version=f"v-{name}", deadline_seconds=600)
    found = verdict(dev, request, 150.0)
    assert found["verdict"] == "fail"
    assert {reason["code"] for reason in found["reasons"]} == {"judge_unavailable"}
