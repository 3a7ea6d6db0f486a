"""Makes the document of `rampgate suite check`, and names what is not as it should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evalcore.suite.simulation.counted import HEADLINE, PULL_REQUEST, SAFETY, SLICE, Alarms, Detection, Rate, Simulated
from rampgate.suite.check.stored import Fresh, Hits, NoOps, Turnaround

REMEDIES = {
    SLICE: "fewer or larger slices, or more samples",
    HEADLINE: "cases that depend on one another need a `cluster`",
    SAFETY: "a case that main itself fails now and then guards nothing: mend it, or take it out",
    PULL_REQUEST: "fewer or larger slices, and fresh samples where there are none, make it less",
}
NAMES = {SLICE: "a slice", HEADLINE: "all cases", SAFETY: "safety", PULL_REQUEST: "a pull request"}


class Code(StrEnum):
    """What a check found."""

    FALSE_ALARMS = "false_alarms"
    MISSED_DROPS = "missed_drops"
    TOO_FEW_RUNS = "too_few_runs"


@dataclass(frozen=True)
class Finding:
    """One finding; `gate` or `slice` where it is about one."""

    code: Code
    message: str
    gate: str | None = None
    slice: str | None = None


@dataclass(frozen=True)
class Checked:
    """All that a check has. `why_not` says why nothing is simulated, and what to run."""

    suite: str
    score: str
    confirm: bool
    seed: int
    drop: float
    looked_at: int
    turnarounds: Sequence[Turnaround]
    answers: Hits
    judges: Hits
    fresh: Fresh | None = None
    no_ops: NoOps | None = None
    simulated: Simulated | None = None
    unscored: int = 0
    cases: int = 0
    why_not: str = ""
    seconds: Sequence[float] = ()
    safety_failed: bool = True
    """Whether a stored sample of safety failed: else what is simulated of safety is no finding."""

    @property
    def findings(self) -> list[Finding]:
        out = [Finding(Code.TOO_FEW_RUNS, self.why_not)] if self.why_not else []
        if self.simulated is not None:
            told = (one for one in self.simulated.alarms if one.gate != SAFETY or self.safety_failed)
            out += [_alarm(one, "simulated") for one in told if one.above]
            out += [_missed(one) for one in self.simulated.detections if one.missed]
        if self.no_ops is not None:
            out += [_alarm(one, "stored") for one in stored_alarms(self.no_ops) if one.above]
        return out


def stored_alarms(found: NoOps) -> list[Alarms]:
    """What of stored runs can be held against a nominal rate: the headline, which nothing confirms, and runs."""
    headline = found.gates.get(HEADLINE, Rate(0, 0))
    whole = found.gates.get(PULL_REQUEST, Rate(0, 0))
    return [Alarms(HEADLINE, headline, headline), Alarms(PULL_REQUEST, whole, found.shipped)]


def document(checked: Checked) -> dict[str, Any]:
    """The JSON document."""
    findings, fresh, no_ops, simulated = checked.findings, checked.fresh, checked.no_ops, checked.simulated
    return {
        "suite": checked.suite,
        "score": checked.score,
        "verdict": "fail" if findings else "pass",
        "findings": [
            {"code": str(one.code), "message": one.message, "gate": one.gate, "slice": one.slice} for one in findings
        ],
        "runs": {
            "looked_at": checked.looked_at,
            "configuration": fresh.reference.configuration if fresh is not None else None,
            "set": fresh.reference.set if fresh is not None else None,
            "drawn_apart": len(fresh.runs) if fresh is not None else 0,
            "unscored_samples": checked.unscored,
        },
        "turnaround": [
            {"set": one.set, "only": one.only or None, "n": one.n, "p50_seconds": one.p50, "p95_seconds": one.p95}
            for one in checked.turnarounds
        ],
        "hits": {"judge_answers": _hits(checked.judges), "answers": _hits(checked.answers)},
        "stored_no_ops": (
            {
                "pairs": no_ops.pairs,
                "gates": {gate: rate_told(rate) for gate, rate in no_ops.gates.items()},
                "blocked_as_shipped": rate_told(no_ops.shipped),
            }
            if no_ops is not None
            else None
        ),
        "simulated": (
            {
                "comparisons": simulated.comparisons,
                "cases": checked.cases,
                "confirm": "fresh" if checked.confirm else "none",
                "drop": checked.drop,
                "seed": checked.seed,
                "gates": [_gate(one) for one in simulated.alarms],
                "slices": [_slice(one) for one in simulated.detections],
            }
            if simulated is not None
            else None
        ),
    }


def rate_told(rate: Rate) -> dict[str, Any]:
    return {
        "found": rate.found,
        "of": rate.of,
        "ratio": rate.ratio if rate.of else None,
        "ci95": list(rate.ci95) if rate.of else None,
    }


def _gate(one: Alarms) -> dict[str, Any]:
    return {
        "gate": one.gate,
        "plain": rate_told(one.plain),
        "shipped": rate_told(one.shipped),
        "nominal": one.nominal,
        "above": one.above,
    }


def _slice(one: Detection) -> dict[str, Any]:
    return {
        "slice": one.slice,
        "n": one.cases,
        "planted": one.planted,
        "plain": rate_told(one.plain),
        "predicted": one.predicted,
        "shipped": rate_told(one.shipped),
        "predicted_shipped": one.predicted_shipped,
        "missed": one.missed,
    }


def _hits(one: Hits) -> dict[str, Any]:
    return {"kept": one.kept, "of": one.of, "ratio": one.ratio}


def _alarm(one: Alarms, kind: str) -> Finding:
    low, high = one.shipped.ci95
    what = "unchanged candidates" if one.gate != SLICE else "slices of unchanged candidates"
    said = (
        f"{NAMES[one.gate]}: {one.shipped.ratio:.1%} of {one.shipped.of:,} {kind} {what} are blocked "
        f"({low:.1%} to {high:.1%}), more than {one.nominal:.1%}; {REMEDIES[one.gate]}"
    )
    return Finding(Code.FALSE_ALARMS, said, gate=one.gate)


def _missed(one: Detection) -> Finding:
    said = (
        f"the slice {one.slice!r}: a drop of {one.planted:.3g} is found in {one.shipped.ratio:.1%} of "
        f"{one.shipped.of:,} comparisons ({one.plain.ratio:.1%} by the plain rule), though {one.predicted_shipped:.1%} "
        f"({one.predicted:.1%}) are predicted; do not rely on `power` here"
    )
    return Finding(Code.MISSED_DROPS, said, slice=one.slice)
