"""A calibration round draws from the vertical's own Opik project (PF-9 §5.3, FR-12)."""

from __future__ import annotations

import csv
from datetime import timedelta
from pathlib import Path

import pytest

from evalcore.registry.disk import today
from tests.contract.opik.calibration_rig import BEGUN, Rig, hash_of
from tests.unit.rampgate.calibration.round_rig import TURNS, agreeing, filled


async def test_pf9_5_3_a_round_draws_from_opik_and_goes_on_without_a_file_of_turns(shop_round: Rig) -> None:
    """Texts that were read are audited each time, and none stands in the round."""
    began = today()
    await shop_round.add(*range(TURNS))
    await shop_round.add(TURNS, metadata={"environment": "staging"})
    await shop_round.add(TURNS + 1, days_ago=40)
    await shop_round.add(TURNS + 2, metadata={"vertical": "travel"})
    code, told, err = await shop_round.calibrate(*BEGUN, "--sheet", "sheet.csv")
    assert (code, told["steps"]["annotate"]["state"]) == (0, "waiting"), err
    of = shop_round.drawn()
    assert {one["trace_id"] for one in of.values()} == {shop_round.traces[item] for item in of}
    assert {f"r{TURNS + n}" for n in range(3)}.isdisjoint(of)
    window = told["window"]
    assert (window["project"], window["turns"], len(window["sha256"])) == ("shop-eval", TURNS, 64)
    assert window["since"][:10] in {str(day - timedelta(days=30)) for day in (began, today())}
    assert "1 left out: another environment" in told["steps"]["draw"]["told"]
    scores = filled(Path("sheet.csv"), Path("scores.csv"), ("ann", "ben"), agreeing)
    code, told, err = await shop_round.calibrate("--annotations", scores)
    assert (code, told["done"]) == (0, True), (told["steps"], err)
    ids = hash_of(of)
    assert [(one["count"], one["response_ids_sha256"]) for one in shop_round.sink.records] == [(len(of), ids)] * 3
    assert {(one["purpose"], one["vertical"], one["query"]["calibration"]) for one in shop_round.sink.records} == {
        ("eval", "shop", "r1")
    }
    texts = b"".join(path.read_bytes() for path in shop_round.folder.glob("specs/**/*") if path.is_file())
    assert b"how do I do" not in texts


async def require_sheet(shop_round: Rig, query: str) -> None:
    """Demand that the annotators' sheet has each turn's query, with its `{number}`, and its answer."""
    code, _, err = await shop_round.calibrate(*BEGUN, "--sheet", "sheet.csv")
    assert code == 0, err
    rows = list(csv.DictReader(Path("sheet.csv").read_text().splitlines()))
    assert rows
    for row in rows:
        number = row["item_id"].removeprefix("r")
        assert (row["user_query"], row["agent_response"]) == (query.format(number=number), f"so {number}")


async def test_annotators_read_on_their_sheet_the_texts_that_judges_read(shop_round: Rig) -> None:
    """People and judges are compared by what both read, so both read the same."""
    for number in range(TURNS):
        said = {"input": {"messages": [{"role": "user", "content": f"how do I do {number}?"}]}}
        said |= {"output": {"messages": [{"content": [{"type": "text", "text": f"so {number}"}], "id": "m-1"}]}}
        await shop_round.add(number, texts=said)
    await require_sheet(shop_round, "how do I do {number}?")


async def test_annotators_read_the_texts_where_the_vertical_says_that_its_traces_hold_them(
    shop_round: Rig,
) -> None:
    layout = "{question: input.asked.words, answer: output.reply.text}"
    file = shop_round.folder / "configs/verticals/shop.yaml"
    file.write_text(f"{{name: shop, project: shop-eval, trace: {layout}}}")
    for number in range(TURNS):
        said = {"input": {"asked": {"words": f"how {number}?"}}, "output": {"reply": {"text": f"so {number}"}}}
        await shop_round.add(number, texts=said)
    await require_sheet(shop_round, "how {number}?")


async def test_what_comes_later_changes_no_draw_and_another_export_of_the_turns_will_do(shop_round: Rig) -> None:
    await shop_round.add(*range(TURNS))
    await shop_round.calibrate(*BEGUN)
    before = (shop_round.round / "draw.jsonl").read_bytes()
    await shop_round.add(*range(1_000, 1_100))
    code, _, err = await shop_round.calibrate("--sheet", "sheet.csv", "--turns", "turns.jsonl")
    assert code == 0, err
    assert (shop_round.round / "draw.jsonl").read_bytes() == before
    assert len(shop_round.sink.records) == 1, "texts of a file need no record"
    code, _, err = await shop_round.calibrate("--since", "7d")
    assert (code, "the window was fixed when the round began" in err) == (2, True)


async def test_turns_without_a_text_are_not_drawn(shop_round: Rig) -> None:
    await shop_round.add(*range(220))
    await shop_round.add(*range(220, 240), texts={"output": None})
    code, told, err = await shop_round.calibrate(*BEGUN)
    assert code == 0, err
    assert {f"r{n}" for n in range(220, 240)}.isdisjoint(shop_round.drawn())
    assert "left out: no text" in told["steps"]["draw"]["told"]


async def test_a_text_that_changed_since_the_draw_is_told(shop_round: Rig) -> None:
    await shop_round.add(*range(TURNS))
    await shop_round.calibrate(*BEGUN)
    item = next(iter(shop_round.drawn()))
    await shop_round.opik.call(
        "PATCH", f"/v1/private/traces/{shop_round.traces[item]}", {"project_name": "shop-eval", "output": "?"}
    )
    code, _, err = await shop_round.calibrate("--sheet", "sheet.csv")
    assert code == 2
    assert f"shop-eval: response_id: '{item}' is another one now" in err
    assert not Path("sheet.csv").exists()


async def test_without_audit_no_text_is_read_and_no_round_begins(shop_round: Rig) -> None:
    await shop_round.add(*range(TURNS))
    shop_round.sink.failing_after = 0
    code, _, err = await shop_round.calibrate(*BEGUN, "--sheet", "sheet.csv")
    assert (code, "can't be audited" in err) == (2, True)
    assert not Path("sheet.csv").exists()
    assert not (shop_round.round / "cycle.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--since", "yesterday"), "--since: 'yesterday' is neither"),
        (("--since", "2026-01-02", "--until", "2026-01-01"), "is no time in the past"),
        (("--until", "2999-01-01"), "is no time in the past"),
        (("--since", "7d", "--turns", "turns.jsonl"), "--turns FILE are drawn from as they are"),
        ((), "shop-eval: category: shop_returns has 0, general_qa has 0 turns"),
        (("--opik", "http://127.0.0.1:9"), "--turns FILE takes turns of a file"),
    ],
)
async def test_a_window_that_cant_be_right_is_refused(shop_round: Rig, words: tuple[str, ...], said: str) -> None:
    code, _, err = await shop_round.calibrate(*BEGUN, *words)
    assert code == 2
    assert said in err
    assert not (shop_round.round / "cycle.json").exists()
