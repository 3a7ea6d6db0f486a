"""Gives an example of every published form; a test checks each against its schema and, where we read it, the codec."""

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


TRACE_ID: Final = "019bb3a4-5c00-7d3e-9a61-2f4b8c0d1e2f"
_IMAGE = {
    "MessageId": {"S": "msg-1"},
    "UserId": {"S": "user-1"},
    "ResponseId": {"S": "resp-1"},
    "Thumbs": {"S": "down"},
    "CreatedAt": {"S": "2026-03-01T12:00:09Z"},
}
THUMB: Final[dict[str, Any]] = {
    "event_id": "evt-1",
    "response_id": "resp-1",
    "user_id": "user-1",
    "value": "down",
    "occurred_at": "2026-03-01T12:00:09Z",
    "sequence": 7,
}
_CHANGE: dict[str, Any] = {
    "eventID": "4e1b5f0c",
    "eventName": "MODIFY",
    "dynamodb": {
        "Keys": {"MessageId": {"S": "msg-1"}},
        "NewImage": _IMAGE,
        "SequenceNumber": "111000000000000000007",
        "ApproximateCreationDateTime": 1772366409,
    },
}
_EXPIRED = {"userIdentity": {"type": "Service", "principalId": "dynamodb.amazonaws.com"}, "eventName": "REMOVE"}
_TRACE: dict[str, Any] = {
    "event_id": "evt-2",
    "trace_id": TRACE_ID,
    "response_id": "resp-1",
    "project_name": "receipts-eval",
    "started_at": "2026-03-01T12:00:00Z",
    "ended_at": "2026-03-01T12:00:04Z",
    "metadata": {
        "user_id": "user-1",
        "session_id": "session-1",
        "environment": "production",
        "agent_id": "assistant",
        "agent_version": "2.3.0",
        "vertical": "receipts",
        "sub_agent": "lookup",
        "prompt_version": "41",
        "category": "refund",
    },
}
_DETAILS: dict[str, Any] = {
    "input": {"messages": [{"role": "user", "content": "Where is my receipt?"}]},
    "output": {"content": "Here it is."},
    "feedback_scores": [{"name": "helpfulness", "value": 4, "source": "online_scoring"}],
    "usage": {"input_tokens": 812, "output_tokens": 64, "total_tokens": 876, "cost_usd": 0.0021},
    "tool_calls": [{"name": "find_receipt", "arguments": {"month": "2026-02"}, "result": {"id": "r-9"}}],
    "llm_calls": [{"model": "gpt-4.1-mini", "input_tokens": 812, "output_tokens": 64, "latency_ms": 930.0}],
    "handoffs": ["lookup"],
}
_COVERAGE = {
    "vertical": "receipts",
    "window_seconds": 604800,
    "both_present": 41,
    "missing_trace": 1,
    "missing_signal": 8,
    "rate": 0.82,
}
_BALANCE = {
    "consumed": 120,
    "done": 110,
    "superseded": 6,
    "dead_lettered": 1,
    "parked": 1,
    "filtered": 2,
    "difference": 0,
    "reasons": {"dead_lettered": {"malformed": 1}, "parked": {"no_trace": 1}, "filtered": {"ttl_expiry": 2}},
}
_RAMPS = _BALANCE | {
    "consumed": 9,
    "done": 5,
    "superseded": 3,
    "parked": 0,
    "filtered": 0,
    "reasons": {"dead_lettered": {"conflicting_duplicate": 1}, "parked": {}, "filtered": {}},
}
_JUDGE: dict[str, Any] = {
    "id": "response_quality",
    "name": "Response Quality Judge",
    "classification": "quality",
    "score_name": "Response Quality",
    "score_type": "INTEGER",
    "score_range": [1.0, 5.0],
    "thresholds": {"pre_merge": 4, "pre_ramp": 3.5, "pre_full": 4},
    "floor": 2.5,
    "tolerance": 0.2,
    "enforcement": {"pre_merge": "warn", "pre_ramp": "block", "pre_full": "block"},
    "baseline_source": "provisional_seed",
    "calibration_ref": "PLT-812-receipts-bootstrap",
    "recalibration_due": "2026-08-22",
    "sub_agents": ["receipts"],
    "filter": {"field": "sub_agent_id", "key": None, "operator": "=", "value": "receipts"},
    "enabled": True,
    "sampling_rate": 1.0,
    "version": "0b5c1a7e9d2f",
}
_HASH = "6d1f0c2b8e4a"
_FINDING = {
    "file": "configs/rules/response_quality.yaml",
    "line": 12,
    "column": 1,
    "field": "score_type",
    "check": "schema",
    "clause": "PC5 FR-3",
    "message": "'INT' is none of INTEGER, FLOAT, BOOLEAN",
    "fix": "did you mean INTEGER?",
    "severity": "error",
}

