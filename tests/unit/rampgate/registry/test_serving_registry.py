"""A worker process serves the registry of its configs folder, whatever state that is in and whatever the stream does.
PC5 FR-8, FR-10, AC-7 (no restart), §5.7; PF-9 AC-1 (a deployed process, asked for a judge), AC-8, §5.8. No broker is
there: the worker waits for one all the while."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from click.testing import Result
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from rampgate.cli import app
from rampgate.console import Failure
from schemas.publish.contracts import schema
from tests.fork_server import Forked
from tests.root import ROOT

ASKED = "/eval-config?vertical=receipts&category=receipt_scan"
QUALITY = "configs/rules/receipts/response_quality.yaml"
FOLDERS = ("configs", "prompts", "specs")


class Served:
    """A worker of its own beside a copy of the shipped registry."""

    def __init__(self, folder: Path, token: str | None = None) -> None:
        self.folder, self.token = folder, token
        self.http = httpx.Client(timeout=15, trust_env=False)
        self.url = ""
        self.process: Forked

    @property
    def log(self) -> list[dict[str, Any]]:
        *lines, _ = (self.folder / "log").read_text().split("\n")  # the last is empty, or being written
        return [json.loads(line) for line in lines if line.startswith("{")]

    @property
    def loads(self) -> list[str]:
        """Why each version was loaded, by the log."""
        return [line["why"] for line in self.log if line["event"] == "registry_loaded"]

    def start(self, **settings: str) -> None:
        """With what it needs and nothing that answers; the folder is named as it is seen from there."""
        nowhere = {"RAMPGATE_KAFKA": "127.0.0.1:1", "RAMPGATE_REDIS": "redis://127.0.0.1:1/0"}
        away = {**nowhere, "RAMPGATE_OPIK": "http://127.0.0.1:1/api", "RAMPGATE_CONFIGS": "configs"}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAMPGATE_")}
        token = {"RAMPGATE_TOKEN": self.token} if self.token is not None else {}
        given = {**inherited, **away, **token, **settings, "RAMPGATE_HTTP": "127.0.0.1:0"}
        with (self.folder / "log").open("wb") as log:
            self.process = Forked(["worker"], given, log, log, folder=self.folder)
        until(lambda: any(line["event"] == "http_listening" for line in self.log), "a worker that listens")
        self.url = next(line["url"] for line in self.log if line["event"] == "http_listening")
        until(lambda: self.registry["ok"], "a look at the registry")

    def stop(self) -> int:
        self.process.terminate()
        try:
            return self.process.wait(15)
        finally:
            self.process.kill()

    def ask(self, path: str, method: str = "GET", token: str | None = None) -> tuple[int, Any]:
        token = token or self.token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = self.http.request(method, f"{self.url}{path}", headers=headers)
        return answer.status_code, answer.json() if answer.text.startswith("{") else answer.text

    @property
    def registry(self) -> dict[str, Any]:
        """What /readyz says of it."""
        found: dict[str, Any] = self.ask("/readyz")[1]["checks"]["registry"]
        return found

    def thresholds(self) -> Any:
        status, document = self.ask(ASKED)
        assert status == 200, document
        return next(judge for judge in document["judges"] if judge["id"] == "response_quality")["thresholds"]

    def edit(self, old: str, new: str, file: str = QUALITY) -> None:
        path = self.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def refresh(self, *arguments: str) -> Result:
        """`rampgate refresh`."""
        token = {"RAMPGATE_TOKEN": self.token} if self.token is not None else {}
        return CliRunner().invoke(app, ["refresh", *arguments], env={**token, "RAMPGATE_HTTP": self.url})


@contextmanager
def serving(folder: Path, token: str | None = None, **settings: str) -> Iterator[Served]:
    served = Served(folder, token)
    try:
        served.start(**settings)
        yield served
    finally:
        served.http.close()
        if hasattr(served, "process"):
            served.stop()


def copied(folder: Path) -> Path:
    """The shipped registry, where a test may change it."""
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name)
    return folder


def until(held: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            if held():
                return
        except (OSError, KeyError, httpx.TransportError):
            pass
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(0.02)


SEED = {"pre_merge": 4, "pre_ramp": 3.2, "pre_full": 4}
TOKEN = "s3cret"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Refreshes only when told to."""
    with serving(copied(tmp_path_factory.mktemp("served")), RAMPGATE_REGISTRY_TTL_SECONDS="0") as it:
        yield it


@pytest.fixture
def restored(served: Served) -> Iterator[Served]:
    """The same, with its files put back and served again after the test."""
    before = (served.folder / QUALITY).read_text()
    yield served
    (served.folder / QUALITY).write_text(before)
    assert served.ask("/refresh", "POST")[0] == 200


