"""A full run that passed has a canary plan: ramp-step requests for exactly its configuration. None else has one."""

from __future__ import annotations

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from schemas.publish.contracts import schema
from schemas.ramp_steps import RampStep
from tests.unit.rampgate.suite.suite_commands import ran, refused
from tests.unit.rampgate.suite.suite_folders import case, written


def test_the_plan_ramps_this_configuration_and_no_other_and_goes_with_a_failure(folder: Path) -> None:
    path = written(folder, [case(number) for number in range(20)])
    main, plan, page = folder / "main.jsonl", folder / "plan.jsonl", folder / "page.html"
    first = ran(path, "--out", main, "--canary", plan)
    assert (first["canary_plan"], plan.exists()) == (None, False), "nothing was held against anything"
    found = ran(path, "--baseline", main, "--canary", plan, "--report", page)
    steps = [json.loads(line) for line in plan.read_text().splitlines()]
    assert steps == found["canary_plan"]
    for step in steps:
        RampStep.model_validate(step)
        Draft202012Validator(schema("ramp-step")).validate(step)
    assert {step["agent_version"] for step in steps} == {found["configuration"]}
    assert [(step["from_percent"], step["to_percent"]) for step in steps] == [(0, 5), (5, 25), (25, 100)]
    assert len({step["request_id"] for step in steps}) == 3
    assert "Canary plan" in page.read_text()
    assert {step["suite"]["said"] for step in steps} == {found["comparison"]["said"]}
    assert ran(path, "--smoke", "--baseline", main)["canary_plan"] is None, "a smoke set ramps nobody"
    (folder / "prompt.md").write_text("bad\n")
    assert ran(path, "--baseline", main, "--canary", plan, code=1)["canary_plan"] is None
    assert not plan.exists(), "a plan of before is another run's"


def test_a_plan_goes_to_a_folder_that_exists_or_nothing_is_asked(folder: Path) -> None:
    assert "--canary" in refused(written(folder), "--canary", folder / "nowhere" / "plan.jsonl")
