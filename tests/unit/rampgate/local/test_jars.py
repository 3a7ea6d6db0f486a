"""What Maven brings is compared with checksums that lie beside the code."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from rampgate.local.services import jars
from rampgate.local.services.jars import DYNAMODB, KAFKA, JarSet, check
from rampgate.local.services.process import ServiceUnavailable

FILES = {"a.jar": b"first", "b.so": b"second"}
SET = JarSet("kafka", ("group:a:1",))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    sums = tmp_path / "sums"
    lines = [f"{hashlib.sha256(content).hexdigest()}  kafka/{name}\n" for name, content in FILES.items()]
    sums.write_text("".join(lines) + f"{'0' * 64}  dynamodb/c.jar\n")
    monkeypatch.setattr(jars, "CHECKSUMS", sums)
    made = tmp_path / "jars"
    made.mkdir()
    for name, content in FILES.items():
        (made / name).write_bytes(content)
    return made


def test_the_files_of_the_checksums_are_taken(folder: Path) -> None:
    check(SET, folder)


def test_a_jar_that_was_changed_is_missing_or_came_besides_is_refused(folder: Path) -> None:
    (folder / "a.jar").write_bytes(b"first, and more")
    with pytest.raises(ServiceUnavailable, match=r"a\.jar"):
        check(SET, folder)
    (folder / "a.jar").unlink()
    with pytest.raises(ServiceUnavailable, match=r"a\.jar"):
        check(SET, folder)
    (folder / "a.jar").write_bytes(FILES["a.jar"])
    (folder / "more.jar").write_bytes(b"")
    with pytest.raises(ServiceUnavailable, match=r"more\.jar"):
        check(SET, folder)


@pytest.mark.parametrize("wanted", [KAFKA, DYNAMODB])
def test_each_set_has_checksums_of_its_versions(wanted: JarSet) -> None:
    lines = jars.CHECKSUMS.read_text().splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{64}  (kafka|dynamodb)/[\w.+-]+", line) for line in lines)
    names = {line.split()[1] for line in lines}
    for coordinate in wanted.coordinates:
        _, artifact, version = coordinate.split(":")
        assert f"{wanted.name}/{artifact}-{version}.jar" in names
