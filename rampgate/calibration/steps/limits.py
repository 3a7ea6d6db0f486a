"""Derives the floors, shows what would change in the vertical's rule files, and changes exactly that."""

from __future__ import annotations

import os.path
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evalcore.registry.judge import digest
from rampgate.calibration.folder import DIFF, ON_SCALE, sha256
from rampgate.calibration.steps.given import Given, Outcome
from rampgate.limits.calibration import Calibrated, Options, proposals
from rampgate.limits.rule_files import FileChange, NewLimits, put, write_limits
from schemas.calibration_cycle import Cycle, NewFloor, RuleChange, State, Step
from schemas.judges import BaselineSource


def floors(given: Given, cycle: Cycle) -> Outcome:
    """The 5th percentile of judges' scores where people found the turn acceptable."""
    table = []
    for one in _proposed(given, cycle):
        of, judge = one.found, given.judges[one.judge]
        table.append(
            NewFloor(
                judge_id=one.judge, old=judge.floor, floor=of.limit, acceptable=_cut(cycle, one.judge),
                traces=one.traces, n=of.n, mean=of.mean, sigma=of.sigma, breach_probability=of.breach,
                detectable_drop=of.detectable, proposed=one.new is not None, reason=of.reason,
            )
        )  # fmt: skip
    return Outcome(told=f"{sum(one.proposed for one in table)} of {len(table)} judges", found={"floors": table})


def diff(given: Given, cycle: Cycle) -> Outcome:
    """What would change in the vertical's rule files."""
    changes = _changes(given, cycle)
    text = "".join(replace(change, path=Path(_name(given, change.path))).diff for change in changes)
    return Outcome(told=f"{len(changes)} rule files", files={DIFF: text}, found={"changes": _told(given, changes)})


def write(given: Given, cycle: Cycle) -> Outcome:
    """Changes them, when asked to alone, and no otherwise than an earlier run said, where one did."""
    if not given.write:
        return Outcome(State.NOT_BEGUN, "--write changes the rule files")
    changes, stated = _changes(given, cycle), {one.file: one for one in cycle.changes}
    if given.reported not in ("", given.hashes(DIFF)[DIFF]) or any(
        one != stated.get(one.file) for one in _told(given, changes)
    ):
        return Outcome(
            State.REFUSED, f"nothing was written: {DIFF} is another one than was reported; read it, and --write again"
        )
    put(changes)
    return Outcome(told=f"limits of {len(stated)} judges")


def rule_files(given: Given, cycle: Cycle) -> str:
    """The hash of the rule files that the difference is made from. One that the round has written counts as it was: a
    round that was killed between two files has the same difference."""
    written = {one.file: one for one in cycle.changes}
    rules = given.settings.configs / "rules"
    found = []
    for folder in (rules, rules / given.vertical):
        for path in sorted((*folder.glob("*.yaml"), *folder.glob("*.yml"))):
            name, own = _name(given, path), sha256(path.read_bytes())
            if name in written and own == written[name].after:
                own = written[name].before
            found += [[name, own]] if own else []
    return digest(found)


def of_diff(given: Given, cycle: Cycle) -> str:
    """The same of a round that has not written yet; what it wrote may change later, and its difference stays."""
    known = cycle.step(Step.DIFF).inputs
    return known.get("rule files", "") if cycle.step(Step.WRITE).state is State.DONE else rule_files(given, cycle)


def _changes(given: Given, cycle: Cycle) -> list[FileChange]:
    of_drift = {one.judge_id: one.kl_limit for one in cycle.drift}
    new: list[NewLimits] = [
        replace(one.new, kl_threshold=of_drift.get(one.judge)) for one in _proposed(given, cycle) if one.new is not None
    ]
    return write_limits(given.settings.configs, cycle.vertical, new, write=False)


def _told(given: Given, changes: Sequence[FileChange]) -> list[RuleChange]:
    return [
        RuleChange(
            file=_name(given, one.path), judge_id=one.judge,
            before=sha256(one.before) if one.before else "", after=sha256(one.after),
        )
        for one in changes
    ]  # fmt: skip


def _name(given: Given, path: Path) -> str:
    """From the folder of both, so that the same round is the same bytes wherever it is checked out."""
    return Path(os.path.relpath(path.resolve(), given.settings.configs.resolve().parent)).as_posix()


def _proposed(given: Given, cycle: Cycle) -> list[Calibrated]:
    inverted = {one.judge_id: one for one in cycle.inversion if one.inverted}
    told = f"Inverted: {', '.join(sorted(inverted))}." if inverted else f"None of {len(cycle.inversion)} judges."
    cuts = {name: cut for name, cut in cycle.acceptable.items() if name != "*"}
    path, source = given.folder.path / ON_SCALE, BaselineSource.JADE_CALIBRATION
    options = Options(
        source, path, cycle.acceptable.get("*"), None, given.context, cycle.vertical,
        ticket=cycle.ticket, report=cycle.report, day=cycle.day, cuts=cuts,
    )  # fmt: skip
    out = []
    for one in proposals(options, given.registry)[0]:
        if one.judge in inverted:
            out.append(one.refused(inverted[one.judge].reason))
        elif _cut(cycle, one.judge) is None:
            why = f"it is unknown from which score on a turn is acceptable: --acceptable {one.judge}=SCORE"
            out.append(one.refused(why))
        elif one.new is not None:
            out.append(replace(one, new=replace(one.new, facts={**one.new.facts, "inverted_findings": told})))
        else:
            out.append(one)
    return out


def _cut(cycle: Cycle, judge: str) -> float | None:
    return cycle.acceptable.get(judge, cycle.acceptable.get("*"))
