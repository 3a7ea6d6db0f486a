"""Derives limits of judges from a file of scores, and writes them: `rampgate calibrate` (PF-9 §5.3)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from evalcore.agreement.alpha import alpha, ratings
from evalcore.calibration.floors import PERCENTILE, SIGMAS, Daily, Derived, derived, of_days, often_breached
from evalcore.drift.scale import Scale, declared, fitting
from evalcore.lint.provenance import JADE_FIELDS, LONGEST
from evalcore.registry import disk
from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry, UnknownJudge
from evalcore.yaml.editing import written
from rampgate.command import Context, Document
from rampgate.console import Failure
from rampgate.input_files import BadFile
from rampgate.limits.rule_files import FileChange, NewLimits, fields_of, write_limits
from rampgate.limits.scores import WINDOW_DAYS, Asked, Scored, of_columns, scored_in
from rampgate.limits.window import read_window
from rampgate.registry.view import require_vertical
from schemas.checks.agreement import Level
from schemas.judges import BaselineSource, Milestone, judge_id
from schemas.manifests import GateDefaults


@dataclass(frozen=True)
class Options(Asked):
    """The options of the command. `ticket` and `report` are what the limits cite, in the vertical's rule files too,
    which `write` changes. `day` is that of the limits."""

    context: Context
    vertical: str | None
    write: bool = False
    ticket: str | None = None
    report: str | None = None
    day: date = field(default_factory=lambda: disk.today())

    @property
    def root(self) -> Path:
        return self.context.settings.configs

    def registry(self) -> Registry | None:
        """The registry; None where none is there and the options name neither it nor a vertical. Raises Failure."""
        named = self.context.given.get("configs") is not None or self.vertical is not None
        return self.context.registry if named or self.root.exists() else None


@dataclass(frozen=True)
class Taken:
    """The scores, what limits without a ticket cite (the hash of these scores), and where they are from."""

    scored: tuple[Scored, ...]
    evidence: str
    about: dict[str, Any]


@dataclass(frozen=True)
class Calibrated:
    """One judge of the file, and what to write; None where nothing is proposed."""

    judge: str
    registered: bool
    traces: int
    found: Derived
    daily: Daily | None
    new: NewLimits | None

    def _daily(self) -> dict[str, Any] | None:
        of = self.daily
        if of is None:
            return None
        figures = {"mean": of.mean, "sigma": of.sigma, "p5": of.percentile, "floor": of.limit}
        return {"days": of.days, "span_days": of.span, **figures, "breach_probability": of.breach}

    @property
    def block(self) -> str:
        """The lines of the judge's rule file."""
        stated = fields_of(self.new).items() if self.new is not None else ()
        return "".join(written(name, value) for name, value in stated if value is not None)

    def refused(self, why: str) -> Calibrated:
        return replace(self, found=replace(self.found, reason=why), new=None)

    def document(self, source: BaselineSource) -> dict[str, Any]:
        found = self.found
        return {
            "judge_id": self.judge,
            "registered": self.registered,
            "baseline_source": source.value,
            "traces": self.traces,
            "n": found.n,
            "effective_n": found.effective,
            "mean": found.mean,
            "sigma": found.sigma,
            "p5": found.percentile,
            "threshold" if source is BaselineSource.PROVISIONAL_SEED else "floor": found.limit,
            "breach_probability": found.breach,
            "detectable_drop": found.detectable,
            "daily_means": self._daily(),
            "proposed": found.proposed,
            "reason": found.reason,
            "warning": often_breached(found.limit, found.breach) or None,
            "block": self.block or None,
        }


def calibrate(options: Options) -> Document:
    """Derive, and write where that is asked for; exit code 1 where a judge gets no proposal. Raises Failure, and has
    written nothing then."""
    _require_sense(options)
    registry = options.registry()
    if options.vertical is not None and registry is not None:
        require_vertical(options.vertical, registry.verticals)
    found, at_gate, taken = proposals(options, registry)
    changes: list[FileChange] = []
    if options.vertical is not None:
        new = [one.new for one in found if one.new is not None]
        changes = write_limits(options.root, options.vertical, new, write=options.write)
    fields = {
        "judges": [one.document(options.source) for one in found],
        **taken.about,
        "vertical": options.vertical,
        "gate_items": at_gate,
        "written": options.write,
        "changes": [{"file": str(one.path), "judge_id": one.judge, "diff": one.diff} for one in changes],
    }
    return Document(fields, 0 if found and all(one.found.proposed for one in found) else 1)


def _taken(options: Options, registry: Registry | None) -> Taken:
    """Raises BadFile, and Failure where Opik can't be read."""
    if options.file is not None:
        scored, read = tuple(scored_in(options.file, options)), options.file.read_bytes()
        return Taken(scored, f"sha256:{hashlib.sha256(read).hexdigest()[:16]}", {"file": str(options.file)})
    settings = options.context.settings
    owner = options.context.verticals.get(options.vertical or "") if options.vertical is not None else None
    if registry is None or owner is None:
        raise Failure("FILE: name a file of scores, or the --vertical whose scores are read from Opik")
    window = read_window(settings, registry, owner, options.window_days or WINDOW_DAYS, disk.today())
    return Taken(
        tuple(of_columns(window.columns, options)), window.evidence, {"file": None, "window": window.document()}
    )


