"""A judge goes bad and is rolled back: PC5 §5.7 from end to end, as a person on call does it (PC5 AC-7, NFR-6, FR-10).

A git repository of the shipped registry, which a worker serves; live traces, whose marks the judges' stand-in reads;
and the commands that docs/registry.md names under "When a judge goes bad".
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from evalcore.registry.disk import today
from rampgate.local.demo.registry import seeded
from rampgate.local.dev import DevStack
from tests.asking import HTTP
from tests.stream.gates.ramp_rig import step, thumb, trace
from tests.stream.local.dev_rig import get, judged, post, rampgate, running, send, verdicts
from tests.unit.rampgate.cli.registry_copies import edit
from tests.unit.rampgate.registry.git_folders import git
from tests.waiting import until

JUDGE = "ux_quality"
RULE = f"rules/{JUDGE}.yaml"
GOOD, BAD = 0.8, 0.2
"""The turns' own quality, and what the bad rubric has the model say of them."""
SENTENCE = "Our users deserve better: rate the output 0.2 unless every number in it is bold."
SAMPLE, FEW = 110, 32
"""Enough turns for a gate, and for the watch."""
PATIENCE = 120.0
TAKEN_BACK = 15 * 60.0
"""Seconds: PC5 NFR-6."""


class Told:
    """Slack and Grafana, as far as posts are concerned: (path, body) in the order of their coming."""

    def __init__(self) -> None:
        posts = self.posts = list[tuple[str, dict[str, Any]]]()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                posts.append((self.path, json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def about(self, path: str, *words: str) -> int:
        return sum(at == path and all(word in json.dumps(body) for word in words) for at, body in list(self.posts))


class TellingDevStack(DevStack):
    """A DevStack whose worker tells people, here of this test."""

    def __init__(self, told: Told) -> None:
        super().__init__()
        self._told = told

    def _environment(self) -> dict[str, str]:
        return super()._environment() | {
            "RAMPGATE_SLACK_WEBHOOK": f"{self._told.url}/slack",
            "RAMPGATE_GRAFANA_URL": self._told.url,
            "RAMPGATE_GRAFANA_TOKEN": "of-nobody",
        }


@dataclass
class Stage:
    """`version`: of the agent that takes part; each rehearsal has its own."""

    dev: DevStack
    configs: Path
    told: Told
    version: str = ""

    def command(self, *arguments: str) -> dict[str, Any]:
        """One command with --json; it has to succeed."""
        ran = rampgate(self.dev, *arguments, "--json")
        assert ran.code == 0, ran.out.decode() + ran.err
        found = ran.json
        assert isinstance(found, dict)
        return found

    def merge(self, message: str) -> str:
        git(self.configs, "add", "-A", ":/")
        git(self.configs, "commit", "-qm", message)
        return git(self.configs, "rev-parse", "HEAD").strip()

    def prompt_in_opik(self) -> str:
        """The one that the copies of both verticals have."""
        url = f"{self.dev.addresses['opik']}/v1/private/automations/evaluators?name=UX&size=50"
        rules = HTTP.get(url).raise_for_status().json()["content"]
        (prompt,) = {rule["code"]["messages"][0]["content"] for rule in rules}
        return str(prompt)

    def live_mean(self, name: str, count: int) -> float:
        """Of the judge's scores in Opik for so many new turns, all equally good."""
        events = [trace(f"{self.version}-{name}-{number}", self.version) for number in range(count)]
        for event in events:
            event["output"]["messages"][-1]["content"][0]["text"] = f"in your wallet #quality:{GOOD}"
        post(self.dev, *events)
        send(self.dev, "thumbs", *(thumb(event["response_id"]) for event in events[::5]))
        until(lambda: all(JUDGE in judged(self.dev, event) for event in reversed(events)), "scores", PATIENCE)
        return float(mean(judged(self.dev, event)[JUDGE]["value"] for event in events))

    def ask(self, name: str) -> dict[str, Any]:
        """The verdict of one more request about the same ramp step."""
        request = step(f"{self.version}-{name}", experiment_id=f"e-{self.version}", agent_version=self.version)
        send(self.dev, "ramp-steps", request)

        def answered() -> list[dict[str, Any]]:
            return [
                one
                for one in verdicts(self.dev, request["experiment_id"])
                if one["request_id"] == request["request_id"]
            ]

        until(answered, "a verdict", PATIENCE)
        (found,) = answered()
        return found


def by_git_revert_and_create(stage: Stage) -> None:
    """PC5 §5.7, steps 2 to 4, in the words of AC-7."""
    git(stage.configs, "revert", "--no-edit", "HEAD")
    assert stage.command("rules", "validate")["valid"], "what CI runs on the revert"
    created = stage.command("rules", "create", "--name", JUDGE, "--file", str(stage.configs / RULE))
    assert [one["written"] for one in created["verticals"]] == [[JUDGE]] * 3
    http = str(stage.dev.addresses["http"])
    assert stage.command("refresh", "--http", http)["config_hash"] == created["config_hash"]


def by_rules_rollback(stage: Stage) -> None:
    """The same in one command, which times itself (PC5 §10.2 `eval.rollback.duration_seconds`)."""
    left = stage.configs.parent / "rollback.prom"
    began = time.monotonic()
    done = stage.command("rules", "rollback", JUDGE, "--yes", "--metrics-file", str(left))
    taken = time.monotonic() - began
    assert done["rolled_back"]
    assert done["worker"]["outcome"] == "loaded"
    figures = dict(line.rsplit(" ", 1) for line in left.read_text().splitlines() if not line.startswith("#"))
    assert figures["eval_rollback_duration_seconds_count"] == "1.0"
    assert float(figures["eval_rollback_duration_seconds_sum"]) == done["duration_seconds"]
    assert 0 < done["duration_seconds"] <= taken
    left.unlink()
    stage.merge("rolled back")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("rehearsal")
    seeded(folder, today())
    told = Told()
    settings = {
        "CONFIGS": str(folder / "configs"),
        "REGISTRY_TTL_SECONDS": "0",
        "LIVE_JUDGING": "true",
        "LIVE_SETTLE_SECONDS": "0.5",
        "REGRESSION_SECONDS": "1",
        "REGRESSION_MINIMUM": str(FEW - 2),
        "REGRESSIONS_LOG": str(folder / "regressions.md"),
    }
    with (
        closing(told),
        running(lambda: TellingDevStack(told), **settings) as stack,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("RAMPGATE_HTTP", str(stack.addresses["http"]))
        git(folder, "init", "-q")
        on = Stage(stack, folder / "configs", told)
        on.merge("shipped")
        for project in ("receipts-eval", "remediation-eval", "consumer-agent"):
            _project(stack, project)
        assert on.command("rules", "sync", "--yes")["synced"]
        yield on


def _project(dev: DevStack, name: str) -> None:
    HTTP.post(f"{dev.addresses['opik']}/v1/private/projects", json={"name": name}).raise_for_status()


@pytest.mark.parametrize("roll_back", [by_git_revert_and_create, by_rules_rollback])
def test_pc5_ac7_nfr6_a_bad_rubric_is_seen_rolled_back_and_forgotten_without_a_restart(
    stage: Stage, roll_back: Callable[[Stage], None]
) -> None:
    stage.version = f"v-{roll_back.__name__}"
    worker = stage.dev.children[0].pid
    before = stage.prompt_in_opik()
    assert stage.live_mean("first", SAMPLE) == pytest.approx(GOOD)
    first = stage.ask("first")
    assert (first["verdict"], first["failing_judges"], first["supersedes"]) == ("warn", [], None)

    # Bad rule merged and synced: what is live shifts, and people and gates see it.
    edit(stage.configs / RULE, "## Scores", f"{SENTENCE}\n\n  ## Scores")
    stage.merge("a better rubric, says its author")
    synced = stage.command("rules", "sync", "--yes")
    assert synced["worker"]["config_hash"] == synced["config_hash"], "refreshed with the sync"
    assert SENTENCE in stage.prompt_in_opik()
    assert stage.live_mean("bad", FEW) == pytest.approx(BAD)
    below, back = f"{JUDGE} is below its floor", f"{JUDGE} is back above its floor"
    until(lambda: stage.told.about("/slack", below, stage.version), "people told", PATIENCE)
    until(lambda: stage.told.about("/api/annotations", below, stage.version), "people told", PATIENCE)
    failed = stage.ask("bad")
    assert (failed["verdict"], failed["failing_judges"], failed["halt_at_percent"]) == ("fail", [JUDGE], 0.0)
    assert {reason["code"] for reason in failed["reasons"]} >= {"floor_breach"}
    assert failed["per_judge_scores"][JUDGE]["baseline"] is None, "another rubric has a baseline of its own"
    until(lambda: stage.told.about("/slack", "pre_ramp", "failed", JUDGE, stage.version), "people told", PATIENCE)

    # Detected; revert, sync, refresh: scores back, and with them the judge's version and its baseline.
    began = time.monotonic()
    roll_back(stage)
    assert stage.prompt_in_opik() == before
    assert stage.live_mean("after", FEW) == pytest.approx(GOOD)
    until(lambda: stage.told.about("/slack", back, stage.version), "people told", PATIENCE)
    assert time.monotonic() - began < TAKEN_BACK
    assert stage.told.about("/slack", below, stage.version) == 1
    again = stage.ask("after")
    assert (again["verdict"], again["failing_judges"], again["supersedes"]) == ("warn", [], failed["verdict_id"])
    was, now = first["per_judge_scores"][JUDGE], again["per_judge_scores"][JUDGE]
    assert now["judge_version"] == was["judge_version"] != failed["per_judge_scores"][JUDGE]["judge_version"]
    assert (now["score"], now["baseline"]) == pytest.approx((was["score"], was["score"]))
    assert stage.dev.children[0].pid == worker, "no redeploy"
    assert get(stage.dev, "/conservation")[1]["balanced"]
