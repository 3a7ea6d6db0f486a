"""A calibration round draws from the vertical's own Opik project (PF-9 §5.3, FR-12)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from evalcore.registry.disk import today
from rampgate.local.model.server import Running
from tests.contract.opik.calibration_rig import BEGUN, Rig, hash_of, rig_of
from tests.contract.opik.scripted_opik import ScriptedOpik
from tests.unit.rampgate.calibration.round_rig import TURNS, agreeing, filled, vertical
from tests.unit.rampgate.checks.score_commands import alone
from tests.unit.rampgate.ci_gate.gate_rig import environment, local_model


@pytest.fixture(scope="module")
def model() -> Iterator[Running]:
    with local_model() as running:
        yield running


@pytest.fixture
async def rig(
    opik: ScriptedOpik,
    tmp_path: Path,
    model: Running,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Rig:
    root = vertical(tmp_path)
    alone(tmp_path, monkeypatch)
    for name, value in environment(root, model.url).items():
        monkeypatch.setenv(name, value)
    return rig_of(opik, tmp_path, capsys, monkeypatch)


def drawn(rig: Rig) -> dict[str, dict[str, Any]]:
    lines = (rig.round / "draw.jsonl").read_text().splitlines()
    return {one["item_id"]: one for one in map(json.loads, lines)}


async def test_pf9_5_3_a_round_draws_from_opik_and_goes_on_without_a_file_of_turns(rig: Rig) -> None:
    """Texts that were read are audited each time, and none stands in the round."""
    await rig.add(*range(TURNS))
    await rig.add(TURNS, metadata={"environment": "staging"})
    await rig.add(TURNS + 1, days_ago=40)
    await rig.add(TURNS + 2, metadata={"vertical": "travel"})
    code, told, err = await rig.calibrate(*BEGUN, "--sheet", "sheet.csv")
    assert (code, told["steps"]["annotate"]["state"]) == (0, "waiting"), err
    of = drawn(rig)
    assert {one["trace_id"] for one in of.values()} == {rig.traces[item] for item in of}
    assert {f"r{TURNS + n}" for n in range(3)}.isdisjoint(of)
    window = told["window"]
    assert (window["project"], window["turns"], len(window["sha256"])) == ("shop-eval", TURNS, 64)
    assert window["since"].startswith(str(today() - timedelta(days=30)))
    assert "1 left out: another environment" in told["steps"]["draw"]["told"]
    scores = filled(Path("sheet.csv"), Path("scores.csv"), ("ann", "ben"), agreeing)
    code, told, err = await rig.calibrate("--annotations", scores)
    assert (code, told["done"]) == (0, True), (told["steps"], err)
    ids = hash_of(of)
    assert [(one["count"], one["response_ids_sha256"]) for one in rig.sink.records] == [(len(of), ids)] * 3
    assert {(one["purpose"], one["vertical"], one["query"]["calibration"]) for one in rig.sink.records} == {
        ("eval", "shop", "r1")
    }
    texts = b"".join(path.read_bytes() for path in rig.folder.glob("specs/**/*") if path.is_file())
    assert b"how do I do" not in texts


async def test_what_comes_later_changes_no_draw_and_another_export_of_the_turns_will_do(rig: Rig) -> None:
    await rig.add(*range(TURNS))
    await rig.calibrate(*BEGUN)
    before = (rig.round / "draw.jsonl").read_bytes()
    await rig.add(*range(1_000, 1_100))
    code, _, err = await rig.calibrate("--sheet", "sheet.csv", "--turns", "turns.jsonl")
    assert code == 0, err
    assert (rig.round / "draw.jsonl").read_bytes() == before
    assert len(rig.sink.records) == 1, "texts of a file need no record"
    code, _, err = await rig.calibrate("--since", "7d")
    assert (code, "the window was fixed when the round began" in err) == (2, True)


async def test_turns_without_a_text_are_not_drawn(rig: Rig) -> None:
    await rig.add(*range(220))
    await rig.add(*range(220, 240), texts={"output": None})
    code, told, err = await rig.calibrate(*BEGUN)
    assert code == 0, err
    assert {f"r{n}" for n in range(220, 240)}.isdisjoint(drawn(rig))
    assert "left out: no text" in told["steps"]["draw"]["told"]


async def test_a_text_that_changed_since_the_draw_is_told(rig: Rig) -> None:
    await rig.add(*range(TURNS))
    await rig.calibrate(*BEGUN)
    item = next(iter(drawn(rig)))
    await rig.opik.call("PATCH", f"/v1/private/traces/{rig.traces[item]}", {"project_name": "shop-eval", "output": "?"})
    code, _, err = await rig.calibrate("--sheet", "sheet.csv")
    assert code == 2
    assert f"shop-eval: response_id: '{item}' is another one now" in err
    assert not Path("sheet.csv").exists()


async def test_without_audit_no_text_is_read_and_no_round_begins(rig: Rig) -> None:
    await rig.add(*range(TURNS))
    rig.sink.failing = True
    code, _, err = await rig.calibrate(*BEGUN, "--sheet", "sheet.csv")
    assert (code, "can't be audited" in err) == (2, True)
    assert not Path("sheet.csv").exists()
    assert not (rig.round / "cycle.json").exists()


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
async def test_a_window_that_cant_be_right_is_refused(rig: Rig, words: tuple[str, ...], said: str) -> None:
    code, _, err = await rig.calibrate(*BEGUN, *words)
    assert code == 2
    assert said in err
    assert not (rig.round / "cycle.json").exists()
