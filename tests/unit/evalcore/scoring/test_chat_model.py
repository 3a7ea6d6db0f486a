"""A model behind an OpenAI-compatible endpoint: what it is sent, what counts as its answer, how failures differ."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from aiohttp import web
from pydantic import ValidationError

from evalcore.judges.evaluator import Prompt, Task
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import PASSING, CallFailed, Failure, Reply
from evalcore.scoring.chat_model import ChatModel, retry_after
from evalcore.scoring.http_client import HttpClient
from evalcore.scoring.model_caller import CallLimits
from evalcore.scoring.opik_metric import LLMJudgeMetric
from evalcore.scoring.opik_model import OpikModel, failure, model_at
from evalcore.scoring.runner import Scorer
from rampgate.local.model.behaviour import Behaviour
from rampgate.local.model.server import Running, start
from rampgate.settings import Settings
from tests.unit.evalcore.scoring.scoring_rig import CALL, ITEM, REGISTRY, Model, asked, scorer

SECRET = "sk-canary-0123456789"


def scripted(*answers: Any, key: str | None = SECRET) -> tuple[ChatModel, list[httpx.Request]]:
    """Answers in turn: a response, or an error to raise."""
    seen: list[httpx.Request] = []
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return ChatModel(client, "http://model.test/v1/", key), seen


def completion(content: Any = '{"score": 4, "reason": "r"}', **more: Any) -> httpx.Response:
    message = {"role": "assistant", "content": content}
    return httpx.Response(200, json={"choices": [{"message": message}], "usage": {"total_tokens": 12}, **more})


async def test_a_call_is_one_request_with_the_rules_words_and_a_schema_of_its_score_type() -> None:
    """PC5 §5.2: INTEGER, FLOAT and BOOLEAN; a judge with dimensions asks for each of them."""
    model, seen = scripted(completion())
    assert await model.complete(asked()) == (await scripted(completion())[0].complete(asked()))
    (request,) = seen
    body = json.loads(request.content)
    assert str(request.url) == "http://model.test/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert (body["model"], body["temperature"]) == (REGISTRY.judge("helpfulness").rule.model, 1.0)
    assert body["messages"] == LLMJudgeMetric(REGISTRY.judge("helpfulness")).messages("offline", ITEM)
    schema = body["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["score"]["anyOf"][0] == {"type": "integer"}
    kinds = [asked(judge).schema["properties"]["score"]["anyOf"][0]["type"] for judge in ("refusal", "honesty")]
    assert kinds == ["number", "boolean"]
    assert list(asked("brevity").schema["properties"]["dimensions"]["properties"]) == ["tone-of-voice", "facts"]


@pytest.mark.parametrize(
    ("cost", "header", "dollars"),
    [
        (0.0042, None, 0.0042),
        (None, "0.00031", 0.00031),
        (None, None, None),
        (True, "free", None),
        (-1, None, None),
        (None, "nan", None),
    ],
)
async def test_what_a_call_costs_is_what_the_server_says(cost: Any, header: str | None, dollars: float | None) -> None:
    """OpenRouter tells it beside the tokens, a LiteLLM proxy in a header; most servers don't."""
    said = completion()
    usage = {"total_tokens": 12, "cost": cost}
    told = httpx.Response(
        200, json={**said.json(), "usage": usage}, headers={"x-litellm-response-cost": header} if header else {}
    )
    model, _ = scripted(told)
    found = await model.complete(asked())
    assert (found.tokens, found.dollars) == (12, dollars)


def refusal(message: str) -> httpx.Response:
    return httpx.Response(400, json={"error": {"message": message, "code": "unsupported_value"}})


def no_temperature() -> httpx.Response:
    return refusal("Unsupported value: 'temperature' does not support 0 with this model.")


async def test_a_model_that_takes_no_temperature_but_its_own_is_asked_without() -> None:
    """OpenAI's reasoning models refuse 0: with the platform's default no gate could be decided by them."""
    model, seen = scripted(no_temperature(), refusal("no response_format"), completion(), completion())
    for _ in range(2):
        assert (await model.complete(asked())).text
    bodies = [json.loads(request.content) for request in seen]
    assert [("temperature" in body, "response_format" in body) for body in bodies] == [
        (True, True), (False, True), (False, False), (False, False)
    ]  # fmt: skip


async def test_calls_that_are_refused_at_one_moment_are_all_asked_again() -> None:
    """The first refusal is remembered while the others are under way, none of which may be lost for it."""
    together = asyncio.Barrier(4)

    async def answer(request: httpx.Request) -> httpx.Response:
        if "temperature" not in json.loads(request.content):
            return completion()
        await together.wait()
        return no_temperature()

    model = ChatModel(httpx.AsyncClient(transport=httpx.MockTransport(answer)), "http://model.test/v1")
    replies = await asyncio.gather(*(model.complete(asked()) for _ in range(4)))
    assert len(replies) == 4


