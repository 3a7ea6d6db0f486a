"""The faults that the local Opik can be told."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest
import uuid6

from tests.contract.local.opik.over_http import T, score


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
