"""What is OpikTraces' own: what it reads for a rebuild, how often it may ask, and how it takes Opik's failures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from faust.types import TP

from agents.join.turn import decode_turn
from agents.keys import turn_keys
from agents.ports import Unauthorized, Unavailable
from streams import rebuild as rebuilding
from streams.opik import traces as opik_traces
from streams.opik.client import OpikClient, persist
from streams.opik.traces import OpikTraces
from streams.rebuild import Rebuild
from streams.redis.state import RedisStore
from tests.contract.opik.scripted_opik import ScriptedOpik, trace_id_at
from tests.contract.opik.traces_rig import DAY, MINUTE, Rig, now
from tests.unit.agents.join.world import World

SEARCH = {"path": "traces/search"}


@pytest.fixture
async def client(opik: ScriptedOpik) -> AsyncIterator[Any]:
    made = OpikClient(opik.url, "default", None, 5.0, 8)
    yield made
    await made.close()


@pytest.fixture
def traces(client: Any) -> OpikTraces:
    return OpikTraces(client, per_minute=60_000, retry_seconds=1.0, projects=("a",))


@pytest.fixture
def rig(traces: OpikTraces, opik: ScriptedOpik) -> Rig:
    return Rig(traces, opik)


async def scored(traces: OpikTraces, since_ms: int) -> dict[str, tuple[int, int]]:
    """response id -> what of ours its trace carries."""
    found = {}
    async for page, _ in traces.scored(since_ms):
        for facts in page:
            assert facts.response_id not in found, "it comes once, whatever scores it has"
            found[facts.response_id] = (facts.wrote.get("thumbs", 0), facts.wrote.get("reroll", 0))
    return found


@pytest.mark.parametrize("late_first", [False, True])
async def test_of_two_traces_of_one_response_the_one_that_ended_last_is_found(
    rig: Rig, traces: OpikTraces, late_first: bool
) -> None:
    at = now() - MINUTE
    ids = {}
    for moment in (at + 5_000, at) if late_first else (at, at + 5_000):
        ids[moment] = (await rig.add(("r", moment)))["r"]
    found = await traces.find({"r": at})
    assert found["r"].trace.hex() == ids[at + 5_000].replace("-", "")
    many = await traces.find({"r": at} | {f"other-{number}": at for number in range(5)})
    assert many["r"] == found["r"]


async def test_scored_lists_every_trace_with_one_of_our_scores(
    rig: Rig, opik: ScriptedOpik, traces: OpikTraces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opik_traces, "PAGE", 20)
    at = now() - MINUTE
    ids = await rig.add(*((f"r-{n}", at) for n in range(60)))
    other = await rig.add(("b-0", at), project="b")
    held = {"r-0": (1, 0), "r-1": (-1, 0), "r-2": (-1, 2), "r-3": (0, 1), "r-4": (0, 2), "b-0": (1, 1)}
    held |= {f"r-{n}": (-1, 0) for n in range(10, 55)}
    for rid, (thumbs, reroll) in held.items():
        place = ((ids | other)[rid], "b" if rid == "b-0" else "a")
        if thumbs:
            await opik.add_score(place[0], "user_signal_thumbs", thumbs, place[1])
        if reroll:
            await opik.add_score(place[0], "user_signal_reroll", reroll - 1, place[1])
    await opik.add_score(ids["r-5"], "helpfulness", 4, "a")
    assert await scored(traces, at) == held


async def test_scored_leaves_out_what_is_older_than_asked(rig: Rig, opik: ScriptedOpik, traces: OpikTraces) -> None:
    ids = await rig.add(("old", now() - 9 * DAY), ("new", now() - DAY))
    for trace_id in ids.values():
        await opik.add_score(trace_id, "user_signal_thumbs", 1, "a")
    assert set(await scored(traces, now() - 7 * DAY)) == {"new"}


async def test_scored_goes_on_behind_any_page_of_an_earlier_call(
    rig: Rig, opik: ScriptedOpik, traces: OpikTraces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opik_traces, "PAGE", 3)
    at = now() - 3 * DAY
    for project in ("a", "b"):
        ids = await rig.add(*((f"{project}-{n}", at + n * MINUTE) for n in range(8)), project=project)
        for number, trace_id in enumerate(ids.values()):
            await opik.add_score(trace_id, f"user_signal_{'reroll' if number % 2 else 'thumbs'}", 1, project)
    whole = [step async for step in traces.scored(now() - 4 * DAY)]
    assert sum(len(page) for page, _ in whole) == 16
    shares = [place.share for _, place in whole]
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < shares[-1] == 1.0
    for number, (_, place) in enumerate(whole):
        rest = [[one.response_id for one in page] async for page, _ in traces.scored(now() - 4 * DAY, place) if page]
        assert rest == [[one.response_id for one in page] for page, _ in whole[number + 1 :] if page]


async def test_a_rebuild_waits_out_a_long_hint_and_goes_on_at_its_page(
    rig: Rig,
    opik: ScriptedOpik,
    traces: OpikTraces,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The hint is longer than the lease that gives the right to adopt, which is renewed meanwhile."""
    monkeypatch.setattr(opik_traces, "PAGE", 10)
    monkeypatch.setattr(rebuilding, "LEASE_MS", 600)
    waited: list[float] = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)
        await asyncio.sleep(rebuilding.LEASE_MS * 2 / 1000)

    monkeypatch.setattr(opik_traces, "persist", partial(persist, sleep=wait))
    at = now() - MINUTE
    ids = await rig.add(*((f"r-{n}", at) for n in range(35)))
    for trace_id in ids.values():
        await opik.add_score(trace_id, "user_signal_thumbs", 1, "a")
    await traces.projects()
    before = await opik.requests()
    await opik.fault(match=SEARCH, times=3)  # these are answered
    await opik.fault(match=SEARCH, status=429, headers={"Retry-After": "45"}, times=1)
    world = World()
    world.clock.ms = now()
    store = RedisStore(redis_url, "rg:")
    ports = replace(world.ports, store=store, traces=traces)
    rebuild = Rebuild(ports, world.policy, failed=pytest.fail)
    await rebuild.lost(TP("rampgate.thumbs", 0))
    assert rebuild._task is not None
    await asyncio.wait_for(rebuild._task, 120)
    assert [round(seconds) for seconds in waited] == [45]
    path = "POST /v1/private/traces/search"
    asked = (await opik.requests())[path] - before.get(path, 0)
    assert asked == 1 + 4 + 1, "rerolls: one page, none of them full; thumbs: four; one of these twice"
    turns = [decode_turn(blob) for blob in await store.read(turn_keys(ids))]
    assert [turn.wrote_thumbs for turn in turns] == [1] * len(ids)
    await store.close()