async def test_a_refusal_that_names_what_was_not_sent_is_a_refusal() -> None:
    model, seen = scripted(no_temperature(), no_temperature())
    with pytest.raises(CallFailed):
        await model.complete(asked())
    assert len(seen) == 2


SOURCES: dict[Any, dict[str, Any]] = {
    "offline": ITEM,
    "online": {"input": {"messages": [{"content": "how?"}]}, "output": {"messages": [{"content": "so!"}]}},
    "playground": {"metadata": {"item": ITEM}, "output": {"output": "so!"}},
}


@pytest.mark.parametrize("context", SOURCES)
async def test_the_runner_asks_what_the_metric_asks_in_every_context(context: Any) -> None:
    """PC5 AC-9: the same rubric text in dataset evaluation and production scoring."""
    judge = REGISTRY.judge("helpfulness")
    wanted = LLMJudgeMetric(judge).messages(context, SOURCES[context])
    model = Model()
    await scorer(model).score("g", [Task(judge, "one", context, SOURCES[context])])
    assert [list(question.messages) for question in model.asked] == [wanted]
    assert "so!" in wanted[1]["content"]
    assert model.asked[0].nonce in wanted[1]["content"].splitlines()[0]
    assert len(model.asked[0].nonce) == 32


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Failure.REFUSED), (401, Failure.UNAUTHORIZED), (403, Failure.UNAUTHORIZED), (404, Failure.REFUSED),
        (413, Failure.REFUSED), (422, Failure.REFUSED), (302, Failure.REFUSED), (408, Failure.TIMEOUT),
        (429, Failure.RATE_LIMITED), (500, Failure.UNAVAILABLE), (503, Failure.UNAVAILABLE), (529, Failure.UNAVAILABLE),
    ],
)  # fmt: skip
async def test_failures_are_told_apart_by_status(status: int, kind: Failure) -> None:
    said = {"error": {"message": f"no, and your key is {SECRET}"}}
    model, seen = scripted(httpx.Response(status, json=said, headers={"Retry-After": "7"}))
    with pytest.raises(CallFailed) as raised:
        await model.complete(asked())
    assert (raised.value.kind, raised.value.retry_after, len(seen)) == (kind, 7.0, 1)
    assert str(status) in raised.value.message
    assert SECRET not in raised.value.message


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "the prompt 'canary words of a user' violates a policy", "type": "canary"}},
        {"error": "canary words"},
        {"message": "invalid key canary-key"},
        "canary words",
    ],
)
async def test_what_a_provider_quotes_of_a_prompt_is_not_told(body: Any) -> None:
    """The message goes into verdicts' reasons, dead letters and logs."""
    model, _ = scripted(httpx.Response(400, json=body))
    with pytest.raises(CallFailed) as raised:
        await model.complete(asked())
    assert "canary" not in raised.value.message
    assert "400" in raised.value.message


async def test_what_a_provider_says_of_the_request_is_told() -> None:
    said = "This model's maximum context length is 8192 tokens. Please reduce the length of the messages."
    model, _ = scripted(httpx.Response(400, json={"error": {"message": said}}))
    with pytest.raises(CallFailed, match=r"maximum context length is … tokens\. Please reduce the length"):
        await model.complete(asked())


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectError("refused"), Failure.UNREACHABLE), (httpx.ReadTimeout("slow"), Failure.TIMEOUT),
        (httpx.RemoteProtocolError("gone"), Failure.UNREACHABLE), (httpx.ConnectTimeout("slow"), Failure.TIMEOUT),
    ],
)  # fmt: skip
async def test_what_breaks_on_the_way_passes_by_itself(error: Exception, kind: Failure) -> None:
    model, _ = scripted(error)
    with pytest.raises(CallFailed) as raised:
        await model.complete(asked())
    assert raised.value.kind is kind
    assert kind in PASSING


async def test_an_endpoint_that_knows_no_schemas_is_asked_without_one_from_then_on() -> None:
    no = httpx.Response(400, json={"error": {"message": "response_format 'json_schema' is not supported"}})
    model, seen = scripted(no, completion(), completion())
    for _ in range(2):
        await model.complete(asked())
    assert ["response_format" in json.loads(request.content) for request in seen] == [True, False, False]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({}, 0.0), ({"retry-after": "2"}, 2.0), ({"retry-after": "0.5"}, 0.5), ({"retry-after": "-1"}, 0.0),
     ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, 0.0), ({"retry-after": "١"}, 0.0)],
)  # fmt: skip
def test_how_long_a_server_asks_us_to_wait(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers) == seconds


@pytest.fixture
async def local() -> AsyncIterator[Running]:
    running = await start(key=SECRET)
    yield running
    await running.close()


class Counted(ChatModel):
    """By its clock a call takes CALL seconds."""

    calls = 0

    async def complete(self, asked: Prompt) -> Reply:
        self.calls += 1
        return await super().complete(asked)

    def now(self) -> float:
        return time.monotonic() + CALL * self.calls


