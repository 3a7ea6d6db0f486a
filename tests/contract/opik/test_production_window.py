"""`rampgate calibrate production --vertical V` reads 30 days of live scores from the vertical's Opik (PF-9 §5.3)."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
import yaml

from tests.contract.opik.scripted_opik import ScriptedOpik, trace_id_at
from tests.contract.opik.sync_rig import Rig
from tests.contract.opik.traces_rig import iso
from tests.unit.rampgate.cli.registry_copies import edit, files

SECRET = "my card is 4111"
JUDGE = "configs/rules/ux_quality.yaml"


DAY = date(2026, 11, 21)


@pytest.fixture(autouse=True)
def on_one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.registry.disk.today", lambda: DAY)


class Turns:
    """Turns of a project by the day, at its noon unless said otherwise, each with a score of ux_quality."""

    def __init__(self, opik: ScriptedOpik) -> None:
        self.opik, self.made = opik, 0

    async def add(
        self, days_ago: int, *scores: float, at: time = time(12), project: str = "receipts-eval", thumbs: float = 0,
        **metadata: Any
    ) -> None:  # fmt: skip
        traces, told = [], []
        for value in scores:
            self.made += 1
            day = DAY - timedelta(days=days_ago)
            moment = round(datetime.combine(day, at, UTC).timestamp() * 1_000) + self.made
            name = trace_id_at(moment)
            labels = {"response_id": f"r-{self.made}", "vertical": "receipts", "environment": "production"}
            span = {"start_time": iso(moment), "end_time": iso(moment + 1_000)}
            texts = {"input": {"q": SECRET}, "output": {"a": SECRET}, "metadata": {**labels, **metadata}}
            traces.append({"id": name, "project_name": project, "name": "turn", **span, **texts})
            about = {"id": name, "project_name": project, "source": "sdk"}
            told.append({**about, "name": "ux_quality", "value": value})
            if thumbs:
                told.append({**about, "name": "user_signal_thumbs", "value": thumbs})
        await self.opik.add_traces(*traces)
        await self.opik.call("PUT", "/v1/private/traces/feedback-scores", {"scores": told})


GOOD = (0.8, 0.85, 0.9, 0.95)


async def test_pf9_5_3_a_production_floor_comes_of_the_last_thirty_full_days(rig: Rig) -> None:
    turns = Turns(rig.opik)
    for ago in range(1, 31):
        await turns.add(ago, *GOOD)
    await turns.add(0, 0.0, at=time(0))  # today is no full day yet
    await turns.add(31, 0.0, at=time(23, 59))
    await turns.add(3, 0.0, vertical="rewards_assistant")
    await turns.add(3, 0.0, 0.0, environment="staging")
    await turns.add(3, 0.0, project="consumer-agent")
    await turns.add(3, 7.0)
    before = files(rig.configs.parent)
    ran = await rig.run("calibrate", "production", "--vertical", "receipts", "--json")
    assert ran.code == 0, ran.err
    (one,) = ran.json["judges"]
    assert (one["judge_id"], one["n"], one["p5"], one["daily_means"]["days"]) == ("ux_quality", 120, 0.8, 30)
    window = ran.json["window"]
    assert (window["project"], window["turns"]) == ("receipts-eval", 121)
    assert window["since"] == str(DAY - timedelta(days=30))
    assert window["left_out"] == {"another environment": 2, "off the scale of ux_quality": 1}
    assert files(rig.configs.parent) == before
    assert SECRET not in ran.out + ran.err

    ran = await rig.run("calibrate", "production", "--vertical", "receipts", "--write")
    assert ran.code == 0, ran.err
    assert "121 turns of receipts-eval" in ran.out
    after = files(rig.configs.parent)
    own = "configs/rules/receipts/ux_quality.yaml"
    assert {name for name in after if after[name] != before.get(name)} == {own}
    stated = yaml.safe_load(after[own])
    floor = stated["floor_provenance"]
    assert (floor["baseline_source"], floor["calibration"]["window_days"]) == ("production_distribution", 30)
    assert floor["calibration_ref"].startswith("sha256:")
    assert stated["baseline_source"] == "provisional_seed", "the threshold is not of this window"
    assert (await rig.run("rules", "validate")).code == 0
    assert (await rig.run("calibrate", "production", "--vertical", "receipts", "--write")).code == 0
    assert files(rig.configs.parent) == after, "the same scores change nothing"


async def test_pf9_5_3_where_fewer_days_are_there_it_says_so_and_proposes_nothing(rig: Rig) -> None:
    turns = Turns(rig.opik)
    for ago in range(1, 13):
        await turns.add(ago, *GOOD)
    ran = await rig.run("calibrate", "production", "--vertical", "receipts", "--write", "--json")
    (one,) = ran.json["judges"]
    assert (ran.code, one["proposed"], ran.json["changes"]) == (1, False, [])
    assert "a window of 12 days, not of 30: wait, or say --window-days 12" in one["reason"]
    shorter = await rig.run("calibrate", "production", "--vertical", "receipts", "--window-days", "12", "--json")
    assert (shorter.code, shorter.json["judges"][0]["proposed"]) == (0, True)
    assert (await rig.run("calibrate", "production", "--vertical", "receipts", "--window-days", "6")).code == 2


async def test_scores_weigh_by_the_chance_that_their_turn_was_judged(rig: Rig) -> None:
    """A voted-down turn is judged always, another one in ten times: without weights every floor would be too low."""
    edit(rig.configs.parent / JUDGE, "sampling_rate: 1.0", "sampling_rate: 0.1")
    turns = Turns(rig.opik)
    for ago in range(1, 31):
        await turns.add(ago, 0.9, 0.95)
        await turns.add(ago, 0.3, thumbs=-1)
    ran = await rig.run("calibrate", "production", "--vertical", "receipts", "--json")
    (one,) = ran.json["judges"]
    assert (one["n"], one["p5"]) == (90, 0.9)
    assert one["mean"] == pytest.approx((10 * 0.9 + 10 * 0.95 + 0.3) / 21)
    assert one["effective_n"] == pytest.approx((60 * 10 + 30) ** 2 / (60 * 100 + 30))


async def test_an_opik_out_of_reach_and_a_missing_vertical_end_with_2(rig: Rig) -> None:
    away = await rig.run("calibrate", "production", "--vertical", "receipts", RAMPGATE_OPIK="http://127.0.0.1:9")
    assert (away.code, away.out, "receipts-eval" in away.err) == (2, "", True)
    ran = await rig.run("calibrate", "production")
    assert (ran.code, "--vertical" in ran.err) == (2, True)
    nothing = await rig.run("calibrate", "production", "--vertical", "receipts", "--json")
    assert (nothing.code, nothing.json["judges"]) == (1, []), "no score is no calibration"