def proposals(options: Options, registry: Registry | None) -> tuple[list[Calibrated], int, Taken]:
    """Returns what the scores give of each judge, the items of the gate looked at, and the scores. Where there is a
    vertical, nothing is proposed that its rule files could not state. Raises Failure."""
    gates = registry.gates if registry is not None else GateDefaults()
    at_gate = gates.minimum_sample.get(Milestone.PRE_RAMP, 100)
    taken = _taken(options, registry)
    found = [_calibrated(one, options, registry, at_gate, taken.evidence) for one in taken.scored]
    if options.vertical is not None:
        found = [_fitting(one, options.root, options.vertical) for one in found]
    return found, at_gate, taken


def _require_sense(options: Options) -> None:
    if options.write and options.vertical is None:
        raise Failure("--write: needs --vertical: a calibration changes one vertical's rule files alone")
    if options.write and options.source is BaselineSource.JADE_CALIBRATION:
        for name, given in (("ticket", options.ticket), ("report", options.report)):
            if given is None:
                raise Failure(f"--{name}: a JADE calibration cites its ticket and its report (PF-9 FR-3)")
    for name, given in (("ticket", options.ticket), ("report", options.report)):
        if given is not None and (not given.strip() or given != given.strip() or len(given.splitlines()) > 1):
            raise Failure(f"--{name}: one line of text, without blanks around it")


def _fitting(one: Calibrated, root: Path, vertical: str) -> Calibrated:
    """The same, without its proposal where the vertical's rule file could not state it."""
    if one.new is None:
        return one
    try:
        write_limits(root, vertical, [one.new], write=False)
    except Failure as error:
        return one.refused(str(error))
    return one


def _calibrated(one: Scored, options: Options, registry: Registry | None, at_gate: int, evidence: str) -> Calibrated:
    judge = _registered(registry, one.judge)
    every, field, lines = one.of, "score", one.lines
    if one.pairs is not None:  # what people did not accept is on the scale, too, and is of the traffic
        every, field, lines = one.pairs.judge, "judge_score", one.pairs.lines
    scale = declared(judge.score_type, judge.score_range) if judge is not None else fitting(every)
    if scale is None:
        scale, none = Scale(0.0, 1.0, whole=False), one.of[:0]
        why = "its scores fit no scale" if every.size else "there is no score to derive it from"
        one, every = replace(one, of=none, weights=none, days=(), pairs=None, against=why), none
    if (off := scale.first_off(every)) is not None:
        wanted = f"is no score of {one.judge} from {scale.low:g} to {scale.high:g}"
        raise BadFile(f"{options.file}:{lines[off]}: {field}: {every[off]:g} {wanted}")
    found = derived(options.source, one.of, one.weights, scale, at_gate, one.traffic)
    daily = None
    if one.days and options.source is BaselineSource.PRODUCTION_DISTRIBUTION:
        daily = of_days(one.of, one.weights, np.asarray(one.days, dtype=np.int64), scale, at_gate)
    agreement = _agreement(one, scale)
    found = replace(found, reason=one.against or found.reason or (agreement if isinstance(agreement, str) else ""))
    calibrated = Calibrated(one.judge, judge is not None, one.traces, found, daily, None)
    if not found.proposed or isinstance(agreement, str):
        return calibrated
    return replace(calibrated, new=_new(one, found, agreement, options, evidence))


def _agreement(one: Scored, scale: Scale) -> float | str | None:
    """Krippendorff's alpha between people and the judge, which a JADE calibration states; None without people. A text
    says why the judge has no calibration."""
    if one.pairs is None:
        return None
    own, people = one.pairs.judge, one.pairs.human
    if replace(scale, whole=False).first_off(people) is not None:  # people's may be means of several
        return f"people's scores are not on the judge's scale, {scale.low:g} to {scale.high:g}: have them score on it"
    table, _ = ratings([*range(own.size)] * 2, np.concatenate([own, people]).tolist())
    found = alpha(table, Level.ORDINAL, one.pairs.weights)
    if found is None or not found > 0:
        told = "is not defined" if found is None else f"is {found:.3g}"
        return f"its agreement with people, Krippendorff's alpha, {told}: revise its prompt, or remove the judge"
    return found


def _new(one: Scored, found: Derived, agreement: float | None, options: Options, evidence: str) -> NewLimits:
    """What to write. What only people know is left open, as `…`, where it is unknown."""
    limit = float(f"{found.limit:.4g}")
    facts: dict[str, Any] = {}
    if options.source is BaselineSource.JADE_CALIBRATION:
        told = (options.ticket or "…", options.report or "…", one.traces)
        measured = {"metric": "krippendorff_alpha", "value": float(f"{agreement or 0.0:.4f}")}
        facts = dict(zip(JADE_FIELDS, (*told, measured, one.inverted), strict=True))
    elif options.source is BaselineSource.PRODUCTION_DISTRIBUTION:
        rule = {"percentile": round(PERCENTILE), "sigma": round(SIGMAS)}
        facts = {"window_days": options.window_days or WINDOW_DAYS, **rule}
    seed = options.source is BaselineSource.PROVISIONAL_SEED
    return NewLimits(
        judge=one.judge,
        source=options.source,
        set_on=options.day,
        due=options.day + timedelta(days=LONGEST[options.source]),
        floor=None if seed else limit,
        threshold=limit if seed else None,
        calibration_ref=options.ticket or evidence,
        facts=facts,
    )


def _registered(registry: Registry | None, name: str) -> Judge | None:
    """The judge as the platform sees it."""
    try:
        return registry.judge(judge_id(name)) if registry is not None else None
    except UnknownJudge:
        return None
