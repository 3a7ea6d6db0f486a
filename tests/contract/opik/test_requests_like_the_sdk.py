"""Each request of ours is, on the wire, the one that Opik's own client sends for the same call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agents.ports import Write
from evalcore.registry.opik_rules import OpikRule, OutputField, TraceFilter
from streams.opik.client import OpikClient, OpikScores
from streams.opik.datasets import OpikDatasets
from streams.opik.queues import Definition, OpikQueues, Queue
from streams.opik.rules import OpikRules
from streams.opik.traces import OpikTraces

TRACE = "01900000-0000-7000-8000-000000000000"
AT = 1_700_000_000_000
HOUR = 3_600_000
RULE = OpikRule(
    name="rampgate:a:b",
    model="gpt-x",
    temperature=0.5,
    sampling_rate=0.25,
    enabled=True,
    messages=(("SYSTEM", "judge"), ("USER", "{{input}}")),
    variables={"input": "input.text", "_rampgate": "{}"},
    output=(OutputField("a", "INTEGER", "from 1 to 5"),),
    filters=(TraceFilter("metadata", "=", "vertical", "receipts"),),
    id="r-1",
)
Request = tuple[str, str, dict[str, str], Any, dict[str, str | None]]


class Wire:
    """A server that keeps what it is sent and answers with what both clients can read."""

    def __init__(self) -> None:
        self.seen: list[Request] = []
        self.url = ""
        self.missing = ""

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name: request.headers.get(name) for name in ("Authorization", "Comet-Workspace", "Content-Type")}
        self.seen.append((
            request.method, request.raw_path.split("?")[0], dict(request.query),
            orjson.loads(body) if body else None, headers,
        ))  # fmt: skip
        if request.method == "GET" and self.missing and request.path.endswith(self.missing):
            return web.json_response({"code": 404, "message": "not found"}, status=404)
        if request.path.endswith("/stream") or request.path.endswith("/search"):
            return web.Response(body=b"")
        if request.method == "GET" and "/traces/" in request.path:
            return web.json_response({"id": TRACE, "start_time": "2026-01-01T00:00:00Z"})
        return web.json_response({"id": "d-1", "name": "n", "content": [], "total": 0})


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    made = Wire()
    app = web.Application()
    app.router.add_route("*", "/{anything:.*}", made.answer)
    async with TestServer(app) as server:
        made.url = str(server.make_url("/api"))
        yield made


async def _drained(stream: AsyncIterator[bytes]) -> None:
    async for _ in stream:
        pass


def _traces(client: OpikClient) -> OpikTraces:
    return OpikTraces(client, per_minute=60_000, retry_seconds=0.0)


async def _searched(client: OpikClient) -> None:
    traces = _traces(client)
    await _drained(traces._pages("p", [], AT, AT + HOUR))


CALLS: list[tuple[str, Callable[[OpikClient], Awaitable[Any]], Callable[[Any], Awaitable[Any]]]] = [
    (
        "scores are put",
        lambda ours: OpikScores(ours, in_flight=1, retry_seconds=0.0).write([Write(TRACE, "p", "n", 1.0, "why")]),
        lambda sdk: sdk.traces.score_batch_of_traces(
            scores=[{"id": TRACE, "project_name": "p", "name": "n", "value": 1.0, "reason": "why", "source": "sdk"}]
        ),
    ),
    (
        "a score is deleted",
        lambda ours: OpikScores(ours, in_flight=1, retry_seconds=0.0).write([Write(TRACE, "p", "n", None, "")]),
        lambda sdk: sdk.traces.delete_trace_feedback_score(TRACE, name="n"),
    ),
    ("a trace is read", lambda ours: _traces(ours).get(TRACE), lambda sdk: sdk.traces.get_trace_by_id(TRACE)),
    (
        "a trace is changed",
        lambda ours: _traces(ours).update(TRACE, "p", {"output": {"text": "o"}, "metadata": {"phase": "Completed"}}),
        lambda sdk: sdk.traces.update_trace(
            TRACE, project_name="p", output={"text": "o"}, metadata={"phase": "Completed"}
        ),
    ),
    (
        "traces are searched",
        _searched,
        lambda sdk: _drained(
            sdk.traces.search_traces(
                project_name="p",
                limit=2_000,
                exclude=["input", "output"],
                truncate=True,
                from_time=datetime.fromtimestamp(AT / 1000, UTC),
                to_time=datetime.fromtimestamp((AT + HOUR) / 1000, UTC),
            )
        ),
    ),
    ("the key is checked", lambda ours: _traces(ours).authorized(), lambda sdk: sdk.check.access(request={})),
    (
        "projects are listed",
        lambda ours: _traces(ours).projects(),
        lambda sdk: sdk.projects.find_projects(page=1, size=100),
    ),
    (
        "a project is found",
        lambda ours: OpikRules(ours, 0.0).project_id("p"),
        lambda sdk: sdk.projects.retrieve_project(name="p"),
    ),
    (
        "rules are listed",
        lambda ours: OpikRules(ours, 0.0).rules("p-1"),
        lambda sdk: sdk.automation_rule_evaluators.find_evaluators(project_id="p-1", page=1, size=100),
    ),
]


async def test_a_queue_is_made_and_read_as_the_official_client_does(wire: Wire) -> None:
    from opik.rest_api.errors.not_found_error import NotFoundError
    from opik.rest_api.types.feedback_create import FeedbackCreate_Categorical
    from opik.rest_api.types.trace_filter_public import TraceFilterPublic

    queue = Queue("q-1", "p-1", "n", "score them", ("people/a",), 2)

    async def ours(client: OpikClient) -> None:
        queues = OpikQueues(client, 0.0)
        await queues.define(Definition("people/a", "categorical", {"categories": {"1": 1.0}}, "one"))
        await queues.make(queue, [TRACE])
        async for _ in queues.said("q-1", "p", frozenset({"people/a"})):
            pass

    async def official(sdk: Any) -> None:
        found = {"name": "people/a", "page": 1, "size": 100}
        await sdk.feedback_definitions.find_feedback_definitions(**found)
        details: Any = {"categories": {"1": 1.0}}
        made = FeedbackCreate_Categorical(name="people/a", details=details, description="one")
        await sdk.feedback_definitions.create_feedback_definition(request=made)
        await sdk.feedback_definitions.find_feedback_definitions(**found)
        with suppress(NotFoundError):
            await sdk.annotation_queues.get_annotation_queue_by_id("q-1")
        await sdk.annotation_queues.create_annotation_queue(
            id="q-1", project_id="p-1", name="n", scope="trace", instructions="score them", comments_enabled=True,
            feedback_definition_names=["people/a"], annotators_per_item=2,
        )  # fmt: skip
        await sdk.annotation_queues.add_items_to_annotation_queue("q-1", ids=[TRACE])
        one = TraceFilterPublic(field="annotation_queue_ids", operator="contains", key="", value="q-1")
        await _drained(
            sdk.traces.search_traces(
                project_name="p", filters=[one], limit=1_000, truncate=True, exclude=["input", "output"]
            )
        )

    wire.missing = "/annotation-queues/q-1"
    await _same(wire, ours, official)


@pytest.mark.parametrize(("what", "ours", "official"), CALLS, ids=[call[0] for call in CALLS])
async def test_a_request_is_what_the_official_client_sends(
    wire: Wire, what: str, ours: Callable[[OpikClient], Awaitable[Any]], official: Callable[[Any], Awaitable[Any]]
) -> None:
    await _same(wire, ours, official)


@pytest.mark.parametrize("login", ["", "user:pa%20ss@"], ids=["the key", "a login in the URL"])
async def test_a_dataset_is_read_as_the_official_client_reads_it(wire: Wire, login: str) -> None:
    wire.url = wire.url.replace("://", f"://{login}")

    async def official(sdk: Any) -> None:
        await sdk.datasets.get_dataset_by_identifier(dataset_name="d", project_name="p")
        await sdk.datasets.retrieve_dataset_version("d-1", version_name="v3")
        await _drained(
            sdk.datasets.stream_dataset_items(
                dataset_name="d", project_name="p", steam_limit=2_000, dataset_version="v3"
            )
        )

    await _same(wire, lambda ours: OpikDatasets(ours, 0.0).read("d", "p", 3), official)


@pytest.mark.parametrize("rule_id", ["", "r-1"], ids=["created", "updated"])
async def test_a_rule_is_written_as_the_official_client_writes_it(wire: Wire, rule_id: str) -> None:
    from dataclasses import replace

    from opik.rest_api.types.automation_rule_evaluator_update import AutomationRuleEvaluatorUpdate_LlmAsJudge
    from opik.rest_api.types.automation_rule_evaluator_write import AutomationRuleEvaluatorWrite_LlmAsJudge
    from opik.rest_api.types.llm_as_judge_code import LlmAsJudgeCode
    from opik.rest_api.types.llm_as_judge_code_write import LlmAsJudgeCodeWrite

    code = {
        "model": {"name": "gpt-x", "temperature": 0.5},
        "messages": [{"role": "SYSTEM", "content": "judge"}, {"role": "USER", "content": "{{input}}"}],
        "variables": dict(RULE.variables),
        "schema_": [{"name": "a", "type": "INTEGER", "description": "from 1 to 5"}],
    }
    fields: dict[str, Any] = {
        "name": RULE.name,
        "sampling_rate": 0.25,
        "enabled": True,
        "action": "evaluator",
        "project_ids": ["p-1"],
        "filters": [{"field": "metadata", "operator": "=", "key": "vertical", "value": "receipts"}],
    }

    async def official(sdk: Any) -> None:
        api = sdk.automation_rule_evaluators
        if rule_id:
            change = AutomationRuleEvaluatorUpdate_LlmAsJudge(code=LlmAsJudgeCode.model_validate(code), **fields)
            await api.update_automation_rule_evaluator(rule_id, request=change)
        else:
            body = AutomationRuleEvaluatorWrite_LlmAsJudge(code=LlmAsJudgeCodeWrite.model_validate(code), **fields)
            await api.create_automation_rule_evaluator(request=body)

    await _same(wire, lambda ours: OpikRules(ours, 0.0).write("p-1", replace(RULE, id=rule_id)), official)


async def _same(
    wire: Wire, ours: Callable[[OpikClient], Awaitable[Any]], official: Callable[[Any], Awaitable[Any]]
) -> None:
    from opik.rest_api.client import AsyncOpikApi

    client = OpikClient(wire.url, "w", "key", 5.0, 2)
    await ours(client)
    await client.close()
    sent, wire.seen = wire.seen, []
    await official(AsyncOpikApi(base_url=wire.url, workspace_name="w", api_key="key"))
    assert [_without_nothing(request) for request in sent] == [_without_nothing(request) for request in wire.seen]
    assert sent


def _without_nothing(request: Request) -> Request:
    """The request without empty fields: leaving one out and sending null are the same to Opik."""
    method, path, query, body, headers = request
    return method, path, query, _told(body), headers


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _told(one) for name, one in value.items() if one is not None}
    return [_told(one) for one in value] if isinstance(value, list) else value
