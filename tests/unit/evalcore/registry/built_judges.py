"""A judge as a vertical sees it, made of code and no file; each test changes what it is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

from evalcore.registry.registry import Judge
from schemas.judges import (
    BaselineSource,
    Calibration,
    Classification,
    Enforcement,
    Filter,
    Milestone,
    RuleFile,
    ScoreType,
    Variables,
)

OWN = {
    "name",
    "model",
    "temperature",
    "sampling_rate",
    "enabled",
    "prompt",
    "task_introduction",
    "description",
    "applies_to",
}


def judge(judge_id: str = "response_quality", **changes: Any) -> Judge:
    rule_changes = {name: changes.pop(name) for name in tuple(changes) if name in RuleFile.model_fields and name in OWN}
    bindings = {"input": "input.messages[-1].content", "output": "output.text"}
    rule = RuleFile(
        name=judge_id.replace("_", " ").title(),
        model="gpt-5-mini",
        temperature=1.0,
        sampling_rate=0.5,
        enabled=True,
        score_name=judge_id,
        score_type=ScoreType.INTEGER,
        description="How good the answer is.",
        task_introduction="You judge answers.",
        variables=Variables(offline=bindings, online=bindings, playground=bindings),
        prompt="Rate {{ input }}.",
        classification=Classification.QUALITY,
        floor=2,
        tolerance=0.5,
        baseline_source=BaselineSource.JADE_CALIBRATION,
        calibration_ref="PLT-596",
        recalibration_due=date(2027, 1, 1),
    ).model_copy(update=rule_changes)
    made = Judge(
        id=judge_id,
        vertical="receipts",
        rule=rule,
        classification=Classification.QUALITY,
        score_name=judge_id,
        score_type=ScoreType.INTEGER,
        score_range=(1.0, 5.0),
        thresholds=dict.fromkeys(Milestone, 4.0),
        default_threshold=4.0,
        floor=2.0,
        tolerance=0.5,
        enforcement=dict.fromkeys(Milestone, Enforcement.BLOCK),
        filter=Filter(field="sub_agent_id", operator="equals", value="receipts"),
        sub_agents=(),
        baseline_source=BaselineSource.JADE_CALIBRATION,
        calibration_ref="PLT-596",
        calibration=Calibration(ticket="PLT-596", traces=250),
        recalibration_due=date(2027, 1, 1),
        version="v1",
    )
    return replace(made, **changes)
