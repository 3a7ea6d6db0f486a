"""Compares judges with a vertical's reference set (PF-9 FR-10): `rampgate check inversion --vertical V`.

A version of a judge is decided once by a version of the set; a second look gets that answer. A judge of which that is
unknown, and one that was not compared with people for a quarter, are findings.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from evalcore.agreement.reference import cut_off
from evalcore.agreement.reference import version as set_version
from evalcore.canaries.suspensions import Suspensions
from evalcore.inversion.check import (
    Pairs,
    Standing,
    check_composites,
    check_slices,
    correlated,
    standing,
)
from evalcore.inversion.reference import People, people
from evalcore.registry.files import AGREEMENT, REFERENCE_SET
from evalcore.registry.judge import Judge
from evalcore.registry.registry import Registry
from evalcore.stats.correlation import Correlation
from rampgate.asking import asked_judges, judges_named
from rampgate.calibration.folder import evaluation_folder
from rampgate.checks.agreement import read_reference, read_thresholds
from rampgate.checks.standing import standings
from rampgate.command import Context, Document
from rampgate.console import Failure, plain
from rampgate.input_files import BadFile
from rampgate.inversion.documents import VERDICTS, composites_of, slice_told, told
from rampgate.inversion.reference_scores import Scores, draws, from_file, kept_of_rounds
from rampgate.inversion.reference_scores import asked as asked_about
from rampgate.logs import configure_logs
from rampgate.registry.view import require_vertical
from schemas.checks.standing import CheckedFor, StandingRecord
from streams.metrics import INVERSION_DAYS

FOUND = {verdict: inverted for inverted, verdict in VERDICTS.items()}
NEVER_SCORED = (
    "people scored none of its turns. `rampgate calibrate jade --vertical {vertical}` has them score turns that it "
    "scored in production; of a judge that scores none there, have its items scored, and give that file: "
    "`rampgate check inversion FILE --publish`"
)


class Asked(NamedTuple):
    """The options of the command. `judges` empty: all of the vertical that ask a model, or that people scored."""

    context: Context
    vertical: str
    judges: tuple[str, ...]
    scores: Path | None
    outputs: Path | None
    publish: bool


@dataclass(frozen=True)
class Held:
    """What is known of one judge. `kept` is what was decided before of this version by the same scores of people;
    `record` what stands from now on, None where nothing could be decided. `held` is when it was last compared with the
    vertical's people."""

    judge: Judge
    people: People | None
    pairs: Pairs | None
    found: Standing
    kept: StandingRecord | None
    record: StandingRecord | None
    held: datetime | None
    overdue: bool

    def document(self) -> dict[str, Any]:
        return {
            "judge_id": self.judge.id,
            "judge_version": self.judge.version,
            **told(self.found),
            "n": len(self.pairs.items) if self.pairs is not None else 0,
            "effective_n": self.found.found.n,
            "reference": self.people.version if self.people is not None else None,
            "decided_at": self.record.at.isoformat(timespec="seconds") if self.record is not None else None,
            "held_at": self.held.isoformat(timespec="seconds") if self.held is not None else None,
            "overdue": self.overdue,
        }


def against_reference(asked: Asked) -> Document:
    """The answer of the command: exit code 1 also where a judge is overdue. Raises Failure."""
    configure_logs("error", "console")
    settings, registry, vertical = asked.context.settings, asked.context.registry, asked.vertical
    require_vertical(vertical, registry.verticals)
    if asked.scores is not None and asked.outputs is not None:
        raise Failure("give --scores of the judges, or --outputs to ask them about, not both")
    folder = evaluation_folder(settings.configs, vertical)
    entries = read_reference(folder / REFERENCE_SET)
    stated = folder / AGREEMENT
    for category, why in cut_off(read_thresholds(stated), entries).items() if stated.exists() else ():
        raise BadFile(f"{stated}: categories.{category}.{why}")
    said, others = people(entries, vertical)
    if others:
        sys.stderr.write(f"{others} ratings of the set are of no judge (an item is JUDGE/TURN), or labels: left out\n")
    judges = _wanted(asked, registry, said)
    stores = standings(asked.context, publish=asked.publish)
    known = [store.known for store in reversed(stores)]  # the topic's word counts before a file's
    at = asked.context.time
    kept = {judge.id: _kept(known, _record(judge, said[judge.id], at)) for judge in judges if judge.id in said}
    scores, weights = _scores(asked, judges, said, kept, folder)
    found = [
        _held(judge, said.get(judge.id), scores, weights, kept.get(judge.id), known, at, vertical)
        for judge in judges
    ]  # fmt: skip
    records = [one.record for one in found if one.record is not None]
    for store in stores:
        store.add([one for one in records if store.known.decided(one) is None])
    if records and not stores:
        sys.stderr.write("what was found is not kept: --publish, or --standing FILE, so that it is decided once\n")
    paired = {one.judge.id: one.pairs for one in found if one.pairs is not None}
    composites = check_composites(*composites_of(paired, registry.composites))
    sound = all(one.found.inverted is False and not one.overdue for one in found)
    fields = {
        "vertical": vertical,
        "judges": [one.document() for one in found],
        "inverted_count": sum(one.found.inverted is True for one in found),
        "overdue_count": sum(one.overdue for one in found),
        "composites": [{"composite": one.name, **told(one)} for one in composites],
        "slices": [slice_told(one) for one in check_slices(paired)],
        "reference": {"file": str(folder / REFERENCE_SET), "version": set_version(entries)},
    }
    holds = found and sound and all(one.inverted is False for one in composites)
    return Document(fields, 0 if holds else 1)


