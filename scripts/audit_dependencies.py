"""`make audit`: write the list of all that requirements.lock installs (CycloneDX), and look for known weaknesses in it.

uv lists and audits what a project locks, so a project of its own is made of the lock's exact versions, in a folder that
goes afterwards. Exit code: uv's; 0 where no weakness is known.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIN = re.compile(r"^[A-Za-z0-9._-]+(?:\[[^]]*\])?==[^\\\n]+", re.MULTILINE)


def pins(lock: str) -> list[str]:
    """Returns the lock's requirements, with their markers and without their hashes."""
    return [found.strip() for found in PIN.findall(lock)]


def project(name: str, version: str, python: str, wanted: list[str]) -> str:
    """Returns the project file whose dependencies are these and no others."""
    lines = ["[project]", f"name = {json.dumps(name)}", f"version = {json.dumps(version)}"]
    lines += [f"requires-python = {json.dumps(python)}", f"dependencies = {json.dumps(wanted, indent=1)}"]
    return "\n".join(lines) + "\n"


def main(uv: str, lock: Path, listed: Path) -> int:
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made = project(own["name"], own["version"], own["requires-python"], pins(lock.read_text()))
        Path(folder, "pyproject.toml").write_text(made)
        steps = (
            ["lock", "--quiet"],
            ["export", "--quiet", "--frozen", "--format", "cyclonedx1.5", "--output-file", str(listed.resolve())],
            ["audit", "--frozen", "--preview-features", "audit-command"],
        )
        for step in steps:
            done = subprocess.run([uv, "--project", folder, *step], check=False)
            if done.returncode:
                return done.returncode
    print(f"audit: {listed} lists what {lock} installs; no weakness of it is known")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))
