"""The JSON document of a comparison (contracts §5)."""

from __future__ import annotations

from typing import Any

from evalcore.stats.bootstrap import RESAMPLES
from evalcore.suite.comparison import SEED, Difference
from evalcore.suite.confirm import FRESH, Confirmation
from evalcore.suite.flipped import Flip, flipped
from evalcore.suite.power import Power
from evalcore.suite.results import Gone, Sample
from evalcore.suite.sides import facts_of
from evalcore.suite.words import Word, said_of
from rampgate.suite.compare import Compared


def document(compared: Compared) -> dict[str, Any]:
    """Returns slices, headline, verdict and reasons, and which cases were not compared, or fell."""
    paired, judged = compared.paired, compared.judged
    best = judged.best
    slices = {name: best.slices[name] for name in paired.slices} if best is not None else {}
    headline = judged.comparison.headline
    whole, power = compared.power
    return {
        "score": paired.score,
        "said": compared.sentence,
        "verdict": str(judged.verdict),
        "reasons": [
            {"code": str(one.code), "message": one.message, "slice": one.slice, "cases": list(one.cases)}
            for one in judged.reasons
        ],
        "headline": {
            **_difference(headline, best.headline if best is not None else None),
            "significant": judged.headline_significant,
            **_word(compared, None),
            "power": _power(whole),
        },
        "slices": [
            {
                "slice": name,
                **_difference(one, slices.get(name)),
                **_word(compared, name),
                "power": _power(power.get(name)),
            }
            for name, one in judged.comparison.slices.items()
        ],
        "cases": {
            "compared": len(paired.pairs),
            "removed": list(paired.removed),
            "changed": list(paired.changed),
            "added": list(paired.added),
            "not_applicable": list(paired.not_applicable),
            "lost": list(paired.lost),
            "other_cluster": list(paired.moved),
            "unequal_samples": list(paired.unequal),
            "unscored": list(paired.unscored),
            "failed": list(paired.failed),
        },
        "flipped": [
            _flip(one, paired.score)
            for one in flipped(paired, judged.reasons, compared.baseline, compared.candidate)
        ],
        "sides": _sides(compared),
        "confirmation": {
            "samples": FRESH,
            "found": [_confirmation(one) for one in compared.confirmations],
            "why_not": compared.unconfirmed or None,
        },
        "scale": [paired.scale.low, paired.scale.high],
        "seed": SEED,
        "resamples": RESAMPLES,
    }  # fmt: skip


def _word(compared: Compared, name: str | None) -> dict[str, Any]:
    """What a slice, or all cases, came to. Of a slice that was tested p is the one that decided."""
    word, test = compared.words[name], compared.judged.tested.get(name)
    cases = {pair.case_id for pair in compared.paired.of(name)} if name is not None else set()
    cleared = [case for case in compared.judged.cleared if case in cases]
    p_value = {"p_value": test.p} if test is not None and test.p is not None else {}
    change = test.change if test is not None else None
    return {
        "word": str(word), "said": said_of(word, test, cleared), "worse": word is Word.WORSE, "fresh_delta": change,
        "cleared": cleared, **p_value,
    }  # fmt: skip


def _sides(compared: Compared) -> dict[str, Any]:
    runs, paired = {"baseline": compared.baseline, "candidate": compared.candidate}, compared.paired
    return {
        name: vars(facts_of(run, [pair.means(best=False)[place] for pair in paired.pairs], paired.scale))
        for place, (name, run) in enumerate(runs.items())
    }


def _difference(one: Difference, best: Difference | None) -> dict[str, Any]:
    return {
        "n": one.n,
        "units": one.units,
        "baseline": one.baseline,
        "candidate": one.candidate,
        "delta": one.delta,
        "delta_at_best": best.delta if best is not None and best.delta != one.delta else None,
        "ci95": list(one.ci95) if one.ci95 is not None else None,
        "significant": one.excludes_zero,
        "standard_error": one.error,
        "p_value": one.p_value,
        "small": one.small,
        "skewed": one.skewed,
        "win_rate": (
            {
                "n": one.wins.n,
                "rate": one.wins.rate,
                "ci95": list(one.wins.ci95) if one.wins.ci95 is not None else None,
            }
            if one.wins is not None
            else None
        ),
    }


def _power(one: Power | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {
        "smallest_drop": one.smallest,
        "confirmed_smallest_drop": one.confirmed_smallest,
        "drop": one.drop,
        "found": one.found,
        "confirmed_found": one.confirmed_found,
        "cases_needed": one.cases,
        "samples_needed": one.samples,
        "samples_never_suffice": one.never,
    }


def _confirmation(one: Confirmation) -> dict[str, Any]:
    return {
        "slice": one.slice,
        "case": one.case,
        "stands": one.stands,
        "message": one.message,
        "fresh": _difference(one.fresh, None) if one.fresh is not None else None,
        "failing": {"baseline": one.failing[0], "candidate": one.failing[1]} if one.failing is not None else None,
        "moved": one.moved,
    }


def _flip(one: Flip, score: str) -> dict[str, Any]:
    baseline, candidate = one.pair.means(best=False)
    return {
        "case_id": one.pair.case_id,
        "slices": sorted(one.pair.slices),
        "baseline": baseline,
        "candidate": candidate,
        "delta": one.pair.delta(),
        "baseline_sample": _sample(one.baseline, score),
        "candidate_sample": _sample(one.candidate, score),
    }


def _sample(sample: Sample, score: str) -> dict[str, Any]:
    value = sample.score(score)
    return {
        "sample": sample.number,
        "score": None if isinstance(value, Gone) else value,
        "output": sample.output,
        "reason": sample.reasons.get(score),
        "error": sample.error or None,
        "trace": sample.trace or None,
    }
