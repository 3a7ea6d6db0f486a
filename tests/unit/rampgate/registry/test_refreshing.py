"""A refresh, and what serves after one that fails (PC5 FR-10, AC-7). A served registry as time goes on: read at the
start, when asked, by time and beside questions (PC5 FR-10)."""

from __future__ import annotations

import asyncio
from datetime import date, timedelta
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from structlog.testing import capture_logs

from evalcore import reloading
from rampgate.registry.metrics import rule_of
from rampgate.registry.serving import ServedRegistry
from schemas.publish.contracts import schema
from streams.metrics import Metrics
from tests.unit.rampgate.cli.registry_copies import copied, edit
from tests.unit.rampgate.registry.serving_rig import (
    BROKEN,
    DRIFT,
    JUDGES,
    LATE,
    TODAY,
    World,
    folder,
    reads,
    registry,
    serving,
)


@pytest.fixture
async def world(tmp_path: Path) -> World:
    return await serving(folder(tmp_path))


async def test_a_refresh_serves_the_new_version_at_once(world: World) -> None:
    """PC5 AC-7, §5.7, the refresh: a changed file is served without a restart, and the one before it again after a
    revert."""
    old, new = registry(), registry(thresholds={"response_quality": 5})
    async with world.client() as client:
        for now, before in ((new, old), (old, new)):
            world.files.next = now
            answer = await client.post("/refresh")
            document = await answer.json()
            Draft202012Validator(schema("refresh")).validate(document)
            assert (answer.status, document["outcome"]) == (200, "loaded")
            assert (document["previous_config_hash"], document["config_hash"]) == (before.config_hash, now.config_hash)
            shown = await (await client.get("/eval-config?category=general_qa")).json()
            assert shown["config_hash"] == now.config_hash
        assert (await (await client.post("/refresh")).json())["outcome"] == "unchanged"
    assert world.value("rampgate_registry_refreshes_total", outcome="loaded") == 3
    assert world.value("rampgate_registry_judges") == len(JUDGES)


async def test_a_broken_version_leaves_the_last_good_one_and_says_so_everywhere(world: World) -> None:
    """PC5 §10.2: also in the metrics of what validation finds, and of drift."""
    good = world.files.serving
    assert good is not None
    world.files.next = [BROKEN, DRIFT, LATE]
    async with world.client() as client:
        with capture_logs() as logs:
            answer = await client.post("/refresh")
        document = await answer.json()
        Draft202012Validator(schema("refresh")).validate(document)
        assert (answer.status, document["outcome"], document["config_hash"]) == (422, "refused", good.config_hash)
        assert (document["error_count"], document["warning_count"]) == (2, 1)
        found = next(finding for finding in document["errors"] if finding["check"] == "schema")
        assert (found["file"], found["line"], found["field"]) == (BROKEN.file, 7, "score_type")
        assert (await client.get("/eval-config?vertical=receipts&category=receipt_scan")).status == 200
    (told,) = [entry for entry in logs if entry["event"] == "registry_refused"]
    assert told["log_level"] == "error"
    assert any("ux_quality.yaml:7" in line for line in told["errors"])
    check = world.served.check()
    assert check.ok
    assert good.config_hash in check.detail
    assert "2 errors" in check.detail
    assert world.value("rampgate_registry_refused") == 1
    assert world.value("rampgate_registry_refreshes_total", outcome="refused") == 1
    assert world.value("eval_rule_validation_failed_total", rule_id="ux_quality", error_type="schema") == 1
    assert world.value("eval_rule_validation_failed_total", rule_id="ux_quality", error_type="cadence") is None
    assert world.value("eval_manifest_drift_total") == 1
    await world.served.refresh("time")
    assert world.value("eval_manifest_drift_total") == 1, "a finding that stays is not counted again"
    world.files.next = registry()
    await world.served.refresh("http")
    assert world.value("rampgate_registry_refused") == 0
    assert "errors" not in world.served.check().detail
    world.files.next = [DRIFT]
    await world.served.refresh("http")
    assert world.value("eval_manifest_drift_total") == 2, "one that comes back is"


async def test_pc5_10_2_a_refused_refresh_counts_the_drift_of_its_files(tmp_path: Path) -> None:
    """PC5 §10.2, R-3: of real files, as the worker reads them."""
    configs, metrics = copied(tmp_path), Metrics()
    served = ServedRegistry(configs, metrics, reloading)
    assert (await served.refresh("start")).outcome == "loaded"
    assert metrics.registry.get_sample_value("eval_manifest_drift_total") == 0
    edit(configs / "evaluation_manifest.yaml", "  - data_integrity\n", "  - grace\n")
    answer = await served.refresh("http")
    assert answer.outcome == "refused"
    assert {one.check for one in answer.errors} == {"manifest-judge-exists"}
    assert metrics.registry.get_sample_value("eval_manifest_drift_total") == 2, "and data_integrity, which nothing uses"


async def test_pc5_10_2_a_worker_whose_first_look_is_refused_counts_the_drift_too(tmp_path: Path) -> None:
    configs, metrics = copied(tmp_path), Metrics()
    edit(configs / "evaluation_manifest.yaml", "  - data_integrity\n", "  - grace\n")
    assert (await ServedRegistry(configs, metrics, reloading).refresh("start")).outcome == "refused"
    assert reloading.loaded() is None
    assert metrics.registry.get_sample_value("eval_manifest_drift_total") == 2


