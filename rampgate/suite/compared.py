"""Two runs of a suite and what was decided of them: what every form of the answer is made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from evalcore.stats.bootstrap import RESAMPLES
from evalcore.suite.confirm import Confirmation
from evalcore.suite.gates import Judged
from evalcore.suite.pairing import Paired
from evalcore.suite.power import Power, powers
from evalcore.suite.results import Run
from evalcore.suite.words import Word, sentence
from schemas.checks.suite_again import SuiteAgain


@dataclass(frozen=True)
class Compared:
    baseline: Run
    candidate: Run
    paired: Paired
    judged: Judged
    seed: int
    resamples: int = RESAMPLES
    confirmations: Sequence[Confirmation] = ()
    """What fresh samples said of what tripped."""
    unconfirmed: str = ""
    """Why there are none, where something tripped."""
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
        return powers(self.paired, self.judged.comparison, self.seed)
