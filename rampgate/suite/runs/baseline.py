"""Finds what a run of a suite is compared with, and keeps the run, so that later ones are compared with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from agents.ports import Unavailable
from evalcore.judges.score_parsing import NOT_APPLICABLE
from evalcore.registry.judge import Judge
from evalcore.scoring.calls import Spend
from rampgate.console import Failure, run
from rampgate.files import replace_file
from rampgate.store.sealed import Kept, SealedStore
from rampgate.suite.generation import LARGEST_ANSWER, Wanted, key_of
from rampgate.suite.runs.judged_again import trace_of_row
from rampgate.suite.runs.session import Session
from rampgate.suite.runs.stored import INCOMPLETE, MAIN, StoredRun, StoredRuns, hash_of, named_run, written
from rampgate.suite.scoring import ScoredSample

FAILED = "fail"
UNSCORED = "unscored"
"""A run without a baseline, of which the deciding score is missing somewhere."""
NO_BASELINE = "no_baseline"
"""A run that found no baseline, where there should be one: absence is no pass."""


@dataclass(frozen=True)
class Baseline:
    """Results in a file; `stored` is the run that they are of, None where the file was named."""

    file: Path
    stored: StoredRun | None = None
    again: int = 0
    """Answers that were judged again, by the judges of now."""
    left: int = 0

    def told(self, now: datetime) -> dict[str, Any]:
        one = self.stored
        return {
            "results": str(self.file),
            "judged_again": self.again,
            "label": one.label if one is not None else None,
            "commit": one.commit if one is not None else None,
            "at": one.at if one is not None else None,
            "age": one.age(now) if one is not None else None,
        }


def baseline_of(
    named: str | None, store: SealedStore, suite: str, home: Path, label: str, *, smoke: bool, blind: bool = False
) -> Baseline | None:
    """The run named, else main's last run in the store that passed, written into `home`; None where there is none. A
    file that has a stored run's results is of that run. Raises Failure, also where the store has runs and none bears
    our seal, before anything costs. A run that is labelled main's begins again, and one that is `blind`, since its
    judges can't be asked, says so by its verdict."""
    if named is not None:
        file, stored = named_run(named, store, suite, home, smoke=smoke)
        return Baseline(file, stored or _of_content(file, store, suite))
    refused = store.refused
    try:
        found = run(partial(StoredRuns(store).last_passed, suite, MAIN, smoke=smoke))
    except Unavailable as error:
        raise Failure(f"the baseline can't be read: {error}; --baseline names a file of results") from error
    if found is None and store.refused > refused and label != MAIN and not blind:
        raise Failure(
            f"the store's runs of {suite} have no seal of RAMPGATE_SEAL_KEY, so none can be the baseline: give the key "
            "that main's run had, name a file of results (--baseline), or run main again (--label main)"
        )
    if found is None:
        return None
    stored, results = found
    return Baseline(written(home, stored, results), stored)


def _of_content(file: Path, store: SealedStore, suite: str) -> StoredRun | None:
    """The last stored run with these results, of a known commit if there is one."""
    try:
        wanted = hash_of(file.read_bytes())
        same = [one for one in run(partial(StoredRuns(store).of, suite)) if one.results == wanted]
    except (OSError, Unavailable):
        return None
    return next(iter(sorted(same, key=lambda one: (bool(one.commit), one.at), reverse=True)), None)


def by_same_judges(baseline: Baseline, session: Session, spend: Spend, folder: Path) -> Baseline:
    """The baseline as the judges of now score its outputs, in a file of its own where they are not those that did.
    Raises Failure."""
    found = run(partial(session.judged_again, baseline.file, spend))
    if not found.many:
        return baseline
    text = "".join(f"{orjson.dumps(line).decode()}\n" for line in found.lines)
    file = folder / f"baseline-{hash_of(text.encode())[:12]}.jsonl"
    replace_file(file, text)
    return replace(baseline, file=file, again=found.many, left=found.left)