async def test_our_own_scores_make_no_trace_judged(rig: Rig, opik: ScriptedOpik, traces: OpikTraces) -> None:
    at = now()
    ids = await rig.add(*((f"r-{n}", at) for n in range(8)))
    for rid, name in {"r-0": "user_signal_thumbs", "r-1": "thumbs", "r-2": "user_signal_reroll", "r-3": "q"}.items():
        await opik.add_score(ids[rid], name, 1, "a")
    for rids in (list(ids), list(ids)[:4]):
        asked = {rid: (ids[rid], "a", at) for rid in rids}
        assert await traces.judged(asked) == {"r-3"}


async def test_two_turns_of_one_trace_are_both_told_judged(opik: ScriptedOpik, traces: OpikTraces) -> None:
    ids = [trace_id_at(now()) for _ in range(6)]
    await opik.add_traces(*({"id": one, "project_name": "a", "start_time": "2027-01-01T00:00:00Z"} for one in ids))
    await opik.add_score(ids[0], "quality", 1, "a")
    asked = {f"r-{n}": (one, "a", now()) for n, one in enumerate(ids)} | {"twin": (ids[0], "a", now())}
    assert await traces.judged(asked) == {"r-0", "twin"}
    few = {"r-0": asked["r-0"], "twin": asked["twin"]}
    assert await traces.judged(few) == {"r-0", "twin"}


