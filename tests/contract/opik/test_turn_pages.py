"""A window of a vertical's turns, read from Opik in pages (PF-9 §5.10's view of each)."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents.own_calls import OWN_AGENT, SIGNATURE, own_key, signature
from schemas.answers import TurnView
from streams.opik import traces as opik_traces
from streams.opik.client import OpikClient
from streams.opik.traces import OpikTraces
from streams.queries.turn_pages import turn_pages
from tests.contract.opik.scripted_opik import ScriptedOpik, trace_id_at
from tests.contract.opik.traces_rig import MINUTE, iso

KEY = own_key("the installation's seal key")
SINCE = 1_780_000_000_000
UNTIL = SINCE + 60 * MINUTE


@pytest.fixture
async def traces(opik: ScriptedOpik) -> AsyncIterator[OpikTraces]:
    client = OpikClient(opik.url, "default", None, 10.0, 2)
    yield OpikTraces(client, per_minute=60_000, retry_seconds=1.0, own_key=KEY)
    await client.close()


def turn(response_id: str, at: int, lasted: int = 1_000, said: Any = "hello", **metadata: Any) -> dict[str, Any]:
    texts = {"input": {"q": said}, "output": {"a": said}}
    labels = {"response_id": response_id, "vertical": "receipts", **metadata}
    span = {"start_time": iso(at), "end_time": iso(at + lasted)}
    return {"id": trace_id_at(at), "project_name": "a", "name": "turn", "metadata": labels, **span, **texts}


async def pages_of(traces: OpikTraces, **options: Any) -> list[list[TurnView]]:
    asked: dict[str, Any] = {"vertical": "receipts", "since_ms": SINCE, "until_ms": UNTIL, **options}
    return [page async for page in turn_pages(traces, "a", **asked)]


async def names(traces: OpikTraces, **options: Any) -> list[str]:
    return [view.response_id for page in await pages_of(traces, **options) for view in page]


async def test_all_turns_come_newest_first_in_pages_each_as_turns_shows_it(
    opik: ScriptedOpik, traces: OpikTraces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opik_traces, "PAGE", 3)
    made = [turn(f"r-{number}", SINCE + number * MINUTE, category="tips") for number in range(8)]
    await opik.add_traces(*made)
    await opik.add_score(made[5]["id"], "user_signal_thumbs", -1, "a")
    await opik.add_score(made[5]["id"], "helpfulness", 2, "a")
    pages = await pages_of(traces)
    assert [[view.response_id for view in page] for page in pages] == [
        ["r-7", "r-6", "r-5"],
        ["r-4", "r-3", "r-2"],
        ["r-1", "r-0"],
    ]
    view = pages[0][2]
    assert (view.vertical, view.category, view.feedback_scores) == ("receipts", "tips", {"user_signal_thumbs": -1.0})
    assert [(judge.judge_id, judge.score) for judge in view.judge_scores] == [("helpfulness", 2.0)]
    assert (view.trace["id"], view.trace["project_name"]) == (made[5]["id"], "a")
    assert await names(traces, after=made[6]["id"]) == [f"r-{number}" for number in range(5, -1, -1)]
    assert await names(traces, having=["user_signal_thumbs"]) == ["r-5"]


@pytest.mark.parametrize("size", [1, 2, 50])
async def test_a_response_with_two_traces_comes_once_with_the_one_that_ended_last(
    opik: ScriptedOpik, traces: OpikTraces, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Also where they stand on different pages, and where the trace that began first ended last."""
    monkeypatch.setattr(opik_traces, "PAGE", size)
    again = turn("again", SINCE + 30 * MINUTE)
    slow = turn("slow", SINCE + MINUTE, 40 * MINUTE)
    others = [turn(f"other-{number}", SINCE + (10 + number) * MINUTE) for number in range(3)]
    await opik.add_traces(turn("again", SINCE + 2 * MINUTE), *others, again, slow, turn("slow", SINCE + 31 * MINUTE))
    found = {view.response_id: view.trace["id"] for page in await pages_of(traces) for view in page}
    assert found["again"] == again["id"]
    assert found["slow"] == slow["id"]
    assert len(await names(traces)) == len(found) == 5


async def test_a_response_that_a_trace_behind_the_end_answers_is_not_in_the_window(
    opik: ScriptedOpik, traces: OpikTraces
) -> None:
    await opik.add_traces(turn("r", UNTIL - MINUTE), turn("r", UNTIL + MINUTE))
    assert await names(traces) == []
    assert await names(traces, since_ms=UNTIL, until_ms=UNTIL + 60 * MINUTE) == ["r"]


async def test_a_window_has_its_first_moment_and_not_its_last(opik: ScriptedOpik, traces: OpikTraces) -> None:
    moments = {"before": SINCE - 1, "first": SINCE, "last": UNTIL - 1, "next": UNTIL}
    await opik.add_traces(*(turn(name, at) for name, at in moments.items()))
    assert await names(traces) == ["last", "first"]


async def test_only_turns_of_the_vertical_come_and_no_call_of_our_own_judges(
    opik: ScriptedOpik, traces: OpikTraces
) -> None:
    own, forged = (turn(name, SINCE + MINUTE, agent_id=OWN_AGENT) for name in ("own", "forged"))
    own["metadata"][SIGNATURE] = signature(KEY, uuid.UUID(own["id"]).bytes)
    forged["metadata"][SIGNATURE] = signature(own_key("guessed"), uuid.UUID(forged["id"]).bytes)
    elsewhere = turn("elsewhere", SINCE + MINUTE) | {"project_name": "b"}
    theirs = turn("theirs", SINCE + MINUTE, vertical="Receipts")
    nobodys = turn("nobodys", SINCE + MINUTE)
    del nobodys["metadata"]["response_id"]
    await opik.add_traces(own, forged, theirs, elsewhere, nobodys)
    assert await names(traces) == ["forged"]
    assert sorted(await names(traces, vertical=None)) == ["forged", "theirs"]
    assert [page async for page in turn_pages(traces, "none", vertical=None, since_ms=0, until_ms=UNTIL)] == []


async def test_texts_come_whole_where_they_are_asked_for_and_not_at_all_elsewhere(
    opik: ScriptedOpik, traces: OpikTraces
) -> None:
    said = "x" * 30_000
    await opik.add_traces(turn("r", SINCE, said=said))
    ((lean,),) = await pages_of(traces)
    assert not {"input", "output"} & lean.trace.keys()
    ((whole,),) = await pages_of(traces, whole=True)
    assert (whole.trace["input"], whole.trace["output"]) == ({"q": said}, {"a": said})


async def test_a_trace_too_long_to_be_read_comes_without_its_texts_and_stops_nobody(
    opik: ScriptedOpik, traces: OpikTraces, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {"r-0": 5, "r-1": 5, "long": 60_000, "r-2": 5, "longer": 90_000, "r-3": 5}
    await opik.add_traces(*(turn(name, SINCE + at, said="x" * size) for at, (name, size) in enumerate(sizes.items())))
    monkeypatch.setattr(traces._client._http, "_longest", 40_000)
    found = {view.response_id: view.trace for page in await pages_of(traces, whole=True) for view in page}
    assert list(found) == list(reversed(sizes))
    assert [name for name, trace in found.items() if "input" not in trace] == ["longer", "long"]
    assert found["r-0"]["output"] == {"a": "xxxxx"}
