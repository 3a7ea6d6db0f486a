"""docker-compose.yml and the image, as far as they can be checked without an engine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from evalcore.registry.files import COMPONENTS, VERTICALS
from rampgate.settings import SECRETS, Settings
from rampgate.settings_sources import load_settings
from rampgate.wiring import make_parts
from rampgate.worker.gates import Gates
from rampgate.worker.live_judging import channels_of, why_off
from schemas.topics import Topics
from tests.giving_up import missing
from tests.root import ROOT

FILE = ROOT / "docker-compose.yml"
ONE_SHOT = {"topics", "table"}
COMMANDS = {"console"}
OWN = {"table", "worker", "feed"} | COMMANDS
RIGHTS = ROOT / "configs" / "compose" / "kafka.acls"
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
        elif name in COMMANDS:
            assert (service["restart"], service["profiles"]) == ("no", ["commands"]), "`up` leaves it out"
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


VARIABLE = re.compile(
    r"\$(?:(?P<sign>\$)|\{(?P<name>\w+)(?:(?P<how>:?[-?+])(?P<word>[^}]*))?\}|(?P<bare>[A-Za-z_]\w*))"
)


def interpolated(value: Any, given: Mapping[str, str]) -> Any:
    """As `docker compose config` does with these variables (compose-spec, "Interpolation"). Raises KeyError where it
    would warn of a variable that no one has set, or refuse it."""
    if isinstance(value, dict):
        return {key: interpolated(one, given) for key, one in value.items()}
    if isinstance(value, list):
        return [interpolated(one, given) for one in value]
    if not isinstance(value, str):
        return value

    def put(found: re.Match[str]) -> str:
        if found["sign"]:
            return "$"
        name, how, word = found["name"] or found["bare"], found["how"] or "", found["word"] or ""
        there = name in given and (bool(given[name]) or not how.startswith(":"))
        if how.endswith("+"):
            return word if there else ""
        if not there and not how.endswith("-"):
            raise KeyError(name)
        return given[name] if there else word

    return VARIABLE.sub(put, value)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make secrets` makes."""
    folder = tmp_path_factory.mktemp("made") / "secrets"
    subprocess.run(["sh", str(ROOT / "scripts" / "make_secrets.sh"), str(folder)], check=True, timeout=30)
    return folder


Read = Callable[..., Settings]


