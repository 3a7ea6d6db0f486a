"""The README's five minutes, word for word as they stand there, without a key: a red and a green run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.root import ROOT

BIN = Path(sys.executable).parent


def assert_red_then_green(programs: Path, folder: Path) -> None:
    """Runs the README's block in `folder`, with `rampgate` of `programs` and nothing of this process's environment."""
    script = (ROOT / "README.md").read_text().split("## Test an agent by a spec")[1].split("```sh\n")[1].split("```")[0]
    done = subprocess.run(
        ["bash", "-c", f"trap 'echo $? >>{folder}/failed' ERR\n{script}"],
        cwd=folder,
        env={"PATH": f"{programs}:{os.defpath}", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    results = [line for line in done.stdout.splitlines() if line.startswith("Results:")]
    assert results == [
        "Results: 1/2 passed, 0 warnings, 1 failures",
        "Results: 2/2 passed, 0 warnings, 0 failures",
    ], done.stderr
    assert (folder / "failed").read_text() == "1\n", "the red run alone fails"
    assert (folder / "desk" / "baselines" / "v1.json").is_file()


def test_the_readmes_five_minutes_give_a_red_and_a_green_run(tmp_path: Path) -> None:
    assert_red_then_green(BIN, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_so_they_do_from_the_built_wheel_in_an_empty_environment(tmp_path: Path) -> None:
    """Issue 35, Done when 8. `make wheel` runs it, in CI on every change."""
    environment = tmp_path / "environment"
    subprocess.run(["sh", "scripts/make_venv.sh", environment], cwd=ROOT, check=True)
    if (BIN / "uv").exists():
        (environment / "bin" / "uv").symlink_to(BIN / "uv")
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    for what in (["--require-hashes", "-r", "requirements.lock"], ["--no-deps", wheel]):
        subprocess.run(["sh", "scripts/install.sh", environment, *what], cwd=ROOT, check=True)
    used = tmp_path / "used"
    used.mkdir()
    assert_red_then_green(environment / "bin", used)
    asked = [str(environment / "bin" / "python"), "-c", "import rampgate; print(rampgate.__file__)"]
    imported = subprocess.run(asked, cwd=used, capture_output=True, text=True, check=True).stdout
    assert imported.startswith(str(environment)), "the wheel's own code ran"
