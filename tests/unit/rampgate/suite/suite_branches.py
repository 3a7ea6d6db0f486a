"""A candidate of which tests say when its answers are good, by how often a case was asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.rampgate.suite.suite_folders import case

AGENT = """
from pathlib import Path

HERE, STATE = Path(__file__).parent, Path("STATE_FOLDER")


def answer(case):
    kind, name = (HERE / "prompt.md").read_text().strip(), case["input"]
    asked = STATE / f"{kind} {name}"
    with asked.open("a") as log:
        log.write(".")
    number = len(asked.read_text())
    if (STATE / "broken").exists() and kind == "old":
        raise RuntimeError("no such model any more")
    return {"output": "good" if RULE else "bad"}
"""
ALWAYS = "kind == 'new'"
"""Of the slice that rises."""
CANDIDATE: dict[str, Any] = {
    "entry": "agent:answer",
    "at_once": 1,
    "parts": {"prompt": {"files": ["prompt.md", "agent.py"]}},
}


def agent(state: Path, rule: str) -> str:
    """The candidate's code: `rule` says when a case that falls is good. It notes in `state` what it was asked."""
    return AGENT.replace("STATE_FOLDER", str(state)).replace("RULE", f"(({rule}) if name[0] == 'a' else {ALWAYS})")


def two_slices(each: int) -> list[dict[str, Any]]:
    """One slice that falls, and one that rises, so that all cases together are as they were."""
    return [
        case(number, input=f"{'a' if number < each else 'b'}{number}", tags=["falls" if number < each else "rises"])
        for number in range(2 * each)
    ]


def codes(found: dict[str, Any]) -> list[str]:
    return [reason["code"] for reason in found["comparison"]["reasons"]]
