"""The local Opik against the official, unmodified SDK and the facts of Opik's contract, over real HTTP."""

from __future__ import annotations

import gzip
import json
import logging
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import uuid6

os.environ["OPIK_SENTRY_ENABLE"] = "false"
os.environ["OPIK_ANALYTICS_ENABLE"] = "false"
os.environ["OPIK_TRACK_DISABLE"] = "false"

import opik
from opik.api_objects import opik_client
from opik.rest_api import AsyncOpikApi
from opik.rest_api.core.api_error import ApiError
from opik.rest_api.types.feedback_score_batch_item import FeedbackScoreBatchItem

from rampgate.localopik import start

T = "/v1/private/traces"
OWN_WARNING = "shortly after creation with batching enabled"  # about how a test uses the SDK, whatever the server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, "-m", "rampgate.localopik", "--port", "0", "--faults"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        assert process.wait(10) == 0


@pytest.fixture
def http(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url) as client:
        yield client
        client.delete("/_faults")


@pytest.fixture
def project() -> str:
    return f"project-{uuid.uuid4()}"


@pytest.fixture
def client(url: str, project: str, caplog: pytest.LogCaptureFixture) -> Iterator[opik.Opik]:
    """The SDK; whatever it logs as a warning or an error fails the test."""
    caplog.set_level(logging.WARNING, logger="opik")
    logging.getLogger("opik").propagate = True
    made = opik.Opik(host=url, project_name=project, workspace="default")
    yield made
    made.end()
    told = [record.getMessage() for record in caplog.records if record.name.startswith("opik")]
    assert [text for text in told if OWN_WARNING not in text] == []


def trace(project: str, **fields: Any) -> dict[str, Any]:
    identifier = str(uuid6.uuid7())
    return {"id": identifier, "project_name": project, "start_time": "2026-04-17T12:00:00Z", "name": "turn"} | fields


def score(identifier: str, project: str | None, name: str = "thumbs", value: Any = 1, **more: Any) -> dict[str, Any]:
    return {"id": identifier, "project_name": project, "name": name, "value": value, "source": "sdk"} | more


def scores_of(http: httpx.Client, identifier: str) -> dict[str, float]:
    found = http.get(f"{T}/{identifier}").json().get("feedback_scores", [])
    return {item["name"]: item["value"] for item in found}


def search(http: httpx.Client, project: str, *filters: dict[str, Any], **more: Any) -> list[str]:
    response = http.post(f"{T}/search", json={"project_name": project, "filters": list(filters), **more})
    assert response.status_code == 200, response.text
    return [json.loads(line)["id"] for line in response.content.split(b"\r\n") if line]


# The SDK


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

    @opik.track(name="inner")  # type: ignore[untyped-decorator]
    def inner(question: str) -> str:
        return question.upper()

    @opik.track(name="outer", project_name=project)  # type: ignore[untyped-decorator]
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
    again.delete([items["q0"]])
    assert sorted(item["question"] for item in again.get_items()) == ["q1", "q2", "q3"]
    assert again.get_current_version_name() == "v3"
    first = again.get_version_view("v1")
    assert sorted(item["question"] for item in first.get_items()) == ["q0", "q1", "q2"]
    again.update([{"id": items["q1"], "question": "q1", "expected": 11}])
    (changed,) = [item for item in again.get_items() if item["question"] == "q1"]
    assert (changed["id"], changed["expected"]) == (items["q1"], 11)
    assert name in [each.name for each in client.get_datasets(project_name=project)]
    with pytest.raises(ApiError) as taken:
        client.create_dataset(name, project_name=project)
    assert taken.value.status_code == 409
    client.delete_dataset(name, project_name=project)
    with pytest.raises(ApiError) as gone:
        client.get_dataset(name, project_name=project)
    assert gone.value.status_code == 404


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
    names = client.rest_client.traces.find_feedback_score_names2(
        project_id=client.rest_client.projects.retrieve_project(name=project).id
    )
    assert [each.name for each in names.scores or []] == ["judge"]


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
    read: Any = api.get_evaluator_by_id(identifier)
    assert (read.name, read.type, read.project_name, read.sampling_rate) == (
        "thumbs up", "user_defined_metric_python", project, 0.5,
    )  # fmt: skip
    http.patch(f"/v1/private/automations/evaluators/{identifier}", json=rule | {"enabled": False})
    listed: Any = api.find_evaluators(project_id=project_id).content
    assert [(each.id, each.enabled) for each in listed] == [(identifier, False)]
    api.delete_automation_rule_evaluator_batch(ids=[identifier])
    with pytest.raises(ApiError):
        api.get_evaluator_by_id(identifier)
    refused = http.post("/v1/private/automations/evaluators", json=rule | {"name": " "})
    assert (refused.status_code, refused.json()) == (422, {"errors": ["name must not be blank"]})