def verdict_of(
    told: Mapping[str, Any], samples: Sequence[ScoredSample], score: str, judges: Sequence[Judge], *, first: bool
) -> str:
    """What the run comes to: an incomplete one never passes. Without a baseline only a `first` run passes, and that not
    where the score that decides is missing somewhere, or the agent failed every time: compared with such a run of main,
    anything passes."""
    if told["left"] is not None:
        return INCOMPLETE
    if told["comparison"] is not None:
        return str(told["comparison"]["verdict"])
    if all(one.error is not None for one in samples):
        return FAILED
    names = {score, *(judge.id for judge in judges if score in (judge.id, judge.rule.name))}
    found = [value for one in samples for name, value in one.scores.items() if name in names]
    if any(value is None for value in found) or all(value == NOT_APPLICABLE for value in found):
        return UNSCORED
    return "pass" if first else NO_BASELINE


def keep_run(
    store: SealedStore,
    told: Mapping[str, Any],
    judges: Sequence[Judge],
    results: bytes,
    label: str,
    began: datetime,
    baseline: Baseline | None = None,
    only: str = "",
) -> None:
    """Keep the run, which ends now, and have its store forget what is old. A store that can't be used leaves the
    verdict as it is; `store.failures` has why."""
    dollars, ended = told["answers_cost_usd"], datetime.now(UTC)
    stored = baseline.stored if baseline is not None else None
    made = StoredRun(
        told["suite"], ended.isoformat(timespec="milliseconds"), label, told["verdict"], told["set"],
        told["configuration"], hash_of(results), told["commit"],
        {judge.id: judge.version for judge in judges}, told["parts"],
        told["judge_calls"], told["tokens"], told["priced_calls"], (told["cost_usd"] or 0.0) - dollars,
        told["answers"]["asked"], dollars, told["answers"]["kept"],
        told["judge_answers"]["given"], told["judge_answers"]["kept"],
        max((ended - began).total_seconds(), 0.0), only, stored.configuration if stored is not None else "",
        len(told["comparison"]["cases"]["lost"]) if told["comparison"] is not None else 0,
    )  # fmt: skip
    try:
        run(partial(StoredRuns(store).add, made, results))
        run(partial(forget, store))
    except Unavailable:
        return


PAGE: Final = 200
"""Traces that are read at once; one may have megabytes."""


async def forget(store: SealedStore) -> None:
    """Have a suite's store forget what was not used for long, but never what a baseline is made of: main's last run of
    each set that passed stays with its results, its answers and their traces, however old it is. Raises Unavailable."""
    await store.forget(partial(_needed, store))


async def _needed(store: SealedStore) -> list[str] | None:
    """The names of what baselines are made of, those of other suites among them. None where a run has no seal that we
    could check: it might be main's last. With the secret of trusted jobs what lacks its seal is no baseline."""
    runs, refused = StoredRuns(store), store.refused
    known = await runs.by_key()
    if store.refused > refused and not store.signed:
        return None
    traces = store.kind("traces", 2 * LARGEST_ANSWER)
    names, found = [], set[tuple[str, str]]()
    for key, one in reversed(known.items()):
        if (one.suite, one.set) in found or one.label != MAIN or not one.passed:
            continue
        if (results := await runs.results(one)) is None:
            continue
        found.add((one.suite, one.set))
        rows = [orjson.loads(line) for line in results.splitlines() if line.strip()]
        names += [f"runs:{key}", f"results:{one.results}", *(f"traces:{trace_of_row(row)}" for row in rows)]
        names += [f"answers:{answer}" for answer in await _answers(one, rows, traces)]
    return names


async def _answers(one: StoredRun, rows: Sequence[Mapping[str, Any]], traces: Kept) -> list[str]:
    """The keys of the answers that the run's results are made of: its traces know what was asked."""
    found = []
    for first in range(0, len(rows), PAGE):
        some = rows[first : first + PAGE]
        held = await traces.get_many([trace_of_row(row) for row in some])
        for row, value in zip(some, held, strict=True):
            case = orjson.loads(value).get("case") if value is not None else None
            if isinstance(case, Mapping):
                found.append(key_of(one.configuration, Wanted(str(row["case_id"]), row["sample"], case)))
    return found
