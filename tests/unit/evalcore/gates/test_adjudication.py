"""A person's word about an item counts in a judge's place: of that content and version, for a time, and in sight."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from evalcore.gates.evaluate import aevaluate_gate
from evalcore.judges.evaluator import Prompt
from evalcore.registry.registry import Registry
from schemas.verdicts import Code, GateVerdict, JudgeScore, VerdictLevel
from tests.unit.evalcore.gates import gate_items
from tests.unit.evalcore.gates.gate_items import items
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY

ON, EXPIRES = date(2026, 11, 20), date(2026, 12, 20)


def says_false_of(*outputs: str) -> gate_items.Model:
    """What is true or false is false of these outputs."""

    def says(asked: Prompt) -> Any:
        best = gate_items.good(asked)
        return False if best is True and asked.output in outputs else best

    return gate_items.Model(says)


async def verdict(of: Registry, *outputs: str, given: Any = None, today: date = TODAY) -> GateVerdict:
    given = items() if given is None else given
    return await aevaluate_gate(
        "pre_merge", given, ["honesty"], model=says_false_of(*outputs), registry=of, today=today
    )


def honesty(found: GateVerdict) -> JudgeScore:
    return found.per_judge_scores["honesty"]


def told(digest: str, version: str | None = None, score: str = "true") -> Registry:
    """A registry in which Ann has looked at the item."""
    version = version or built().judge("honesty").version
    entry = (
        f"judge: honesty, judge_version: {version}, item: {digest}, score: {score}, pull_request: 'https://x/1', "
        f"adjudicated_by: ann, justification: A film., adjudicated_on: {ON}, expires: {EXPIRES}"
    )
    return built({"adjudications.yaml": f"adjudications: [{{{entry}}}]"})


@pytest.fixture
async def digest() -> str:
    """The hash of the item that the judge fails, as the verdict shows it."""
    found = await verdict(built(), "so 7")
    assert [reason.code for reason in found.reasons] == [Code.BELOW_THRESHOLD]
    (shown,) = honesty(found).questioned
    assert (shown.item, shown.counts_as, shown.adjudicated_by) == ("i7", False, None)
    return shown.item_hash


async def test_a_person_says_what_a_failing_item_counts_as_and_the_verdict_says_who_and_until_when(digest: str) -> None:
    """A safety judge's, too: its false alarm is the one that blocks. What the judge said stays in sight."""
    of = told(digest)
    found = await verdict(of, "so 7")
    assert found.verdict is VerdictLevel.PASS
    assert (honesty(found).score, honesty(found).adjudicated) == (1.0, 1)
    (shown,) = honesty(found).questioned
    assert (shown.answers, shown.counts_as) == ((False,), True)
    assert (shown.adjudicated_by, shown.adjudication_expires) == ("ann", "2026-12-20")
    assert of.config_hash != built().config_hash


@pytest.mark.parametrize(("today", "holds"), [("2026-11-19", False), ("2026-12-20", True), ("2026-12-21", False)])
async def test_it_holds_from_its_day_to_its_end(digest: str, today: str, holds: bool) -> None:
    """By the gate's own day, also where the registry was read before it."""
    found = honesty(await verdict(told(digest), "so 7", today=date.fromisoformat(today)))
    assert (found.score == 1.0, found.adjudicated) == (holds, int(holds))


async def test_it_is_of_that_content_alone(digest: str) -> None:
    """The same item with another output, or another question, is another one; the same content elsewhere is not."""
    of = told(digest)
    for change in ({"output": "so 7!"}, {"input": "how? 7!"}):
        given = items()
        given[7] |= change
        assert honesty(await verdict(of, given[7]["output"], given=given)).score == 24 / 25
    given = items()
    given[7]["metadata"] = {"id": "under another id"}
    assert honesty(await verdict(of, "so 7", given=given)).score == 1.0


async def test_it_is_of_that_version_alone_and_of_no_other_item(digest: str) -> None:
    assert honesty(await verdict(told(digest, "0123456789abcdef"), "so 7")).score == 24 / 25
    assert honesty(await verdict(told(digest), "so 7", "so 8")).score == 24 / 25


async def test_a_person_may_also_say_that_a_judge_missed_something(digest: str) -> None:
    found = honesty(await verdict(told(digest, score="false")))
    assert (found.score, found.adjudicated, found.questioned[0].answers) == (24 / 25, 1, (True,))


async def test_what_the_judge_did_not_score_nobody_scores_for_it(digest: str) -> None:
    """An outage is no false alarm."""
    model = gate_items.Model(lambda asked: "N/A" if asked.output == "so 7" else gate_items.good(asked))
    found = await aevaluate_gate("pre_merge", items(), ["honesty"], model=model, registry=told(digest), today=TODAY)
    assert (honesty(found).unscored, honesty(found).adjudicated) == (1, 0)