@pytest.mark.parametrize(
    ("behaviour", "failed", "calls"),
    [
        ({"status": 503}, Failure.UNAVAILABLE, 3),
        ({"status": 429, "retry_after": 0.01}, Failure.RATE_LIMITED, 3),
        ({"status": 404}, Failure.REFUSED, 1),
        ({"drop": True}, Failure.UNREACHABLE, 3),
        ({"latency_seconds": 5}, Failure.TIMEOUT, 3),
        ({"wrong": "off_scale"}, Failure.SLIP, 2),
        ({"wrong": "prose"}, Failure.SLIP, 2),
        ({"wrong": "wrong_type"}, Failure.SLIP, 2),
        ({"wrong": "not_finite"}, Failure.SLIP, 2),
        ({"wrong": "quoted"}, Failure.SLIP, 2),
        ({"wrong": "empty"}, Failure.UNAVAILABLE, 3),
        ({"wrong": "no_completion"}, Failure.UNAVAILABLE, 3),
        ({"wrong": "no_completion", "times": 2}, None, 3),
        ({"status": 500, "times": 2}, None, 3),
        ({"wrong": "prose", "times": 1}, None, 2),
    ],
)  # fmt: skip
async def test_a_judge_fails_closed_however_its_model_fails(
    local: Running, behaviour: dict[str, Any], failed: Failure | None, calls: int
) -> None:
    """PC5 §9.5: judge model API outage."""
    local.model.tell(Behaviour(**behaviour))
    seconds = 1.0 if failed is Failure.TIMEOUT else 60.0
    limits = CallLimits(at_once=2, patience=2 * CALL, call_seconds=seconds, first_pause=0.0, jitter=0.0)
    async with HttpClient(2, 60.0) as client:
        model = Counted(client, local.url, SECRET)
        ours = Scorer(model, MemoryScoreCache(), limits, now=model.now)
        (found,) = await ours.score("g", [Task(REGISTRY.judge("helpfulness"), "a", "offline", ITEM)])
    assert found.failure is failed
    assert model.calls == calls


async def test_nobody_listening_and_a_wrong_key_are_unscored(local: Running) -> None:
    limits = CallLimits(patience=0.0)
    async with HttpClient(2, 60.0) as client:
        for url, key, kind in (
            ("http://127.0.0.1:1/v1", None, Failure.UNREACHABLE),
            (local.url, "sk-other", Failure.UNAUTHORIZED),
        ):
            ours = Scorer(ChatModel(client, url, key), MemoryScoreCache(), limits)
            (found,) = await ours.score("g", [Task(REGISTRY.judge("helpfulness"), "a", "offline", ITEM)])
            assert found.failure is kind


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [
        ("RateLimitError", 429, Failure.RATE_LIMITED), ("Timeout", 408, Failure.TIMEOUT),
        ("APIConnectionError", 500, Failure.UNREACHABLE), ("InternalServerError", 500, Failure.UNAVAILABLE),
        ("ServiceUnavailableError", 503, Failure.UNAVAILABLE), ("AuthenticationError", 401, Failure.UNAUTHORIZED),
        ("BadRequestError", 400, Failure.REFUSED), ("Odd", None, Failure.REFUSED),
    ],
)  # fmt: skip
def test_errors_of_opiks_model_layer_are_told_apart_alike(name: str, status: int | None, kind: Failure) -> None:
    error = type(name, (Exception,), {"status_code": status})("the prompt was: secret")
    assert failure(error).kind is kind
    assert "secret" not in failure(error).message


async def test_clients_follow_no_redirects_and_give_up_in_time() -> None:
    async def move(request: web.Request) -> web.Response:
        seen.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    async def dawdle(request: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.Response()

    seen: list[str] = []
    app = web.Application()
    app.add_routes([web.post("/moved/chat/completions", move), web.post("/slow/chat/completions", dawdle)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    kinds = []
    async with HttpClient(2, 1.0) as client:
        for path in ("moved", "slow"):
            with pytest.raises(CallFailed) as raised:
                await ChatModel(client, f"{base}/{path}", SECRET).complete(asked())
            kinds.append(raised.value.kind)
    await runner.cleanup()
    assert kinds == [Failure.REFUSED, Failure.TIMEOUT]
    assert seen == ["/moved/chat/completions"]


@pytest.mark.parametrize(
    ("url", "kind", "source"),
    [
        ("https://models.test/v1", ChatModel, "https://models.test/v1"),
        ("litellm:", OpikModel, "opik:"),
        ("litellm:https://models.test", OpikModel, "opik:https://models.test"),
    ],
)
def test_the_urls_scheme_chooses_the_way_to_a_model(url: str, kind: type, source: str) -> None:
    made = model_at(url, httpx.AsyncClient(), "key")
    assert type(made) is kind
    assert made.source("m") == source
    assert Settings(model_url=url).model_url == url


@pytest.mark.parametrize("url", ["litellm:ftp://models.test", "litellmx:", "models.test"])
def test_another_scheme_is_refused_as_a_setting(url: str) -> None:
    with pytest.raises(ValidationError):
        Settings(model_url=url)