def test_sdk_annotation_queue(client: opik.Opik, project: str) -> None:
    made = client.trace(name="to be looked at")
    client.flush()
    queue = client.create_traces_annotation_queue(name="bad turns", project_name=project)
    queue.add_traces([client.get_trace_content(made.id)])
    (again,) = client.get_traces_annotation_queues(project_name=project)
    assert (again.id, again.items_count) == (queue.id, 1)
    client.delete_annotation_queue(queue.id)
    assert client.get_traces_annotation_queues(project_name=project) == []


def test_sdk_threads(client: opik.Opik, project: str) -> None:
    for number in range(2):
        client.trace(name="turn", input={"n": number}, thread_id="s-1", end_time=datetime.now(UTC))
    client.flush()
    threads = client.get_threads_client()
    (thread,) = threads.search_threads(project_name=project)
    assert (thread.id, thread.number_of_messages) == ("s-1", 4)
    client.rest_client.traces.close_trace_thread(thread_id="s-1", project_name=project)
    threads.log_threads_feedback_scores([{"id": "s-1", "name": "whole", "value": 0.5}], project_name=project)
    client.flush()
    (thread,) = threads.search_threads(project_name=project, filter_string="feedback_scores.whole = 0.5")
    assert [item.value for item in thread.feedback_scores or []] == [0.5]
    client.rest_client.traces.delete_thread_feedback_scores(project_name=project, thread_id="s-1", names=["whole"])
    assert threads.search_threads(project_name=project)[0].feedback_scores == []


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


# Facts of the contract, over plain HTTP


def test_health_and_version_say_that_it_is_a_stand_in(http: httpx.Client, url: str) -> None:
    assert http.get("/is-alive/ping").json() == {"message": "Healthy Server", "healthy": True}
    assert "stand-in" in http.get("/is-alive/ver").json()["version"]
    assert httpx.get(url.removesuffix("/api") + "/is-alive/ping").status_code == 200
    unknown = http.get("/v1/private/no-such-thing")
    assert (unknown.status_code, unknown.json()["code"]) == (404, 404)
    assert "/v1/private/no-such-thing" in unknown.json()["message"]


def test_an_unknown_trace_is_taken_in_a_batch_and_refused_alone(http: httpx.Client, project: str) -> None:
    item = trace(project)
    single = {"name": "thumbs", "value": 1, "source": "sdk"}
    assert http.put(f"{T}/{item['id']}/feedback-scores", json=single).status_code == 404
    assert http.put(f"{T}/feedback-scores", json={"scores": [score(item["id"], project)]}).status_code == 204
    assert http.get(f"{T}/{item['id']}").json() == {"code": 404, "message": f"Trace id: {item['id']} not found"}
    assert http.post(T, json=item).status_code == 201
    assert scores_of(http, item["id"]) == {"thumbs": 1}
    assert http.put(f"{T}/{item['id']}/feedback-scores", json=single | {"value": 0}).status_code == 204
    assert scores_of(http, item["id"]) == {"thumbs": 0}
    other = str(uuid6.uuid7())
    assert http.post(f"{T}/{other}/feedback-scores/delete", json={"name": "thumbs"}).status_code == 204


def test_a_wrong_project_is_created_and_hides_the_score_from_the_table(http: httpx.Client, project: str) -> None:
    item = trace(project)
    http.post(T, json=item)
    http.put(f"{T}/feedback-scores", json={"scores": [score(item["id"], f"{project}-typo")]})
    http.put(f"{T}/feedback-scores", json={"scores": [score(item["id"], None, "unplaced")]})
    assert scores_of(http, item["id"]) == {"thumbs": 1, "unplaced": 1}
    thumbs = {"field": "feedback_scores", "key": "thumbs", "operator": "is_not_empty", "value": ""}
    assert search(http, project, thumbs) == []
    assert http.post("/v1/private/projects/retrieve", json={"name": f"{project}-typo"}).status_code == 200
    assert http.post("/v1/private/projects/retrieve", json={"name": "Default Project"}).status_code == 200


