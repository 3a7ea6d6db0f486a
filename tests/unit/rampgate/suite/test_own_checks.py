"""A case may have checks and judges of its own; its judges wait for its checks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from evalcore.scoring.calls import Spend
from evalcore.suite.checks import Checker
from rampgate.suite.generation import Generated
from rampgate.suite.scoring import Rubric, ScoredSample
from rampgate.suite.suite_files import SuiteCase
from schemas.checks.suite import Check
from tests.unit.evalcore.scoring.scoring_rig import GOOD, REGISTRY, Model, scorer

HELPFUL, REFUSAL, BREVITY = (REGISTRY.judge(name) for name in ("helpfulness", "refusal", "brevity"))
WARM = replace(HELPFUL, id="warmth")
POLITE = Checker(Check(regex="please"))
RUBRIC = Rubric([HELPFUL], {"said": Checker(Check(regex="."))}, {})


def case(name: str, **own: Any) -> SuiteCase:
    return SuiteCase(name, {"id": name, "input": "how?"}, (), None, **own)


async def scored(model: Model, answers: dict[str, str], *cases: SuiteCase) -> dict[str, ScoredSample]:
    async def answer(one: SuiteCase) -> Generated:
        return Generated(one.id, 1, {"output": answers[one.id]})

    async def asking(some: Any) -> Any:
        return [partial(answer, one) for one, _ in some]

    found = await RUBRIC.score([(one, 1) for one in cases], asking, scorer(model), Spend())
    return {one.case.id: one for one in found}


async def test_only_the_case_has_its_scores() -> None:
    model = Model(GOOD)
    own = case("own", checks={"polite": POLITE}, judges=[WARM])
    found = await scored(model, {"own": "yes, please", "plain": "yes"}, own, case("plain"))
    assert found["plain"].scores == {"said": 1.0, "helpfulness": 4.0}
    assert found["own"].scores.keys() == {"said", "helpfulness", "polite", "warmth"}
    assert found["own"].scores["polite"] == 1.0
    assert sorted(model.calls) == ["yes", "yes, please", "yes, please"]


@pytest.mark.parametrize("safety", [False, True])
async def test_where_its_check_fails_its_judges_are_not_asked_but_for_safety(*, safety: bool) -> None:
    judge = REFUSAL if safety else WARM
    model = Model(GOOD)
    (found,) = (await scored(model, {"own": "no"}, case("own", checks={"polite": POLITE}, judges=[judge]))).values()
    assert (found.scores["polite"], len(model.calls) > 1) == (0.0, safety)
    asked = "not asked: the check polite does not hold"
    assert (found.scores[judge.id] == "N/A", found.reasons.get(judge.id) == asked) == (not safety, not safety)


def test_its_versions_are_its_own_too() -> None:
    own = case("own", checks={"polite": POLITE}, judges=[BREVITY])
    plain = RUBRIC.versions_of(case("plain"))
    assert plain.keys() == {"said", "helpfulness"}
    more = RUBRIC.versions_of(own).keys() - plain
    assert more == {"polite", "brevity", *(f"brevity.{name}" for name in BREVITY.dimensions)}
