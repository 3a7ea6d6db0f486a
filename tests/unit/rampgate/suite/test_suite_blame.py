"""`rampgate suite blame` in a repository: it names the part whose revert undoes the fall, and touches no file there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from evalcore.suite.confirm import FRESH
from tests.unit.rampgate.registry.git_folders import committed
from tests.unit.rampgate.suite.suite_commands import document, failure, ran
from tests.unit.rampgate.suite.suite_folders import case, written

AGENT = """
from pathlib import Path

HERE = Path(__file__).parent


def answer(case):
    prompt = (HERE / "prompt.md").read_text().strip()
    tools = sorted(one.name for one in (HERE / "tools").glob("*.json"))
    model = case["configuration"]["model"]
    return {"output": "good" if RULE else "bad"}
"""


class Branch:
    """A suite on main, and a branch that changes its prompt, its model and its tools; `rule` says when it is good."""

    def __init__(self, folder: Path, rule: str, samples: int = 1) -> None:
        self.folder, self.samples = folder, samples
        (folder / "tools").mkdir(parents=True)
        (folder / "tools" / "search.json").write_text("{}")
        self.path = self.write(rule, "old")
        (folder / ".gitignore").write_text(".rampgate/\n__pycache__/\n")
        committed(folder)
        self.main = folder.parent / "main.jsonl"
        ran(self.path, "--out", self.main)
        (folder / "prompt.md").write_text("new")
        (folder / "tools" / "order.json").write_text("{}")
        self.write(rule, "new")

    def write(self, rule: str, model: str) -> Path:
        parts = {
            "prompt": {"files": ["prompt.md"]}, "model": {"value": model}, "tools": {"files": ["tools/*.json"]},
            "code": {"files": ["agent.py"]},  # with code that no part names no answer is kept
        }  # fmt: skip
        candidate = {"entry": "agent:answer", "parts": parts}
        cases = [case(number) for number in range(6)]
        return written(self.folder, cases, AGENT.replace("RULE", rule), candidate=candidate, samples=self.samples)

    def blame(self, *words: object) -> dict[str, Any]:
        return document("blame", self.path, "--baseline", self.main, *words)

    def refused(self, *words: object) -> str:
        return failure("blame", self.path, "--baseline", self.main, *words)


@pytest.mark.parametrize(
    ("rule", "found", "guilty"),
    [
        ("prompt != 'new'", "part", ["prompt"]),
        ("model != 'new'", "part", ["model"]),
        ("tools != ['order.json', 'search.json']", "part", ["tools"]),
        ("not (prompt == 'new' and model == 'new')", "together", ["model", "prompt"]),
        ("prompt != 'new' and model != 'new'", "none_alone", []),
    ],
)
def test_the_guilty_part_is_named(rule: str, found: str, guilty: list[str], folder: Path) -> None:
    branch = Branch(folder, rule)
    ran(branch.path, "--baseline", branch.main, code=1)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and ".rampgate" not in path.parts}
    told = branch.blame()
    assert (told["found"], sorted(told["guilty"])) == (found, guilty), told
    assert told["changed"] == ["model", "prompt", "tools"]
    assert len(told["cases"]) == 6
    assert told["message"].startswith((", ".join(guilty) or "no part alone", "only together"))
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and ".rampgate" not in path.parts}
    assert before == after, "no file of the working tree is touched"
    assert branch.blame() == told, "what was asked is kept"


def test_a_fall_that_does_not_come_again_blames_nobody(folder: Path) -> None:
    """The new model's samples were bad once, for a reason of that hour; asked again all are good, changed or not. As
    many were bad as are asked again: those that made the cases fall are not taken for fresh ones."""
    outage = folder.parent / "outage"
    branch = Branch(folder, f"model == 'old' or not Path({str(outage)!r}).exists()", samples=FRESH)
    outage.touch()
    ran(branch.path, "--baseline", branch.main, code=1)
    outage.unlink()
    told = branch.blame()
    assert (told["found"], told["guilty"]) == ("not_again", [])
    assert "in none of the parts" in told["message"]


def test_where_nothing_blocks_nobody_is_asked(folder: Path) -> None:
    branch = Branch(folder, "True")
    ran(branch.path, "--baseline", branch.main)
    told = branch.blame()
    assert (told["found"], told["cases"]) == (None, [])


def test_what_can_not_be_reverted_is_an_error_that_says_why(folder: Path) -> None:
    branch = Branch(folder, "prompt != 'new'")
    assert "suite run` first" in branch.refused()
    assert "--base nowhere" in branch.refused("--base", "nowhere")
    committed(folder)
    assert "no part differs from main" in branch.refused()
    changed = yaml.safe_load(branch.path.read_text())
    del changed["candidate"]["entry"]
    changed["candidate"]["url"] = "http://127.0.0.1:9/answer"
    branch.path.write_text(yaml.safe_dump(changed))
    assert "what an address is made of can't be reverted" in branch.refused("--base", "HEAD~1")
