"""docs/first-verdict.md, followed to the letter in an empty folder (PC5 §10.1; PF-9 FR-8, §5.5)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from rampgate.local.services.ports import reserve_port
from tests.action_program import programs
from tests.root import ROOT

PAGE = (ROOT / "docs/first-verdict.md").read_text()
BLOCKS = [block for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if "your-" not in block]
RAMP = re.search(r"`(rampgate gate run --milestone pre_ramp .*?)`", PAGE)


def test_pc5_10_1_a_newcomer_reaches_a_true_verdict_with_this_page(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of traces that are neither text nor messages; the same gate fails once the answers are bad."""
    assert RAMP is not None
    installed = tmp_path_factory.mktemp("installed")
    gate = BLOCKS[-1].splitlines()[-1]
    script = "\n".join(
        [
            "trap 'kill %1' EXIT",
            *BLOCKS,
            f"{RAMP[1]} --json > ramp.json || true",
            f"{gate} --json > good.json",
            "sed s/reply/said/ answers.jsonl > unread.jsonl",
            f"{gate.replace('answers', 'unread')} --json > unread.json || echo unread with $?",
            "sed -i s/quality:0.9/quality:0.1/ answers.jsonl",
            f"{gate} --json > bad.json || echo failed with $?",
        ]
    )
    programs(installed)
    script = script.replace("/path/to/rampgate/.venv", str(installed / ".venv"))
    script = script.replace("/path/to/rampgate", str(ROOT)).replace("8400", str(reserve_port()))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("RAMPGATE_")}
    with (tmp_path / "out").open("w") as out:
        done = subprocess.run(
            ["bash", "-ec", script], cwd=tmp_path, stdout=out, stderr=subprocess.STDOUT, timeout=300, env=clean
        )
    said = (tmp_path / "out").read_text()
    assert done.returncode == 0, said
    assert "judges can read all of the 2 traces" in said
    assert "pre_merge: pass" in said
    assert "failed with 1" in said
    assert "unread with 1" in said
    names = ("good", "bad", "ramp", "unread")
    found = {name: json.loads((tmp_path / "evals" / f"{name}.json").read_text()) for name in names}
    assert {reason["code"] for reason in found["unread"]["reasons"]} == {"unreadable_item"}
    assert (found["good"]["verdict"], found["bad"]["verdict"]) == ("pass", "fail")
    assert {reason["code"] for reason in found["ramp"]["reasons"]} == {"insufficient_sample"}
    assert {one["n"] for one in found["ramp"]["per_judge_scores"].values()} == {2}
    assert {one["unscored"] for one in found["ramp"]["per_judge_scores"].values()} == {0}
