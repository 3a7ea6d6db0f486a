"""Lists, searches and filters of the local Opik."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.contract.local.opik.over_http import T, search, trace


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
