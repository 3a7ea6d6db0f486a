"""`spec test --base` names each assertion that asks for less than before, by defaults and includes too."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evalcore.specs.reading import with_ids
from rampgate.cli import app
from rampgate.spec.loosened import loosened
from schemas.specs import AgentSpec
from tests.unit.rampgate.spec.spec_commands import SPEC, change, ran, refused, told

RULE = {"rule": "polite?", "threshold": 0.8}


def spec(query: dict[str, Any] | None = None, **root: Any) -> AgentSpec:
    queries = [{"query": "a?", "id": "a", **(query or {})}]
    return with_ids(AgentSpec.model_validate({"agent": "desk", "queries": queries} | root))


def named(before: dict[str, Any], after: dict[str, Any], **root: Any) -> list[tuple[str, str]]:
    found = loosened(spec(before), spec(after, **root))
    return [(".".join(map(str, one.field)), one.words) for one in found]


@pytest.mark.parametrize(
    ("layer", "before", "after", "words"),
    [
        ("correctness", {"expected_in_answer": ["a", "b"]}, {"expected_in_answer": ["a"]}, "'b' is removed"),
        ("correctness", {"not_in_answer": ["x"]}, {"not_in_answer": ["y"]}, "'x' is removed"),
        ("correctness", {"regex_match": "^a$"}, {"regex_match": "a"}, "is another"),
        ("correctness", {"exact_match": "a"}, None, "is removed"),
        ("correctness", {"llm_judge": [RULE]}, {"llm_judge": [RULE | {"threshold": 0.6}]}, "threshold 0.8 → 0.6"),
        ("correctness", {"safety_check": RULE}, {}, "'polite?' is removed"),
        ("correctness", {"llm_judge": [RULE]}, {"llm_judge": [RULE | {"scale": ["1: no", "2: yes"]}]}, "is another"),
        ("path", {"max_tool_calls": 0}, {"max_tool_calls": 1}, "0 → 1"),
        ("path", {"min_tool_recall": 1.0}, {"min_tool_recall": 0.5}, "1.0 → 0.5"),
        ("path", {"forbidden_tools": ["a"]}, {"forbidden_tools": []}, "'a' is removed"),
        ("path", {"expected_tools": []}, {"expected_tools": ["a"]}, "is another"),
        ("path", {"expected_handoff": "A"}, {"expected_handoff": ["A", "B"]}, "'B' may be, too"),
        ("path", {"match_mode": "strict"}, {"match_mode": "subset"}, "strict → subset"),
        ("cost", {"max_total_tokens": 500}, {"max_total_tokens": 501}, "500 → 501"),
        ("cost", {"max_cost_usd": 1}, None, "is removed"),
    ],
)
def test_what_asks_for_less_is_named(layer: str, before: dict[str, Any], after: Any, words: str) -> None:
    """And the other way round it is not, but where nothing says which of both asks for more."""
    ((field, said),) = named({layer: before}, {layer: after} if after is not None else {})
    assert field == f"{layer}.{next(iter(before))}"
    assert words in said
    back = named({layer: after or {}}, {layer: before})
    assert not back or "another" in said or "'y' is removed" in back[0][1] or field == "path.expected_tools"


def test_what_stays_or_asks_for_more_is_not_named() -> None:
    before = {"path": {"match_mode": "subset", "max_loops": 3}, "correctness": {"expected_in_answer": ["a"]}}
    after = {
        "path": {"match_mode": "strict", "max_loops": 2, "max_tool_calls": 4},
        "correctness": {"expected_in_answer": ["a", "b"], "llm_judge": [RULE]},
    }
    assert named(before, before) == []
    assert named(before, after | {"tags": ["x"], "description": "other"}) == []


def test_whole_queries_what_blocks_and_who_judges_are_named() -> None:
    old = spec({"fail_on": ["max_loops"], "correctness": {"llm_judge": [RULE]}, "baseline": "v1"})
    gone = loosened(old, spec({"id": "b"}))
    assert [(one.id, one.words) for one in gone] == [("a", "the query is removed")]
    other = spec({"correctness": {"llm_judge": [RULE]}, "baseline": "v2"}, judge_config={"model": "tiny"})
    assert [(one.field[0], one.words.split(",")[0]) for one in loosened(old, other)] == [
        ("fail_on", "max_loops no longer blocks"),
        ("baseline", "is another"),
        ("correctness", "its judges' model is another"),
    ]


def test_defaults_are_compared_as_they_hold(dev: Path) -> None:
    """A loosened default is named at every query; exit code 1 with --strict alone."""
    (dev / ".git").rmdir()
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=dev, check=True)
    assert told("test", "--tags", "smoke", "--base", "HEAD", "--strict")["loosened"] == []
    change(dev, "max_loops: 1", "max_loops: 5")
    done = ran("test", "--tags", "smoke", "--base", "HEAD", "--format", "github")
    lines = [line for line in done.stderr.splitlines() if "[LOOSENED]" in line]
    assert len(lines) == 7
    line = next(n for n, text in enumerate((dev / SPEC).read_text().splitlines(), 1) if "max_loops" in text)
    assert f"::warning file={SPEC},line={line}::[LOOSENED] review: import os" in lines[0]
    assert "path.max_loops: 1 → 5" in lines[0]
    assert "[LOOSENED]" in done.stdout
    found = told("test", "--tags", "smoke", "--base", "HEAD", "--strict", code=1)
    assert found["loosened"][0]["field"] == "path.max_loops"
    assert refused("test", "--base", "nothing").startswith("--base nothing: ")
    (dev / SPEC).rename(dev / "other.yaml")
    assert "--base HEAD: other.yaml is not there" in refused("test", "--config", "other.yaml", "--base", "HEAD")


def test_a_proposal_is_judged_by_the_targets_queries(dev: Path) -> None:
    """One job has the branch's code, `suite run --generate`, another the judges' key: `spec test --score`. New queries
    of the branch are asked too; what it asserts less of warns."""
    (dev / "target").mkdir()
    target = dev / "target" / SPEC
    target.write_text((dev / SPEC).read_text())
    for name in ("agent.py",):
        (dev / "target" / name).write_text("raise RuntimeError('the target is not asked')\n")
    change(dev, '"No findings."', '"anything"')
    with (dev / SPEC).open("a") as file:
        file.write(
            '\n  - id: fresh\n    query: "outline:\\nx = 1\\n"\n    correctness: {expected_in_answer: [classes]}\n'
        )
    both = ("--proposed", ".")
    done = CliRunner().invoke(app, ["suite", "run", str(target), *both, "--generate", "answers.jsonl"])
    assert done.exit_code == 0, done.output
    code = (dev / "agent.py").read_text()
    change(dev, "def answer(case):", "def answer(case):\n    open('asked', 'w')", "agent.py")
    assert "configuration" in refused("test", "--config", target, *both, "--score", "answers.jsonl")
    (dev / "agent.py").write_text(code)
    done = ran("test", "--config", target, *both, "--score", "answers.jsonl", "--format", "github")
    assert "Results: 8/8 passed" in done.stdout
    assert "[LOOSENED] review: def double(number)" in done.stderr
    assert not (dev / "asked").exists()
    assert told("test", "--config", target, *both, "--score", "answers.jsonl", "--strict", code=1)["loosened"]
