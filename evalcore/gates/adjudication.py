"""Lets what a person said of an item count in the judge's place, while it holds, and shows it in the verdict. Pure.

An adjudication is bound to all that the judge read of the item, by its hash, and to the judge's version: it is of no
other output and of no other rubric. It never scores what the judge did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from evalcore.registry.judge import Judge
from evalcore.scoring.answers import Answer, Scored


def adjudicated(answers: Sequence[Answer], judge: Judge, today: date) -> list[Answer]:
    """Returns the answers, those replaced about which somebody says today what they count as. The last entry about an
    item counts."""
    held = {one.item: one for one in judge.adjudications if one.adjudicated_on <= today <= one.expires}
    out = []
    for answer in answers:
        if isinstance(answer, Scored) and answer.about is not None and (said := held.get(answer.about.digest)):
            answer = Scored(float(said.score), answer.weight, replace(answer.about, adjudication=said))
        out.append(answer)
    return out
