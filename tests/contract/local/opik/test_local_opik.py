"""What the local Opik takes and refuses of scores, traces and keys, as Opik's contract has it, over real HTTP."""

from __future__ import annotations

import gzip
import json
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
