"""A suite in a folder of its own, as tests write it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

AGENT = """
from pathlib import Path

PROMPT = Path(__file__).with_name("prompt.md").read_text()
LOG = Path(__file__).with_name("asked.log")


def answer(case):
    with LOG.open("a") as log:
        log.write(case["input"] + "\\n")
    if "crash" in case["input"]:
        raise RuntimeError("no such tool")
    return {"output": f"{PROMPT.strip()} {case['input']} #quality:{1 if 'good' in PROMPT else 0}"}
"""


def suite(**changes: Any) -> dict[str, Any]:
    return {
        "suite": "desk",
        "agent": "desk",
        "candidate": {"entry": "agent:answer", "at_once": 1, "parts": {"prompt": {"files": ["prompt.md", "agent.py"]}}},
        "cases": {"file": "cases.jsonl"},
        "samples": 2,
        "checks": {"is_good": {"regex": "^good"}},
        "score": "is_good",
    } | changes


def case(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"c{number}", "input": f"question {number}", "tags": ["even" if number % 2 == 0 else "odd"]} | more


def written(folder: Path, given: Sequence[Mapping[str, Any]] | None = None, agent: str = AGENT, **changes: Any) -> Path:
    """The suite's file. Its agent's answers begin with its prompt."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text(agent)
    if not (folder / "prompt.md").exists():
        (folder / "prompt.md").write_text("good\n")
    rows = given if given is not None else [case(number) for number in range(10)]
    (folder / "cases.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    path = folder / "suite.yaml"
    path.write_text(yaml.safe_dump(suite(**changes)))
    return path


def asked(folder: Path) -> list[str]:
    """What the agent was asked, one line a call."""
    log = folder / "asked.log"
    return log.read_text().splitlines() if log.exists() else []
