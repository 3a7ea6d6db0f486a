"""Makes a canary plan of a run that passed: the ramp-step requests that a controller publishes one after the other, for
exactly this configuration (contracts §1). Pure but for `write_plan`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from rampgate.files import replace_file, writing
from rampgate.suite.runs.stored import PASSED

if TYPE_CHECKING:
    from rampgate.report.model import Section

STEPS: Final = (5, 25, 100)
"""Percent of users, one step after the other: the first asks pre_ramp, the last pre_full."""


def canary_plan(
    told: Mapping[str, Any], vertical: str | None, judges: Sequence[str], now: datetime
) -> list[dict[str, Any]] | None:
    """The requests, or None: of a run that did not pass, of a smoke set, and of one that was compared with nothing.

    The agent's version is the hash of the configuration, so that no other is ramped on this verdict; the same run has
    the same request ids, by which a step that is asked for twice is answered once. Each takes along what the suite
    said, with its warnings: pre_ramp decides.
    """
    if told["verdict"] not in PASSED or told["set"] != "full" or told["comparison"] is None:
        return None
    from schemas.ramp_steps import RampStep

    version = told["configuration"]
    experiment = f"{told['agent']}-{version[:12]}"
    found = told["comparison"]
    said = {"verdict": told["verdict"], "said": found["said"], "warnings": [one["message"] for one in found["reasons"]]}
    plan = []
    for before, to in zip((0, *STEPS), STEPS, strict=False):
        request = {
            "request_id": f"{experiment}-{to}",
            "experiment_id": experiment,
            "agent_id": told["agent"],
            "agent_version": version,
            **({"vertical": vertical} if vertical is not None else {}),
            "from_percent": float(before),
            "to_percent": float(to),
            "ramp_steps": [float(step) for step in STEPS],
            "eval_gates": {"pre_ramp": [*judges], "pre_full": [*judges]},
            "requested_at": now.isoformat(timespec="milliseconds"),
            "suite": said,
        }
        RampStep.model_validate(request)
        plan.append(request)
    return plan


def write_plan(path: Path | None, plan: Sequence[Mapping[str, Any]] | None) -> None:
    """Write the requests as JSON Lines. Without a plan a file of before is removed: it is another run's. Raises
    Failure."""
    if path is None:
        return
    with writing(f"--canary {path}"):
        if plan is None:
            path.unlink(missing_ok=True)
        else:
            replace_file(
                path, b"".join(orjson.dumps(one, option=orjson.OPT_APPEND_NEWLINE) for one in plan), "--canary"
            )


def canary_section(plan: Sequence[Mapping[str, Any]]) -> Section:
    """What a report says of the plan."""
    from rampgate.report.model import Section

    first = plan[0]
    rows = [[f"{one['from_percent']:g} %", f"{one['to_percent']:g} %", one["request_id"]] for one in plan]
    notes = [
        f"agent {first['agent_id']}, version {first['agent_version']}, experiment {first['experiment_id']}",
        f"the suite's run: {first['suite']['said']}",
        *first["suite"]["warnings"],
        "publish one request after the other to the topic of ramp steps, each after the verdict on the one before",
    ]
    return Section("Canary plan", ("From", "To", "Request"), rows, notes)
