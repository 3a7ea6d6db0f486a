"""People score a calibration round in an annotation queue of Opik (PF-9 §5.3, §2, FR-14). A round that is killed while
it draws from Opik and makes its queue ends as one that was not (issue 13)."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from typing import Any

import pytest

from tests.contract.opik.calibration_rig import BEGUN, PROJECT, Rig
from tests.unit.rampgate.calibration.round_rig import JUDGES, TURNS, contents, killed

QUEUES, DEFINITIONS = "/v1/private/annotation-queues", "/v1/private/feedback-definitions"


async def begun(rig: Rig, *words: str) -> dict[str, Any]:
    await rig.add(*range(TURNS))
    code, told, err = await rig.calibrate(*BEGUN, "--queue", *words)
    assert (code, told["steps"]["annotate"]["state"]) == (0, "waiting"), err
    return told


async def test_pf9_5_3_the_round_has_one_queue_with_the_drawn_turns_and_each_judges_scale(shop_round: Rig) -> None:
    """PF-9 Decision 19: people's scores are in the annotation queue, under names of their own."""
    told = await begun(shop_round)
    assert (
        "have no score of 2 people yet in 'Calibration of shop, r1' of shop-eval" in told["steps"]["annotate"]["told"]
    )
    await shop_round.calibrate("--queue")
    (queue,) = (await shop_round.opik.call("GET", QUEUES))["content"]
    assert (queue["id"], queue["name"], queue["project_name"]) == (*told["queue"].values(),)
    assert (queue["items_count"], queue["annotators_per_item"]) == (len(shop_round.drawn()), 2)
    assert queue["feedback_definition_names"] == [f"people/{judge}" for judge in JUDGES]
    made = {one["name"]: one for one in (await shop_round.opik.call("GET", DEFINITIONS))["content"]}
    buttons = {str(score): float(score) for score in range(1, 6)}
    assert made["people/helpfulness"]["details"] == {"categories": buttons}
    asked = await shop_round.opik.requests()
    assert asked[f"POST {QUEUES}"] == 1


async def test_pf9_fr14_each_authors_scores_are_read_apart_and_the_round_goes_on(shop_round: Rig) -> None:
    """The judges' own scores in Opik stay as they are: people's have names of their own."""
    await begun(shop_round)
    drawn = [*shop_round.drawn()]
    await shop_round.agree(drawn)
    code, told, err = await shop_round.calibrate()
    assert (code, told["done"]) == (0, True), (told["steps"], err)
    lines = (shop_round.round / "ratings.jsonl").read_text().splitlines()
    ratings = [json.loads(one) for one in lines]
    assert len(ratings) == len(drawn) * len(JUDGES) * 2
    assert {one["annotator"] for one in ratings} == {"ann", "ben"}
    reference = shop_round.folder / "specs/verticals/shop/eval/reference-set.jsonl"
    assert len(reference.read_text().splitlines()) == len(ratings)
    item = drawn[0]
    scores = await shop_round.opik.scores_of(shop_round.traces[item])
    assert scores["helpfulness"]["value"] == shop_round.drawn()[item]["judge_scores"]["helpfulness"]
    await shop_round.score(item, "carla", 1)
    code, told, err = await shop_round.calibrate("--queue")
    assert (code, "annotate" in err, told["done"]) == (0, False, True), "what is said later counts for nothing"


async def test_a_queue_waits_for_a_second_person_for_each_turn(shop_round: Rig) -> None:
    """PF-9 FR-14: how far people agree is told of turns that two or more scored."""
    await begun(shop_round)
    drawn = [*shop_round.drawn()]
    await shop_round.agree(drawn, ("ann",))
    await shop_round.agree(drawn[1:], ("ben",))
    code, told, _ = await shop_round.calibrate()
    assert (code, told["steps"]["annotate"]["state"]) == (0, "waiting")
    assert f"2 of {2 * len(drawn)} have no score of 2 people yet" in told["steps"]["annotate"]["told"]
    await shop_round.agree(drawn[:1], ("ben",))
    code, told, err = await shop_round.calibrate()
    assert (code, told["done"]) == (0, True), err


