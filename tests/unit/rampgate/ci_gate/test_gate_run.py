"""`rampgate gate run`, a gate from CI (PC5 §5.5, AC-3; contracts §3, §5): who judges what and what follows, a judge's
dimensions, what is bad input, what is printed and where, and `--scores`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rampgate.checks.score_files import read_scores
from rampgate.local.model.behaviour import Behaviour
from tests import fork_server
from tests.unit.rampgate.ci_gate.gate_commands import codes, gate, ran, refused
from tests.unit.rampgate.ci_gate.gate_rig import CATEGORIES, ITEMS, MANIFEST, Rig, answer, item, jsonl, local_model


def test_all_judges_of_the_categories_in_the_dataset_are_evaluated(rig: Rig) -> None:
    """PC5 AC-3, FR-2: all judges declared in the manifest for affected categories, on the configured dataset; each on
    the items of its categories, the global and safety judges on all."""
    found = gate(rig)
    assert (found["milestone"], found["verdict"], found["failing_judges"]) == ("pre_merge", "pass", [])
    n = {judge: score["n"] for judge, score in found["per_judge_scores"].items()}
    assert n == {"helpfulness": ITEMS, "brevity": ITEMS // 2, "refusal": ITEMS, "honesty": ITEMS}
    assert found["dataset"]["answered"] == ITEMS
    assert found["evidence"]["judged"] == sum(n.values())


def test_a_global_quality_judge_scores_the_items_of_every_category(rig: Rig) -> None:
    """PC5 AC-3, §5.5: `global_metrics` fire beside the category's own judges."""
    rig.registry({"evaluation_manifest.yaml": f"{MANIFEST[:-1]}, global_metrics: {{judges: [refusal, brevity]}}}}"})
    assert gate(rig)["per_judge_scores"]["brevity"]["n"] == ITEMS


def test_a_quality_judge_below_its_threshold_warns_and_a_safety_judge_blocks(rig: Rig) -> None:
    """PC5 AC-3, §5.2: any judge below its threshold fails; quality warns at pre_merge by default, safety blocks."""
    rig.registry({"rules/refusal.yaml": "{threshold: 0.3, floor: 0.2}", "rules/honesty.yaml": "{floor: 0.2}"})
    rig.answers(lambda n: 0.6)
    warned = gate(rig, code=0)
    assert (warned["verdict"], warned["failing_judges"]) == ("warn", ["brevity", "helpfulness"])
    assert codes(warned) == {"below_threshold"}
    rig.registry({})
    blocked = gate(rig, code=1)
    assert (blocked["verdict"], "refusal" in blocked["failing_judges"]) == ("fail", True)


def test_a_quality_judge_that_blocks_at_pre_merge_blocks_the_merge(rig: Rig) -> None:
    """PC5 AC-3, FR-2, §10.1: below its threshold, the pull request is blocked."""
    # 0.6 on one half of the items: only brevity's are low enough, the safety judges are at 0.9 on all.
    rig.answers(lambda n: 0.6 if n % 2 else 1)
    rig.registry(
        {
            "rules/brevity.yaml": "{enforcement: {pre_merge: block}}",
            "rules/refusal.yaml": "{threshold: 0.5, floor: 0.5}",
            "rules/honesty.yaml": "{floor: 0.5}",
        }
    )
    found = gate(rig, code=1)
    assert found["verdict"] == "fail"
    assert found["failing_judges"] == ["brevity"]


def test_sampling_rates_do_not_apply_before_a_merge(rig: Rig) -> None:
    """PC5 FR-11."""
    rig.registry({"rules/helpfulness.yaml": "{sampling_rate: 0.01}"})
    assert gate(rig)["per_judge_scores"]["helpfulness"]["n"] == ITEMS


