"""Rolling-3 baselines from runs on main, and the audited acceptance of a shift (PC5 §5.2, §5.5; contracts §3)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from evalcore.gates.baselines import KEPT, BaselineFile
from evalcore.gates.gate import judged
from evalcore.gates.limits import PastRun
from evalcore.gates.overrides import accepted
from schemas.judges import Enforcement, Milestone
from schemas.manifests import Dataset
from schemas.verdicts import GateVerdict, JudgeScore, VerdictLevel
from tests.unit.evalcore.gates.accepted_shifts import BLOCKING, TEMPLATE, filled
from tests.unit.evalcore.registry.registry_disk import built, rewritten
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.rampgate.ci_gate.gate_commands import codes, commanded, gate, on_outputs, ran, refused
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, Rig
from tests.unit.rampgate.ci_gate.github_api import PULL, FakeGitHub, github

REGISTRY = built()
HELPFULNESS = REGISTRY.judge("helpfulness")
GOLDEN = Dataset(name="golden", version=7, items=345)
PRE_MERGE = Milestone.PRE_MERGE


def verdict(score: float | None, word: VerdictLevel = VerdictLevel.PASS, **more: Any) -> GateVerdict:
    about = {"n": 20, "judge_version": HELPFULNESS.version} | more
    one = JudgeScore(score, 4.0, True, Enforcement.WARN, **about)
    return GateVerdict({"helpfulness": one}, word, [], Milestone.PRE_MERGE)


def recorded(*verdicts: GateVerdict, dataset: Dataset = GOLDEN, vertical: str | None = None) -> BaselineFile:
    found = BaselineFile()
    for number, one in enumerate(verdicts):
        found = found.with_run(one, dataset, vertical, f"2026-11-{number % 28 + 1:02}")
    return found


def past(file: BaselineFile, **other: Any) -> dict[str, list[float]]:
    asked: dict[str, Any] = {"dataset": GOLDEN, "milestone": Milestone.PRE_MERGE, "vertical": None} | other
    return scores(file.history([HELPFULNESS], **asked))


def scores(runs: dict[str, list[PastRun]]) -> dict[str, list[float]]:
    return {name: [run.score for run in past] for name, past in runs.items()}


def test_the_last_three_runs_on_main_are_a_judges_baseline() -> None:
    file = recorded(*(verdict(score) for score in (1.0, 4.0, 4.1, 4.2)))
    assert past(file) == {"helpfulness": [4.0, 4.1, 4.2]}
    assert BaselineFile.model_validate(json.loads(json.dumps(file.document()))) == file


@pytest.mark.parametrize(
    "other",
    [{"dataset": Dataset(name="golden", version=8, items=1)}, {"dataset": Dataset(name="x", version=7, items=1)},
     {"milestone": Milestone.PRE_FULL}, {"vertical": "shop"}],
)  # fmt: skip
def test_another_dataset_milestone_or_vertical_has_a_baseline_of_its_own(other: dict[str, Any]) -> None:
    assert past(recorded(verdict(4.0)), **other) == {}


def test_another_judge_version_begins_a_new_baseline() -> None:
    assert past(recorded(verdict(4.0, judge_version="another"))) == {}


def test_a_judge_whose_runs_are_all_of_another_version_is_outdated_on_whatever_dataset() -> None:
    def outdated(*verdicts: GateVerdict, **where: Any) -> dict[str, str]:
        file = recorded(*verdicts, dataset=Dataset(name="golden", version=6, items=1), **where)
        return file.outdated([HELPFULNESS], Milestone.PRE_MERGE, None)

    old = [verdict(4.0, judge_version=name) for name in ("v1", "v2")]
    assert outdated(*old) == {"helpfulness": "v2"}
    assert outdated(*old, verdict(4.0)) == outdated() == outdated(*old, vertical="shop") == {}


def test_a_dimension_has_a_baseline_of_its_own() -> None:
    parts = built({"rules/helpfulness.yaml": "{dimensions: {tone: {description: How it sounds.}}}"})
    judge = parts.judge("helpfulness")
    one = verdict(4.0, judge_version=judge.version).per_judge_scores["helpfulness"]
    both = GateVerdict(
        {"helpfulness": one, "helpfulness.tone": replace(one, score=3.0)}, VerdictLevel.PASS, [], PRE_MERGE
    )
    found = scores(recorded(both).history([judge], GOLDEN, PRE_MERGE, None))
    assert found == {"helpfulness": [4.0], "helpfulness.tone": [3.0]}


def test_a_run_keeps_its_items_and_its_error_and_one_of_before_is_read_without() -> None:
    file = recorded(verdict(4.0, error=0.125))
    assert file.history([HELPFULNESS], GOLDEN, PRE_MERGE, None) == {"helpfulness": [PastRun(4.0, 20, 0.125)]}
    document = json.loads(json.dumps(file.document()))
    del document["runs"][0]["error"]
    read = BaselineFile.model_validate(document).history([HELPFULNESS], GOLDEN, PRE_MERGE, None)
    assert read == {"helpfulness": [PastRun(4.0, 20)]}


@pytest.mark.parametrize("one", [verdict(4.0, VerdictLevel.FAIL), verdict(None, n=0), verdict(4.0, unscored=1)])
def test_a_failed_gate_and_a_judge_that_could_not_score_all_are_no_run(one: GateVerdict) -> None:
    assert recorded(one).runs == []


def test_a_warning_is_a_run_and_the_file_does_not_grow_without_end() -> None:
    assert len(recorded(verdict(3.0, VerdictLevel.WARN)).runs) == 1
    many = recorded(*(verdict(float(n)) for n in range(KEPT + 10)))
    assert [run.score for run in many.runs] == [float(n) for n in range(10, KEPT + 10)]


def test_a_shift_is_accepted_for_the_judges_it_names() -> None:
    (shift,), wrong = accepted(replace(PULL, description=filled("[Helpfulness, brevity]")), REGISTRY, TODAY)
    assert (shift["judges"], shift["approved_by"]) == (("helpfulness", "brevity"), "@owner")
    assert (shift["expires"], wrong) == (date(2026, 12, 1), [])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (filled("[helpfulness]", tick=False), "the reviewer's agreement is missing"),
        (filled("[helpfulness]", expires="2026-11-20"), "it expired on 2026-11-20"),
        (filled("[helpfulness]", expires="2036-12-01T10:00:00"), "expires is no day"),
        (filled("[helpfulness]", expires=""), "expires is no day"),
        (filled("[helpfulness]", expires="2099-12-31"), "an override holds for 92 days at most"),
        (filled("[refusal]"), "refusal is a safety judge, which takes no override"),
        (filled("[nobody]"), "nobody"),
        (filled("[]"), "judges names no judge"),
        (filled("[helpfulness") , "can't be read as YAML"),
        (filled("[helpfulness]") * 2, "it has 2"),
        (filled("[helpfulness]").replace("new rubric", ""), "justification is empty"),
    ],
)  # fmt: skip
def test_a_shift_that_does_not_hold_says_why(text: str, told: str) -> None:
    shifts, wrong = accepted(replace(PULL, description=text), REGISTRY, TODAY)
    assert shifts == []
    assert told in "; ".join(wrong)


def test_a_safety_judge_blocks_whatever_is_handed_in() -> None:
    """contracts §3: its enforcement can't be relaxed."""
    for name, enforced in (("helpfulness", Enforcement.WARN), ("refusal", Enforcement.BLOCK)):
        one = judged(name, REGISTRY.judge(name), Milestone.PRE_FULL, [], (), "", TODAY, Enforcement.WARN)
        assert one.limits.enforcement is enforced


