"""A round that is killed while it draws from Opik and makes its queue ends as one that was not (issue 13)."""

from __future__ import annotations

import asyncio
import re
import shutil

import pytest

from tests.contract.opik.calibration_rig import BEGUN, Rig
from tests.unit.rampgate.calibration.round_rig import TURNS, contents, killed

QUEUES = "/v1/private/annotation-queues"
KILLS = 14
"""Before and after: the beginning, three files of the draw, a definition, the queue, a file of what people said. What
is made in Opik is there for the next run, which makes fewer things."""


async def test_pf9_5_3_a_round_killed_while_it_draws_and_makes_its_queue_ends_with_the_same_bytes_and_one_queue(
    shop_round: Rig, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People scored all turns before, so that nobody is waited for."""
    await shop_round.add(*range(TURNS))
    await shop_round.agree(shop_round.traces)
    tree = tmp_path_factory.mktemp("killed") / "tree"
    shutil.copytree(shop_round.folder, tree)
    words = (*BEGUN, "--queue", "--write")
    with monkeypatch.context() as patched:
        patched.setenv("RAMPGATE_CONFIGS", str(tree / "configs"))
        own = ("calibrate", "jade", "--vertical", "shop", "--round", "r1")
        told = await asyncio.to_thread(killed, [*own, *words], tree, "annotate")
    assert int(re.findall(r"killed (\d+) times", told)[-1]) >= KILLS, told
    (queue,) = (await shop_round.opik.call("GET", QUEUES))["content"]
    made = (await shop_round.opik.requests())[f"POST {QUEUES}"]
    assert made == 1, "before it is made nobody made it, and afterwards it is there"
    code, told_, err = await shop_round.calibrate(*words)
    assert (code, told_["queue"]["id"]) == (0, queue["id"]), err
    assert queue["items_count"] == len(shop_round.drawn())
    assert contents(tree) == contents(shop_round.folder)
