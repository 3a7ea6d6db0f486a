"""Runs `rampgate suite check`: what a suite's stored runs say of the suite itself, and whether its gates keep their
word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from agents.ports import Unavailable
from evalcore.drift.scale import Scale
from evalcore.suite.resampled import Rules, TooFew, pooled, simulate, unscored
from rampgate.ci_gate.inputs import BadFile
from rampgate.console import Failure, print_json, run
from rampgate.logs import configure_logs
from rampgate.metrics_file import leave
from rampgate.progress import progress
from rampgate.report.files import check_paths
from rampgate.store.place import Place
from rampgate.suite.check.document import Checked, document
from rampgate.suite.check.shown import show, write_check
from rampgate.suite.check.stored import answer_hits, fresh_runs, judge_hits, no_ops, turnarounds, verdict_seconds
from rampgate.suite.compare import Options as Comparison
from rampgate.suite.opened import open_suite
from rampgate.suite.runs.run_document import comparison_of
from rampgate.suite.runs.stored import StoredRun, StoredRuns
from rampgate.suite.suite_files import Suite
from streams.metrics import Metrics

RUN_IT: Final = "`rampgate suite run SUITE --label main` makes one"
TURNAROUND: Final = "rampgate_suite_turnaround_seconds"
HIT_RATIO: Final = "rampgate_judge_cache_hit_ratio"
DETECTION: Final = "rampgate_suite_detection_ratio"
FALSE_ALARMS: Final = "rampgate_suite_false_alarm_ratio"


@dataclass(frozen=True)
class Options:
    """The options of the command. `runs`: how many of the last are looked at; `simulations`: comparisons of each
    kind."""

    suite: Path
    store: str | None
    runs: int
    simulations: int
    seed: int
    confirm: bool
    configs: Path | None
    as_json: bool
    reports: tuple[Path, ...] = ()
    metrics_file: Path | None = None


def check_suite(options: Options) -> int:
    """Check, report, and return the exit code: 1 where a gate does not keep its word, or nobody can tell. Raises
    Failure."""
    configure_logs("error", "console")
    check_paths(options.reports)
    opened = open_suite(options.suite, options.configs, options.store)
    # How two runs of the suite are held against one another.
    how = comparison_of(opened.suite, opened.judges, Path(), Path(), options.seed, (), smoke=False)
    checked = _checked(options, opened.place, opened.suite, how)
    told = document(checked)
    if options.metrics_file is not None:
        _leave(checked, options.metrics_file)
    write_check(options.reports, told)
    if options.as_json:
        print_json(told)
    else:
        show(told)
    return 1 if checked.findings else 0


def _checked(options: Options, place: Place, suite: Suite, how: Comparison) -> Checked:
    # What was made at an address can't be asked for again: there the plain rule decides, as in `suite run`.
    confirm = options.confirm and suite.file.candidate.url is None
    if not place.exists:
        if options.store is not None:
            raise Failure("--store: there is no such store; it is the one that `suite run` kept its answers in")
        return replace(_facts(options, suite, how, [], confirm=confirm), why_not=f"the suite has no run yet; {RUN_IT}")
    try:
        store = place.opened()
    except Unavailable as error:
        raise Failure(str(error)) from error
    try:
        stored = StoredRuns(store)
        looked = run(partial(stored.of, suite.file.suite))[-options.runs :]
        fresh = run(partial(fresh_runs, stored, looked, how.score or ""))
    except (Unavailable, BadFile) as error:
        raise Failure(str(error)) from error
    finally:
        store.close()
    checked = _facts(options, suite, how, looked, confirm=confirm)
    if fresh is None:
        refused = f" ({store.refused:,} entries lack the seal of RAMPGATE_SEAL_KEY)" if store.refused else ""
        return replace(checked, why_not=f"no complete run of the suite is in its store{refused}; {RUN_IT}")
    low, high = how.scale or (0.0, 1.0)
    rules = Rules(
        how.score or "", Scale(low, high, whole=False), suite.file.samples, how.safety, how.safe_at, confirm,
        options.seed,
    )  # fmt: skip
    checked = replace(checked, fresh=fresh)
    try:
        pool = pooled(fresh.results, rules.score)
    except TooFew as error:
        return replace(checked, why_not=f"{error}; a run of two cases and two samples or more shows it")
    pairs = len(fresh.runs) - 1
    with progress(f"check of {suite.file.suite}", pairs + options.simulations, unit="steps") as shown:
        held = no_ops(fresh, looked, how, rules.scale, shown.advance)
        found = simulate(pool, rules, options.simulations, lambda done: shown.at(pairs + done))
    return replace(checked, no_ops=held, simulated=found, cases=len(pool), unscored=unscored(pool, rules.score))


def _facts(options: Options, suite: Suite, how: Comparison, looked: Sequence[StoredRun], *, confirm: bool) -> Checked:
    """What runs tell that needs no results."""
    return Checked(
        suite.file.suite, how.score or "", confirm, options.seed, len(looked), turnarounds(looked),
        answer_hits(looked), judge_hits(looked), seconds=verdict_seconds(looked),
    )  # fmt: skip


def _leave(checked: Checked, path: Path) -> None:
    """Write what is known; a ratio of nothing is left out."""
    metrics, names = Metrics(), [TURNAROUND]
    for seconds in checked.seconds:
        metrics.suite_turnaround.observe(seconds)
    if (ratio := checked.judges.ratio) is not None:
        metrics.judge_cache_hits.set(ratio)
        names.append(HIT_RATIO)
    if checked.simulated is not None:
        for alarms in checked.simulated.alarms:
            metrics.suite_false_alarms.labels(alarms.gate).set(alarms.shipped.ratio)
        for one in checked.simulated.detections:
            if one.shipped.of:
                metrics.suite_detection.labels(one.slice).set(one.shipped.ratio)
        names += [DETECTION, FALSE_ALARMS]
    leave(metrics, path, *names)