def test_a_worker_answers_for_the_vertical_while_its_broker_is_away(served: Served) -> None:
    status, document = served.ask(ASKED)
    assert status == 200
    Draft202012Validator(schema("eval-config")).validate(document)
    assert (document["vertical"], document["category"]) == ("receipts", "receipt_scan")
    assert served.thresholds() == SEED
    judge = next(judge for judge in document["judges"] if judge["id"] == "response_quality")
    assert judge["classification"] == "quality"
    assert judge["baseline_source"] == "provisional_seed"
    assert judge["calibration_ref"]
    assert judge["recalibration_due"]
    safety = {judge["id"] for judge in document["judges"] if judge["classification"] == "safety_refusal"}
    assert safety >= {"jailbreaking", "safety_restricted", "sensitive_topics"}
    assert document["config_hash"] in served.registry["detail"]
    assert re.search(r'^rampgate_registry_refreshes_total\{outcome="loaded"\} [1-9]', served.ask("/metrics")[1], re.M)


def test_a_changed_threshold_is_served_after_a_refresh_and_after_a_revert_the_old_one(restored: Served) -> None:
    """PC5 FR-10 and AC-7, the runtime's half: the same process all along."""
    process = restored.process.pid
    other = restored.ask("/eval-config?vertical=rewards_assistant&category=general_qa")[1]["judges"]
    restored.edit("pre_ramp: 3.2", "pre_ramp: 4.5")
    assert restored.thresholds() == SEED, "no one asked yet"
    status, document = restored.ask("/refresh", "POST")
    Draft202012Validator(schema("refresh")).validate(document)
    assert (status, document["outcome"], document["error_count"]) == (200, "loaded", 0)
    assert restored.thresholds() == SEED | {"pre_ramp": 4.5}
    assert restored.ask("/eval-config?vertical=rewards_assistant&category=general_qa")[1]["judges"] == other, "AC-8"
    restored.edit("pre_ramp: 4.5", "pre_ramp: 3.2")
    ran = restored.refresh("--json")
    assert (ran.exit_code, json.loads(ran.stdout)["config_hash"]) == (0, document["previous_config_hash"])
    assert restored.thresholds() == SEED
    again = restored.refresh()
    assert again.exit_code == 0
    assert "unchanged: 18 judges" in again.stdout.splitlines()[-1], "below what warns by then"
    assert restored.process.pid == process
    assert restored.process.poll() is None


def test_pc5_fr10_a_vertical_that_was_added_is_served_and_joins_its_turns_after_a_restart(restored: Served) -> None:
    """The refresh says so, else an onboarding seems to be done while its turns count as unregistered."""
    file = restored.folder / "configs/verticals/shopping.yaml"
    assert "restart" not in restored.ask("/refresh", "POST")[1]["message"]
    file.write_text("name: shopping\nproject: shopping-eval\n")
    try:
        done = restored.refresh()
        assert done.exit_code == 0
        assert "shopping counts as unregistered until this worker is restarted" in done.output
        assert restored.ask("/eval-config?vertical=shopping&category=general_qa")[0] == 200
        assert "shopping" in restored.registry["detail"]
    finally:
        file.unlink()


def test_pc5_5_7_a_worker_that_can_not_write_its_log_of_regressions_says_so_at_start(
    served: Served, tmp_path: Path
) -> None:
    """Not at the first breach, when the row is lost."""
    said = "regressions_log_unwritable"
    assert not [line for line in served.log if line["event"] == said]
    assert not (served.folder / "docs").exists(), "the file is made by the first row"
    with serving(copied(tmp_path), RAMPGATE_REGRESSIONS_LOG="configs/evaluation_manifest.yaml/log.md") as other:
        (line,) = [line for line in other.log if line["event"] == said]
    assert (line["level"], line["reason"]) == ("error", f"{tmp_path}/configs/evaluation_manifest.yaml can't be written")
    assert "RAMPGATE_REGRESSIONS_LOG" in line["remedy"]


def test_a_broken_file_is_refused_with_its_place_and_what_served_goes_on(restored: Served) -> None:
    """PC5 §5.7: never half-loaded."""
    before = restored.ask(ASKED)[1]
    restored.edit("pre_ramp: 3.2", "pre_ramp: 0.2")
    restored.edit("classification: quality", "classificaton: quality")
    status, document = restored.ask("/refresh", "POST")
    Draft202012Validator(schema("refresh")).validate(document)
    assert (status, document["outcome"], document["config_hash"]) == (422, "refused", before["config_hash"])
    found = {finding["field"]: finding for finding in document["errors"] if finding["file"].endswith(QUALITY)}
    assert found["classificaton"]["line"] == 3
    assert "classification" in found["classificaton"]["message"] + found["classificaton"]["fix"]
    assert restored.ask(ASKED)[1] == before
    assert restored.registry["ok"]
    assert "keeps serving" in restored.registry["detail"]
    assert "rampgate_registry_refused 1.0" in restored.ask("/metrics")[1]
    ran = restored.refresh()
    assert ran.exit_code == 1
    assert f"{QUALITY}:3:1: error: classificaton" in ran.stdout
    assert ": refused: " in ran.stdout.splitlines()[-1]
    as_json = restored.refresh("--json")
    assert (as_json.exit_code, json.loads(as_json.stdout)["outcome"]) == (1, "refused")


