"""A candidate is asked once for each item: what it answered is kept as it comes (PC5 §5.5)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import httpx
import orjson
import pytest

from agents.keys import CANDIDATE_ANSWER, FOREVER
from agents.policy import Policy
from evalcore.gates.golden import CandidateAnswer, Pending
from evalcore.scoring.items import Failed
from schemas.manifests import CandidateEndpoint
from schemas.publish.examples import RAMP_STEP
from schemas.ramp_steps import RampStep
from streams.gates import candidate
from streams.gates.candidate import CandidateAnswers
from tests.memory_ports import ManualClock, MemoryStore

ITEMS = [{"input": f"i{number}", "metadata": {"id": str(number)}, "expected_output": "hidden"} for number in range(6)]
ENDPOINT = CandidateEndpoint(url="http://agents/{agent_version}", tries=1)


@dataclass
class Agent:
    """Answers what `says` of an input: a status and an output. `asked`: (url, body, headers)."""

    says: Callable[[str], tuple[int, Any]] = lambda text: (200, f"so {text}")
    asked: list[tuple[str, dict[str, Any], Mapping[str, str]]] = field(default_factory=list)

    async def post(self, url: str, *, content: bytes, headers: Mapping[str, str]) -> Any:
        body = json.loads(content)
        self.asked.append((url, body, headers))
        await asyncio.sleep(0)
        status, output = self.says(body["input"])
        return SimpleNamespace(status_code=status, headers={}, content=json.dumps({"output": output}).encode())

    @property
    def inputs(self) -> list[str]:
        return sorted(body["input"] for _, body, _ in self.asked)


def step(**changes: Any) -> RampStep:
    return RampStep.model_validate({**RAMP_STEP, "agent_version": "v2", **changes})


def answers(agent: Agent, store: MemoryStore | None = None, key: str | None = None) -> CandidateAnswers:
    clock = ManualClock()
    return CandidateAnswers(agent, key, store or MemoryStore(clock), Policy(), clock)


async def waited_for(
    candidate: CandidateAnswers, items: Sequence[Mapping[str, Any]], endpoint: CandidateEndpoint, of: RampStep
) -> list[CandidateAnswer]:
    """All answers, waited for together."""

    async def one(found: CandidateAnswer | Pending) -> CandidateAnswer:
        return await found.answer() if isinstance(found, Pending) else found

    return await asyncio.gather(*map(one, await candidate.to(items, endpoint, of)))


def outputs(found: list[CandidateAnswer]) -> list[Any]:
    return [one.why if isinstance(one, Failed) else one["output"] for one in found]


async def test_a_key_in_a_candidate_s_address_is_sent_and_never_told() -> None:
    endpoint = CandidateEndpoint(url="http://agents/run?key=canary-key&v={agent_version}", tries=1)
    agent = Agent(lambda text: (418, None))
    said = " ".join(outputs(await waited_for(answers(agent), ITEMS[:1], endpoint, step())))
    assert agent.asked[0][0] == "http://agents/run?key=canary-key&v=v2"
    assert "http://agents/run" in said
    assert "canary" not in said


async def test_a_candidate_at_an_address_that_is_not_allowed_is_not_asked() -> None:
    agent, clock = Agent(), ManualClock()
    asking = CandidateAnswers(agent, "s3cret", MemoryStore(clock), Policy(), clock, lambda url: f"{url} is not allowed")
    found = outputs(await waited_for(asking, ITEMS, ENDPOINT, step()))
    assert agent.asked == []
    assert found == ["assistant v2 at http://agents/{agent_version}: not asked: http://agents/v2 is not allowed"] * 6


async def test_answers_come_in_the_order_of_the_items_and_nobody_sees_an_expected_output() -> None:
    agent = Agent()
    assert outputs(await waited_for(answers(agent, key="s3cret"), ITEMS, ENDPOINT, step())) == [
        f"so i{n}" for n in range(6)
    ]
    assert {url for url, _, _ in agent.asked} == {"http://agents/v2"}
    assert {headers["authorization"] for _, _, headers in agent.asked} == {"Bearer s3cret"}
    assert "hidden" not in json.dumps([body for _, body, _ in agent.asked])


async def test_a_traced_case_tells_its_traceparent_in_the_body_and_as_a_header() -> None:
    agent, traceparent = Agent(), f"00-{'ab' * 16}-{'cd' * 8}-01"
    client = candidate.CandidateClient(agent, "http://agents/", "key")
    for item in (ITEMS[0], {**ITEMS[1], "traceparent": traceparent}):
        await client.answer(item)
    (_, plain, plain_headers), (_, traced, headers) = agent.asked
    assert "traceparent" not in plain | dict(plain_headers)
    assert traced["traceparent"] == headers["traceparent"] == traceparent
    assert headers["authorization"] == "Bearer key"


async def test_a_gate_that_is_resumed_asks_only_for_what_is_missing() -> None:
    clock = ManualClock()
    store, agent = MemoryStore(clock), Agent()
    held = asyncio.Event()

    class Slow(Agent):
        async def post(self, url: str, *, content: bytes, headers: Mapping[str, str]) -> Any:
            if json.loads(content)["input"] in ("i4", "i5"):
                await held.wait()
            return await super().post(url, content=content, headers=headers)

    slow = Slow()
    killed = asyncio.create_task(waited_for(answers(slow, store), ITEMS, ENDPOINT, step()))
    for _ in range(100):
        await asyncio.sleep(0)
    killed.cancel()
    await asyncio.gather(killed, return_exceptions=True)
    assert outputs(await waited_for(answers(agent, store), ITEMS, ENDPOINT, step())) == [f"so i{n}" for n in range(6)]
    assert (slow.inputs, agent.inputs) == (["i0", "i1", "i2", "i3"], ["i4", "i5"])


async def test_a_failure_is_named_and_not_kept() -> None:
    store = MemoryStore(ManualClock())
    down = Agent(lambda text: (200, "yes") if text == "i0" else (418, None))
    found = outputs(await waited_for(answers(down, store), ITEMS, ENDPOINT, step(agent_id="assistant")))
    assert found == ["yes", *["assistant v2 at http://agents/{agent_version}: the candidate answers 418"] * 5]
    agent = Agent()
    await waited_for(answers(agent, store), ITEMS, ENDPOINT, step(agent_id="assistant"))
    assert agent.inputs == ["i1", "i2", "i3", "i4", "i5"]


@pytest.mark.parametrize(("status", "may_pass"), [(429, True), (500, True), (503, True), (400, False), (418, False)])
async def test_a_failure_says_whether_it_may_pass(status: int, *, may_pass: bool) -> None:
    agent = Agent(lambda text: (status, None))
    found = await waited_for(answers(agent), ITEMS, ENDPOINT, step())
    assert [one.may_pass for one in found if isinstance(one, Failed)] == [may_pass] * 6
    client = candidate.CandidateClient(agent, "http://agents/", limits=candidate.CandidateLimits(tries=1))
    for _ in range(candidate.GIVEN_UP_AFTER):
        await client.answer(ITEMS[0])
    given_up = await client.answer(ITEMS[0])
    assert isinstance(given_up, Failed)
    assert ("not asked" in given_up.why, given_up.may_pass) == (True, may_pass)


async def test_one_that_can_not_be_reached_may_be_later() -> None:
    class Away(Agent):
        async def post(self, url: str, *, content: bytes, headers: Mapping[str, str]) -> Any:
            raise httpx.ConnectError("refused")

    (found,) = await waited_for(answers(Away()), ITEMS[:1], ENDPOINT, step())
    assert isinstance(found, Failed)
    assert found.may_pass


async def test_another_version_answers_for_itself_though_its_address_is_the_same() -> None:
    store, agent, endpoint = MemoryStore(ManualClock()), Agent(), CandidateEndpoint(url="http://agents/next")
    for changes in ({}, {"agent_version": "v3"}, {"agent_id": "another"}, {"experiment_id": "another"}):
        await waited_for(answers(agent, store), ITEMS[:1], endpoint, step(**changes))
    assert len(agent.asked) == 3


async def test_a_changed_item_is_asked_anew() -> None:
    store, agent = MemoryStore(ManualClock()), Agent()
    for item in (ITEMS[0], ITEMS[0] | {"input": "other"}, ITEMS[0] | {"metadata": {"id": "9"}}, ITEMS[0]):
        await waited_for(answers(agent, store), [item], ENDPOINT, step())
    assert len(agent.asked) == 3


async def test_a_version_that_can_be_no_part_of_an_address_is_never_asked() -> None:
    agent = Agent()
    found = outputs(await waited_for(answers(agent), ITEMS, ENDPOINT, step(agent_version="..")))
    assert (agent.asked, len(found)) == ([], len(ITEMS))
    assert all("agent_version '..' can't be a part of the candidate's address" in why for why in found)


async def test_an_answer_too_large_to_keep_is_used_and_asked_for_again(monkeypatch: Any) -> None:
    monkeypatch.setattr(candidate, "LARGEST_KEPT", 100)
    store, agent = MemoryStore(ManualClock()), Agent(lambda text: (200, "x" * 200))
    for _ in range(2):
        assert outputs(await waited_for(answers(agent, store), ITEMS[:1], ENDPOINT, step())) == ["x" * 200]
    assert len(agent.asked) == 2


async def test_an_item_nested_too_deep_to_be_sent_fails_alone() -> None:
    deep: Any = "down here"
    for _ in range(400):
        deep = [deep]
    agent = Agent()
    found = outputs(await waited_for(answers(agent), [{"input": deep}, ITEMS[0]], ENDPOINT, step()))
    assert "can't be sent to the candidate" in found[0]
    assert found[1] == "so i0"


async def test_what_a_release_before_kept_under_a_seal_is_not_read() -> None:
    store, agent, of = MemoryStore(ManualClock()), Agent(), step()
    asked = ["http://agents/v2", of.agent_id, "v2", ITEMS[0].get("input"), ITEMS[0].get("metadata")]
    text = orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)
    store.values[CANDIDATE_ANSWER.key(hashlib.sha256(text).hexdigest()[:40])] = b"s" * 16 + b'{"output":"x"}', FOREVER
    assert outputs(await waited_for(answers(agent, store), ITEMS[:1], ENDPOINT, of)) == ["so i0"]
