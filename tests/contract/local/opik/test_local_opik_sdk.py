"""The local Opik under the official, unmodified SDK, over real HTTP."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import httpx
import opik
import pytest
import uuid6
from opik.api_objects import opik_client
from opik.rest_api import AsyncOpikApi
from opik.rest_api.core.api_error import ApiError
from opik.rest_api.types.feedback_score_batch_item import FeedbackScoreBatchItem

from rampgate.local.opik.server import start
from tests.contract.local.opik.over_http import T, score, scores_of, trace


def test_sdk_traces_can_be_found_scored_and_read(client: opik.Opik, project: str) -> None:
    ids = []
    for number in range(3):
        made = client.trace(
            name=f"turn-{number}",
            input={"question": f"How many {number}?"},
            output={"answer": number},
            metadata={"response_id": f"resp-{number}", "vertical": "Bills", "deep": {"level": number}},
            tags=["ramp", f"n{number}"],
            thread_id="session-1",
            end_time=datetime.now(UTC),
        )
        ids.append(made.id)
    assert client.flush()
    client.log_traces_feedback_scores(
        [
            {"id": ids[0], "name": "thumbs", "value": -1.0, "reason": "wrong", "project_name": project},
            {"id": ids[1], "name": "thumbs", "value": 1.0, "project_name": project},
        ]
    )
    assert client.flush()

    def found(text: str) -> list[str]:
        return sorted(trace.id for trace in client.search_traces(project_name=project, filter_string=text) if trace.id)

    assert found("") == sorted(ids)
    assert found('metadata.response_id = "resp-1"') == [ids[1]]
    assert found('metadata.response_id = "no such"') == []
    assert found("feedback_scores.thumbs < 0") == [ids[0]]
    assert found("feedback_scores.thumbs >= -1") == sorted(ids[:2])
    assert found("feedback_scores.thumbs is_empty") == [ids[2]]
    assert found("feedback_scores.thumbs is_not_empty") == sorted(ids[:2])
    assert found('name = "TURN-2"') == [ids[2]]
    assert found('tags contains "n2"') == [ids[2]]
    assert found('input contains "many 1" AND thread_id = "session-1"') == [ids[1]]
    assert found('metadata."deep.level" > "1"') == [ids[2]]
    assert found(f'id = "{ids[0]}"') == [ids[0]]
    assert found('start_time > "2020-01-01T00:00:00Z"') == sorted(ids)
    assert found('name not_contains "turn-0" AND name ends_with "-1"') == [ids[1]]

    read = client.get_trace_content(ids[0])
    assert isinstance(read.metadata, dict)
    assert read.metadata["response_id"] == "resp-0"
    assert [(s.name, s.value, s.reason) for s in read.feedback_scores or []] == [("thumbs", -1.0, "wrong")]
    assert read.duration is not None
    client.delete_trace_feedback_score(ids[0], "thumbs")
    assert client.get_trace_content(ids[0]).feedback_scores in (None, [])


def test_sdk_pages_through_more_traces_than_one_page_holds(client: opik.Opik, http: httpx.Client, project: str) -> None:
    made = [trace(project) for _ in range(250)]
    assert http.post(f"{T}/batch", json={"traces": made}).status_code == 204
    found = client.search_traces(project_name=project, max_results=1000, max_batch_size=100)
    assert [item.id for item in found] == sorted((item["id"] for item in made), reverse=True)


def test_sdk_track_decorator_and_spans(client: opik.Opik, project: str) -> None:
    root = client.trace(name="root", input={"q": 1})
    span = root.span(
        name="call", type="llm", model="m", usage={"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}
    )
    span.end(output={"a": 1})
    root.end(output={"a": 2})
    client.flush()
    spans = client.search_spans(project_name=project, trace_id=root.id)
    assert [(item.name, item.type, item.end_time is not None) for item in spans] == [("call", "llm", True)]
    read = client.get_trace_content(root.id)
    assert (read.output, read.span_count, read.llm_span_count) == ({"a": 2}, 1, 1)
    assert read.usage is not None
    assert read.usage["total_tokens"] == 7
    client.log_spans_feedback_scores([{"id": span.id, "name": "ok", "value": 1, "project_name": project}])
    client.flush()
    assert [s.name for s in client.get_span_content(span.id).feedback_scores or []] == ["ok"]
    client.update_trace(root.id, project_name=project, tags=["late"])
    client.flush()
    assert client.get_trace_content(root.id).tags == ["late"]

    @opik.track(name="inner")
    def inner(question: str) -> str:
        return question.upper()

    @opik.track(name="outer", project_name=project)
    def outer(question: str) -> str:
        opik.opik_context.update_current_trace(metadata={"response_id": "tracked"})
        return str(inner(question))

    opik.set_global_client(client)
    try:
        assert outer("why") == "WHY"
        client.flush()
    finally:
        opik_client.reset_global_client(end_client=False)
    (tracked,) = client.search_traces(project_name=project, filter_string='metadata.response_id = "tracked"')
    assert tracked.name == "outer"
    assert tracked.span_count == 2


def test_sdk_datasets_round_trip_with_versions(client: opik.Opik, project: str) -> None:
    name = f"golden-{project}"
    dataset = client.get_or_create_dataset(name, description="held out", project_name=project)
    dataset.insert([{"question": f"q{n}", "expected": n} for n in range(3)])
    assert sorted(item["question"] for item in dataset.get_items()) == ["q0", "q1", "q2"]
    dataset.insert([{"question": "q1", "expected": 1}, {"question": "q3", "expected": 3}])
    again = client.get_dataset(name, project_name=project)
    items = {item["question"]: item["id"] for item in again.get_items()}
    assert sorted(items) == ["q0", "q1", "q2", "q3"]
    assert again.dataset_items_count == 4
    assert again.get_current_version_name() == "v2"
    first = again.get_version_view("v1")
    assert sorted(item["question"] for item in first.get_items()) == ["q0", "q1", "q2"]
    again.update([{"id": items["q1"], "question": "q1", "expected": 11}])
    (changed,) = [item for item in again.get_items() if item["question"] == "q1"]
    assert (changed["id"], changed["expected"]) == (items["q1"], 11)
    assert name in [each.name for each in client.get_datasets(project_name=project)]
    with pytest.raises(ApiError) as taken:
        client.create_dataset(name, project_name=project)
    assert taken.value.status_code == 409


def test_sdk_projects(client: opik.Opik, project: str) -> None:
    api = client.rest_client.projects
    api.create_project(name=project, description="of this test")
    found = api.retrieve_project(name=project)
    assert client.get_project(found.id or "").description == "of this test"
    assert project in [each.name for each in api.find_projects(name=project).content or []]
    with pytest.raises(ApiError) as error:
        api.create_project(name=project)
    assert error.value.status_code == 409
    client.auth_check()
    assert client.get_project_url(project)


def test_sdk_rest_client_writes_scores_in_a_batch(client: opik.Opik, http: httpx.Client, project: str) -> None:
    item = trace(project)
    http.post(T, json=item)
    for value in (0.25, 0.75):
        client.rest_client.traces.score_batch_of_traces(
            scores=[FeedbackScoreBatchItem(**score(item["id"], project, "judge", value))]
        )
    assert scores_of(http, item["id"]) == {"judge": 0.75}


def test_sdk_rules(client: opik.Opik, http: httpx.Client, project: str) -> None:
    http.post(T, json=trace(project))
    project_id = client.rest_client.projects.retrieve_project(name=project).id
    rule = {
        "name": "thumbs up", "action": "evaluator", "type": "user_defined_metric_python", "sampling_rate": 0.5,
        "project_ids": [project_id], "code": {"metric": "def f(): ...", "arguments": {"output": "output.answer"}},
    }  # fmt: skip
    created = http.post("/v1/private/automations/evaluators", json=rule)
    assert created.status_code == 201
    identifier = created.headers["location"].rsplit("/", 1)[1]
    api = client.rest_client.automation_rule_evaluators
    read: Any
    (read,) = api.find_evaluators(project_id=project_id).content or []
    assert (read.name, read.type, read.project_name, read.sampling_rate) == (
        "thumbs up", "user_defined_metric_python", project, 0.5,
    )  # fmt: skip
    http.patch(f"/v1/private/automations/evaluators/{identifier}", json=rule | {"enabled": False})
    listed: Any = api.find_evaluators(project_id=project_id).content
    assert [(each.id, each.enabled) for each in listed] == [(identifier, False)]
    api.delete_automation_rule_evaluator_batch(ids=[identifier])
    assert api.find_evaluators(project_id=project_id).content == []
    refused = http.post("/v1/private/automations/evaluators", json=rule | {"name": " "})
    assert (refused.status_code, refused.json()) == (422, {"errors": ["name must not be blank"]})


async def test_async_rest_client_in_the_servers_own_process(project: str) -> None:
    running = await start(faults=True)
    try:
        api = AsyncOpikApi(base_url=running.url, workspace_name="default")
        identifier = str(uuid6.uuid7())
        await api.traces.create_trace(id=identifier, project_name=project, start_time=datetime.now(UTC), metadata={})
        item = FeedbackScoreBatchItem(**score(identifier, project))
        await api.traces.score_batch_of_traces(scores=[item])
        read = await api.traces.get_trace_by_id(identifier)
        assert [each.name for each in read.feedback_scores or []] == ["thumbs"]
        chunks = [chunk async for chunk in api.traces.search_traces(project_name=project, limit=10)]
        assert json.loads(b"".join(chunks))["id"] == identifier
        page = await api.traces.get_traces_by_project(project_name=project)
        assert page.total == 1
    finally:
        await running.close()
