"""GET /eval-config and POST /refresh, and what a refresh that fails leaves (PC5 FR-8, FR-10, AC-7; PF-9 AC-1, FR-7)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from copy import deepcopy
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML
from structlog.testing import capture_logs

from evalcore.corpus import Corpus
from evalcore.documents import Document, Parsed
from evalcore.problems import Problem, Severity, ValidationResult
from evalcore.registry import Registry, build
from rampgate.http.routes import Side, make_app
from rampgate.registry import ServedRegistry
from rampgate.registry_metrics import rule_of
from schemas.answers import Health
from schemas.judges import RuleFile, VerticalRuleFile
from schemas.manifests import ManifestFile
from schemas.published import schema
from streams.metrics import Metrics

RULES = Path(__file__).parents[2] / "configs/rules"
TODAY = date(2026, 6, 1)
MANIFEST: dict[str, Any] = {
    "dataset": {"name": "consumer-agent-eval", "version": 7, "items": 345},
    "schema": {"input": {"type": "string", "required": True}},
    "categories": {
        "general_qa": {"judges": ["response_quality"]},
        "receipt_scan": {"judges": ["response_quality", "ux_quality"], "vertical": "receipts"},
    },
    "global_metrics": {"judges": ["data_integrity"]},
    "thresholds": {"response_quality": {"pre_merge": 4, "pre_ramp": 3, "pre_full": 4}, "jailbreaking": True},
}
OVERLAY = {
    "baseline_source": "provisional_seed",
    "calibration_ref": "PLT-812",
    "recalibration_due": "2026-08-22",
    "calibration": {"seeded_on": "2026-05-26"},
    "threshold": 4.5,
    "filter": {"field": "sub_agent_id", "operator": "equals", "value": "receipts"},
}
BROKEN = Problem("configs/rules/ux_quality.yaml", 7, 1, "score_type", "schema", "'INT' is no score type", "PC5 FR-3")
DRIFT = Problem("configs/evaluation_manifest.yaml", 9, 5, "categories.x", "manifest-drift", "no rule file for 'x'")
LATE = Problem("configs/rules/ux_quality.yaml", 9, 1, "x", "cadence", "is overdue", severity=Severity.WARNING)
JUDGES = ("response_quality", "ux_quality", "data_integrity", "jailbreaking", "safety_restricted")


def registry(due: date = TODAY, **manifest: Any) -> Registry:
    """Of some of the shipped judges, each due on a day."""

    def rule(name: str) -> Parsed[RuleFile]:
        data = YAML(typ="safe").load((RULES / f"{name}.yaml").read_text()) | {"recalibration_due": due}
        return Parsed(Document(name, data), RuleFile.model_validate(data))

    content = deepcopy(MANIFEST) | manifest
    return build(
        Corpus(
            TODAY,
            rules={name: rule(name) for name in JUDGES},
            vertical_rules={
                ("receipts", "response_quality"): Parsed(
                    Document("overlay", OVERLAY), VerticalRuleFile.model_validate(OVERLAY)
                )
            },
            manifest=Parsed(Document("manifest", content), ManifestFile.model_validate(content)),
            verticals=frozenset({"receipts", "rewards_assistant"}),
        )
    )


class Files:
    """Stands for `evalcore.live`: `next` is what the next refresh finds, a registry or problems, None for no files."""

    def __init__(self, first: Registry | list[Problem] | Exception | None) -> None:
        self.next = first
        self.serving: Registry | None = None
        self.reads = 0
        self.hold = threading.Event()
        self.hold.set()

    def use(self, root: Path, ttl: float | None) -> None:
        assert ttl is None, "a second look beside ours would be neither counted nor told"
        self.root = root

    def loaded(self) -> Registry | None:
        return self.serving

    def refresh(self) -> ValidationResult:
        self.reads += 1
        assert self.hold.wait(10)
        if isinstance(self.next, Exception):
            raise self.next
        if isinstance(self.next, Registry):
            self.serving = self.next
            return ValidationResult.of(self.root, [])
        return ValidationResult.of(self.root, self.next or [Problem(str(self.root), 0, 0, "", "read", "no manifest")])


class World:
    def __init__(self, root: Path, first: Registry | list[Problem] | Exception | None) -> None:
        self.files, self.metrics, self.day = Files(first), Metrics(), TODAY
        self.served = ServedRegistry(root, self.metrics, self.files, lambda: self.day)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)

    @asynccontextmanager
    async def client(self, token: str | None = None) -> AsyncIterator[TestClient[Any, Any]]:
        def healthy() -> Health:
            return Health(ok=True, reasons=[], checks={})

        side = Side(self.metrics, healthy, healthy, token, registry=self.served)
        async with TestClient(TestServer(make_app(side))) as client:
            yield client


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A folder with something in it, so that it is not empty."""
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules/ux_quality.yaml").write_text("id: ux_quality\n")
    return tmp_path


@pytest.fixture
async def world(root: Path) -> World:
    it = World(root, registry())
    await it.served.refresh("start")
    return it


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


async def test_a_refresh_serves_the_new_version_at_once(world: World) -> None:
    """PC5 AC-7, the refresh: a changed file is served without a restart, and the one before it again after a revert."""
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


async def test_files_that_vanish_do_not_empty_a_registry_that_serves(world: World, root: Path) -> None:
    (root / "rules/ux_quality.yaml").unlink()
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


async def test_files_broken_from_the_start_serve_nothing_and_say_why(root: Path) -> None:
    world = World(root, [BROKEN])
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


async def test_questions_are_answered_while_a_refresh_is_under_way(world: World) -> None:
    world.files.hold.clear()
    world.files.next = registry(thresholds={})
    under_way = asyncio.create_task(world.served.refresh("http"))
    async with world.client() as client:
        await reads(world, 2)
        answer = await asyncio.wait_for(client.get("/eval-config?category=general_qa"), 5)
        assert (await answer.json())["config_hash"] == registry().config_hash
        assert not under_way.done()
        world.files.hold.set()
        await under_way
        shown = await (await client.get("/eval-config?category=general_qa")).json()
    assert shown["config_hash"] == registry(thresholds={}).config_hash
    lookups = world.value("eval_judge_registry_lookup_latency_seconds_count")
    assert lookups == 2


async def test_it_loads_at_start_and_is_not_ready_before(root: Path) -> None:
    world = World(root, registry())
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
    await asyncio.sleep(0.05)
    assert world.files.reads == 1, "0 means never by time"
    world.served.ask()
    await reads(world, 2)
    by_hand.cancel()
    by_time = asyncio.create_task(world.served.run(0.01))
    world.files.next = RuntimeError("once")
    await reads(world, 4)
    by_time.cancel()
    await asyncio.gather(by_hand, by_time, return_exceptions=True)


async def reads(world: World, least: int) -> None:
    for _ in range(1000):
        if world.files.reads >= least:
            return
        await asyncio.sleep(0.005)
    pytest.fail(f"read {world.files.reads} times, not {least}")


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


def test_a_rule_file_names_its_judge_with_the_vertical_it_belongs_to() -> None:
    assert rule_of("configs/rules/ux-quality.yaml") == "ux_quality"
    assert rule_of("/etc/rules/x/configs/rules/receipts/response_quality.yaml") == "receipts/response_quality"
    assert rule_of("configs/evaluation_manifest.yaml") is None