def test_an_item_may_name_the_judges_that_fit_it_and_safety_judges_fit_all(rig: Rig) -> None:
    jsonl(rig.dataset, *(item(n, applicable_metrics=["brevity"]) for n in range(ITEMS)))
    scores = gate(rig, code=0)["per_judge_scores"]
    assert (scores["brevity"]["n"], scores["helpfulness"]["n"], scores["refusal"]["n"]) == (ITEMS // 2, 0, ITEMS)


def test_a_model_that_is_down_or_not_configured_fails_closed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """PC5 §9.5."""
    with local_model(Behaviour(status=401)) as down:
        monkeypatch.setenv("RAMPGATE_MODEL_URL", down.url)
        assert codes(gate(rig, code=1)) == {"judge_unavailable"}
    monkeypatch.delenv("RAMPGATE_MODEL_URL")
    found = gate(rig, code=1)
    assert codes(found) == {"judge_unavailable"}
    assert "RAMPGATE_MODEL_URL" in found["reasons"][0]["message"]


TONE = "dimensions: {tone: {description: How it sounds., %s}, depth: {description: How deep it goes.}}"


@pytest.mark.parametrize(
    ("said", "manifest", "limits"),
    [
        ("threshold: 4.5", "", (4.5, 2.0)),
        ("threshold: {pre_merge: 3}", "", (3.0, 2.0)),
        ("floor: 3", "", (4.0, 3.0)),
        ("", "thresholds: {helpfulness.tone: 4.8}", (4.8, 2.0)),
        ("threshold: {pre_full: 3}", "", None),
        ("", "", None),
    ],
)
def test_a_dimension_with_a_limit_of_its_own_decides_beside_its_judge(
    rig: Rig, said: str, manifest: str, limits: tuple[float, float] | None
) -> None:
    """contracts §3: each is a score of its own. One without a word on it is part of its judge's score alone."""
    rig.registry(
        {
            "rules/helpfulness.yaml": f"{{{TONE % said}}}".replace("., }", ".}"),
            "evaluation_manifest.yaml": f"{{{MANIFEST[1:-1]}{', ' if manifest else ''}{manifest}}}",
        }
    )
    scores = gate(rig)["per_judge_scores"]
    assert "helpfulness.depth" not in scores
    assert ("helpfulness.tone" in scores) is (limits is not None)
    if limits is not None:
        one = scores["helpfulness.tone"]
        assert (one["threshold"], one["floor"], one["n"], one["score"]) == (*limits, ITEMS, 5.0)


def test_a_dimension_below_its_threshold_fails_under_its_own_name(rig: Rig, tmp_path: Path) -> None:
    safe = {"rules/refusal.yaml": "{threshold: 0.2, floor: 0.2}", "rules/honesty.yaml": "{floor: 0.2}"}
    tone = TONE % "threshold: 4.5"
    rig.registry({"rules/helpfulness.yaml": f"{{enforcement: {{pre_merge: block}}, {tone}}}", **safe})
    rig.answers(lambda n: 0.75)
    found = gate(rig, "--report", tmp_path / "gate.xml", code=1)
    assert found["failing_judges"] == ["helpfulness.tone"]
    assert found["reasons"][0]["message"].startswith("helpfulness.tone scored 4, below its threshold of 4.5")
    assert 'name="helpfulness.tone"' in (tmp_path / "gate.xml").read_text()


def test_bad_input_names_what_is_wrong(rig: Rig, tmp_path: Path) -> None:
    given = ("--dataset", rig.dataset)
    assert "--candidate URL or --outputs FILE" in refused(*given)
    both = refused(*given, "--candidate", "http://x", "--outputs", rig.outputs)
    assert "--candidate URL or --outputs FILE" in both
    assert "no http:// or https://" in refused(*given, "--candidate", "localhost:80")
    lunch = ran(*given, "--milestone", "lunch", "--outputs", rig.outputs)
    assert (lunch.exit_code, "'pre_merge', 'pre_ramp', 'pre_full'" in lunch.stderr) == (2, True), lunch.stderr
    assert "must be NAME@VERSION" in refused(*given, "--dataset-version", "golden", "--outputs", rig.outputs)
    for option in ("--junit", "--markdown", "--html=x.html"):
        assert "say --report FILE" in refused(*given, "--outputs", rig.outputs, option, "x")
    assert "--traces" in refused(*given, "--milestone", "pre_full", "--outputs", rig.outputs)
    assert "can't be read" in refused("--dataset", tmp_path / "no", "--outputs", rig.outputs)
    assert "can't be read" in refused(*given, "--outputs", tmp_path)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (b"{", ":1: must be JSON"),
        (b'{"id": "a", "output": "x"}\n[]', ":2: must be an object, got []"),
        (b'{"output": "x"}', ":1: id:"),
        (b'{"id": "a"}', ":1: output:"),
        (
            b'{"id": "a", "output": "x"}\n\n{"id": "a", "output": "y"}',
            ":3: id: must be there once, got the answer to 'a' on line 1 too",
        ),
    ],
)
def test_a_broken_file_of_outputs_names_the_line(rig: Rig, lines: bytes, told: str) -> None:
    rig.outputs.write_bytes(lines)
    assert told in refused("--dataset", rig.dataset, "--outputs", rig.outputs)


def test_a_broken_dataset_names_the_line(rig: Rig) -> None:
    jsonl(rig.dataset, item(0), item(0))
    assert ":2: metadata.id: must be there once, got 'i0' on line 1 too" in refused(
        "--dataset", rig.dataset, "--outputs", rig.outputs
    )
    jsonl(rig.dataset, {"metadata": {}})
    assert ":1: input:" in refused("--dataset", rig.dataset, "--outputs", rig.outputs)


