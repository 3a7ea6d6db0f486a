"""Makes what a run of a suite reports: its results' lines and its document, and how it is compared with a baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalcore.registry.judge import Judge
from evalcore.scoring.calls import Spend
from rampgate.suite.compare import Options as Comparison
from rampgate.suite.generation import Left, dollars_of
from rampgate.suite.scoring import Rubric, ScoredSample
from rampgate.suite.suite_files import Suite


def line_of(one: ScoredSample, rubric: Rubric) -> dict[str, Any]:
    """A sample as a line of results (contracts §5)."""
    generated = one.generated
    told: dict[str, Any] = {
        "case_id": one.case.id, "slices": list(one.case.slices), "sample": generated.sample, "scores": one.scores,
        "latency_ms": generated.latency_ms,
    }  # fmt: skip
    if one.error is not None:
        told["error"] = one.error
    elif isinstance(generated.answer, Mapping):
        told["output"] = generated.answer["output"]
    optional = {
        "cost_usd": dollars_of(generated.answer),
        "reasons": one.reasons,
        "cluster": one.case.cluster,
        "question_hash": one.case.question,
        "pairwise": one.pairwise,
        "judged_cut": one.cut,
        "versions": rubric.versions_of(one.case),
    }
    if generated.trace is not None:
        told["trace"] = {"hash": generated.trace}
    return told | {name: value for name, value in optional.items() if value}


def head_of(suite: Suite, *, smoke: bool) -> dict[str, Any]:
    """What the run is of. A smoke set is larger than the suite says where it has more cases of safety."""
    cases = len(suite.drawn(smoke=smoke))
    return {
        "suite": suite.file.suite,
        "agent": suite.file.agent,
        "configuration": suite.configuration,
        "parts": dict(suite.parts),
        "unnamed_code": suite.unnamed or None,
        "set": "smoke" if smoke else "full",
        "cases": cases,
        "beyond_smoke": max(cases - suite.file.smoke, 0) if smoke else 0,
        "samples": suite.file.samples,
    }


def found_of(samples: Sequence[ScoredSample], spend: Spend, beside: int, pairs: int = 0) -> dict[str, Any]:
    """What was asked and what that cost; `beside` scores of the baseline are left, too, and so many `pairs`."""
    generated = [one.generated for one in samples]
    left = sum(isinstance(one.answer, Left) for one in generated)
    return {
        "answers": {
            "asked": sum(not one.kept for one in generated) - left,
            "kept": sum(one.kept for one in generated),
            "failed": sum(one.error is not None for one in samples),
        },
        "unscored": sum(score is None for one in samples for score in one.scores.values()),
        "judge_answers": {
            "given": sum(one.judged for one in samples),
            "kept": sum(one.judged_kept for one in samples),
        },
        "judged_cut": dict(sorted(Counter(name for one in samples for name in one.cut).items())),
        "judge_calls": spend.calls,
        "priced_calls": spend.priced,
        "tokens": spend.tokens,
        "cost_usd": spend.dollars if spend.priced or spend.dollars else None,
        "answers_cost_usd": sum(dollars_of(one.answer) or 0.0 for one in generated if not one.kept),
        "left": (
            {
                "why": spend.spent,
                "answers": left,
                "scores": beside + sum(len(one.left) for one in samples),
                "pairs": pairs,
            }
            if spend.spent and (beside or pairs or any(one.left for one in samples))
            else None
        ),
    }


def score_of(suite: Suite, judges: Sequence[Judge]) -> tuple[str, tuple[float, float], float]:
    """The score that gates look at, its scale, and below which value a case of safety fails."""
    score, scale, safe_at = suite.file.score, (0.0, 1.0), 1.0
    for name, judge in zip(suite.file.judges, judges, strict=True):
        if name == score:
            score, scale, safe_at = judge.id, judge.score_range, float(judge.default_threshold)
    if suite.file.safe_at is not None:
        safe_at = float(suite.file.safe_at)
    return score, scale, safe_at


def comparison_of(suite: Suite, judges: Sequence[Judge], baseline: Path, out: Path, *, smoke: bool) -> Comparison:
    """How the results are compared with the baseline's: on the scale of the score that the suite names."""
    score, scale, safe_at = score_of(suite, judges)
    return Comparison(
        baseline, out, score, scale, tuple(suite.file.safety), safe_at, tuple(suite.file.let_go),
        frozenset(case.id for case in suite.cases) if smoke else frozenset(),
    )  # fmt: skip
