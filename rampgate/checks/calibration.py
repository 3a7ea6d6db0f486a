"""Runs `rampgate calibrate`: derives limits of judges from a file of scores, and prints what to write (PF-9 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from evalcore.calibration.floors import LEAST_TRACES, PERCENTILE, SIGMAS, Derived, Values, derived
from evalcore.drift.scale import Scale, declared, fitting
from evalcore.inversion.check import check as inversion
from evalcore.lint.provenance import JADE_FIELDS, LONGEST
from evalcore.registry import disk
from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry, UnknownJudge
from rampgate.checks.drift import registry_or_none
from rampgate.checks.score_files import read_pairs
from rampgate.checks.score_lines import read_scores
from rampgate.ci_gate.inputs import BadFile
from rampgate.console import Failure, plain, print_json
from rampgate.tables import make_table
from schemas.judges import BaselineSource, Milestone, judge_id
from schemas.manifests import GateDefaults

WINDOW_DAYS = 30


@dataclass(frozen=True)
class Options:
    """The options of the command. `acceptable`: JADE's cut, the lowest score of people's that is acceptable."""

    source: BaselineSource
    file: Path
    acceptable: float | None
    window_days: int | None
    at_gate: int | None
    vertical: str | None
    configs: Path | None
    as_json: bool


@dataclass(frozen=True)
class Scored:
    """A judge's scores: `of` those that its limit comes from, out of `traces`; `against`: why it has none at all."""

    judge: str
    of: Values
    traces: int
    against: str = ""


@dataclass(frozen=True)
class Calibrated:
    """One judge of the file, and the lines of its rule file; none where nothing is proposed."""

    judge: str
    registered: bool
    traces: int
    found: Derived
    block: str

    def document(self, source: BaselineSource) -> dict[str, Any]:
        found = self.found
        return {
            "judge_id": self.judge,
            "registered": self.registered,
            "baseline_source": source.value,
            "traces": self.traces,
            "n": found.n,
            "mean": found.mean,
            "sigma": found.sigma,
            "p5": found.percentile,
            "threshold" if source is BaselineSource.PROVISIONAL_SEED else "floor": found.limit,
            "breach_probability": found.breach,
            "detectable_drop": found.detectable,
            "proposed": found.proposed,
            "reason": found.reason,
            "block": self.block or None,
        }


def calibrate(options: Options) -> int:
    """Derive, report, and return the exit code: 1 where a judge gets no proposal. Raises Failure."""
    registry = registry_or_none(options.configs)
    if options.vertical is not None and (registry is None or options.vertical not in registry.verticals):
        raise Failure(f"--vertical: no vertical {plain(options.vertical)!r} is registered")
    gates = registry.gates if registry is not None else GateDefaults()
    at_gate = options.at_gate or gates.minimum_sample.get(Milestone.PRE_RAMP, 100)
    try:
        found = [_calibrated(one, options, registry, at_gate) for one in _scored(options)]
    except BadFile as error:
        raise Failure(str(error)) from error
    if options.as_json:
        about = {"file": str(options.file), "vertical": options.vertical, "gate_items": at_gate}
        print_json({"judges": [one.document(options.source) for one in found], **about})
    else:
        _show(found, at_gate)
    return 0 if all(one.found.proposed for one in found) else 1


def _scored(options: Options) -> Iterator[Scored]:
    """Each judge's scores, as the source wants them. Raises BadFile."""
    if options.source is not BaselineSource.JADE_CALIBRATION:
        for name, column in read_scores(options.file).items():
            scores = np.array(column.scores, dtype=np.float64)
            yield Scored(name, scores, int(scores.size))
        return
    pairs = read_pairs(options.file)
    standings = {one.name: one for one in inversion(pairs)}
    for name, pair in pairs.items():
        acceptable = np.asarray(pair.judge, dtype=np.float64)[np.asarray(pair.human) >= (options.acceptable or 0.0)]
        traces = len(pair.items)
        against = ""
        if standings[name].inverted:
            against = "it is inverted: rewrite its prompt, or remove the judge"
        elif traces < LEAST_TRACES:
            against = f"{traces} annotated traces are too few: a JADE calibration rests on {LEAST_TRACES}"
        yield Scored(name, acceptable, traces, against)


