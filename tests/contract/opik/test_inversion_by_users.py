"""`rampgate check inversion --users`, whose reading workers share, against the local Opik (PF-9 FR-10)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from agents.own_calls import OWN_AGENT, SIGNATURE, own_key, signature
from evalcore.inversion.users import Picks, UserSignal, Week
from rampgate.registry.verticals import load_verticals
from rampgate.settings import Settings
from rampgate.user_turns import read_turns
from streams.opik import traces as opik_traces
from streams.opik.traces import limit_of
from streams.queries.turn_pages import SLICE
from tests.contract.opik.scripted_opik import ScriptedOpik, trace_id_at
from tests.contract.opik.sync_rig import Rig
from tests.contract.opik.traces_rig import iso
from tests.unit.rampgate.cli.registry_copies import copied

WEEK = Week(2024, 20)
SECRET = "my card is 4111"
SEAL = "the seal key of this test"
SEARCHES = "POST /v1/private/traces/search"


@pytest.fixture
async def rig(tmp_path: Path, opik: ScriptedOpik, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr("rampgate.inversion.users.configure_logs", lambda level, form: None)
    monkeypatch.setenv("RAMPGATE_SEAL_KEY", SEAL)
    return Rig(copied(tmp_path), opik)


@dataclass
class Turns:
    """Turns of a week, a second after another from its first moment on."""

    opik: ScriptedOpik
    made: int = 0

    async def add(
        self, week: Week, scores: list[dict[str, float]], project: str = "receipts-eval", **metadata: Any
    ) -> list[str]:
        """One for each of these scores by name; returns the traces' ids."""
        traces, told = [], []
        for held in scores:
            self.made += 1
            at = week.since_ms + 1_000 * self.made
            labels = {"response_id": f"r{self.made}", "user_id": f"u{self.made}", "vertical": "receipts", **metadata}
            span = {"start_time": iso(at), "end_time": iso(at + 500)}
            texts = {"input": {"q": SECRET}, "output": {"a": SECRET}, "metadata": labels}
            traces.append({"id": trace_id_at(at), "project_name": project, "name": "turn", **span, **texts})
            about = {"id": traces[-1]["id"], "project_name": project, "source": "sdk"}
            told += [{**about, "name": name, "value": round(value, 6)} for name, value in held.items()]
        await self.opik.add_traces(*traces)
        if told:
            await self.opik.call("PUT", "/v1/private/traces/feedback-scores", {"scores": told})
        return [str(trace["id"]) for trace in traces]


def users(seed: int, rho: float, count: int = 120) -> list[dict[str, float]]:
    """Thumbs, of which one in three is down, the reroll's 0.0 beside them, a judge that goes with them by so much and
    one that goes with nothing."""
    draw, out = np.random.default_rng(seed), []
    for number in range(count):
        thumb = -1.0 if number % 3 == 0 else 1.0
        tone = rho * thumb + float(np.sqrt(1 - rho**2) * draw.normal())
        out.append({
            "user_signal_thumbs": thumb, "user_signal_reroll": 0.0, "tone": tone, "facts": float(draw.normal()),
        })  # fmt: skip
    return out


async def test_pf9_fr10_5_4_two_weeks_in_opik_name_the_judge_that_scores_against_users_and_no_other(rig: Rig) -> None:
    turns = Turns(rig.opik)
    await turns.add(WEEK.before, users(1, -0.6))
    await turns.add(WEEK, users(2, -0.6))
    await turns.add(WEEK, [{"tone": 5.0}] * 30)  # no one said anything of these
    await turns.add(WEEK, users(3, 0.9, 40), vertical="elsewhere")
    await turns.add(WEEK, users(4, 0.9, 40), project="of-nobody")
    await turns.add(WEEK.after, users(5, 0.9, 40))
    await turns.add(WEEK, users(6, 0.9, 40), user_id="")
    many = users(7, 0.9, 40)
    await turns.add(WEEK, many, user_id="one who says much")
    ran = await rig.run("check", "inversion", "--users", "--week", str(WEEK), "--json")
    assert ran.code == 1, ran.err
    found = {one["judge_id"]: one for one in ran.json["judges"]}
    assert (ran.json["inverted_count"], sorted(found), len(ran.json["judges"])) == (1, ["facts", "tone"], 2)
    tone = found["tone"]
    assert (tone["vertical"], tone["n"], tone["weeks_in_a_row"], tone["inverted"]) == ("receipts", 121, 2, True)
    assert tone["pearson"] == pytest.approx(-0.6, abs=0.12)
    assert (found["facts"]["against"], found["facts"]["inverted"]) == (False, False)
    assert [one["reason"].split(":")[0] for one in ran.json["rerolls"]] == ["undecidable"] * 2, "no one rerolled"
    assert SECRET not in ran.out + ran.err


