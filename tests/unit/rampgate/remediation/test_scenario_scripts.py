"""The scripts of remediation's scenarios against a kubectl that records (Done when 6; test plan of 004, point 7)."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import yaml

from tests.root import ROOT

SCRIPTS = ROOT / "examples" / "remediation" / "scripts"
SECRET = "sk-made-up-and-never-shown"
CASES = [*product(("oomkill", "crashloop_probe"), ("openai", "claude-vertex"))]
KUBECTL = Path(__file__).with_name("recording_kubectl.sh")
STEPS = 6
"""Calls of kubectl that a setup makes."""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    (tmp_path / "key.json").write_text(SECRET)
    return tmp_path


def ran(recording: Path, script: str, *shell: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"], "KUBECTL": str(KUBECTL), "RECORDING": str(recording),
        "OPENAI_API_KEY": SECRET, "GOOGLE_APPLICATION_CREDENTIALS": str(recording / "key.json"),
        "VERTEX_PROJECT": "a-project", **variables,
    }  # fmt: skip
    words = ["bash", *shell, str(SCRIPTS / script)]
    return subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=60, cwd=recording, check=False
    )


def objects(recording: Path) -> set[str]:
    """What is there, as kind/namespace/name."""
    state = recording / "objects"
    return set(state.read_text().split()) if state.exists() else set()


@pytest.mark.parametrize(("scenario", "provider"), CASES)
def test_cleanup_removes_all_that_setup_made_also_twice(recording: Path, scenario: str, provider: str) -> None:
    made = ran(recording, f"setup_{scenario}-{provider}.sh")
    assert made.returncode == 0, made.stderr
    demo, name = f"{scenario.replace('_', '-')}-demo", f"rampgate-{scenario.replace('_', '-')}-{provider}"
    assert objects(recording) == {
        f"Agent//{name}", f"LLMProvider//{name}", f"Namespace//{demo}", f"Deployment/{demo}/{demo}",
        f"Secret/openshift-lightspeed/{name}",
    }  # fmt: skip
    assert (recording / "key").read_text() == SECRET

    for _ in range(2):
        cleaned = ran(recording, f"cleanup_{scenario}-{provider}.sh")
        assert cleaned.returncode == 0, cleaned.stderr
        assert objects(recording) == set()


@pytest.mark.parametrize("half", range(1, STEPS + 1))
@pytest.mark.parametrize(("scenario", "provider"), [CASES[0], CASES[3]])
def test_cleanup_removes_what_half_a_setup_made(recording: Path, scenario: str, provider: str, half: int) -> None:
    made = ran(recording, f"setup_{scenario}-{provider}.sh", FAIL_AT=str(half))
    assert made.returncode != 0

    cleaned = ran(recording, f"cleanup_{scenario}-{provider}.sh")
    assert cleaned.returncode == 0, cleaned.stderr
    assert objects(recording) == set()


def test_a_cleanup_goes_on_after_what_it_cannot_delete_and_says_so(recording: Path) -> None:
    ran(recording, "setup_oomkill-openai.sh")
    cleaned = ran(recording, "cleanup_oomkill-openai.sh", FAIL_AT=str(STEPS + 2))  # the agent

    assert cleaned.returncode == 1
    assert objects(recording) == {"Agent//rampgate-oomkill-openai"}


@pytest.mark.parametrize("traced", [(), ("-x",)], ids=["plain", "traced"])
@pytest.mark.parametrize(("scenario", "provider"), CASES[:2])
def test_no_key_is_shown_or_stands_in_a_command_line(
    recording: Path, scenario: str, provider: str, traced: tuple[str, ...]
) -> None:
    made = ran(recording, f"setup_{scenario}-{provider}.sh", *traced)
    assert made.returncode == 0, made.stderr

    assert SECRET not in made.stdout + made.stderr
    assert SECRET not in (recording / "calls").read_text()


@pytest.mark.parametrize("missing", ["OPENAI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "VERTEX_PROJECT"])
def test_a_setup_without_its_key_makes_nothing_and_names_it(recording: Path, missing: str) -> None:
    provider = "openai" if missing.startswith("OPENAI") else "claude-vertex"
    made = ran(recording, f"setup_oomkill-{provider}.sh", **{missing: ""})

    assert made.returncode != 0
    assert missing in made.stderr
    assert objects(recording) == set()


def test_one_scenarios_cleanup_leaves_the_others_alone(recording: Path) -> None:
    ran(recording, "setup_oomkill-openai.sh")
    before = objects(recording)
    ran(recording, "setup_crashloop_probe-claude-vertex.sh")
    ran(recording, "cleanup_crashloop_probe-claude-vertex.sh")

    assert objects(recording) == before


def test_shellcheck_passes_with_per_scenario_scripts() -> None:
    """Remediation test plan 7; `make lint` runs the same."""
    scripts = sorted(map(str, SCRIPTS.glob("*.sh")))
    shellcheck = Path(sys.executable).with_name("shellcheck")
    found = subprocess.run(
        [str(shellcheck), "--exclude", "SC1091", *scripts], capture_output=True, text=True, timeout=60, check=False
    )

    assert len(scripts) == 14, "the document's twelve, and two that they share"
    assert found.returncode == 0, found.stdout
    assert "shellcheck --exclude SC1091 examples/remediation/scripts/*.sh" in (ROOT / "Makefile").read_text()


def test_the_crashloop_fixture_probes_a_path_that_nginx_does_not_serve() -> None:
    """Remediation test plan 6."""
    text = (SCRIPTS.parent / "fixtures" / "crashloop-probe-demo.yaml").read_text()
    (deployment,) = [one for one in yaml.safe_load_all(text) if one["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]

    assert "nginx" in container["image"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/nonexistent-health"


def test_workers_read_alone_and_runs_have_a_role_of_their_own() -> None:
    roles = {
        one["metadata"]["name"]: one["rules"]
        for one in yaml.safe_load_all((SCRIPTS.parent / "rbac.yaml").read_text())
        if one["kind"] == "Role"
    }

    assert {verb for rule in roles["rampgate-worker"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert {"create", "patch", "delete"} <= {verb for rule in roles["rampgate-runs"] for verb in rule["verbs"]}
    assert all("secrets" not in rule["resources"] for rules in roles.values() for rule in rules)
