"""docker-compose.yml and the image, as far as they can be checked without an engine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from evalcore.registry.files import COMPONENTS, VERTICALS
from rampgate.settings import Settings
from schemas.topics import Topics
from tests.giving_up import missing
from tests.root import ROOT

FILE = ROOT / "docker-compose.yml"
ONE_SHOT = {"topics", "table"}
OWN = {"table", "worker", "feed"}
EXACT = re.compile(r"^[a-z0-9][a-z0-9./_-]*:v?\d+\.\d+\.\d+(-[a-z0-9]+)*(@sha256:[0-9a-f]{64})?$")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    content = yaml.safe_load(FILE.read_text())
    assert isinstance(content, dict)
    return content


def test_it_follows_the_compose_specification() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_itself_resolves_it() -> None:
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            answer = subprocess.run([*command, "version"], capture_output=True, text=True, timeout=60, check=False)
            if answer.returncode == 0 and "version 1." not in answer.stdout:
                break
    else:
        missing("compose", "no compose plugin on this machine")
    done = subprocess.run(
        [*command, "-f", str(FILE), "config", "--quiet"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "WARN" not in done.stderr


def test_images_are_pinned_to_exact_versions(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert EXACT.match(service["image"]), f"{name}: {service['image']}"


def test_every_service_has_a_health_check_or_ends(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        if name in ONE_SHOT:
            assert service["restart"].startswith("on-failure")
        else:
            assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL"), name
            assert service["restart"] == "unless-stopped", name


def test_services_wait_for_health_and_for_one_shots_to_end(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for other, how in service.get("depends_on", {}).items():
            expected = "service_completed_successfully" if other in ONE_SHOT else "service_healthy"
            assert how["condition"] == expected, f"{name} -> {other}"


def test_ours_run_without_root_and_with_a_reaper(compose: dict[str, Any]) -> None:
    for name in OWN:
        service = compose["services"][name]
        assert int(service["user"].partition(":")[0]) >= 1000
        assert service["init"] is True
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]


def test_environment_names_are_settings_and_their_values_are_accepted(compose: dict[str, Any], tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("t")
    seen = set()
    for name in OWN:
        values = {}
        for key, value in compose["services"][name].get("environment", {}).items():
            if key.startswith("RAMPGATE_"):
                field = key.removeprefix("RAMPGATE_").lower()
                assert field in Settings.model_fields, f"{name}: {key}"
                values[field] = re.sub(r"^\$\{\w+:-(.*)\}$", r"\1", value)
        seen |= set(values)
        for secret in ("token_file", "redis_password_file"):
            if secret in values:
                values[secret] = str(token)
        security = values.pop("kafka_security", None)
        if security is not None:
            values["kafka_security"] = json.loads(security)
        settings = Settings.model_validate(values)
        if name != "table":
            assert settings.write
            assert settings.http == "0.0.0.0:8350"
            assert settings.token is not None, "an address beyond loopback needs a token"
    assert "kafka_security" in seen


def test_secrets_come_by_file_and_ports_stay_on_loopback(compose: dict[str, Any]) -> None:
    for secret in compose["secrets"].values():
        assert secret["file"].startswith("./secrets/")
    assert "/secrets/" in (ROOT / ".gitignore").read_text().split()
    for service in compose["services"].values():
        for key in service.get("environment", {}):
            assert not re.search(r"PASSWORD$|TOKEN$|API_KEY$", key)
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:")


def test_mounted_files_exist(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).exists(), source


def test_the_registry_is_whole_in_the_image_and_where_it_is_mounted(compose: dict[str, Any]) -> None:
    """Components and verticals' declarations lie beside the configs folder."""
    final = (ROOT / "Dockerfile").read_text().split("\nFROM ")[-1]
    worker = compose["services"]["worker"]
    configs = PurePosixPath(worker["environment"]["RAMPGATE_CONFIGS"])
    for beside in (".", VERTICALS, COMPONENTS):
        lies = os.path.normpath(configs / beside)
        folder = PurePosixPath(lies).relative_to(configs.parent).parts[0]
        assert (ROOT / os.path.relpath(lies, configs.parent)).is_dir(), lies
        assert f"COPY {folder} {configs.parent / folder}\n" in final
        assert f"./{folder}:{configs.parent / folder}:ro" in worker["volumes"]


def test_topics_are_those_of_the_contract(compose: dict[str, Any]) -> None:
    script = compose["services"]["topics"]["command"][0]
    loop = re.search(r"for topic in ([a-z -]+); do", script)
    assert loop
    made = {f"rampgate.{name}" for name in loop[1].split()} | set(re.findall(r"^make ([a-z0-9._-]+)", script, re.M))
    assert made == set(Topics().all)


def test_the_image_is_pinned_and_runs_without_root_in_exec_form() -> None:
    text = (ROOT / "Dockerfile").read_text()
    bases = re.findall(r"^FROM (\S+)", text, re.M)
    assert len(bases) == 2
    assert all(EXACT.match(base) for base in bases)
    assert text.count("--require-hashes") == 2
    final = text.split("\nFROM ")[-1]
    assert re.search(r"^USER 10001", final, re.M)
    assert re.search(r'^ENTRYPOINT \["rampgate"\]$', final, re.M)
    assert "org.opencontainers.image.licenses" in final
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M):
        for name in copied.split():
            assert f"!{name}" in (ROOT / ".dockerignore").read_text().split(), name


def test_the_state_outlives_a_restart_of_its_server(compose: dict[str, Any]) -> None:
    """Else each restart is a loss of the state, and a rebuild reads all scores of the lookback window from Opik."""
    server = compose["services"]["redis"]
    assert "redis:/data" in server["volumes"]
    assert "redis" in compose["volumes"]
    assert "--dir /data --appendonly yes" in " ".join(server["command"])