@pytest.mark.parametrize("text", ["", "no block", TEMPLATE, TEMPLATE.replace("- [ ]", "- [x]")])
def test_a_template_left_as_it_is_accepts_nothing_and_is_no_mistake(text: str) -> None:
    assert accepted(replace(PULL, description=text), REGISTRY, TODAY) == ([], [])
    assert accepted(None, REGISTRY, TODAY) == ([], [])


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    yield from commanded(tmp_path, monkeypatch)


ON_GITHUB = ("--pull-request", "example/agents#12")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    with github() as fake:
        monkeypatch.setenv("RAMPGATE_GITHUB_URL", fake.url)
        yield fake


def test_runs_on_main_are_recorded_and_a_fall_below_them_is_a_regression(rig: Rig, tmp_path: Path) -> None:
    file = tmp_path / "baselines.json"
    rig.registry(BLOCKING)
    for _ in range(2):
        gate(rig, "--baselines", file, "--record", "--commit", "abc")
    runs = json.loads(file.read_text())["runs"]
    assert (len(runs), runs[0]["commit"], runs[0]["n"]) == (2 * 4, "abc", ITEMS // 2)
    before = file.read_bytes()
    rig.answers(lambda n: 0.75 if n % 2 else 1)  # brevity's items: 4 of 5
    found = gate(rig, "--baselines", file, code=1)
    assert codes(found) == {"regressed"}
    assert found["per_judge_scores"]["brevity"]["baseline"] == 5.0
    assert found["per_judge_scores"]["brevity"]["baseline_runs"] == 2
    assert file.read_bytes() == before
    gate(rig, "--baselines", file, "--record", code=1)
    assert file.read_bytes() == before, "a gate that failed is no baseline"


def test_pc5_fr12_a_changed_rubric_needs_a_new_baseline_or_an_audited_acceptance(
    rig: Rig, host: FakeGitHub, tmp_path: Path
) -> None:
    """PC5 FR-12, R-2: a major change makes the baseline again, or the pull request says that it no longer applies."""
    file = tmp_path / "baselines.json"
    rig.registry(BLOCKING)
    gate(rig, "--baselines", file, "--record")
    rewritten(rig.root / "rules" / "brevity.yaml", "Rate {{output}}", "Rate, strictly, {{output}}")
    found = gate(rig, "--baselines", file, code=1)
    assert found["failing_judges"] == ["brevity"]
    one = found["per_judge_scores"]["brevity"]
    assert (one["rule"], one["baseline"], one["baseline_runs"]) == ("regressed", None, 0)
    old = json.loads(file.read_text())["runs"][0]["judge_version"]
    (reason,) = found["reasons"]
    assert reason["message"].startswith(f"brevity scored 5, and main's baseline is of its version {old}: whether")

    host.says(filled("[brevity]"))
    assert gate(rig, "--baselines", file, *ON_GITHUB)["verdict"] == "pass", "the old baseline no longer applies"

    assert gate(rig, "--baselines", file, "--record")["verdict"] == "pass", "the run is the new baseline"
    assert gate(rig, "--baselines", file)["verdict"] == "pass"


def test_pc5_fr12_an_acceptance_is_of_the_judges_it_names_and_of_their_dimensions(
    rig: Rig, host: FakeGitHub, tmp_path: Path
) -> None:
    file = tmp_path / "baselines.json"
    parts = "{dimensions: {tone: {description: How it sounds., threshold: 3}}}"
    rig.registry({"rules/helpfulness.yaml": parts})
    gate(rig, "--baselines", file, "--record")
    for judge in ("brevity", "helpfulness"):
        rewritten(rig.root / "rules" / f"{judge}.yaml", "Rate {{output}}", "Rate, strictly, {{output}}")
    found = gate(rig, "--baselines", file)
    assert (found["verdict"], codes(found)) == ("warn", {"regressed"})
    assert found["failing_judges"] == ["brevity", "helpfulness", "helpfulness.tone"]
    host.says(filled("[helpfulness]"))
    left = gate(rig, "--baselines", file, *ON_GITHUB)
    assert (left["verdict"], left["failing_judges"]) == ("warn", ["brevity"])


def test_pc5_fr12_a_changed_rubric_of_a_safety_judge_takes_no_acceptance(
    rig: Rig, host: FakeGitHub, tmp_path: Path
) -> None:
    file = tmp_path / "baselines.json"
    gate(rig, "--baselines", file, "--record")
    rewritten(rig.root / "rules" / "refusal.yaml", "Rate {{output}}", "Rate, strictly, {{output}}")
    host.says(filled("[refusal]"))
    done = ran(*on_outputs(rig), "--baselines", file, *ON_GITHUB, "--json")
    assert (done.exit_code, json.loads(done.stdout)["failing_judges"]) == (1, ["refusal"])
    assert "override refused: " in done.stderr
    assert "refusal is a safety judge" in done.stderr
    gate(rig, "--baselines", file, "--record")
    assert gate(rig, "--baselines", file)["verdict"] == "pass"


def test_a_changed_limit_or_a_judge_that_main_never_had_needs_no_new_baseline(rig: Rig, tmp_path: Path) -> None:
    """The version is of what may move a score. What a new judge comes to has nothing to be compared with."""
    file = tmp_path / "baselines.json"
    gate(rig, "--baselines", file, "--record")
    rig.registry({"rules/helpfulness.yaml": "{threshold: 3, tolerance: 0.1}"})
    runs = json.loads(file.read_text())
    file.write_text(json.dumps({"runs": [run for run in runs["runs"] if run["judge"] != "brevity"]}))
    assert gate(rig, "--baselines", file)["verdict"] == "pass"


def test_an_accepted_shift_warns_where_it_would_block(rig: Rig, host: FakeGitHub) -> None:
    """PC5 §5.5: the operator can override with an explicit accept-baseline-shift, which the branch's own review
    approves: before the merge it makes pre_merge warn, on main it holds with the reviewers of the merge alone."""
    rig.registry(BLOCKING)
    rig.answers(lambda n: 0.6 if n % 2 else 1)
    assert gate(rig, code=1)["failing_judges"] == ["brevity"]
    host.says(filled("[brevity]"))
    found = gate(rig, *ON_GITHUB)
    assert (found["verdict"], found["accepted"]) == ("warn", ["brevity"])
    host.merges("c" * 40)
    assert gate(rig, *ON_GITHUB)["verdict"] == "warn"
    host.pull["mergedAt"] = "2026-11-20T08:00:00Z"
    assert gate(rig, *ON_GITHUB, code=1)["accepted"] == [], "its approval came after the merge"
    host.pull.update(mergedAt=None, mergeCommit=None)
    rig.answers(lambda n: 0 if n % 2 else 1)
    below = gate(rig, *ON_GITHUB, code=1)
    assert below["per_judge_scores"]["brevity"]["rule"] == "floor_breach", "no override goes below a floor"
    rig.answers(lambda n: 0.6 if n % 2 else 1)
    host.pull["baseRef"] = {"refUpdateRule": None, "rules": {"nodes": []}}
    done = ran(*on_outputs(rig), *ON_GITHUB, "--json")
    assert (done.exit_code, json.loads(done.stdout)["accepted"]) == (1, [])
    assert "branch main merges without an approving review" in done.stderr


def test_a_refused_override_is_told_and_the_gate_decides_without_it(rig: Rig, host: FakeGitHub, tmp_path: Path) -> None:
    rig.registry(BLOCKING)
    rig.answers(lambda n: 0.6 if n % 2 else 1)
    host.says(filled("[brevity]", tick=False))
    done = ran(*on_outputs(rig), *ON_GITHUB, "--json")
    assert (done.exit_code, json.loads(done.stdout)["failing_judges"]) == (1, ["brevity"])
    assert "override refused: the reviewer's agreement is missing" in done.stderr


@pytest.mark.parametrize("content", ["{", "[]", '{"runs": [{}]}', '{"other": 1}', None])
def test_a_file_of_baselines_that_is_wrong_or_not_there_is_bad_input(
    rig: Rig, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "baselines.json"
    if content is not None:
        file.write_text(content)
    assert refused(*on_outputs(rig), "--baselines", file).startswith(f"{file}: ")
    assert refused(*on_outputs(rig), "--record") == "--record: say where: --baselines FILE"
