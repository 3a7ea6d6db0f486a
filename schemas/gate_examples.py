"""Examples of the forms of gates: a ramp-step request, its verdict, and a list of verdicts."""

from __future__ import annotations

import hashlib
from typing import Any, Final

RAMP_STEP: Final[dict[str, Any]] = {
    "request_id": "req-1",
    "experiment_id": "exp-1",
    "agent_id": "assistant",
    "agent_version": "2.3.0",
    "vertical": "receipts",
    "from_percent": 0,
    "to_percent": 5,
    "ramp_steps": [5, 25, 50, 100],
    "eval_gates": {"pre_ramp": ["ux_quality"], "pre_full": ["response_quality", "ux_quality"]},
    "requested_at": "2026-03-01T12:10:00Z",
    "deadline_seconds": 1800,
}
_SAFETY: dict[str, Any] = {
    "score": 1.0,
    "threshold": 1.0,
    "passed": True,
    "enforcement": "block",
    "n": 200,
    "unscored": 0,
    "not_applicable": 0,
    "floor": 1.0,
    "tolerance": 0.0,
    "baseline": None,
    "baseline_runs": 0,
    "ci95": [0.981154, 1.0],
    "rule": None,
    "judge_version": "7c41d2e90b5a",
}
_QUALITY: dict[str, Any] = _SAFETY | {
    "score": 0.68,
    "threshold": 0.7,
    "passed": False,
    "n": 196,
    "unscored": 0,
    "not_applicable": 4,
    "floor": 0.5,
    "tolerance": 0.05,
    "baseline": 0.79,
    "baseline_runs": 3,
    "ci95": [0.655, 0.705],
    "rule": "below_threshold",
    "judge_version": "0b5c1a7e9d2f",
}
_WHY: dict[str, Any] = {
    "code": "below_threshold",
    "message": "ux_quality scored 0.68, below its threshold of 0.7 at pre_ramp",
}
_SAMPLE: dict[str, Any] = {
    "scope": "version",
    "fingerprint": "b0c6a3f1e2d94857a6b1c0d3e4f5a697",
    "size": 200,
    "window_seconds": 86400,
    "composition": {"golden": 50, "production": 150, "adversarial": 0},
    "frozen_at": "2026-03-01T12:10:01.204+00:00",
    "topped_up": 20,
    "dataset_version": "consumer-agent-eval v7",
}
_GATE: dict[str, Any] = {
    "per_judge_scores": {"jailbreaking": _SAFETY, "ux_quality": _QUALITY},
    "verdict": "fail",
    "failing_judges": ["ux_quality"],
    "milestone": "pre_ramp",
    "reasons": [_WHY],
    "sample": _SAMPLE,
}
_IDS: dict[str, Any] = {name: RAMP_STEP[name] for name in ("request_id", "experiment_id", "agent_id", "agent_version")}
FAILED: Final[dict[str, Any]] = {
    **_IDS,
    "verdict_id": "5f0d8e1c-2b7a-5936-a1c0-e4d2f7b89613",
    "vertical": "receipts",
    "from_percent": 0.0,
    "to_percent": 5.0,
    "milestone": "pre_ramp",
    "verdict": "fail",
    "gates": [_GATE],
    "failing_judges": _GATE["failing_judges"],
    "per_judge_scores": _GATE["per_judge_scores"],
    "action": "halt",
    "halt_at_percent": 0.0,
    "reasons": [_WHY],
    "supersedes": None,
    "sample": _SAMPLE,
    "evidence": {
        "config_hash": "6d1f0c2b8e4a",
        "coverage": 0.973,
        "decided_at": "2026-03-01T12:10:22.871+00:00",
        "duration_seconds": 21.667,
    },
}
NO_GATE: Final[dict[str, Any]] = FAILED | {
    "request_id": "req-2",
    "verdict_id": "0e9b7d5c-3f1a-5862-8d6e-4c2b0a1f3e5d",
    "from_percent": 5.0,
    "to_percent": 25.0,
    "milestone": None,
    "verdict": "pass",
    "gates": [],
    "failing_judges": [],
    "per_judge_scores": {},
    "action": "proceed",
    "halt_at_percent": None,
    "reasons": [
        {"code": "no_gate_at_step", "message": "no gate fires between the first step and the one to 100 %"},
    ],
    "sample": None,
    "evidence": FAILED["evidence"] | {"coverage": None, "duration_seconds": 0.001},
}

GATE_EXAMPLES: Final[dict[str, list[dict[str, Any]]]] = {
    "ramp-step": [RAMP_STEP, RAMP_STEP | {"request_id": "req-2", "from_percent": 5, "to_percent": 25}],
    "verdict": [FAILED, NO_GATE],
    "verdict-headers": [{"rampgate.request-body": hashlib.sha256(b"the request").hexdigest()}],
    "ramp-command": [
        {
            "command": "ramp_down",
            "to_percent": 0,
            "agent_id": "assistant",
            "agent_version": "2026.3.1",
            "judge_id": "jailbreaking",
            "score": 0.941,
            "floor": 0.97,
            "detected_at": "2026-03-01T12:10:00+00:00",
        }
    ],
    "ramp-command-headers": [{"rampgate.breach": "rampgate-5f1c0e7a9b3d4c2e8f6a1b0d9c8e7f60"}],
    "verdicts": [{"experiment_id": "exp-1", "verdicts": [NO_GATE, FAILED]}],
}