def test_sighup_reads_the_files_again(restored: Served) -> None:
    restored.edit("pre_ramp: 3.2", "pre_ramp: 4.4")
    restored.process.send_signal(signal.SIGHUP)
    until(lambda: restored.thresholds()["pre_ramp"] == 4.4, "the new threshold after SIGHUP")
    assert restored.process.poll() is None
    until(lambda: restored.loads[-1] == "signal", "the log's line, which is written once the version serves")


def test_time_alone_brings_a_new_version_and_nobody_without_the_token(tmp_path: Path) -> None:
    """PC5 §5.7 step 4: the time to live, configurable."""
    with serving(copied(tmp_path), TOKEN, RAMPGATE_REGISTRY_TTL_SECONDS="0.2") as served:
        assert served.thresholds() == SEED
        served.edit("pre_ramp: 3.2", "pre_ramp: 4.4")
        until(lambda: served.thresholds()["pre_ramp"] == 4.4, "the new threshold after its time")
        for path, method in ((ASKED, "GET"), ("/refresh", "POST")):
            assert served.ask(path, method, token="wrong")[0] == 401
        assert served.refresh("--json").exit_code == 0
        served.token = "wrong"
        assert "refuses our token" in str(served.refresh().exception)
        served.token = None
        assert "wants a token" in str(served.refresh().exception)
        assert served.stop() == 0, "a stop ends the registry's task too"
    assert served.loads == ["start", "time"]


def test_a_worker_starts_without_a_registry_to_serve_says_so_and_takes_a_repaired_one(tmp_path: Path) -> None:
    broken = copied(tmp_path) / QUALITY
    before = broken.read_text()
    broken.write_text(before.replace("pre_ramp: 3.2", "pre_ramp: [3.2"))
    with serving(tmp_path, RAMPGATE_REGISTRY_TTL_SECONDS="0") as served:
        status, document = served.ask(ASKED)
        assert (status, document["error"]) == (503, "unavailable")
        assert f"{QUALITY}:" in document["message"]
        assert served.ask("/livez")[0] == 200
        assert served.registry["ok"], "signals are joined all the same"
        assert "no version serves" in served.registry["detail"]
        (tmp_path / "configs").rename(tmp_path / "away")
        assert served.ask("/refresh", "POST")[1]["outcome"] == "empty"
        assert "the registry is empty" in served.ask(ASKED)[1]["message"]
        (tmp_path / "away").rename(tmp_path / "configs")
        broken.write_text(before)
        assert served.ask("/refresh", "POST")[1]["outcome"] == "loaded"
        assert served.thresholds() == SEED


@pytest.mark.parametrize(
    ("http", "said"),
    [
        ("127.0.0.1:1", "http://127.0.0.1:1 can't be reached"),
        ("0.0.0.0:1", "http://127.0.0.1:1 can't be reached"),
        ("[::]:1", "http://[::1]:1 can't be reached"),
        ("http://127.0.0.1:1", "rampgate: http://127.0.0.1:1 can't be reached"),
        ("127.0.0.1:0", "names no port"),
    ],
)
def test_a_worker_out_of_reach_is_named_with_what_to_do(http: str, said: str) -> None:
    ran = CliRunner().invoke(app, ["refresh", "--http", http])
    assert isinstance(ran.exception, Failure), "exit code 2"
    assert said in f"rampgate: {ran.exception}"
    assert "RAMPGATE_HTTP" in str(ran.exception)


class Misdirected(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_error(421)


def test_a_worker_that_is_asked_by_a_name_it_does_not_know_says_which_setting_mends_it() -> None:
    with HTTPServer(("127.0.0.1", 0), Misdirected) as worker:
        Thread(target=worker.handle_request, daemon=True).start()
        ran = CliRunner().invoke(app, ["refresh", "--http", f"127.0.0.1:{worker.server_port}"])
    assert isinstance(ran.exception, Failure)
    assert "RAMPGATE_HTTP_HOSTS" in str(ran.exception)


def test_what_answers_and_is_no_worker_is_said() -> None:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as other:
        Thread(target=other.handle_request, daemon=True).start()
        ran = CliRunner().invoke(app, ["refresh", "--http", f"127.0.0.1:{other.server_port}"])
    assert isinstance(ran.exception, Failure)
    assert "answered 501, and not as a worker does" in str(ran.exception)
