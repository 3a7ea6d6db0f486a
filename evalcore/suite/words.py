"""Says what was found of each slice in one word, and of all in one sentence: for terminals, pages, JUnit, annotations
and canary plans alike. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from evalcore.stats.multiple_tests import holm
from evalcore.stats.within_case import least_p, within_case_p
from evalcore.suite.pairing import Pair
from schemas.counting import counted
from schemas.verdicts import VerdictLevel

SURE: Final = 0.05
LIKELY: Final = 0.20
SURE_OF_FRESH, LIKELY_OF_FRESH = 0.025, 0.15
"""The same for slices in fresh samples, of which a fine scale uses up all. Beside them the headline blocks 3.3 % of
unchanged candidates (2.5 % and the luck of a baseline that passed), and what is not applicable 1 %: together 7 %."""
ENOUGH: Final = 4
"""Samples that are a regression where all are lost, even where chance can't be told from it at 5 %."""
SHOWN: Final = 3
BLIND: Final = 0.2
"""The drop that a slice has to be able to show, as a share of the scale."""


class Word(StrEnum):
    WORSE = "worse"
    NOT_CONFIRMED = "worse, not confirmed"
    HOLDS = "holds"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Tested:
    """A slice's word, and the p by which it has it: adjusted over all slices; None where 2 σ or nothing decided.
    `change` is the difference in fresh samples, `fell` the cases that fell, the furthest first."""

    word: Word
    p: float | None = None
    change: float | None = None
    fell: tuple[str, ...] = ()


def decided(
    slices: Mapping[str | None, Sequence[Pair]], seed: int, *, best: bool = False, fresh: bool = False
) -> dict[str | None, Tested]:
    """Tests slices that fell, those together that stand together: samples change sides within their case.

    A slice that is lost wholly is `worse` whatever Holm asks, where these are enough samples. Stored samples that could
    not even show a loss of all can't tell a smaller one from chance.
    """
    sure, likely = (SURE_OF_FRESH, LIKELY_OF_FRESH) if fresh else (SURE, LIKELY)
    samples = {name: [pair.samples(best) for pair in pairs] for name, pairs in slices.items()}
    p_values = [within_case_p(both, seed, sure / len(slices)) for both in samples.values()]
    out: dict[str | None, Tested] = {}
    for (name, pairs), p in zip(slices.items(), holm(p_values), strict=True):
        lost = all(pair.lost_wholly(best) for pair in pairs)
        many = sum(len(pair.candidate.worst) for pair in pairs)
        blind = not fresh and least_p(samples[name]) * len(slices) > SURE
        if p <= sure or (lost and many >= ENOUGH):
            word = Word.WORSE
        elif blind:
            word = Word.NOT_CONFIRMED if lost else Word.CANNOT_TELL
        else:
            word = Word.NOT_CONFIRMED if p <= likely else Word.HOLDS
        deltas = {pair.case_id: pair.delta(best) for pair in pairs}
        fell = sorted((delta, case) for case, delta in deltas.items() if delta < 0)
        change = sum(deltas.values()) / len(deltas) if fresh else None
        out[name] = Tested(word, p, change, tuple(case for _, case in fell))
    return out


def confirmed_cases(cases: Sequence[Pair], seed: int) -> list[str]:
    """The cases whose fresh samples are worse by themselves: at 5 % over all, or lost wholly."""
    p_values = holm([within_case_p([pair.samples()], seed, SURE / len(cases)) for pair in cases])
    return [pair.case_id for pair, p in zip(cases, p_values, strict=True) if p <= SURE or pair.lost_wholly()]


def said_of(word: Word, test: Tested | None, cleared: Sequence[str] = ()) -> str:
    """A slice's word as it is shown: with what fresh samples said, and cases of safety that they cleared."""
    notes = []
    if test is not None and test.p is not None:
        change = f"{test.change:+.3f} in fresh samples, " if test.change is not None else ""
        notes.append(f"{change}p = {test.p:.2g}")
    if cleared:
        rest = f" and {len(cleared) - SHOWN:,} more" if len(cleared) > SHOWN else ""
        notes.append(f"cleared: {', '.join(repr(case[:80]) for case in cleared[:SHOWN])}{rest}")
    return f"{word} ({'; '.join(notes)})" if notes else str(word)


def sentence(verdict: VerdictLevel, words: Collection[str]) -> str:
    """What was found, for a headline. `words` are those of all slices: too small ones are a fact of the suite."""
    said = {
        VerdictLevel.PASS: "no regression found",
        VerdictLevel.WARN: "not blocked, but to be looked at",
        VerdictLevel.FAIL: "blocked",
    }[verdict]
    blind = sum(word == Word.CANNOT_TELL for word in words)
    if not blind:
        return said
    verb = "is" if blind == 1 else "are"
    return f"{said}; {blind:,} of {counted(len(words), 'slice')} {verb} too small to tell"