EXAMPLES: Final[dict[str, list[dict[str, Any]]]] = {
    "plain-thumb": [THUMB, {**THUMB, "event_id": "evt-3", "value": None, "sequence": "8"}],
    "stream-record": [_CHANGE, {**_CHANGE, **_EXPIRED}],
    "reroll": [
        {
            "event_id": "evt-4",
            "response_id": "resp-1",
            "new_response_id": "resp-2",
            "session_id": "session-1",
            "user_id": "user-1",
            "input_hash": "9f86d081884c7d65",
            "elapsed_seconds": 12.5,
            "occurred_at": "2026-03-01T12:00:17Z",
            "vertical": "receipts",
        }
    ],
    "trace": [_TRACE | _DETAILS, _TRACE],
    "dead-letter-headers": [
        {
            "rampgate.cause": "malformed",
            "rampgate.detail": "value: Input should be 'up' or 'down'",
            "rampgate.topic": "rampgate.thumbs",
            "rampgate.partition": "3",
            "rampgate.offset": "1041",
            "rampgate.timestamp": "1772366409000",
            "rampgate.attempts": "1",
            "rampgate.failed-at": "1772366409250",
            "rampgate.stage": "thumbs.decode",
            "rampgate.replay-id": "5b0a9d5e-5f2b-5c1c-8f3e-0d5c7a1f2b3c",
        }
    ],
    "query-audit": [
        {
            "at": "2026-03-01T12:05:00+00:00",
            "caller": "ci@127.0.0.1",
            "purpose": "eval",
            "query": {"response_id": "resp-1"},
            "vertical": "receipts",
            "count": 1,
            "response_ids_sha256": hashlib.sha256(b"resp-1").hexdigest(),
        }
    ],
    "coverage": [{"window_seconds": 604800, "until_ms": 1772366700000, "verticals": [_COVERAGE]}],
    "conservation": [
        {"window_seconds": 604800, "balanced": True, "signals": {"thumbs": _BALANCE, "ramp_step": _RAMPS}}
    ],
    "turn": [
        {
            "response_id": "resp-1",
            **{name: value for name, value in _TRACE["metadata"].items() if name != "agent_id"},
            "timestamp": "2026-03-01T12:00:04Z",
            "feedback_scores": {"user_signal_reroll": 0.0, "user_signal_thumbs": -1.0},
            "judge_scores": [{"judge_id": "helpfulness", "score": 4.0, "reason": None}],
            "trace": {"id": TRACE_ID, "project_name": "receipts-eval"},
            "frames": [],
        }
    ],
    "eval-config": [
        {
            "vertical": "receipts",
            "category": "receipt_dispute_flow",
            "manifest_version": 7,
            "config_hash": _HASH,
            "judges": [
                _JUDGE,
                _JUDGE
                | {
                    "id": "jailbreaking",
                    "classification": "safety_refusal",
                    "score_type": "BOOLEAN",
                    "score_range": [0.0, 1.0],
                    "thresholds": {"pre_merge": True, "pre_ramp": True, "pre_full": True},
                    "enforcement": {"pre_merge": "block", "pre_ramp": "block", "pre_full": "block"},
                    "calibration_ref": None,
                    "sub_agents": [],
                    "filter": None,
                },
            ],
        }
    ],
    "refresh": [
        {
            "outcome": "refused",
            "message": "1 error; the version before it keeps serving",
            "config_hash": _HASH,
            "previous_config_hash": _HASH,
            "judges": 16,
            "error_count": 1,
            "warning_count": 0,
            "errors": [_FINDING],
            "warnings": [],
        }
    ],
} | GATE_EXAMPLES
