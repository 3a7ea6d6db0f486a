"""Makes the document of `rampgate suite check`, and names what is not as it should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from evalcore.suite.resampled import (
    HEADLINE,
    NOMINAL,
    PULL_REQUEST,
    SAFETY,
    WARNING,
    Alarms,
    Planted,
    Rate,
    Simulated,
)
from rampgate.suite.check.stored import Fresh, Hits, NoOps, Turnaround

REMEDIES = {
    HEADLINE: "cases that depend on one another need a `cluster`",
    SAFETY: "a case that main itself fails now and then guards nothing: mend it, or take it out",
    WARNING: "more samples, and fewer cases that main itself fails now and then, make it less",
    PULL_REQUEST: "fewer or larger slices, and fresh samples where there are none, make it less",
}
NAMES = {HEADLINE: "all cases", SAFETY: "safety", WARNING: "a warning", PULL_REQUEST: "a pull request"}
MOST_STORED = 0.025
"""The share of stored runs of one candidate whose headline may be worse."""


class Code(StrEnum):
    """What a check found."""

    FALSE_ALARMS = "false_alarms"
    MISSED_DROPS = "missed_drops"
    TOO_FEW_RUNS = "too_few_runs"


@dataclass(frozen=True)
class Finding:
    """One finding; `gate`, or the number of `broken` cases, where it is about one."""

    code: Code
    message: str
    gate: str | None = None
    broken: int | None = None


@dataclass(frozen=True)
class Checked:
    """All that a check has. `why_not` says why nothing is simulated, and what to run."""

    suite: str
    score: str
    confirm: bool
    seed: int
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

    @property
    def findings(self) -> list[Finding]:
        out = [Finding(Code.TOO_FEW_RUNS, self.why_not)] if self.why_not else []
        if self.simulated is not None:
            out += [_alarm(one, "resampled") for one in self.simulated.alarms if one.above]
            out += [_missed(one) for one in self.simulated.planted if one.missed]
        if self.no_ops is not None:
            out += [_alarm(one, "stored") for one in stored_alarms(self.no_ops) if one.above]
        return out


def stored_alarms(found: NoOps) -> list[Alarms]:
    """Returns what of stored runs has a nominal rate: the headline, which is not confirmed, and runs."""
    headline = found.gates.get(HEADLINE, Rate())
    whole = found.gates.get(PULL_REQUEST, Rate())
    return [
        Alarms(HEADLINE, MOST_STORED, headline, headline),
        Alarms(PULL_REQUEST, NOMINAL[PULL_REQUEST], whole, found.shipped),
    ]


def document(checked: Checked) -> dict[str, Any]:
    """The JSON document."""
    findings, fresh, no_ops, simulated = checked.findings, checked.fresh, checked.no_ops, checked.simulated
    return {
        "suite": checked.suite,
        "score": checked.score,
        "verdict": "fail" if findings else "pass",
        "findings": [
            {"code": str(one.code), "message": one.message, "gate": one.gate, "broken": one.broken} for one in findings
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
                "seed": checked.seed,
                "gates": [_gate(one) for one in simulated.alarms],
                "planted": [_planted(one) for one in simulated.planted],
                "slices": [
                    {"slice": one.slice, "n": one.cases, "shipped": rate_told(one.shipped)}
                    for one in simulated.detections
                ],
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


def _planted(one: Planted) -> dict[str, Any]:
    return {
        "broken": one.broken,
        "blocked": rate_told(one.blocked),
        "warned": rate_told(one.warned),
        "unseen": rate_told(one.unseen),
        "most_unseen": one.most_unseen,
        "missed": one.missed,
    }


def _hits(one: Hits) -> dict[str, Any]:
    return {"kept": one.kept, "of": one.of, "ratio": one.ratio}


def _alarm(one: Alarms, kind: str) -> Finding:
    low, high = one.shipped.ci95
    done = "get a warning of a slice or a case" if one.gate == WARNING else "are blocked"
    said = (
        f"{NAMES[one.gate]}: {one.shipped.ratio:.1%} of {one.shipped.of:,} {kind} unchanged candidates {done} "
        f"({low:.1%} to {high:.1%}), more than {one.nominal:.1%}; {REMEDIES[one.gate]}"
    )
    return Finding(Code.FALSE_ALARMS, said, gate=one.gate)


def _missed(one: Planted) -> Finding:
    low, high = one.unseen.ci95
    said = (
        f"{one.broken} cases of a slice that fail for good pass without a word in {one.unseen.ratio:.1%} of "
        f"{one.unseen.of:,} resampled comparisons ({low:.1%} to {high:.1%}), more than {one.most_unseen:.1%}; more "
        "samples a case, and cases that main itself seldom fails, show more"
    )
    return Finding(Code.MISSED_DROPS, said, broken=one.broken)
