"""Runs `rampgate suite check`: what a suite's stored runs say of the suite itself, and whether its gates keep their
word."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Argument, Option

from rampgate.command import Context, Document, command, log_errors
from rampgate.options import MetricsOption, StoreOption

if TYPE_CHECKING:
    from evalcore.suite.resampled import Alarms, Planted, Rate, Simulated
    from rampgate.suite.check.stored import Fresh
    from rampgate.suite.opened import Opened
    from rampgate.suite.runs.stored import StoredRun

RUN_IT: Final = "`rampgate suite run SUITE --label main` makes one"
TURNAROUND: Final = "rampgate_suite_turnaround_seconds"
HIT_RATIO: Final = "rampgate_judge_cache_hit_ratio"
DETECTION: Final = "rampgate_suite_detection_ratio"
FALSE_ALARMS: Final = "rampgate_suite_false_alarm_ratio"
REMEDIES: Final = {
    "headline": "cases that depend on one another need a `cluster`",
    "safety": "a case that main itself fails now and then guards nothing: mend it, or take it out",
    "warning": "more samples, and fewer cases that main itself fails now and then, make it less",
    "pull_request": "fewer or larger slices, and fresh samples where there are none, make it less",
}


GONE: Final = {
    "--confirm": "a check decides as `suite run` does",
    "--seed": "every check draws with the same one; more --simulations tell a finding from chance",
}


@command("rampgate.suite.check.report:check_report", flags="configs", gone=GONE)
def check(
    context: Context,
    suite_file: Annotated[Path, Argument(metavar="SUITE", help="the suite's YAML file")],
    store: StoreOption = None,
    runs: Annotated[int, Option(min=1, help="stored runs to look at, the last ones")] = 50,
    simulations: Annotated[
        int, Option(min=20, max=100_000, help="comparisons of an unchanged candidate, and of each broken one")
    ] = 200,
    metrics_file: MetricsOption = None,
) -> Document:
    """Report how often the suite's decision blocks unchanged candidates, and misses cases that fail for good.

    Also how long runs took and how much was kept before. No candidate or judge is asked: runs are resampled from
    stored ones, as they are and with three, four and six cases of a slice broken, and decided as `suite run` decides.
    Exit code 1 if unchanged candidates are blocked or warned of more often than they may be, if broken cases pass as
    no regression more often than they may, or if no run is stored.

    Example: rampgate suite check examples/suite/suite.yaml --metrics-file suite.prom
    """
    from evalcore.drift.scale import Scale
    from evalcore.suite.resampled import Rules, TooFew, pooled, simulate, unscored
    from evalcore.suite.results import SAFETY, Run
    from rampgate.progress import Progress
    from rampgate.suite.check.stored import as_shipped, hits, turnarounds
    from rampgate.suite.opened import open_suite
    from rampgate.suite.runs.run_document import score_of

    log_errors()
    opened = open_suite(suite_file, context.settings, store)
    suite = opened.suite
    score, scale, safe_at = score_of(suite, opened.judges)
    # What was made at an address can't be asked for again: there the plain rule decides, as in `suite run`.
    confirm = suite.file.candidate.url is None
    rules = Rules(
        score, Scale(*scale, whole=False), suite.file.samples, suite.file.safety or SAFETY, safe_at, confirm
    )  # fmt: skip
    looked, fresh, why_not = _stored(opened, store, runs, score)
    pool: Run = {}
    simulated, shipped = None, None
    if fresh is not None:
        try:
            pool = pooled([run for _, run in fresh.runs], score)
        except TooFew as error:
            why_not = f"{error}; a run of two cases and two samples or more shows it"
        else:
            with Progress(f"check of {suite.file.suite}", simulations, unit="steps") as shown:
                simulated = simulate(pool, rules, simulations, shown.at)
            shipped = as_shipped(looked)
    findings = _findings(why_not, simulated, shipped)
    kept = hits(looked)
    if metrics_file is not None:
        _leave(metrics_file, looked, kept["judge_answers"]["ratio"], simulated)
    fields: dict[str, Any] = {
        "suite": suite.file.suite,
        "score": score,
        "verdict": "fail" if findings else "pass",
        "findings": findings,
        "runs": {
            "looked_at": len(looked),
            "configuration": fresh.reference.configuration if fresh is not None else None,
            "set": fresh.reference.set if fresh is not None else None,
            "drawn_apart": len(fresh.runs) if fresh is not None else 0,
            "unscored_samples": unscored(pool, score),
        },
        "turnaround": turnarounds(looked),
        "hits": kept,
        "stored_no_ops": {"blocked_as_shipped": _rate(shipped)} if shipped is not None else None,
        "simulated": None,
    }
    if simulated is not None:
        fields["simulated"] = {
            "comparisons": simulated.comparisons,
            "cases": len(pool),
            "confirm": "fresh" if confirm else "none",
            "seed": rules.seed,
            "gates": [_gate(one) for one in simulated.alarms],
            "planted": [_planted(one) for one in simulated.planted],
            "slices": [
                {"slice": one.slice, "n": one.cases, "shipped": _rate(one.shipped)} for one in simulated.detections
            ],
        }
    return Document(fields, 1 if findings else 0)


def _stored(opened: Opened, store: str | None, runs: int, score: str) -> tuple[list[StoredRun], Fresh | None, str]:
    """The last runs, those to draw from, and else why there are none. Raises Failure."""
    from rampgate.console import Failure, run
    from rampgate.suite.check.stored import fresh_runs
    from rampgate.suite.runs.stored import StoredRuns

    if not opened.place.exists:
        if store is not None:
            raise Failure("--store: there is no such store; it is the one that `suite run` kept its answers in")
        return [], None, f"the suite has no run yet; {RUN_IT}"
    with closing(opened.place.opened()) as kept:
        known = StoredRuns(kept)
        looked = run(partial(known.of, opened.suite.file.suite))[-runs:]
        fresh = run(partial(fresh_runs, known, looked, score))
    refused = f" ({kept.refused:,} entries lack the seal of RAMPGATE_SEAL_KEY)" if kept.refused else ""
    return looked, fresh, "" if fresh else f"no complete run of the suite is in its store{refused}; {RUN_IT}"


def _findings(why_not: str, simulated: Simulated | None, shipped: Rate | None) -> list[dict[str, Any]]:
    """What is not as it should be; `gate`, or the number of `broken` cases, where a finding is about one."""
    from evalcore.suite.resampled import NOMINAL, PULL_REQUEST, Alarms

    found = [_finding("too_few_runs", why_not)] if why_not else []
    if simulated is not None:
        found += [_alarm(one, "resampled") for one in simulated.alarms if one.above]
        found += [_missed(one) for one in simulated.planted if one.missed]
    if shipped is not None:
        stored = Alarms(PULL_REQUEST, NOMINAL[PULL_REQUEST], shipped=shipped)
        found += [_alarm(stored, "stored")] if stored.above else []
    return found


def _finding(code: str, message: str, gate: str | None = None, broken: int | None = None) -> dict[str, Any]:
    return {"code": code, "message": message, "gate": gate, "broken": broken}


def _alarm(one: Alarms, kind: str) -> dict[str, Any]:
    low, high = one.shipped.ci95
    done = "get a warning of a slice or a case" if one.gate == "warning" else "are blocked"
    said = (
        f"{one.shipped.ratio:.1%} of {one.shipped.of:,} {kind} unchanged candidates {done} "
        f"({low:.1%} to {high:.1%}), more than {one.nominal:.1%}; {REMEDIES[one.gate]}"
    )
    return _finding("false_alarms", said, gate=one.gate)


def _missed(one: Planted) -> dict[str, Any]:
    low, high = one.unseen.ci95
    said = (
        f"{one.broken} cases of a slice that fail for good pass without a word in {one.unseen.ratio:.1%} of "
        f"{one.unseen.of:,} resampled comparisons ({low:.1%} to {high:.1%}), more than {one.most_unseen:.1%}; more "
        "samples a case, and cases that main itself seldom fails, show more"
    )
    return _finding("missed_drops", said, broken=one.broken)


def _gate(one: Alarms) -> dict[str, Any]:
    rates = {"plain": _rate(one.plain), "shipped": _rate(one.shipped)}
    return {"gate": one.gate, **rates, "nominal": one.nominal, "above": one.above}


def _planted(one: Planted) -> dict[str, Any]:
    rates = {"blocked": _rate(one.blocked), "warned": _rate(one.warned), "unseen": _rate(one.unseen)}
    return {"broken": one.broken, **rates, "most_unseen": one.most_unseen, "missed": one.missed}


def _rate(rate: Rate) -> dict[str, Any]:
    known = {"ratio": rate.ratio, "ci95": list(rate.ci95)} if rate.of else {"ratio": None, "ci95": None}
    return {"found": rate.found, "of": rate.of, **known}


def _leave(path: Path, looked: Sequence[StoredRun], ratio: float | None, simulated: Simulated | None) -> None:
    """Write the metrics that are known; a ratio of nothing is left out."""
    from rampgate.metrics_file import leave
    from rampgate.suite.check.stored import verdict_seconds
    from streams.metrics import Metrics

    metrics, names = Metrics(), [TURNAROUND]
    for _, seconds in verdict_seconds(looked):
        metrics.suite_turnaround.observe(seconds)
    if ratio is not None:
        metrics.judge_cache_hits.set(ratio)
        names.append(HIT_RATIO)
    if simulated is not None:
        for alarms in simulated.alarms:
            metrics.suite_false_alarms.labels(alarms.gate).set(alarms.shipped.ratio)
        for one in simulated.detections:
            if one.shipped.of:
                metrics.suite_detection.labels(one.slice).set(one.shipped.ratio)
        names += [DETECTION, FALSE_ALARMS]
    leave(metrics, path, *names)
