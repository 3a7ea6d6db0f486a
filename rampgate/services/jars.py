"""The jars of Apache Kafka and DynamoDB Local, brought once by Maven and kept in a cache folder."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rampgate.services.java import maven_environment
from rampgate.services.process import bound_to_us
from rampgate.services.unavailable import ServiceUnavailable

CACHE_VARIABLE = "RAMPGATE_CACHE"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_MAVEN_SECONDS = 300.0
_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class JarSet:
    """Exact Maven coordinates `group:artifact:version`; the first one names the set."""

    name: str
    coordinates: tuple[str, ...]

    @property
    def pom(self) -> str:
        wanted = []
        for coordinate in self.coordinates:
            group, artifact, version = coordinate.split(":")
            wanted.append(
                f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
                f"<version>{version}</version></dependency>"
            )
        return (
            "<project><modelVersion>4.0.0</modelVersion><groupId>rampgate</groupId>"
            f"<artifactId>{self.name}-jars</artifactId><version>1</version><packaging>pom</packaging>"
            f"<dependencies>{''.join(wanted)}</dependencies></project>\n"
        )

    @property
    def folder_name(self) -> str:
        """Changes with any change of the coordinates, so that a stale folder is never used."""
        return (
            f"{self.name}-{self.coordinates[0].rpartition(':')[2]}-{hashlib.sha256(self.pom.encode()).hexdigest()[:8]}"
        )


# Kafka 4.1.0 brings log4j 2.24.3 and no binding to slf4j: without one it starts but logs nothing.
KAFKA = JarSet("kafka", ("org.apache.kafka:kafka_2.13:4.1.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"))
DYNAMODB = JarSet("dynamodb", ("com.amazonaws:DynamoDBLocal:2.6.1",))


def cache_folder() -> Path:
    """`$RAMPGATE_CACHE`; else `.cache` of the checkout this file is in; else the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().resolve()
    if (_CHECKOUT / "pyproject.toml").exists() and os.access(_CHECKOUT, os.W_OK):
        return _CHECKOUT / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rampgate"


def jar_folder(jars: JarSet) -> Path:
    """The folder with all jars (and native libraries) of the set, filled by Maven on first use (about 50 MB, seconds).

    Safe for any number of callers and processes: one builds beside the target, under a lock, and renames; a folder of
    that name is therefore always complete. Raises ServiceUnavailable.
    """
    cache = cache_folder() / "jars"
    target = cache / jars.folder_name
    if target.is_dir():
        return target
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(cache / ".lock"):  # one lock for all sets: Maven's own repository isn't made for two writers
            if not target.is_dir():
                for stale in cache.glob(".building-*"):  # left by a builder that was killed; the lock says it's gone
                    shutil.rmtree(stale, ignore_errors=True)
                with tempfile.TemporaryDirectory(prefix=".building-", dir=cache) as building:
                    _copy_dependencies(jars, Path(building))
                    (Path(building) / "jars").rename(target)
    except OSError as error:
        raise ServiceUnavailable(
            f"{jars.name} (jars)", f"can't write {cache}: {error}", f"point {CACHE_VARIABLE} at a folder you may write"
        ) from error
    return target


def _copy_dependencies(jars: JarSet, building: Path) -> None:
    service = f"{jars.name} (jars)"
    what = ", ".join(jars.coordinates)
    maven = shutil.which("mvn")
    if maven is None:
        raise ServiceUnavailable(
            service,
            f"no mvn on PATH to bring {what}",
            "install Maven (Debian: apt install maven; macOS: brew install maven), "
            f"or set {CACHE_VARIABLE} to a folder that holds jars/{jars.folder_name}",
        )
    pom = building / "pom.xml"
    pom.write_text(jars.pom)
    command = [maven, "-B", "-q", "-f", str(pom), _COPY]
    command += [f"-DoutputDirectory={building / 'jars'}", "-DincludeScope=runtime"]
    remedy = "check that Maven reaches its repository (proxy, mirror and certificates are set in Maven's settings.xml)"
    try:
        answer = subprocess.run(
            bound_to_us(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_MAVEN_SECONDS,
            cwd=building,
            env={**os.environ, **maven_environment()},
        )
    except subprocess.TimeoutExpired as error:
        raise ServiceUnavailable(service, f"mvn brought no {what} in {_MAVEN_SECONDS:g} s", remedy) from error
    first = f"{jars.coordinates[0].split(':')[1]}-{jars.coordinates[0].split(':')[2]}.jar"
    if answer.returncode != 0 or not (building / "jars" / first).exists():
        said = " | ".join(line for line in answer.stdout.splitlines() if "ERROR" in line)[:1000]
        raise ServiceUnavailable(service, f"mvn could not bring {what}: {said or answer.stdout[-1000:]}", remedy)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file, or the death of this process, gives the lock back
