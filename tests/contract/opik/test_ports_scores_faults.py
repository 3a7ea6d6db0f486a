"""How OpikScores takes each way in which Opik can fail: nothing is dropped, and nothing good is lost with the bad."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import uuid6

from agents.ports import UNSURE, Outcome, Refusal, Unauthorized, Unavailable, Write
from rampgate.local.opik.server import start
from rampgate.local.services.ports import release_port, reserve_port
from schemas.outcomes import Cause
from streams.opik.client import OpikClient, OpikScores
from tests.contract.opik.scripted_opik import ScriptedOpik

PUT = {"method": "PUT", "path": "feedback-scores"}
DELETE = {"method": "POST", "path": "feedback-scores/delete"}


def writes(count: int, value: float | None = 1.0) -> list[Write]:
    return [Write(str(uuid6.uuid7()), "signals", "user_signal_thumbs", value, "user_mobile") for _ in range(count)]


class Gateway:
    """OpikScores with the outcomes it observed."""

    def __init__(
        self,
        url: str,
        retry_seconds: float = 5.0,
        timeout: float = 10.0,
        key: str | None = None,
        send_seconds: float = 100.0,
    ) -> None:
        self.seen: Counter[tuple[str, str]] = Counter()
        self.client = OpikClient(url, "default", key, timeout, 8)
        self.scores = OpikScores(
            self.client,
            in_flight=4,
            retry_seconds=retry_seconds,
            send_seconds=send_seconds,
            observe=lambda operation, outcome: self.seen.update([(operation, outcome)]),
        )

    async def write(self, batch: list[Write]) -> list[Outcome]:
        return await self.scores.write(batch)


@pytest.fixture
async def gateway(opik: ScriptedOpik) -> AsyncIterator[Gateway]:
    made = Gateway(opik.url)
    yield made
    await made.client.close()


async def test_a_trace_id_that_is_no_version_7_is_refused_alone_and_opik_never_sees_it(
    gateway: Gateway, opik: ScriptedOpik
) -> None:
    batch = writes(3)
    for number, bad in enumerate(("7f0e0e6e-4c0f-4b3a-9c59-0e9d1f5f5b11", "", "not an id at all")):
        batch.insert(number * 2, Write(bad, "signals", "user_signal_thumbs", 1.0, "user_mobile"))
    batch.append(Write("00000000-0000-1000-8000-000000000000", "signals", "user_signal_thumbs", None, "user_mobile"))
    outcomes = await gateway.write(batch)
    causes = [outcome.cause if isinstance(outcome, Refusal) else outcome for outcome in outcomes]
    rejected = Cause.OPIK_REJECTED
    assert causes == [rejected, None, rejected, None, rejected, None, rejected]
    assert gateway.seen == {("put", "ok"): 1}


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_an_answer_that_may_pass_is_tried_again(gateway: Gateway, opik: ScriptedOpik, status: int) -> None:
    await opik.fault(match=PUT, status=status, times=1)
    expected = None if status == 429 else UNSURE  # a server that refuses for the rate has not begun
    assert await gateway.write(writes(2)) == [expected, expected]
    assert gateway.seen[("put", "ok")] == 1
    assert sum(gateway.seen.values()) == 2


async def test_a_connection_that_breaks_is_tried_again(gateway: Gateway, opik: ScriptedOpik) -> None:
    await opik.fault(match=PUT, drop=True, times=1)
    await opik.fault(match=DELETE, drop=True, times=1)
    assert await gateway.write(writes(1) + writes(1, None)) == [UNSURE, UNSURE]
    assert gateway.seen[("put", "unavailable")] == gateway.seen[("delete", "unavailable")] == 1


async def test_an_answer_lost_after_the_write_leaves_one_score(gateway: Gateway, opik: ScriptedOpik) -> None:
    batch = writes(1)
    await opik.fault(match=PUT, after_write=True, drop=True, times=1)
    assert await gateway.write(batch) == [UNSURE]
    await opik.add_traces(
        {"id": batch[0].trace_id, "project_name": "signals", "start_time": "2027-01-01T00:00:00Z"},
    )
    held = await opik.scores_of(batch[0].trace_id)
    assert [(name, score["value"]) for name, score in held.items()] == [("user_signal_thumbs", 1.0)]
    assert held["user_signal_thumbs"]["reason"] == "user_mobile", "our source label stands as the reason"


async def test_an_answer_that_takes_too_long_is_a_broken_connection(opik: ScriptedOpik) -> None:
    gateway = Gateway(opik.url, timeout=1.0)
    await opik.fault(match=PUT, delay_seconds=4.0, times=1)
    assert await gateway.write(writes(1)) == [UNSURE]
    assert gateway.seen[("put", "unavailable")] == 1
    await gateway.client.close()


async def test_a_refused_score_of_a_batch_without_an_answer_leaves_the_others_unsure(
    gateway: Gateway, opik: ScriptedOpik
) -> None:
    batch = writes(4)
    await opik.fault(match=PUT, late=True, drop=True, times=1)
    await opik.fault(match=PUT | {"trace_id": batch[2].trace_id}, status=422)
    outcomes = await gateway.write(batch)
    refused = outcomes[2]
    assert isinstance(refused, Refusal)
    assert (refused.cause, refused.unsure) == (Cause.OPIK_REJECTED, True)
    assert [one for one in outcomes if one is not refused] == [UNSURE] * 3
    assert await gateway.write(writes(1)) == [None]


async def test_a_request_that_was_kept_is_applied_after_a_newer_one(gateway: Gateway, opik: ScriptedOpik) -> None:
    """What the stand-in can do, and Opik behind a proxy does."""
    batch = writes(1)
    at = "2027-01-01T00:00:00Z"
    await opik.add_traces({"id": batch[0].trace_id, "project_name": "signals", "start_time": at})
    await opik.fault(match=PUT, late=True, drop=True, times=1)
    assert await gateway.write(batch) == [UNSURE]
    newer = [Write(batch[0].trace_id, "signals", "user_signal_thumbs", -1.0, "user_mobile")]
    assert await gateway.write(newer) == [None]
    assert await opik.call("POST", "/_late") == {"applied": 1}
    assert (await opik.scores_of(batch[0].trace_id))["user_signal_thumbs"]["value"] == 1.0


async def test_nothing_is_sent_once_the_time_to_send_is_over(opik: ScriptedOpik) -> None:
    """A process that stood still has an old decision: the step must read the state again."""
    gateway = Gateway(opik.url, send_seconds=-1.0)
    for value in (1.0, None):
        with pytest.raises(Unavailable, match="begins again"):
            await gateway.write(writes(1, value))
    assert not any("feedback-scores" in path for path in await opik.requests())
    await gateway.client.close()


async def test_the_pause_that_opik_asks_for_is_kept(gateway: Gateway, opik: ScriptedOpik) -> None:
    await opik.fault(match=PUT, status=429, headers={"RateLimit-Reset": "1"}, times=1)
    began = time.monotonic()
    assert await gateway.write(writes(1)) == [None]
    assert time.monotonic() - began >= 1.0
    assert gateway.seen[("put", "rate_limited")] == 1


async def test_an_opik_that_stays_away_ends_every_write_as_unavailable_in_time(opik: ScriptedOpik) -> None:
    gateway = Gateway(opik.url, retry_seconds=0.6)
    await opik.fault(match={"path": "feedback-scores"}, status=503)
    async with asyncio.timeout(60):
        outcomes = await gateway.write(writes(5) + writes(1, None))
    refusals = [outcome for outcome in outcomes if isinstance(outcome, Refusal)]
    assert [refusal.cause for refusal in refusals] == [Cause.OPIK_UNAVAILABLE] * 6
    assert all("503" in refusal.detail and refusal.unsure for refusal in refusals)
    assert (await opik.requests())["PUT /v1/private/traces/feedback-scores"] <= 5, (
        "a batch that got no answer is not halved: that would multiply the load on a sick Opik"
    )
    await gateway.client.close()


async def test_an_opik_that_is_not_there_is_unavailable() -> None:
    port = reserve_port()
    gateway = Gateway(f"http://127.0.0.1:{port}/api", retry_seconds=0.3)
    outcomes = await gateway.write(writes(2))
    assert [isinstance(one, Refusal) and (one.cause, one.unsure) for one in outcomes] == [
        (Cause.OPIK_UNAVAILABLE, False)
    ] * 2
    await gateway.client.close()
    release_port(port)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("value", [1.0, None])
async def test_a_refused_key_stops_instead_of_dead_lettering(
    gateway: Gateway, opik: ScriptedOpik, status: int, value: float | None
) -> None:
    await opik.fault(match={"path": "feedback-scores"}, status=status)
    with pytest.raises(Unauthorized, match=str(status)):
        await gateway.write(writes(3, value))
    assert set(gateway.seen) == {("put" if value else "delete", "unauthorized")}


async def test_a_refused_key_is_noticed_also_beside_other_calls(gateway: Gateway, opik: ScriptedOpik) -> None:
    batch = writes(1_500) + writes(5, None)
    await opik.fault(match={"trace_id": batch[1_400].trace_id}, status=401)
    with pytest.raises(Unauthorized):
        await gateway.write(batch)


async def test_a_wrong_key_is_unauthorized_and_does_not_show() -> None:
    running = await start(api_key="the-right-key")
    for key in ("wrong-canary-key", None):
        gateway = Gateway(running.url, key=key)
        with pytest.raises(Unauthorized) as caught:
            await gateway.write(writes(1))
        assert "wrong-canary-key" not in str(caught.value)
        await gateway.client.close()
    gateway = Gateway(running.url, key="the-right-key")
    assert await gateway.write(writes(1)) == [None]
    await gateway.client.close()
    await running.close()


async def test_what_opik_itself_refuses_is_told_in_its_words(gateway: Gateway) -> None:
    good, bad = writes(2)
    bad.name = " "
    outcomes = await gateway.write([good, bad])
    assert outcomes[0] is None
    assert outcomes[1] is not None
    assert outcomes[1].cause is Cause.OPIK_REJECTED
    assert "must not be blank" in outcomes[1].detail


async def test_many_refused_scores_cost_a_bounded_number_of_requests(gateway: Gateway, opik: ScriptedOpik) -> None:
    batch = writes(1_000)
    for number in (0, 1, 499, 999):
        await opik.fault(match={"method": "PUT", "trace_id": batch[number].trace_id}, status=400)
    outcomes = await gateway.write(batch)
    assert [n for n, outcome in enumerate(outcomes) if outcome] == [0, 1, 499, 999]
    assert gateway.seen[("put", "ok")] + gateway.seen[("put", "rejected")] < 4 * 2 * 11


async def test_at_most_so_many_calls_are_under_way_at_once(opik: ScriptedOpik) -> None:
    gateway = Gateway(opik.url)
    await opik.fault(match=DELETE, delay_seconds=0.1)
    began = time.monotonic()
    assert await gateway.write(writes(12, None)) == [None] * 12
    assert time.monotonic() - began >= 0.3, "twelve deletions, four at a time"
    await gateway.client.close()
