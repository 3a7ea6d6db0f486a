"""The model's stand-in answers by a script, turn by turn, with tool calls: agents run without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from rampgate.local.model.behaviour import Behaviour
from rampgate.local.model.server import start

CALLS = [{"name": "look", "arguments": {"x": 1}}, {"name": "search"}]
TURNS = [{"calls": CALLS, "input_tokens": 7, "output_tokens": 3}, {"text": "Done."}]
SCRIPTS = [{"when": "parcel", "turns": TURNS}]


@pytest.fixture
async def model() -> AsyncIterator[httpx.AsyncClient]:
    running = await start(behaviour=Behaviour.model_validate({"scripts": SCRIPTS}))
    async with httpx.AsyncClient(base_url=running.url) as client:
        yield client
    await running.close()


async def said(model: httpx.AsyncClient, *messages: dict[str, Any]) -> dict[str, Any]:
    given = [{"role": "user", "content": "Where is my parcel?"}, *messages]
    answer = await model.post("/chat/completions", json={"model": "m", "messages": given})
    return dict(answer.raise_for_status().json())


async def test_turns_follow_the_conversation_and_say_their_tokens(model: httpx.AsyncClient) -> None:
    first = await said(model)
    message = first["choices"][0]["message"]
    assert [one["function"]["name"] for one in message["tool_calls"]] == ["look", "search"]
    assert (first["choices"][0]["finish_reason"], first["usage"]["total_tokens"]) == ("tool_calls", 10)
    results = [{"role": "tool", "tool_call_id": one["id"], "content": "ok"} for one in message["tool_calls"]]
    second = await said(model, message, *results)
    assert second["choices"][0]["message"]["content"] == "Done."
    again = await said(model, message, *results, second["choices"][0]["message"], {"role": "user", "content": "And?"})
    assert again["choices"][0]["message"]["content"] == "Done.", "the last turn is repeated"


async def test_a_response_has_the_same_turns(model: httpx.AsyncClient) -> None:
    given: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "input_text", "text": "A parcel?"}]}]
    first = (await model.post("/responses", json={"model": "m", "input": given})).raise_for_status().json()
    calls = first["output"]
    assert [one["type"] for one in calls] == ["function_call"] * 2
    done = [{"type": "function_call_output", "call_id": one["call_id"], "output": "ok"} for one in calls]
    second = (await model.post("/responses", json={"model": "m", "input": [*given, *calls, *done]})).json()
    assert second["output"][0]["content"][0]["text"] == "Done."


async def test_a_conversation_that_no_script_fits_is_judged_as_before(model: httpx.AsyncClient) -> None:
    given = [{"role": "user", "content": '{"output": "x"}'}]
    answer = await model.post("/chat/completions", json={"model": "m", "messages": given})
    assert "score" in answer.json()["choices"][0]["message"]["content"]
    assert (await model.post("/responses", json={"model": "m", "input": "hello"})).status_code == 400
