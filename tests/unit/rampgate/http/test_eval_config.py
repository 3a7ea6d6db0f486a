"""GET /eval-config, and who may ask (PC5 FR-8; PF-9 AC-1, FR-7)."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from schemas.publish.contracts import schema
from tests.unit.rampgate.registry.serving_rig import JUDGES, World, folder, registry, serving


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return await serving(folder(tmp_path))


async def test_the_answer_has_every_judge_that_fires_as_the_vertical_sees_it(world: World) -> None:
    """PF-9 AC-1 and §5.8: metadata, provenance, classification and due date; PC5 FR-6: per milestone."""
    async with world.client() as client:
        answer = await client.get("/eval-config?vertical=receipts&category=receipt_scan")
        document = await answer.json()
    Draft202012Validator(schema("eval-config")).validate(document)
    assert answer.status == 200
    assert (document["vertical"], document["category"], document["manifest_version"]) == ("receipts", "receipt_scan", 7)
    assert document["config_hash"] == registry().config_hash
    judges = {judge["id"]: judge for judge in document["judges"]}
    assert set(judges) == set(JUDGES), "its own, the global one, and safety judges inherited"
    quality = judges["response_quality"]
    assert quality["thresholds"] == {"pre_merge": 4.5, "pre_ramp": 4.5, "pre_full": 4.5}
    assert (quality["baseline_source"], quality["calibration_ref"]) == ("provisional_seed", "PLT-812")
    assert quality["recalibration_due"] == "2026-08-22"
    assert quality["filter"] == {"field": "sub_agent_id", "key": None, "operator": "=", "value": "receipts"}
    assert quality["enforcement"] == {"pre_merge": "warn", "pre_ramp": "block", "pre_full": "block"}
    safety = judges["jailbreaking"]
    assert (safety["classification"], safety["score_type"]) == ("safety_refusal", "BOOLEAN")
    assert set(safety["enforcement"].values()) == {"block"}
    assert all(type(value) is bool for value in safety["thresholds"].values())


async def test_the_other_vertical_and_the_platform_keep_their_own_thresholds(world: World) -> None:
    async with world.client() as client:
        for vertical in ("rewards_assistant", ""):
            answer = await client.get(f"/eval-config?vertical={vertical}&category=general_qa")
            document = await answer.json()
            assert document["vertical"] == (vertical or None)
            quality = next(judge for judge in document["judges"] if judge["id"] == "response_quality")
            assert quality["thresholds"] == {"pre_merge": 4, "pre_ramp": 3, "pre_full": 4}


@pytest.mark.parametrize(
    ("query", "status", "error", "near", "said"),
    [
        ("vertical=receipt&category=general_qa", 404, "unknown_vertical", ["receipts"], "did you mean receipts"),
        ("vertical=%00zz&category=general_qa", 404, "unknown_vertical", [], "there are receipts, rewards_assistant"),
        ("vertical=receipts&category=receipt-skan", 404, "unknown_category", ["receipt_scan"], "receipt_scan"),
        ("vertical=receipts&category=qqqq", 404, "unknown_category", [], "there are general_qa, receipt_scan"),
        ("vertical=receipts", 400, "bad_request", None, "there are general_qa, receipt_scan"),
        ("vertical=receipts&category=", 400, "bad_request", None, "category: give one"),
        ("vertical=receipts&kategory=general_qa", 400, "bad_request", None, "kategory"),
    ],
)
async def test_a_question_that_cannot_be_answered_says_what_could_be(
    world: World, query: str, status: int, error: str, near: list[str] | None, said: str
) -> None:
    async with world.client() as client:
        answer = await client.get(f"/eval-config?{query}")
        document = await answer.json()
    assert (answer.status, document["error"], document.get("near")) == (status, error, near)
    assert said in document["message"]


async def test_both_need_the_token(world: World) -> None:
    async with world.client("s3cret") as client:
        assert (await client.get("/eval-config?category=general_qa")).status == 401
        assert (await client.post("/refresh")).status == 401
        assert world.files.reads == 1
        header = {"Authorization": "Bearer s3cret"}
        assert (await client.get("/eval-config?category=general_qa", headers=header)).status == 200
        assert (await client.post("/refresh", headers=header)).status == 200
        assert (await client.get("/refresh", headers=header)).status == 405
