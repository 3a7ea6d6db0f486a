"""Both ways to a judge's model, against the stand-in: the direct call, and the layer that Opik brings (litellm)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from typing import Any

import openai
import pytest

from evalcore.judges.evaluator import Task
from evalcore.judges.kinds import needs_model
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import Registry, build
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import CallFailed, Failure
from evalcore.scoring.chat_model import ChatModel
from evalcore.scoring.http_client import HttpClient
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.opik_model import OpikModel
from evalcore.scoring.runner import Scorer
from evalcore.validation import checked
from rampgate.local.model.behaviour import Behaviour
from rampgate.local.model.server import Running, start
from tests.unit.evalcore.scoring.scoring_rig import asked

KEY = "sk-made-up"
TRACE = {
    "input": {"messages": [{"content": "hello"}]},
    "output": {"messages": [{"content": [{"text": "hi, how can I help? #quality:0.75"}]}]},
}


@pytest.fixture(scope="module")
def registry() -> Registry:
    return build(checked(read_tree(Path("configs")), date(2026, 11, 21))[0])


@pytest.fixture
async def local() -> AsyncIterator[Running]:
    running = await start(key=KEY)
    yield running
    await running.close()


async def test_both_ways_give_the_same_scores_for_every_shipped_judge(local: Running, registry: Registry) -> None:
    """PC5 §5.2: INTEGER, FLOAT and BOOLEAN, on the judge's own scale; any OpenAI-compatible endpoint."""
    tasks = [Task(judge, "t", "online", TRACE) for judge in registry.all() if needs_model(judge)]
    tasks = [task for task in tasks if "tool_calls" not in task.judge.rule.prompt]
    scores = []
    async with HttpClient(4, 20.0) as client:
        for model in (ChatModel(client, local.url, KEY), OpikModel(api_base=local.url, api_key=KEY)):
            found = await Scorer(model, MemoryScoreCache(), CallLimits(at_once=4, patience=0.0)).score("g", tasks)
            assert not [one.failure for one in found if one.failure]
            scores.append([(one.answer, one.dimensions) for one in found])
    assert scores[0] == scores[1]
    assert local.model.requests == {200: 2 * len(tasks)}


@pytest.mark.parametrize("wrong", ["no_completion", "empty"])
async def test_a_200_without_a_completion_is_an_outage_whichever_way_leads_to_the_model(
    local: Running, wrong: Any
) -> None:
    """PC5 §9.5."""
    local.model.tell(Behaviour(wrong=wrong))
    try:
        async with HttpClient(2, 60.0) as client:
            for model in (ChatModel(client, local.url, KEY), OpikModel(api_base=local.url, api_key=KEY)):
                with pytest.raises(CallFailed) as raised:
                    await model.complete(asked())
                assert raised.value.kind is Failure.UNAVAILABLE
    finally:
        local.model.tell(Behaviour())


def test_a_port_that_is_taken_ends_the_stand_in_with_what_to_do(local: Running) -> None:
    port = local.url.split(":")[2].split("/")[0]
    begun = [sys.executable, "-m", "rampgate.local.model", "--port", port]
    ended = subprocess.run(begun, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    assert ended.stderr.endswith("give another one, or 0 for a free one\n")
    assert "Traceback" not in ended.stderr


async def test_openais_own_client_works_on_the_stand_in_unmodified(local: Running) -> None:
    async with openai.AsyncOpenAI(base_url=local.url, api_key=KEY, max_retries=0) as client:
        messages = [{"role": "user", "content": "<x>#quality:1</x> S is a whole number from 1 to 5"}]
        found = await client.chat.completions.create(model="gpt-5-mini", messages=messages)
        assert (
            found.choices[0].message.content
            == '{"reason": "Stand-in, no language model: the text is marked.", "score": 5}'
        )
        assert (found.model, found.system_fingerprint) == ("gpt-5-mini (stand-in)", "rampgate-stand-in")
        assert "gpt-5-mini" in [model.id async for model in client.models.list()]
    async with openai.AsyncOpenAI(base_url=local.url, api_key="sk-other", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError):
            await client.models.list()


def test_opiks_model_layer_calls_nobody_when_it_is_imported() -> None:
    """litellm fetches a list of prices at import; a judge's process asks no one but its model."""
    code = """
import socket
seen, real = [], socket.getaddrinfo
socket.getaddrinfo = lambda *a, **k: (seen.append(a[:2]), real(*a, **k))[1]
from evalcore.scoring.opik_model import _model
_model("openai/gpt-5-mini", 1.0, ())
assert not seen, seen
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