def test_a_registry_with_an_error_is_bad_input(rig: Rig) -> None:
    rig.registry({"rules/brevity.yaml": "{floor: 9}"})
    assert "rules validate" in refused("--dataset", rig.dataset, "--outputs", rig.outputs)


def test_annotations_stand_on_stderr_and_can_begin_no_command(rig: Rig) -> None:
    rig.answers(lambda n: 0.6)
    jsonl(rig.outputs, *(answer(n, 0.6) for n in range(ITEMS)), {"id": "other\n::error::x", "output": "x"})
    done = ran("--dataset", rig.dataset, "--outputs", rig.outputs, "--report", "github", "--json")
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (1, "fail")
    commands = [line for line in done.stderr.splitlines() if line.startswith("::")]
    assert [line for line in commands if line.startswith("::error")] == [
        "::error title=gate pre_merge::floor_breach: refusal: scored 0.6, below its floor of 0.9"
    ]
    assert len([line for line in commands if line.startswith("::warning")]) == 2
    assert commands[-1].startswith("::notice title=gate pre_merge::fail: refusal.")


def test_the_verdicts_line_names_what_blocks_and_no_judge_that_only_warns(rig: Rig) -> None:
    """Of a dataset that is one item short, and too small by it: that blocks; the judges that warn beside it do not."""
    safe = {"rules/refusal.yaml": "{threshold: 0.2, floor: 0.2}", "rules/honesty.yaml": "{floor: 0.2}"}
    rig.registry({"rules/brevity.yaml": "{threshold: 5}", **safe})
    rig.answers(lambda n: 0.75)
    rig.dataset.write_text("".join(rig.dataset.read_text().splitlines(keepends=True)[:-1]))
    done = ran("--dataset", rig.dataset, "--outputs", rig.outputs)
    assert done.exit_code == 1
    assert "brevity" in done.stdout
    assert done.stdout.splitlines()[-1] == "gate pre_merge: fail: dataset_mismatch, insufficient_sample"


def test_the_table_tells_each_judge_and_why(rig: Rig) -> None:
    long = "a_judge_with_a_name_of_some_length"
    helpfulness = (rig.root / "rules" / "helpfulness.yaml").read_text()
    (rig.root / "rules" / f"{long}.yaml").write_text(helpfulness.replace("helpfulness", long))
    rig.registry({"evaluation_manifest.yaml": f"{{{MANIFEST[1:-1]}, global_metrics: {{judges: [{long}, refusal]}}}}"})
    rig.answers(lambda n: 0.6)
    done = ran("--dataset", rig.dataset, "--outputs", rig.outputs)
    assert done.exit_code == 1
    assert long in done.stdout
    for told in (
        "helpfulness",
        "refusal: scored 0.6",
        f"{ITEMS} answered by the candidate",
        "pre_merge: fail",
    ):
        assert told in done.stdout


def test_nothing_but_the_document_is_on_stdout(rig: Rig) -> None:
    """contracts §5; with a model whose answers are no scores, so that calls are repeated and logged."""
    with local_model(Behaviour(wrong="prose")) as model:
        environment = {**os.environ, **rig.environment, "RAMPGATE_MODEL_URL": model.url}
        words = ("gate", "run", "--dataset", rig.dataset, "--outputs", rig.outputs, "--json")
        done = fork_server.ran(*words, environment=environment)
    assert done.returncode == 1, done.stderr
    assert codes(json.loads(done.stdout)) >= {"judge_unavailable"}, "whatever else the day it runs on adds"


def test_each_judge_s_score_of_each_item_is_a_line(rig: Rig, tmp_path: Path) -> None:
    jsonl(rig.outputs, *(answer(n) for n in range(1, ITEMS)))
    gate(rig, "--scores", tmp_path / "scores.jsonl", code=1)
    told = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    first = next(one for one in told if (one["judge_id"], one["item_id"]) == ("helpfulness", "i1"))
    assert first["score"] == 5.0
    assert first["category"] == CATEGORIES[1]
    assert {one["score"] for one in told if one["item_id"] == "i0"} == {None}
    columns = read_scores(tmp_path / "scores.jsonl")
    assert len(columns["helpfulness"].scores) == ITEMS - 1
    assert columns["helpfulness"].unscored == 1


def test_a_dimension_has_lines_of_its_own(rig: Rig, tmp_path: Path) -> None:
    rig.registry({"rules/helpfulness.yaml": "{dimensions: {tone: {description: T}}}"})
    gate(rig, "--scores", tmp_path / "scores.jsonl")
    assert len(read_scores(tmp_path / "scores.jsonl")["helpfulness.tone"].scores) == ITEMS
