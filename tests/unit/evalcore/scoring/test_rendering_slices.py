"""Making prompts leaves the event loop free: texts are bounded first, and after so much text others have their turn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from evalcore import framing
from evalcore.scoring import runner
from evalcore.scoring.answers import Scored
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.runner import Scorer
from tests.unit.evalcore.scoring.scoring_rig import Model, tasks

LONG = 900_000
TEXTS = {"tags": "< " * (LONG // 2), "unseen": "x\u200b" * (LONG // 2), "plain": "word " * (LONG // 5)}


@pytest.mark.parametrize("kind", TEXTS)
async def test_sixteen_judges_of_900_kb_never_hold_the_loop_for_more_than_one_text(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted as characters that are read between two turns of the loop: sixteen such texts took 7.3 s in one."""
    turns: list[int] = [0]
    write = framing._string
    monkeypatch.setattr(framing, "_string", lambda text: _add(turns, len(text)) or write(text))

    async def others() -> None:
        while True:
            turns.append(0)
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    limits = CallLimits(at_once=4, judged_tokens=32_000)
    found = await Scorer(Model(), MemoryScoreCache(), limits).score(
        "g", tasks(*(f"{n}{TEXTS[kind]}" for n in range(16)))
    )
    beside.cancel()
    with suppress(asyncio.CancelledError):
        await beside
    assert [one.answer for one in found] == [Scored(4.0)] * 16
    room = 32_000 * framing.CHARACTERS_A_TOKEN
    assert max(turns) <= 6 * room, "one item's texts, in a few passes over what is shown of them"


async def test_small_items_share_a_slice_and_many_of_them_do_not_hold_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = [0]
    monkeypatch.setattr(runner, "SLICE", 10_000)
    write = framing._string
    monkeypatch.setattr(framing, "_string", lambda text: _add(turns, len(text)) or write(text))

    async def others() -> None:
        while True:
            turns.append(0)
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    await Scorer(Model(), MemoryScoreCache()).score("g", tasks(*(f"{n:04} " + "word " * 200 for n in range(100))))
    beside.cancel()
    with suppress(asyncio.CancelledError):
        await beside
    assert 2_000 < max(turns) <= 12_000


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