async def test_a_refused_round_reads_the_queue_again(shop_round: Rig) -> None:
    await begun(shop_round)
    drawn = [*shop_round.drawn()]
    await shop_round.agree(drawn)
    await shop_round.put(*(shop_round.said(item, "ben", 1, "people/brevity") for item in drawn))
    code, told, _ = await shop_round.calibrate()
    assert (code, told["steps"]["agreement"]["state"]) == (1, "refused")
    await shop_round.agree(drawn)
    code, told, err = await shop_round.calibrate()
    assert (code, told["done"]) == (0, True), err
    assert "annotate: again, since queue" in err


@pytest.mark.parametrize("value", [6, 3.5, 0])
async def test_a_score_off_the_scale_is_told_with_item_and_author(shop_round: Rig, value: float) -> None:
    """PF-9 FR-14: such a score takes no part in the agreement."""
    await begun(shop_round)
    item = next(iter(shop_round.drawn()))
    await shop_round.score(item, "ann", value)
    code, _, err = await shop_round.calibrate()
    assert code == 2
    must = f"'{item}': the score of 'ann' must be a whole number from 1 to 5, helpfulness's scale, got {value:g}"
    assert must in " ".join(err.split())


async def test_a_turn_that_was_not_drawn_is_told_with_its_author(shop_round: Rig) -> None:
    told = await begun(shop_round)
    other = next(item for item in shop_round.traces if item not in shop_round.drawn())
    path = f"{QUEUES}/{told['queue']['id']}/items/add"
    await shop_round.opik.call("POST", path, {"ids": [shop_round.traces[other]]})
    await shop_round.score(other, "ann", 3)
    code, _, err = await shop_round.calibrate()
    assert (code, f"'{other}', scored by 'ann': was not drawn" in " ".join(err.split())) == (2, True), err


async def test_one_person_who_scored_twice_is_told(shop_round: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer releases of Opik keep an author's scores of several queues beside one another; those of another queue are
    not of this round."""
    from streams.opik import queues

    await begun(shop_round)
    item, real = next(iter(shop_round.drawn())), queues._said
    twin: dict[str, Any] = {"value": 3.0, "author": "ann"}

    def with_twin(trace: Any, queue_id: str, names: Any) -> Any:
        for score in trace["feedback_scores"]:
            if score["name"] == "people/helpfulness":
                score["value_by_author"] = {**score["value_by_author"], "ann_2": twin}
        return real(trace, queue_id, names)

    monkeypatch.setattr(queues, "_said", with_twin)
    await shop_round.score(item, "ann", 3)
    code, _, err = await shop_round.calibrate()
    assert (code, f"'{item}': 'ann' scored it for helpfulness twice" in " ".join(err.split())) == (2, True), err
    twin["source_queue_id"] = "another"
    assert (await shop_round.calibrate())[0] == 0


async def test_another_definition_of_that_name_is_told(shop_round: Rig) -> None:
    await shop_round.add(*range(TURNS))
    details = {"type": "numerical", "name": "people/brevity", "details": {"min": 0, "max": 1}}
    await shop_round.opik.call("POST", DEFINITIONS, details)
    code, _, err = await shop_round.calibrate(*BEGUN, "--queue")
    assert (code, "another feedback definition 'people/brevity'" in " ".join(err.split())) == (2, True)
    assert (await shop_round.opik.call("GET", QUEUES))["content"] == []


async def test_turns_of_a_file_without_ids_of_opiks_have_no_queue(shop_round: Rig) -> None:
    code, _, err = await shop_round.calibrate(*BEGUN, "--turns", "turns.jsonl", "--queue")
    assert (code, "which is none of Opik's" in " ".join(err.split())) == (2, True)
    code, _, err = await shop_round.calibrate("--queue", "--annotations", "turns.jsonl")
    assert (code, "give either --annotations or --queue" in err) == (2, True)
    assert PROJECT not in err


KILLS = 14
"""Before and after: the beginning, three files of the draw, a definition, the queue, a file of what people said. What
is made in Opik is there for the next run, which makes fewer things."""


async def test_pf9_5_3_a_round_killed_while_it_draws_and_makes_its_queue_ends_with_the_same_bytes_and_one_queue(
    shop_round: Rig, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People scored all turns before, so that no one is waited for."""
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
    assert made == 1, "before it is made no one made it, and afterwards it is there"
    code, told_, err = await shop_round.calibrate(*words)
    assert (code, told_["queue"]["id"]) == (0, queue["id"]), err
    assert queue["items_count"] == len(shop_round.drawn())
    assert contents(tree) == contents(shop_round.folder)
