"""What every Traces promises: one suite on OpikTraces with a local Opik, and on its twin in memory."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from streams.opik import traces
from streams.opik.client import OpikClient
from streams.opik.traces import OpikTraces
from tests.contract.opik.scripted_opik import ScriptedOpik, trace_id_at
from tests.contract.opik.traces_rig import DAY, MINUTE, Rig, facts, now
from tests.memory_ports import MemoryTraces


@pytest.fixture(params=["opik", "memory"])
async def rig(request: pytest.FixtureRequest, opik: ScriptedOpik) -> AsyncIterator[Rig]:
    if request.param == "memory":
        yield Rig(MemoryTraces(), None)
        return
    client = OpikClient(opik.url, "default", None, 10.0, 8)
    yield Rig(OpikTraces(client, per_minute=60_000, retry_seconds=2.0, projects=("a", "never-made")), opik)
    await client.close()


async def test_one_turn_is_found_with_what_the_join_needs_of_it(rig: Rig) -> None:
    at = now() - MINUTE
    ids = await rig.add(("r-1", at), ("r-2", at), vertical="receipts", sub_agent="s", category="c")
    assert await rig.traces.find({"r-1": at}) == {
        "r-1": facts("r-1", ids["r-1"], "a", at, vertical="receipts", sub_agent="s", category="c")
    }


async def test_a_turn_that_is_not_there_is_left_out(rig: Rig) -> None:
    await rig.add(("r-1", now()))
    assert await rig.traces.find({"other": now()}) == {}
    assert set(await rig.traces.find({"other": now(), "r-1": now()})) == {"r-1"}


async def test_the_scores_on_a_trace_are_told_by_their_names(rig: Rig) -> None:
    ids = await rig.add(("scored", now()), ("bare", now()))
    await rig.score(ids["scored"], user_signal_thumbs=-1.0, user_signal_reroll=0.0, helpfulness=4.0)
    assert await rig.traces.held(ids) == {
        "scored": {"user_signal_thumbs": -1.0, "user_signal_reroll": 0.0, "helpfulness": 4.0},
        "bare": {},
    }
    assert await rig.traces.held({}) == {}


async def test_a_response_id_in_another_case_is_another_turn(rig: Rig) -> None:
    """Opik compares texts without regard to case; we must not."""
    await rig.add(("Resp-ABC", now()))
    assert await rig.traces.find({"resp-abc": now() - MINUTE}) == {}
    await rig.add(("resp-abc", now()))
    for wanted in ({"resp-abc"}, {"Resp-ABC", "resp-abc"}, {"Resp-ABC", "resp-abc", "RESP-ABC", "x", "y", "z"}):
        found = await rig.traces.find(dict.fromkeys(wanted, now() - MINUTE))
        assert set(found) == wanted & {"Resp-ABC", "resp-abc"}
        assert all(rid == one.response_id for rid, one in found.items())


async def test_a_response_id_may_be_any_text(rig: Rig) -> None:
    names = ['quote"d', "back\\slash", "%_*?", "ünïcødé 日本", "a,b", "$.x", "{}", "1.0", "x" * 512]
    ids = await rig.add(*((name, now()) for name in names))
    for name in names:
        found = await rig.traces.find({name: now() - MINUTE})
        assert {rid: one.trace for rid, one in found.items()} == {name: uuid.UUID(ids[name]).bytes}


async def test_a_turn_is_found_in_whatever_project_it_is(rig: Rig) -> None:
    at = now()
    for project in ("a", "b", "c"):
        await rig.add((f"in-{project}", at), project=project)
    found = await rig.traces.find({f"in-{project}": at - MINUTE for project in "abc"})
    assert {rid: one.project for rid, one in found.items()} == {"in-a": "a", "in-b": "b", "in-c": "c"}


async def test_many_turns_are_found_at_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than one page of the search, over several projects."""
    monkeypatch.setattr(traces, "PAGE", 50)
    at = now() - MINUTE
    for project in "ab":
        await rig.add(*((f"{project}-{n}", at + n) for n in range(130)), project=project)
    wanted = {f"{project}-{n}": at - MINUTE for project in "ab" for n in range(0, 130, 3)}
    found = await rig.traces.find({**wanted, "missing": at - MINUTE})
    assert set(found) == set(wanted)


async def test_turns_older_than_the_others_are_found_in_the_end(rig: Rig) -> None:
    """Many are sought near in time first; a trace far older than its signal is found by one of the next searches."""
    at = now()
    await rig.add(*((f"near-{n}", at - MINUTE) for n in range(20)))
    await rig.add(*((f"old-{n}", at - 30 * DAY) for n in range(6)))
    wanted = {f"near-{n}": at - 2 * MINUTE for n in range(20)} | {f"old-{n}": at - 2 * MINUTE for n in range(6)}
    found: set[str] = set()
    for _ in range(3):
        left = {rid: since for rid, since in wanted.items() if rid not in found}
        found |= set(await rig.traces.find(left)) if left else set()
        assert {rid for rid in wanted if rid.startswith("near")} <= found
    assert found == set(wanted)


@pytest.mark.parametrize("count", [1, 4, 5, 120])
async def test_judged_are_those_with_a_judges_score(rig: Rig, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(traces, "PAGE", 50)
    at = now() - MINUTE
    ids = await rig.add(*((f"r-{n}", at) for n in range(count)))
    asked = {rid: (trace_id, "a", at) for rid, trace_id in ids.items()}
    assert await rig.traces.judged(asked) == set()
    for rid in ("r-0", f"r-{count - 1}"):
        await rig.judge(rid, ids[rid])
    assert await rig.traces.judged(asked) == {"r-0", f"r-{count - 1}"}


async def test_judged_knows_no_trace_that_is_not_there(rig: Rig) -> None:
    asked = {f"r-{n}": (trace_id_at(now()), "never-made", now()) for n in range(6)}
    assert await rig.traces.judged({"r-0": asked["r-0"]}) == set()
    assert await rig.traces.judged(asked) == set()
    assert await rig.traces.judged({}) == set()
    assert await rig.traces.find({}) == {}