@pytest.fixture
def read(compose: dict[str, Any], made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Reads the settings of a service as its process does there; `filled`: with every line of the file taken in use."""

    def run(name: str, *, filled: bool, **given: str) -> Settings:
        service = interpolated(compose["services"][name], given)
        mounted = shutil.copytree(made, tmp_path / name, dirs_exist_ok=True)
        keys = mounted / "rampgate.toml"
        if filled:
            keys.write_text(re.sub(r"^#(?=\w+ = )", "", keys.read_text(), flags=re.M))
        for path in mounted.iterdir():
            if path.name not in service["secrets"]:
                path.unlink()
        for key in [key for key in os.environ if key.startswith("RAMPGATE_")]:
            monkeypatch.delenv(key)
        for key, value in service["environment"].items():
            monkeypatch.setenv(key, value.replace("/run/secrets/", f"{mounted}/"))
        assert service["environment"].get("RAMPGATE_SETTINGS") == (
            "/run/secrets/rampgate.toml" if keys.exists() else None
        )
        return load_settings()

    return run


GIVEN: dict[str, str] = {"OPIK_URL": "https://opik.internal/api", "OPIK_WORKSPACE": "ours"}


@pytest.mark.parametrize("given", [{}, GIVEN, dict.fromkeys(GIVEN, "")], ids=["unset", "set", "empty"])
def test_each_process_starts_with_the_environment_that_compose_gives_it(
    compose: dict[str, Any], read: Read, given: dict[str, str]
) -> None:
    for name in OWN - {"table"}:
        settings = read(name, filled=True, **given)
        assert settings.kafka_security.user == name, "each process logs in as a user of its own"
        assert settings.write
        assert settings.http == "0.0.0.0:8350"
        assert settings.token is not None, "an address beyond loopback needs a token"
        assert settings.opik == (given.get("OPIK_URL") or "http://host.docker.internal:5173/api")
        assert settings.opik_workspace == (given.get("OPIK_WORKSPACE") or "default")


NEEDED = {
    "a gate": {"model_url", "model_key", "seal_key", "opik_api_key", "token", "redis_password"},
    "live judging": {"model_url", "model_key", "seal_key", "live_judging", "write"},
    "notices": {"slack_webhook", "pagerduty_key", "grafana_url", "grafana_token", "regressions_log"},
}
ELSEWHERE = {"candidate_key", "github_token", "seal_key_previous"}
"""Secrets of what no compose file has: a candidate that the manifest names, CI, and a key that was replaced."""


@pytest.mark.parametrize("name", ["worker", "console"])
async def test_a_gate_live_judging_and_notices_have_all_that_they_need(read: Read, name: str) -> None:
    """PC5 AC-4, FR-11, §5.7: what `docker compose up` brings can pass a gate, and tells people of one that fails."""
    settings = read(name, filled=True)
    for what, wanted in NEEDED.items():
        if name == "worker" or what != "notices":
            assert {one for one in wanted if not getattr(settings, one)} == set(), f"{name}: {what}"
    assert {one for one in SECRETS if getattr(settings, one) is None} <= ELSEWHERE
    assert why_off(settings) == ""
    channels = channels_of(settings)
    assert None not in (channels.routing_key, channels.slack, channels.grafana)
    parts = make_parts(settings.model_copy(update={"configs": ROOT / "configs"}))
    gates = Gates(parts)
    assert gates.scorer is not None
    await gates.close()
    await parts.close()


def test_before_the_file_is_filled_in_all_starts_and_says_what_is_off(read: Read) -> None:
    settings = read("worker", filled=False)
    assert "RAMPGATE_MODEL_URL" in why_off(settings)
    assert settings.seal_key is not None, "made by `make secrets`"


def test_every_name_that_the_file_uses_exists(compose: dict[str, Any], made: Path) -> None:
    """As far as `docker compose config` looks, and further: into values, the image and Prometheus's targets."""
    whole, services = interpolated(compose, {}), compose["services"]
    used: dict[str, set[str]] = {"secrets": set(), "volumes": set()}
    for name, service in whole["services"].items():
        used["secrets"] |= (secrets := set(service.get("secrets", ())))
        places = [one.split(":") for one in service.get("volumes", ())]
        used["volumes"] |= {source for source, *_ in places if "/" not in source}
        assert set(service.get("depends_on", ())) <= services.keys(), name
        assert service.get("network_mode", "service:kafka").removeprefix("service:") in services, name
        values = [str(value) for value in service.get("environment", {}).values()]
        text = " ".join([*values, *map(str, service.get("command", ())), *map(str, service.get("entrypoint", ()))])
        assert set(re.findall(r"/run/secrets/([\w.]+)", text)) <= secrets, name
        if name in OWN:
            named = {re.sub(r"^.*@|:.*$", "", one.split("://")[-1].split("/")[0]) for one in values if ":" in one[:80]}
            hosts = {one for one in named if re.fullmatch(r"[a-z][a-z0-9.-]*", one)} - {"host.docker.internal"}
            assert hosts <= services.keys(), name
            assert hosts >= ({"dynamodb"} if name == "table" else {"kafka", "redis"}), name
            assert set(service["environment"].get("RAMPGATE_HTTP_HOSTS", "worker").split(",")) <= services.keys()
    for sort, names in used.items():
        assert names == whole[sort].keys(), f"{sort}: what is declared is used, and the other way"
    for name, secret in whole["secrets"].items():
        assert (made / Path(secret["file"]).name).read_text(), name


def test_several_workers_can_run_and_prometheus_finds_each(compose: dict[str, Any]) -> None:
    """`--scale worker=2`: no name and no port of the host is one worker's alone, and a name stands for all of them."""
    for name in ("worker", "feed"):
        service = compose["services"][name]
        assert "container_name" not in service
        assert all(re.fullmatch(r"127\.0\.0\.1::\d+", port) for port in service.get("ports", ()))
    jobs = yaml.safe_load((ROOT / "configs" / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    for job in jobs:
        (found,) = job["dns_sd_configs"]
        (name,) = found["names"]
        assert job["job_name"] == f"rampgate-{name}"
        assert str(found["port"]) == compose["services"][name]["environment"]["RAMPGATE_HTTP"].split(":")[1]
        assert found["type"] == "A", "the addresses of all of its containers, by which they admit a request"


def test_the_log_of_regressions_lies_on_a_volume_that_its_user_may_write(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]
    folder = str(PurePosixPath(worker["environment"]["RAMPGATE_REGRESSIONS_LOG"]).parent)
    assert f"regressions:{folder}" in worker["volumes"]
    final = (ROOT / "Dockerfile").read_text().split("\nFROM ")[-1]
    assert f"install -d -o rampgate -g rampgate {folder}\n" in final, "an empty volume takes the owner from the image"


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
    entry = compose["services"]["topics"]["entrypoint"][-1]
    script = (ROOT / "configs" / "compose" / PurePosixPath(entry).name).read_text()
    loop = re.search(r"for topic in ([a-z -]+); do", script)
    assert loop
    made = {f"rampgate.{name}" for name in loop[1].split()} | set(re.findall(r"^make ([a-z0-9._-]+)", script, re.M))
    assert made == set(Topics().all)


def granted() -> dict[str, dict[str, str]]:
    """The operations of each user, by resource."""
    found: dict[str, dict[str, str]] = {}
    for line in RIGHTS.read_text().splitlines():
        if line.startswith("#"):
            continue
        user, sort, names, operations = line.split()
        for name in names.split(","):
            resource = name if sort == "topic" else f"{sort.replace('-', ' ')} {name}"
            assert user not in found.setdefault(resource, {}), f"{user} and {resource} twice"
            found[resource][user] = operations.replace(",", ", ")
    return found


def test_the_page_tells_the_rights_that_the_compose_file_grants() -> None:
    """Whoever sets up a Kafka of their own reads the page; what compose grants is tested against a real one."""
    text = (ROOT / "docs" / "access.md").read_text()
    table = text[text.index("| resource |") :].split("\n\n")[0]
    head, *rows = [line.removeprefix("|").removesuffix("|").split("|") for line in table.splitlines()]
    users = [cell.strip(" `") for cell in head[1:]]
    told = {
        row[0].strip(" `"): {user: cell.strip() for user, cell in zip(users, row[1:], strict=True) if cell.strip()}
        for row in rows[1:]
    }
    assert told == granted()


def test_each_topic_has_somebody_who_may_use_it_and_nobody_may_change_one() -> None:
    rights = granted()
    assert set(Topics().all) <= set(rights)
    harmless = {"Read", "Write", "Describe", "DescribeConfigs"}
    assert {each for users in rights.values() for one in users.values() for each in one.split(", ")} <= harmless


def test_each_user_has_a_password_of_its_own(compose: dict[str, Any], made: Path) -> None:
    users = {user for held in granted().values() for user in held}
    wanted = {f"kafka_{user}_password" for user in users}
    assert set(compose["services"]["topics"]["secrets"]) == wanted
    texts = {path.name: path.read_text() for path in made.iterdir()}
    assert set(texts) == set(compose["secrets"])
    assert len(set(texts.values())) == len(texts)
    for name, service in compose["services"].items():
        held = wanted & set(service.get("secrets", ()))
        assert held <= ({f"kafka_{name}_password"} if name != "topics" else wanted)


def test_who_comes_without_a_password_comes_from_the_brokers_own_loopback(compose: dict[str, Any]) -> None:
    settings = compose["services"]["kafka"]["environment"]
    protocols = dict(pair.split(":") for pair in settings["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
    for listener in settings["KAFKA_LISTENERS"].split(","):
        name, _, address = listener.partition("://")
        assert protocols[name] == "SASL_PLAINTEXT" or address.startswith("127.0.0.1:"), listener
    assert settings["KAFKA_ALLOW_EVERYONE_IF_NO_ACL_FOUND"] == "false"


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


def test_topics_that_decide_by_which_record_came_last_are_stamped_by_the_broker(tmp_path: Path) -> None:
    """A producer's time would let a record that is dated ahead decide until its day has come."""
    tool, calls = tmp_path / "kafka-topics.sh", tmp_path / "calls"
    tool.write_text(f'#!/bin/sh\necho "$@" >>{calls}\n')
    tool.chmod(0o755)
    (tmp_path / "rights").touch()
    environment = {"PATH": os.environ["PATH"], "KAFKA_TOOLS": str(tmp_path), "RIGHTS": str(tmp_path / "rights")}
    script = ROOT / "configs" / "compose" / "prepare_kafka.sh"
    subprocess.run(["bash", str(script)], env=environment, check=True, timeout=60)
    made = {line.split("--topic ")[1].split()[0]: line for line in calls.read_text().splitlines()}
    assert made.keys() == set(Topics().all)
    stamped = {name for name, line in made.items() if "message.timestamp.type=LogAppendTime" in line}
    assert stamped == {f"rampgate.{name}" for name in ("gate-overrides", "judge-standing", "evaluations")}