@pytest.mark.parametrize(
    ("change", "status", "errors"),
    [
        ({"name": " "}, 422, ["scores[0].name must not be blank"]),
        ({"name": None}, 422, ["scores[0].name must not be blank"]),
        ({"value": None}, 422, ["scores[0].value must not be null"]),
        ({"value": 1_000_000_000}, 422, ["scores[0].value must be less than or equal to 999999999.999999999"]),
        ({"source": None}, 422, ["scores[0].source must not be null"]),
        ({"id": str(uuid.uuid4())}, 400, ["trace id must be a version 7 UUID"]),
    ],
)
def test_one_bad_score_refuses_the_whole_batch(
    http: httpx.Client, project: str, change: dict[str, Any], status: int, errors: list[str]
) -> None:
    good = trace(project)
    http.post(T, json=good)
    scores = [score(str(uuid6.uuid7()), project) | change, score(good["id"], project)]
    response = http.put(f"{T}/feedback-scores", json={"scores": scores})
    assert (response.status_code, response.json()) == (status, {"errors": errors})
    assert scores_of(http, good["id"]) == {}


@pytest.mark.parametrize("change", [{"id": "nonsense"}, {"source": "robot"}, {"value": "high"}])
def test_what_cannot_be_read_is_400_with_code_and_message(
    http: httpx.Client, project: str, change: dict[str, Any]
) -> None:
    response = http.put(f"{T}/feedback-scores", json={"scores": [score(str(uuid6.uuid7()), project) | change]})
    assert (response.status_code, response.json()["code"]) == (400, 400)
    assert http.put(f"{T}/feedback-scores", content=b"{").status_code == 400


def test_batches_hold_1_to_1000_and_the_largest_value_is_taken(http: httpx.Client, project: str) -> None:
    item = trace(project)
    http.post(T, json=item)
    for count in (0, 1001):
        refused = http.put(f"{T}/feedback-scores", json={"scores": [score(item["id"], project)] * count})
        assert refused.json() == {"errors": ["scores size must be between 1 and 1000"]}
    body = json.dumps({"scores": [score(item["id"], project, value="@")]}).replace('"@"', "999999999.999999999")
    assert http.put(f"{T}/feedback-scores", content=body).status_code == 204
    assert scores_of(http, item["id"]) == {"thumbs": 1e9}


def test_a_score_is_kept_per_author_and_the_last_write_wins(http: httpx.Client, project: str) -> None:
    item = trace(project)
    http.post(T, json=item)
    first, second = score(item["id"], project, value=1), score(item["id"], project, value=0)
    http.put(f"{T}/feedback-scores", json={"scores": [first, second]})
    assert scores_of(http, item["id"]) == {"thumbs": 0}
    http.put(f"{T}/feedback-scores", json={"scores": [first | {"author": "somebody else"}]})
    (shown,) = http.get(f"{T}/{item['id']}").json()["feedback_scores"]
    assert shown["value"] == 0.5
    assert sorted(shown["value_by_author"]) == ["admin", "somebody else"]


def test_gzip_bodies_are_read(http: httpx.Client, project: str) -> None:
    packed = gzip.compress(json.dumps({"traces": [trace(project)]}).encode())
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    assert http.post(f"{T}/batch", content=packed, headers=headers).status_code == 204
    assert len(search(http, project)) == 1


def test_only_the_default_workspace_exists(http: httpx.Client) -> None:
    for more in ({"headers": {"Comet-Workspace": "other"}}, {"params": {"workspace_name": "other"}}):
        refused = http.get("/v1/private/projects", **more)  # type: ignore[arg-type]
        assert (refused.status_code, refused.json()) == (404, {"code": 404, "message": "Workspace not found"})
    assert http.get("/v1/private/projects", headers={"Comet-Workspace": "default"}).status_code == 200


async def test_with_a_key_workspace_is_checked_first_then_key(caplog: pytest.LogCaptureFixture) -> None:
    running = await start(api_key="a-key")
    try:
        async with httpx.AsyncClient(base_url=running.url) as http:

            async def asked(**headers: str) -> tuple[int, str]:
                response = await http.get("/v1/private/projects", headers=headers)
                return response.status_code, response.json().get("message", "")

            here = {"Comet-Workspace": "default"}
            assert await asked() == (403, "Workspace name should be provided")
            assert await asked(**here) == (401, "API key should be provided")
            assert (await asked(**here, Authorization="wrong"))[0] == 401
            assert (await asked(Authorization="a-key", **{"Comet-Workspace": "other"}))[0] == 403
            assert (await asked(**here, Authorization="a-key"))[0] == 200
            assert (await http.get("/is-alive/ping")).status_code == 200
            unknown = await http.get("/_requests")
            assert unknown.status_code == 404
            assert "doesn't serve GET /api/_requests" in caplog.text
    finally:
        await running.close()