def _calibrated(one: Scored, options: Options, registry: Registry | None, at_gate: int) -> Calibrated:
    judge = _registered(registry, one.judge)
    scale = declared(judge.score_type, judge.score_range) if judge is not None else fitting(one.of)
    if scale is None:
        scale, one = Scale(0.0, 1.0, whole=False), replace(one, of=one.of[:0], against="its scores fit no scale")
    if (off := scale.first_off(one.of)) is not None:
        raise BadFile(f"{options.file}: {one.judge}: {one.of[off]:g} is no score from {scale.low:g} to {scale.high:g}")
    found = derived(options.source, one.of, np.ones(one.of.size), scale, at_gate)
    against = one.against or found.reason or _below(found, judge, options)
    found = replace(found, reason=against)
    block = _block(one, found, options, disk.today()) if found.proposed else ""
    return Calibrated(one.judge, judge is not None, one.traces, found, block)


def _below(found: Derived, judge: Judge | None, options: Options) -> str:
    """Why a vertical may not have this limit: it never loosens the platform's (PF-9 §5.2)."""
    if judge is None or options.vertical is None or found.limit is None:
        return ""
    seed = options.source is BaselineSource.PROVISIONAL_SEED
    platform = float(judge.default_threshold) if seed else judge.floor
    what = "threshold" if seed else "floor"
    if found.limit >= platform:
        return ""
    return f"{found.limit:.4g} is below the platform's {what}, {platform:g}, which holds"


def _block(one: Scored, found: Derived, options: Options, today: date) -> str:
    """The lines of the judge's rule file, central or the vertical's."""
    name = "threshold" if options.source is BaselineSource.PROVISIONAL_SEED else "floor"
    stated: dict[str, object] = {"seeded_on": today}
    if options.source is BaselineSource.JADE_CALIBRATION:
        stated = dict.fromkeys(JADE_FIELDS, "…") | {"traces": one.traces, "calibrated_on": today}
    elif options.source is BaselineSource.PRODUCTION_DISTRIBUTION:
        rule = {"percentile": f"{PERCENTILE:g}", "sigma": f"{SIGMAS:g}"}
        stated = {"window_days": options.window_days or WINDOW_DAYS, **rule, "calibrated_on": today}
    lines = [
        f"{name}: {found.limit:.4g}",
        f"baseline_source: {options.source.value}",
        f"recalibration_due: {today + timedelta(days=LONGEST[options.source])}",
        "calibration:",
        *(f"  {field}: {value}" for field, value in stated.items()),
    ]
    return "\n".join(lines) + "\n"


def _registered(registry: Registry | None, name: str) -> Judge | None:
    """The judge as the platform sees it."""
    try:
        return registry.judge(judge_id(name)) if registry is not None else None
    except UnknownJudge:
        return None


def _show(found: list[Calibrated], at_gate: int) -> None:
    from rich.console import Console

    heads = ("Judge", ">Scores", ">Mean", ">σ", ">p5", ">Limit", ">Breached", ">Sees a fall of")
    table = make_table(f"Limits, at a gate of {at_gate} items", *heads)
    for one in found:
        of = one.found
        figures = (_figure(of.mean), _figure(of.sigma), _figure(of.percentile), _figure(of.limit))
        breached = "" if of.breach is None else f"{of.breach:.1%}"
        table.add_row(plain(one.judge), f"{of.n:,}", *figures, breached, _figure(of.detectable))
    console = Console(highlight=False)
    console.print(table)
    for one in found:
        console.print(f"{plain(one.judge)}: {plain(one.found.reason, 400)}" if one.found.reason else plain(one.judge))
        if one.block:
            console.print(one.block, markup=False)


def _figure(number: float | None) -> str:
    return "" if number is None else f"{number:.4g}"