def test_a_rule_file_names_its_judge_with_the_vertical_it_belongs_to() -> None:
    assert rule_of("configs/rules/ux-quality.yaml") == "ux_quality"
    assert rule_of("/etc/rules/x/configs/rules/receipts/response_quality.yaml") == "receipts/response_quality"
    assert rule_of("configs/evaluation_manifest.yaml") is None


async def test_files_that_vanish_do_not_empty_a_registry_that_serves(world: World, tmp_path: Path) -> None:
    (tmp_path / "rules/ux_quality.yaml").unlink()
    world.files.next = None
    answer = await world.served.refresh("time")
    assert (answer.outcome, answer.config_hash) == ("refused", registry().config_hash)
    assert world.served.eval_config(None, "general_qa").judges


async def test_an_error_in_reading_is_a_refusal_too(world: World) -> None:
    world.files.next = OSError("the disk is gone")
    answer = await world.served.refresh("http")
    assert (answer.outcome, answer.error_count) == ("refused", 1)
    assert "the disk is gone" in answer.errors[0].message
    assert world.served.eval_config(None, "general_qa").judges


@pytest.mark.parametrize("missing", [False, True])
async def test_no_files_at_all_is_said_and_stops_nothing(tmp_path: Path, missing: bool) -> None:
    world = World(tmp_path / "nowhere" if missing else tmp_path, None)
    async with world.client() as client:
        early = await client.get("/eval-config?category=general_qa")
        assert (early.status, (await early.json())["error"]) == (503, "unavailable")
        with capture_logs() as logs:
            done = await client.post("/refresh")
        assert (done.status, (await done.json())["outcome"]) == (422, "empty")
        answer = await client.get("/eval-config?category=general_qa")
        assert answer.status == 503
        assert "the registry is empty" in (await answer.json())["message"]
    assert [entry["event"] for entry in logs] == ["registry_empty"]
    check = world.served.check()
    assert check.ok
    assert "empty" in check.detail
    assert world.value("rampgate_registry_refused") == 0


async def test_files_broken_from_the_start_serve_nothing_and_say_why(tmp_path: Path) -> None:
    world = World(folder(tmp_path), [BROKEN])
    await world.served.refresh("start")
    async with world.client() as client:
        answer = await client.get("/eval-config?category=general_qa")
        assert answer.status == 503
        message = (await answer.json())["message"]
        assert "1 error" in message
        assert "configs/rules/ux_quality.yaml:7: 'INT' is no score type" in message
    assert world.served.check().ok
    assert "1 error" in world.served.check().detail
    assert world.value("rampgate_registry_refused") == 1


async def test_it_loads_at_start_and_is_not_ready_before(tmp_path: Path) -> None:
    world = World(folder(tmp_path), registry())
    assert not world.served.check().ok
    keeping = asyncio.create_task(world.served.run(0))
    await reads(world, 1)
    await world.served.refresh("http")
    assert world.served.check().ok
    assert world.files.reads == 2
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


async def test_it_refreshes_when_asked_and_by_time(world: World) -> None:
    by_hand = asyncio.create_task(world.served.run(0))
    await reads(world, 1)
    await asyncio.sleep(0.05)
    assert world.files.reads == 1, "0 means never by time"
    world.served.ask()
    await reads(world, 2)
    by_hand.cancel()
    by_time = asyncio.create_task(world.served.run(0.01))
    world.files.next = RuntimeError("at every look")
    await reads(world, 4)
    by_time.cancel()
    await asyncio.gather(by_hand, by_time, return_exceptions=True)


async def test_questions_are_answered_while_a_refresh_is_under_way(world: World) -> None:
    world.files.hold.clear()
    world.files.next = registry(thresholds={})
    under_way = asyncio.create_task(world.served.refresh("http"))
    async with world.client() as client:
        await reads(world, 2)
        answer = await asyncio.wait_for(client.get("/eval-config?category=general_qa"), 30)
        assert (await answer.json())["config_hash"] == registry().config_hash
        assert not under_way.done()
        world.files.hold.set()
        await under_way
        shown = await (await client.get("/eval-config?category=general_qa")).json()
    assert shown["config_hash"] == registry(thresholds={}).config_hash
    lookups = world.value("eval_judge_registry_lookup_latency_seconds_count")
    assert lookups == 2


async def test_overdue_judges_are_a_gauge_that_follows_the_days(world: World) -> None:
    name = "eval_calibration_recalibration_overdue"
    assert world.value(name, judge_id="ux_quality") == 0, "due today is not overdue"
    world.day = TODAY + timedelta(days=1)
    await world.served.refresh("time")
    assert world.value(name, judge_id="ux_quality") == 1
    world.files.next = registry(due=date(2027, 1, 1))
    await world.served.refresh("time")
    assert world.value(name, judge_id="ux_quality") == 0
    world.day = date(2026, 9, 1)
    await world.served.refresh("time")
    assert world.value(name, judge_id="response_quality") == 1, "receipts' own calibration was due on 22 August"
    assert world.value(name, judge_id="ux_quality") == 0
