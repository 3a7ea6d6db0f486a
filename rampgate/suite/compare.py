"""Decides whether a candidate's run regresses from the baseline's, as its results stand in files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from evalcore.suite.comparison import SEED
from evalcore.suite.confirm import Confirmation
from evalcore.suite.gates import Judged, judge
from evalcore.suite.pairing import Paired, paired
from evalcore.suite.power import Power, powers
from evalcore.suite.results import SAFETY, NoScore, Run, chosen, failed_throughout, scale_of, versions_of
from evalcore.suite.words import Word, sentence
from rampgate.console import Failure
from rampgate.suite.result_files import read_run
from schemas.checks.suite_again import SuiteAgain


@dataclass(frozen=True)
class Options:
    """How two runs are compared. `scale`, `safety` and `safe_at` are what files do not say: the score's lowest and
    highest value, which slices are of safety (none named: `safety`), and below which score a case of theirs fails.
    `let_go`: cases of safety that may be missing; `undrawn`: cases of the baseline that the candidate was not asked,
    because its run is of the smoke set."""

    baseline: Path
    candidate: Path
    score: str | None
    scale: tuple[float, float] | None
    safety: tuple[str, ...]
    safe_at: float | None
    let_go: tuple[str, ...] = ()
    undrawn: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Compared:
    """Two runs and what was decided of them: what every form of the answer is made from."""

    baseline: Run
    candidate: Run
    paired: Paired
    judged: Judged
    confirmations: Sequence[Confirmation] = ()
    """What fresh samples said of what fell."""
    unconfirmed: str = ""
    """Why there are none, where something fell."""
    again: SuiteAgain | None = None
    """What both sides have to answer first, where another job has them do it."""

    @cached_property
    def words(self) -> dict[str | None, Word]:
        """The word of each slice, and of all cases under None."""
        whole, power = self.power
        found = {}
        for name in (*self.paired.slices, None):
            one = whole if name is None else power.get(name)
            blind = one is None or one.blind(fresh=self.judged.fresh)
            found[name] = self.judged.word(name, self.paired.of(name), blind=blind)
        return found

    @property
    def sentence(self) -> str:
        return sentence(self.judged.verdict, [self.words[name] for name in self.paired.slices])

    @cached_property
    def power(self) -> tuple[Power | None, dict[str, Power]]:
        """How small a drop of all cases, and of each slice, is found."""
        return powers(self.paired, self.judged.comparison, SEED)


class NothingInCommon(Failure):
    """No case of the candidate is one of the baseline's, and asks the same."""


def compared_files(options: Options) -> Compared:
    """Read both runs and judge them. Raises Failure, with what to do."""
    try:
        baseline, candidate = read_run(options.baseline), read_run(options.candidate)
        runs = (baseline, candidate)
        score = chosen(runs, options.score)
        scale = scale_of(runs, score, options.scale)
        alone = scale if failed_throughout(baseline) else scale_of(runs[:1], score, options.scale)
    except NoScore as error:
        raise Failure(str(error)) from error
    if (scale.low, scale.high) != (alone.low, alone.high):
        raise Failure(
            f"--scale: name the lowest and the highest value that {score[:80]!r} can have; the candidate has values "
            f"that are not on the baseline's scale, {alone.low:g} to {alone.high:g}"
        )
    known = {tag for run in runs for case in run.values() for tag in case.slices}
    if strange := sorted(set(options.safety) - known):
        raise Failure(f"--safety: no case of the files is in the slice {strange[0][:80]!r}, so that nothing guards it")
    same = {name: baseline[name] for name in candidate if name in baseline and not _other(baseline, candidate, name)}
    # A spec's queries each assert something of their own: the score has a version a case.
    if any(len(versions_of((before, candidate[name]), score)) > 1 for name, before in same.items()):
        raise Failure(
            f"{options.baseline} and {options.candidate}: {score[:80]!r} is of other versions of its judge or check; "
            "`rampgate suite run SUITE --baseline FILE` has the baseline's outputs judged again"
        )
    asked = {name: case for name, case in baseline.items() if name not in options.undrawn or name in candidate}
    found = paired(asked, candidate, score, scale, options.safety or SAFETY, options.safe_at, options.let_go)
    if not found.pairs:
        raise NothingInCommon(
            f"{options.baseline} and {options.candidate}: no case has {score[:80]!r} in both; nothing can be compared"
        )
    return Compared(baseline, candidate, found, judge(found, SEED))


def refuse_same(baseline: Path, candidate: Path) -> None:
    """Raises Failure where both are one file: a run that is its own baseline is never worse."""
    if baseline.exists() and candidate.exists() and baseline.samefile(candidate):
        raise Failure(f"{candidate}: is the baseline itself; a run says nothing when it is compared with itself")


def _other(baseline: Run, candidate: Run, name: str) -> bool:
    """Tells whether the case asks something else in the two runs; then it is not compared."""
    before, now = (run[name].question for run in (baseline, candidate))
    return bool(before) and before != now