def _wanted(options: Asked, registry: Registry, said: Mapping[str, People]) -> list[Judge]:
    """The judges in question: who has never been scored by people is a finding as well."""
    found = judges_named(registry, options.judges, options.vertical)
    asked = {judge.id for judge in asked_judges(found)}
    return [one for one in found if options.judges or (one.fires and (one.id in said or one.id in asked))]


def _record(judge: Judge, of: People, at: datetime, found: Standing | None = None) -> StandingRecord:
    return StandingRecord(
        event_id=str(uuid.uuid4()), judge_id=judge.id, judge_version=judge.version, model=judge.rule.model,
        reason=CheckedFor.INVERSION, verdict=VERDICTS[found.inverted if found is not None else None],
        message=found.reason if found is not None else "", at=at, reference=of.version, vertical=of.vertical,
    )  # fmt: skip


def _kept(known: Sequence[Suspensions], record: StandingRecord) -> StandingRecord | None:
    return next((before for one in known if (before := one.decided(record)) is not None), None)


def _scores(
    options: Asked,
    judges: Sequence[Judge],
    said: Mapping[str, People],
    kept: Mapping[str, StandingRecord | None],
    folder: Path,
) -> tuple[Scores, Mapping[str, Mapping[str, float]]]:
    """The judges' scores, and the draws' weights. A model is asked only of judges of which nothing is decided yet."""
    weights, hashes = draws(folder, said)
    if options.scores is not None:
        scores, others = from_file(options.scores, judges, said)
        if others:
            sys.stderr.write(f"{others} scores are of other versions than the judges are now, and decide nothing\n")
        return scores, weights
    scores = kept_of_rounds(folder, judges, said)
    if options.outputs is None:
        return scores, weights
    open_ = [
        judge
        for judge in asked_judges(judges)
        if judge.id in said and kept[judge.id] is None and not said[judge.id].enough(scores[judge.id])
    ]
    if open_:
        beside = folder / REFERENCE_SET
        of = options.context
        scores = {**scores, **asked_about(of.settings, of.registry, open_, said, options.outputs, hashes, beside)}
    return scores, weights


def _held(
    judge: Judge,
    of: People | None,
    scores: Scores,
    weights: Mapping[str, Mapping[str, float]],
    kept: StandingRecord | None,
    known: Sequence[Suspensions],
    at: datetime,
    vertical: str,
) -> Held:
    own = scores.get(judge.id, {})
    pairs = of.beside(own, judge.version, weights) if of is not None and own else None
    found = standing(judge.id, correlated(pairs) if pairs is not None else Correlation(0))
    record = kept
    before = [last for one in known if (last := one.last_held(judge.id, judge.version, vertical))]
    last = max(before, key=lambda one: one.at, default=None)
    if of is None and last is not None:
        day, told = last.at.date().isoformat(), last.message or last.verdict
        found = replace(found, inverted=FOUND[last.verdict], reason=f"decided on {day} by a file of scores: {told}")
    elif of is None:
        found = replace(found, reason=NEVER_SCORED.format(vertical=vertical))
    elif kept is not None:
        why = f"decided on {kept.at.date().isoformat()} by the same scores of people: {kept.message}"
        found = replace(found, inverted=FOUND[kept.verdict], reason=why)
    elif not of.enough(own):
        many = sum(turn.round == of.last_round for turn in of.turns.values())
        why = (
            f"not compared with people: this version has no score of {of.missing(own)} of {many} turns of "
            f"{plain(of.last_round, 80)}; --outputs FILE asks it, --scores FILE brings them"
        )
        found = replace(found, inverted=None, reason=why)
    else:
        record = _record(judge, of, at, found)
    held = max((one.at for one in (last, record) if one is not None), default=None)
    overdue = held is None or at - held > timedelta(days=INVERSION_DAYS)
    if held is not None and overdue:
        late = f"; last compared with people {(at - held).days} days ago, more than {INVERSION_DAYS}: a round is due"
        found = replace(found, reason=f"{found.reason}{late}")
    return Held(judge, of, pairs, found, kept, record, held, overdue)
