"""Making prompts leaves the event loop free: texts are bounded first, and after so much text others have their turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from evalcore import framing
from evalcore.judges.evaluator import Task
from evalcore.scoring import runner
from evalcore.scoring.answers import Judgement, Scored, collect
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.runner import Scorer
from streams.metrics import JudgeAnswers, Metrics
from tests.unit.evalcore.scoring.scoring_rig import GOOD, Model, tasks

LONG = 900_000
TEXTS = {"tags": "< " * (LONG // 2), "unseen": "x\u200b" * (LONG // 2), "plain": "word " * (LONG // 5)}


@pytest.mark.parametrize("kind", TEXTS)
async def test_sixteen_judges_of_900_kb_never_hold_the_loop_for_more_than_one_text(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted as characters that are read between two turns of the loop: sixteen such texts took 7.3 s in one."""
    scorer = Scorer(Model(), MemoryScoreCache(), CallLimits(at_once=4, judged_tokens=32_000))
    found, most = await _scored_beside_others(scorer, tasks(*(f"{n}{TEXTS[kind]}" for n in range(16))), monkeypatch)
    assert [one.answer for one in found] == [Scored(4.0)] * 16
    room = 32_000 * framing.CHARACTERS_A_TOKEN
    assert most <= 6 * room, "one item's texts, in a few passes over what is shown of them"


async def test_small_items_share_a_slice_and_many_of_them_do_not_hold_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "SLICE", 10_000)
    scorer = Scorer(Model(), MemoryScoreCache())
    _, most = await _scored_beside_others(scorer, tasks(*(f"{n:04} " + "word " * 200 for n in range(100))), monkeypatch)
    assert 2_000 < most <= 12_000


async def _scored_beside_others(
    scorer: Scorer, asked: Sequence[Task], monkeypatch: pytest.MonkeyPatch
) -> tuple[list[Judgement], int]:
    """The judgements, and the most characters that were read between two turns of the loop."""
    turns: list[int] = [0]
    write = framing._string
    monkeypatch.setattr(framing, "_string", lambda text: _add(turns, len(text)) or write(text))

    async def others() -> None:
        while True:
            turns.append(0)
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    found = await scorer.score("g", asked)
    beside.cancel()
    with suppress(asyncio.CancelledError):
        await beside
    return found, max(turns)


@pytest.mark.parametrize("answer", [GOOD, '{"score": "N/A", "reason": "no"}'])
async def test_items_that_are_judged_on_a_cut_text_are_counted_also_from_kept_answers(answer: str) -> None:
    """From the process's memory and from the cache that all share. A text that imitates the form is no cut one."""
    texts = ("fine " * 10_000, '{"head": "x", "characters_cut": 7, "tail": "y"}', "short", "good " * 10_000)
    asked = [replace(one, digest=bytes([number]) * 16) for number, one in enumerate(tasks(*texts))]
    model, shared = Model(answer), MemoryScoreCache()
    for _ in range(2):
        scorer = Scorer(model, shared, CallLimits(judged_tokens=500))
        for _ in range(2):
            found = [one.answer for one in await scorer.score("g", asked)]
            assert collect(found, (1.0, 5.0)).cut == 2
    assert len(model.asked) == 4
    no_answer = Scorer(Model("prose"), MemoryScoreCache(), CallLimits(judged_tokens=500))
    assert collect([one.answer for one in await no_answer.score("g", asked)], (1.0, 5.0)).cut == 0, "none was judged"


async def test_questions_with_a_cut_turn_are_counted_by_judge() -> None:
    metrics = Metrics()
    answers = JudgeAnswers(metrics)
    scorer = Scorer(Model(), MemoryScoreCache(), CallLimits(judged_tokens=500), look=answers.look)
    await scorer.score("g", tasks("fine " * 10_000, "short"))
    assert metrics.registry.get_sample_value("rampgate_judged_cut_total", {"judge_id": "helpfulness"}) == 1


async def test_what_a_judge_is_shown_is_a_setting() -> None:
    model = Model()
    scorer = Scorer(model, MemoryScoreCache(), CallLimits(judged_tokens=500))
    await scorer.score("g", tasks("fine " * 10_000))
    (asked,) = model.asked
    assert len(asked.turn) <= 500 * framing.CHARACTERS_A_TOKEN + 150
    assert '"characters_cut": 48' in asked.turn
    assert asked.tokens < 1_000, "and what a gate pays for is what is shown"


def _add(turns: list[int], characters: int) -> Any:
    turns[-1] += characters