async def test_a_search_asks_for_a_page_and_not_for_each_turn(rig: Rig, opik: ScriptedOpik, traces: OpikTraces) -> None:
    at = now()
    ids = await rig.add(*((f"r-{n}", at) for n in range(300)))
    before = await opik.requests()
    assert len(await traces.find(dict.fromkeys(ids, at - MINUTE))) == 300
    assert len(await traces.judged({rid: (trace, "a", at) for rid, trace in ids.items()})) == 0
    asked = {path: n - before.get(path, 0) for path, n in (await opik.requests()).items()}
    assert asked["POST /v1/private/traces/search"] <= 2
    assert asked.get("GET /v1/private/projects", 0) <= 1


@pytest.mark.parametrize(("per_minute", "calls", "least"), [(60.0, 61, 0.9), (0.5, 1, 0.0)])
async def test_searches_keep_to_the_rate_they_were_given(
    opik: ScriptedOpik, client: Any, per_minute: float, calls: int, least: float
) -> None:
    traces = OpikTraces(client, per_minute=per_minute, retry_seconds=1.0)
    began = time.monotonic()
    await asyncio.gather(*(traces._call(opik_ping) for _ in range(calls)))
    assert time.monotonic() - began >= least


async def opik_ping() -> None:
    return None


async def test_a_slow_rate_lets_the_second_call_wait(client: Any) -> None:
    traces = OpikTraces(client, per_minute=0.5, retry_seconds=1.0)
    await asyncio.wait_for(traces._call(opik_ping), 20)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(traces._call(opik_ping), 0.2)


async def test_a_search_that_fails_for_a_moment_is_asked_again(
    rig: Rig, opik: ScriptedOpik, traces: OpikTraces
) -> None:
    await rig.add(("r", now()))
    await opik.fault(match=SEARCH, status=503, times=1)
    assert set(await traces.find({"r": now() - MINUTE})) == {"r"}
    await opik.fault(match=SEARCH, drop=True, times=1)
    assert set(await traces.find({"r": now() - MINUTE})) == {"r"}


@pytest.mark.parametrize("fault", [{"status": 500}, {"drop": True}, {"status": 400}, {"status": 200, "body": {"x": 1}}])
async def test_an_opik_that_gives_no_usable_answer_is_unavailable_never_nothing_found(
    rig: Rig, opik: ScriptedOpik, traces: OpikTraces, fault: dict[str, Any]
) -> None:
    """Were it taken for "no such trace", signals would be buried that have one."""
    ids = await rig.add(*((f"r-{n}", now()) for n in range(8)))
    await traces.projects()
    await opik.fault(match=SEARCH, **fault)
    for wanted in (["r-0"], list(ids)):
        with pytest.raises(Unavailable):
            await traces.find(dict.fromkeys(wanted, now() - MINUTE))
    with pytest.raises(Unavailable):
        await traces.judged({rid: (trace, "a", now()) for rid, trace in ids.items()})


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_unauthorized(opik: ScriptedOpik, traces: OpikTraces, status: int) -> None:
    await opik.fault(match={"path": "/v1/private"}, status=status)
    for call in (traces.find({"r": 1}), traces.judged({"r": (trace_id_at(now()), "a", now())}), traces.projects()):
        with pytest.raises(Unauthorized):
            await call


async def test_a_new_project_is_noticed_after_a_while(
    rig: Rig, traces: OpikTraces, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.add(("first", now()))
    assert set(await traces.find({"first": now() - MINUTE})) == {"first"}
    await rig.add(("later", now()), project="brand-new")
    monkeypatch.setattr(opik_traces, "PROJECTS_SECONDS", -1.0)
    found = await traces.find({"later": now() - MINUTE})
    assert found["later"].project == "brand-new"


async def test_more_projects_than_a_page_of_them_are_all_searched(rig: Rig, traces: OpikTraces) -> None:
    for number in range(130):
        await rig.add((f"r-{number}", now()), project=f"p-{number}")
    assert len([name for name in await traces.projects() if name.startswith("p-")]) == 130
    assert set(await traces.find({"r-0": now() - MINUTE, "r-129": now() - MINUTE})) == {"r-0", "r-129"}
