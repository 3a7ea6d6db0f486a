"""What the local Opik takes, refuses, lists and finds of scores, traces and keys, as Opik's contract has it, over real
HTTP; and the faults that it can be told."""

from __future__ import annotations

import gzip
import json
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
import uuid6

from rampgate.local.opik.server import start
from tests.contract.local.opik.over_http import T, score, scores_of, search, trace


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
        refused = http.get("/v1/private/projects", **more)
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


async def test_a_database_file_outlives_the_server(tmp_path: Path, project: str) -> None:
    item = trace(project, metadata={"response_id": "kept"})
    for attempt in range(2):
        running = await start(database=str(tmp_path / "opik.sqlite"))
        async with httpx.AsyncClient(base_url=running.url) as http:
            if attempt == 0:
                assert (await http.post(T, json=item)).status_code == 201
            assert (await http.get(f"{T}/{item['id']}")).json()["metadata"] == {"response_id": "kept"}
        await running.close()


def test_lists_have_pages_and_need_a_project(http: httpx.Client, project: str) -> None:
    made = [trace(project, name=f"t{n}", start_time=f"2026-04-17T12:00:0{n}Z") for n in range(5)]
    http.post(f"{T}/batch", json={"traces": made})
    page = http.get(T, params={"project_name": project, "page": 2, "size": 2}).json()
    assert (page["page"], page["total"], [item["name"] for item in page["content"]]) == (2, 5, ["t2", "t1"])
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
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        http.put(f"{T}/feedback-scores", json=body)
    http.delete("/_faults")
    _rule(http, match={"path": "feedback-scores"}, delay_seconds=0.2)
    began = time.monotonic()
    assert http.put(f"{T}/feedback-scores", json=body).status_code == 204
    assert time.monotonic() - began >= 0.2
