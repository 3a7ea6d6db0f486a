"""No candidate writes its own evidence: what its answers say of a workflow on the cluster is dropped, unless it is ours
(issue 36, "Offline")."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from evalcore.gates.composition import topped_up
from evalcore.gates.golden import Evidenced, with_output
from evalcore.remediation.sealing import ADDED, ANSWERS, TRACES, Seals
from evalcore.scoring.items import Failed
from rampgate.ci_gate.inputs import read_outputs, read_traces
from rampgate.suite.scoring import Rubric
from rampgate.suite.suite_files import Suite, read_suite

KEY, OTHER = "a made-up key of some length", "another made-up key, as long"
EVIDENCE: dict[str, Any] = {
    "proposal_results": {"analysis": [{"success": True}]}, "proposal_phase": "Completed",
    "proposal_steps": {"analysis": "ran"}, "proposal_missing": [],
}  # fmt: skip
ROW = {"id": "a", "input": "fix it", "metadata": {"category": "x"}}
ANSWER = {"output": "fixed", **EVIDENCE}
OURS = ["rampgate", "remediation", "run"]


def test_a_candidates_own_word_of_a_workflow_is_dropped_and_its_output_stays() -> None:
    item = with_output(ROW, ANSWER, {})

    assert item.source["output"] == "fixed"
    assert ADDED.isdisjoint(item.source)


def test_evidence_of_ours_reaches_judges_and_replaces_that_of_the_dataset() -> None:
    row = {**ROW, "proposal_phase": "Failed"}
    item = with_output(row, Evidenced(ANSWER), {})

    assert {name: item.source[name] for name in EVIDENCE} == EVIDENCE
    assert ADDED.isdisjoint(with_output(row, {"output": "fixed"}, {}).source)


def test_a_candidate_that_is_run_on_production_inputs_brings_none_either() -> None:
    item = topped_up(b"\x01", {"input": "fix it", "metadata": {}}, ANSWER, "v2")

    assert item.source["output"] == "fixed"
    assert ADDED.isdisjoint(item.source)


def lines(path: Path, *some: object) -> Path:
    path.write_bytes(b"\n".join(orjson.dumps(one) for one in some))
    return path


def test_only_the_seal_of_remediation_run_makes_a_file_of_outputs_evidence(tmp_path: Path) -> None:
    line = {"id": "a", **ANSWER}
    sealed = [Seals.of(ANSWERS, key).sealed({**line, "id": name}) for name, key in (("a", KEY), ("b", OTHER))]
    trace = Seals.of(TRACES, KEY).sealed({**line, "id": "c"})  # another purpose
    found = read_outputs(lines(tmp_path / "outputs.jsonl", *sealed, trace, {**line, "id": "d"}), Seals.of(ANSWERS, KEY))
    assert [name for name, answer in found.items() if isinstance(answer, Evidenced)] == ["a"]

    previous = Seals.of(ANSWERS, "the key of now, long enough", KEY)
    assert isinstance(read_outputs(lines(tmp_path / "outputs.jsonl", *sealed), previous)["a"], Evidenced)
    assert not any(isinstance(one, Evidenced) for one in read_outputs(tmp_path / "outputs.jsonl").values())


def test_a_file_of_traces_counts_what_we_completed_and_drops_what_is_forged(tmp_path: Path) -> None:
    bare = {"input": "fix it", "trace_id": "t", **ANSWER}
    seals = Seals.of(TRACES, KEY)
    found = read_traces(lines(tmp_path / "traces.jsonl", bare, seals.sealed(bare)), seals)

    assert ADDED.isdisjoint(found[1])
    assert found[2]["proposal_phase"] == "Completed"


def suite(folder: Path, command: list[str] | None, **candidate: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cases.jsonl").write_bytes(orjson.dumps(ROW))
    told = {"command": command} if command else {"url": "http://127.0.0.1:1/answer"}
    checks = {"said": {"regex": "fixed"}}
    file = {
        "suite": "remediation", "agent": "operator", "score": "said", "checks": checks,
        "cases": {"file": "cases.jsonl"},
        "candidate": {**told, "parts": {"code": {"value": "v1"}}, **candidate},
    }  # fmt: skip
    (folder / "suite.yaml").write_text(yaml.safe_dump(file))
    return folder / "suite.yaml"


def evidence(found: Suite) -> bool:
    item = Rubric([], found.checks, {}, found.evidence).item(ROW, ANSWER)
    assert item.source["output"] == "fixed"
    return not ADDED.isdisjoint(item.source)


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        (OURS, True),
        (["python3", "agent.py"], False),
        (["./rampgate", "remediation", "run"], False),
        (["rampgate", "remediation", "show"], False),
        (["sh", "-c", "rampgate remediation run"], False),
        (None, False),
    ],
)
def test_a_suites_answers_are_evidence_where_its_command_is_ours(
    tmp_path: Path, command: list[str] | None, ours: bool
) -> None:
    assert evidence(read_suite(suite(tmp_path, command))) is ours


def test_a_proposal_brings_evidence_only_by_the_command_that_mains_suite_names(tmp_path: Path) -> None:
    main, theirs = suite(tmp_path / "main", OURS), tmp_path / "theirs"
    (tmp_path / "theirs" / ".git").mkdir(parents=True)
    suite(theirs, OURS)
    assert evidence(read_suite(main, proposed=theirs))

    # Its settings could name a cluster of its own.
    (theirs / "rampgate.toml").write_text('cluster_url = "http://127.0.0.1:1"\n')
    assert not evidence(read_suite(main, proposed=theirs))
    (main.parent / "rampgate.toml").write_bytes((theirs / "rampgate.toml").read_bytes())
    assert evidence(read_suite(main, proposed=theirs))
    (theirs / "rampgate.toml").unlink()
    assert not evidence(read_suite(main, proposed=theirs))
    (main.parent / "rampgate.toml").unlink()

    suite(theirs, OURS, environment=["KUBECONFIG_OF_MINE"])
    assert not evidence(read_suite(main, proposed=theirs))
    suite(theirs, ["python3", "forge.py"])
    assert not evidence(read_suite(main, proposed=theirs))
    suite(theirs, OURS)
    assert not evidence(read_suite(suite(tmp_path / "main", ["python3", "agent.py"]), proposed=theirs))


def test_a_case_without_an_answer_stays_one() -> None:
    assert Rubric([], {}, {}, evidence=True).item(ROW, Failed("it crashed")).missing == "it crashed"