def test_lists_have_pages_sorting_search_and_need_a_project(http: httpx.Client, project: str) -> None:
    made = [trace(project, name=f"t{n}", start_time=f"2026-04-17T12:00:0{n}Z") for n in range(5)]
    http.post(f"{T}/batch", json={"traces": made})
    page = http.get(T, params={"project_name": project, "page": 2, "size": 2}).json()
    assert (page["page"], page["total"], [item["name"] for item in page["content"]]) == (2, 5, ["t2", "t1"])
    sorting = json.dumps([{"field": "start_time", "direction": "ASC"}])
    page = http.get(T, params={"project_name": project, "size": 2, "sorting": sorting}).json()
    assert [item["name"] for item in page["content"]] == ["t0", "t1"]
    assert http.get(T, params={"project_name": project, "search": "T3"}).json()["total"] == 1
    wanted = json.dumps([{"field": "name", "operator": "=", "value": "t4"}])
    assert http.get(T, params={"project_name": project, "filters": wanted}).json()["total"] == 1
    assert http.get(T).status_code == 400
    assert http.get(T, params={"project_name": project, "exclude": "name"}).status_code == 400
    slim = http.get(T, params={"project_name": project, "exclude": '["name"]'}).json()["content"][0]
    assert "name" not in slim
    assert http.get(T, params={"project_name": "no such project"}).status_code == 404
    for wrong in ("nonsense", '[{"field": "colour", "operator": "=", "value": "red"}]'):
        assert http.get(T, params={"project_name": project, "filters": wrong}).status_code == 400
    for bad in (
        {"field": "model", "operator": "="},
        {"field": "metadata", "key": "$[", "operator": "=", "value": ""},
    ):
        assert http.post(f"{T}/search", json={"project_name": project, "filters": [bad]}).status_code in (200, 400)


def test_search_limits_cursor_and_times(http: httpx.Client, project: str) -> None:
    made = [trace(project) for _ in range(5)]
    http.post(f"{T}/batch", json={"traces": made})
    newest_first = [item["id"] for item in reversed(made)]
    assert search(http, project, limit=2) == newest_first[:2]
    assert search(http, project, limit=2, last_retrieved_id=newest_first[1]) == newest_first[2:4]
    assert search(http, project, from_time="2020-01-01T00:00:00Z") == newest_first
    assert search(http, project, to_time="2020-01-01T00:00:00Z") == []
    for limit in (2001, -1):
        assert http.post(f"{T}/search", json={"project_name": project, "limit": limit}).status_code == 422
    body = http.post(f"{T}/search", json={"project_name": project, "limit": 2}).content
    assert body.endswith(b"}\r\n")
    assert body.count(b"\r\n") == 2


@pytest.mark.parametrize(
    ("key", "operator", "value", "hits"),
    [
        ("response_id", "=", "ABC", True),
        ("response_id", "!=", "abc", False),
        ("response_id", "starts_with", "ab", True),
        ("response_id", "ends_with", "bc", True),
        ("response_id", "not_contains", "b", False),
        ("response_id", "=", 'x" or 1=1 --', False),
        ('it\'s "odd"', "is_empty", "", True),
        ("missing", "!=", "abc", False),
        ("seconds", ">", "2", True),
        ("seconds", "<=", "2", False),
        ("flag", "=", "true", True),
        ("response_id", "is_not_empty", "", True),
    ],
)
def test_filters_on_metadata(http: httpx.Client, project: str, key: str, operator: str, value: str, hits: bool) -> None:
    item = trace(project, metadata={"response_id": "abc", "seconds": 2.5, "flag": True})
    http.post(T, json=item)
    wanted = {"field": "metadata", "key": key, "operator": operator, "value": value}
    assert search(http, project, wanted) == ([item["id"]] if hits else [])