async def test_one_week_against_users_names_nobody(rig: Rig) -> None:
    turns = Turns(rig.opik)
    await turns.add(WEEK.before, users(1, 0.4))
    await turns.add(WEEK, users(2, -0.6))
    ran = await rig.run("check", "inversion", "--users", "--week", str(WEEK), "--json")
    assert (ran.code, ran.json["inverted_count"]) == (0, 0)
    assert {one["judge_id"]: one["weeks_in_a_row"] for one in ran.json["judges"]} == {"facts": 0, "tone": 1}


async def test_only_signalled_traces_are_read_and_each_once_a_signal_in_pages(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opik_traces, "PAGE", 50)
    turns = Turns(rig.opik)
    await turns.add(WEEK, [{"tone": 5.0}] * 500)
    await turns.add(WEEK, users(2, -0.6, 120))
    before = (await rig.opik.requests()).get(SEARCHES, 0)
    ran = await rig.run("check", "inversion", "--users", "--week", str(WEEK), "--vertical", "receipts", "--json")
    assert {one["n"] for one in ran.json["judges"]} == {120}
    assert (await rig.opik.requests())[SEARCHES] - before == 6, "three pages of 50, of thumbs and of rerolls"


async def test_a_response_with_two_scored_traces_is_one_turn_and_a_forged_signature_hides_none(rig: Rig) -> None:
    turns = Turns(rig.opik)
    await turns.add(WEEK, users(2, -0.6, 20))
    await turns.add(WEEK, users(3, 0.5, 10), agent_id=OWN_AGENT, **{SIGNATURE: "forged"})
    await turns.add(WEEK, users(4, 0.5, 2), response_id="twice", user_id="of twice")
    settings = Settings(opik=rig.opik.url, configs=rig.configs, seal_key=SecretStr(SEAL))
    owner, window = load_verticals(rig.configs)["receipts"], (WEEK.since_ms, WEEK.until_ms)
    picks = Picks(WEEK, UserSignal.THUMBS)
    async for turns_read in read_turns(settings, owner, UserSignal.THUMBS, *window, limit_of(60_000)):
        picks.add(turns_read)
    assert len(picks.by_vertical()["receipts"]) == 20 + 10 + 1


async def test_the_loop_goes_on_between_slices_of_a_page(rig: Rig) -> None:
    """A worker reads beside the join; a page of 2,000 turns is made of it in a fifth of a second."""
    await Turns(rig.opik).add(WEEK, users(2, -0.6, 220))
    settings, owner = Settings(opik=rig.opik.url, configs=rig.configs), load_verticals(rig.configs)["receipts"]
    reading = read_turns(settings, owner, UserSignal.THUMBS, WEEK.since_ms, WEEK.until_ms, limit_of(60_000))
    went_on, sizes, seen = 0, [], []

    async def other() -> None:
        nonlocal went_on
        while True:
            went_on += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    async for page in reading:
        sizes.append(len(page))
        seen.append(went_on)
    beside.cancel()
    await asyncio.gather(beside, return_exceptions=True)
    assert sizes == [SLICE, SLICE, 20]
    assert seen == sorted(set(seen))


async def test_a_signed_call_of_our_own_judges_is_passed_over(rig: Rig, opik: ScriptedOpik) -> None:
    at = WEEK.since_ms + 5_000
    trace = trace_id_at(at)
    signed = signature(own_key(SEAL), bytes.fromhex(trace.replace("-", "")))
    labels = {
        "response_id": "own", "user_id": "u", "vertical": "receipts", "agent_id": OWN_AGENT, SIGNATURE: signed,
    }  # fmt: skip
    span = {"start_time": iso(at), "end_time": iso(at + 500)}
    await opik.add_traces({"id": trace, "project_name": "receipts-eval", "name": "own", "metadata": labels, **span})
    await opik.add_score(trace, "user_signal_thumbs", -1.0, "receipts-eval")
    ran = await rig.run("check", "inversion", "--users", "--week", str(WEEK), "--json")
    assert (ran.code, ran.json["judges"]) == (1, [])


async def test_an_opik_that_refuses_the_key_or_is_away_is_bad_input_and_no_half_result(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAMPGATE_OPIK_RETRY_SECONDS", "0.2")
    await Turns(rig.opik).add(WEEK, users(2, -0.6))
    for status in (401, 503):
        await rig.opik.fault(match={"path": "traces/search"}, status=status)
        ran = await rig.run("check", "inversion", "--users", "--week", str(WEEK), "--json")
        assert (ran.code, ran.out) == (2, "")
        assert "Opik" in ran.err
        await rig.opik.heal()