def test_end_posted_after_start_completes_the_trace_in_either_order(http: httpx.Client, project: str) -> None:
    item = trace(project)
    http.post(f"{T}/batch", json={"traces": [item]})
    http.post(f"{T}/batch", json={"traces": [item | {"output": {"a": 1}, "end_time": "2026-04-17T12:00:02Z"}]})
    read = http.get(f"{T}/{item['id']}").json()
    assert (read["output"], read["duration"]) == ({"a": 1}, 2000)
    late = trace(project, name="late")
    change = {"project_name": project, "output": "done", "end_time": "2026-04-17T12:00:01Z"}
    assert http.patch(f"{T}/{late['id']}", json=change).status_code == 204
    http.post(f"{T}/batch", json={"traces": [late]})
    read = http.get(f"{T}/{late['id']}").json()
    assert (read["name"], read["output"], read["start_time"]) == ("late", "done", "2026-04-17T12:00:00.000000Z")


def test_trace_writes_are_checked(http: httpx.Client, project: str) -> None:
    assert http.post(T, json=trace(project, id=str(uuid.uuid4()))).json() == {
        "errors": ["trace id must be a version 7 UUID"]
    }
    assert http.post(T, json=trace(project, start_time="1969-12-31T23:59:59Z")).status_code == 400
    assert http.post(T, json=trace(project, start_time=None)).status_code == 422
    made = http.post(T, json=trace(project))
    assert made.status_code == 201
    identifier = made.headers["location"].rsplit("/", 1)[1]
    assert http.patch(f"{T}/{identifier}", json={"tags": ["x"] * 51}).status_code == 422
    assert http.patch(f"{T}/{identifier}", json={"tags": ["x" * 101]}).status_code == 422
    many = {"ids": [identifier], "update": {"project_name": project, "tags": ["a"]}, "merge_tags": True}
    assert http.patch(f"{T}/batch", json=many).status_code == 204
    assert http.get(f"{T}/{identifier}").json()["tags"] == ["a"]
    assert http.post(f"{T}/delete", json={"ids": [identifier]}).status_code == 204
    assert http.get(f"{T}/{identifier}").status_code == 404


async def test_a_database_file_outlives_the_server(tmp_path: Path, project: str) -> None:
    item = trace(project, metadata={"response_id": "kept"})
    for attempt in range(2):
        running = await start(database=str(tmp_path / "opik.sqlite"))
        async with httpx.AsyncClient(base_url=running.url) as http:
            if attempt == 0:
                assert (await http.post(T, json=item)).status_code == 201
            assert (await http.get(f"{T}/{item['id']}")).json()["metadata"] == {"response_id": "kept"}
        await running.close()


# Faults


def _rule(http: httpx.Client, **rule: Any) -> None:
    assert http.post("/_faults", json=rule).status_code == 204


def test_a_fault_acts_as_often_as_it_was_told(http: httpx.Client, project: str) -> None:
    body = {"scores": [score(str(uuid6.uuid7()), project)]}
    match = {"method": "PUT", "path": "feedback-scores"}
    _rule(http, match=match, status=429, headers={"Retry-After": "3"}, times=2)
    answers = [http.put(f"{T}/feedback-scores", json=body) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [429, 429, 204]
    assert answers[0].headers["retry-after"] == "3"
    assert http.post("/_faults", json={"stauts": 500}).status_code == 400


def test_faults_can_pick_one_score_and_write_before_they_fail(http: httpx.Client, project: str) -> None:
    bad, good = str(uuid6.uuid7()), str(uuid6.uuid7())
    _rule(http, match={"trace_id": bad, "score_name": "thumbs"}, status=503, after_write=True, times=1)
    assert http.put(f"{T}/feedback-scores", json={"scores": [score(good, project)]}).status_code == 204
    both = {"scores": [score(good, project, "other"), score(bad, project)]}
    assert http.put(f"{T}/feedback-scores", json=both).status_code == 503
    assert http.put(f"{T}/feedback-scores", json=both).status_code == 204
    writes = http.get("/_writes").json()
    assert (writes[bad], writes[good]) == ({"thumbs": 2}, {"thumbs": 1, "other": 2})
    assert http.get("/_requests").json()[f"PUT {T}/feedback-scores"] >= 3


def test_faults_can_drop_the_connection_and_delay(http: httpx.Client, project: str) -> None:
    body = {"scores": [score(str(uuid6.uuid7()), project)]}
    _rule(http, match={"path": "feedback-scores"}, drop=True)
    with pytest.raises(httpx.RemoteProtocolError):
        http.put(f"{T}/feedback-scores", json=body)
    http.delete("/_faults")
    _rule(http, match={"path": "feedback-scores"}, delay_seconds=0.2)
    began = time.monotonic()
    assert http.put(f"{T}/feedback-scores", json=body).status_code == 204
    assert time.monotonic() - began >= 0.2
