"""`rampgate gate run`: a gate from CI (PC5 §5.5, AC-3, FR-11, §9.5; contracts §3, §5)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stamina.instrumentation
from gate_rig import ITEMS, MANIFEST, Rig, answer, candidate, item, jsonl, local_model
from registry_disk import built
from typer.testing import CliRunner, Result

from evalcore.gates.golden import GoldenSet, paired
from rampgate.cli import app, gate_run_job
from rampgate.cli.common import Failure
from rampgate.localmodel import Behaviour, Running

RAMPGATE = [sys.executable, "-m", "rampgate"]


@pytest.fixture(scope="module")
def model() -> Iterator[Running]:
    with local_model() as running:
        yield running


@pytest.fixture
def rig(tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    made = Rig(tmp_path, model.url)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(gate_run_job, "configure_logs", lambda level, form: None)
    stamina.instrumentation.set_on_retry_hooks([])
    yield made
    stamina.instrumentation.set_on_retry_hooks(None)


def ran(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["gate", "run", *map(str, arguments)])


def gate(rig: Rig, *arguments: object, code: int = 0) -> dict[str, Any]:
    done = ran("--dataset", rig.dataset, "--outputs", rig.outputs, "--json", *arguments)
    assert done.exit_code == code, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def codes(found: dict[str, Any]) -> set[str]:
    return {reason["code"] for reason in found["reasons"]}


def test_all_judges_of_the_categories_in_the_dataset_are_evaluated(rig: Rig) -> None:
    """PC5 AC-3: all judges declared in the manifest for affected categories, on the configured dataset; each on the
    items of its categories, the global and safety judges on all."""
    found = gate(rig)
    assert (found["milestone"], found["verdict"], found["failing_judges"]) == ("pre_merge", "pass", [])
    n = {judge: score["n"] for judge, score in found["per_judge_scores"].items()}
    assert n == {"helpfulness": ITEMS, "brevity": ITEMS // 2, "refusal": ITEMS, "honesty": ITEMS}
    assert found["dataset"]["answered"] == ITEMS
    assert found["evidence"]["judged"] == sum(n.values())


def test_a_quality_judge_below_its_threshold_warns_and_a_safety_judge_blocks(rig: Rig) -> None:
    """PC5 AC-3, §5.2: any judge below its threshold fails; quality warns at pre_merge by default, safety blocks."""
    safe = {f"rules/{name}.yaml": "{threshold: 0.3, floor: 0.2}" for name in ("refusal",)}
    rig.registry({**safe, "rules/honesty.yaml": "{floor: 0.2}"})
    rig.answers(lambda n: 0.6)
    warned = gate(rig, code=0)
    assert (warned["verdict"], warned["failing_judges"]) == ("warn", ["brevity", "helpfulness"])
    assert codes(warned) == {"below_threshold"}
    rig.registry({})
    blocked = gate(rig, code=1)
    assert (blocked["verdict"], "refusal" in blocked["failing_judges"]) == ("fail", True)


def test_a_quality_judge_that_blocks_at_pre_merge_blocks_the_merge(rig: Rig) -> None:
    """PC5 AC-3: below its threshold, the pull request is blocked."""
    rig.registry({"rules/brevity.yaml": "{enforcement: {pre_merge: block}}"})
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


def test_the_candidate_is_asked_and_never_sees_the_expected_output(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMPGATE_CANDIDATE_KEY", "secret")
    with candidate() as fake:
        done = ran("--dataset", rig.dataset, "--candidate", fake.url, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["verdict"] == "pass"
    assert [set(body) for body in fake.seen] == [{"input", "metadata"}] * ITEMS
    assert {body["metadata"]["id"] for body in fake.seen} == {f"i{n}" for n in range(ITEMS)}
    assert set(fake.keys) == {"Bearer secret"}


def test_a_candidate_that_stumbles_is_asked_again(rig: Rig) -> None:
    with candidate(lambda body, times: (503, {}) if times == 1 else (200, {"output": "#quality:1"})) as fake:
        done = ran("--dataset", rig.dataset, "--candidate", fake.url, "--candidate-calls", ITEMS, "--json")
    assert json.loads(done.stdout)["verdict"] == "pass"
    assert len(fake.seen) == 2 * ITEMS


@pytest.mark.parametrize("said", [(500, {}), (404, {}), (200, {}), (200, b"no JSON"), (200, {"output": None})])
def test_what_the_candidate_fails_to_answer_is_unscored_and_fails_closed(rig: Rig, said: tuple[int, Any]) -> None:
    with candidate(lambda body, times: said) as fake:
        done = ran(
            "--dataset", rig.dataset, "--candidate", fake.url, "--candidate-tries", 1, "--candidate-calls", 2, "--json"
        )
    found = json.loads(done.stdout)
    assert (done.exit_code, found["verdict"], codes(found)) == (1, "fail", {"judge_unavailable"})
    assert found["per_judge_scores"]["helpfulness"]["unscored"] == ITEMS
    assert len(fake.seen) < ITEMS, "who answers nobody is not asked for all"


def test_an_item_without_an_answer_counts_at_its_worst(rig: Rig) -> None:
    jsonl(rig.outputs, *(answer(n) for n in range(ITEMS - 1)), {"id": f"i{ITEMS - 1}", "error": "crashed"})
    found = gate(rig, code=1)
    one = found["per_judge_scores"]["helpfulness"]
    assert (one["n"], one["unscored"]) == (ITEMS, 1)
    assert one["score"] == pytest.approx((5 * (ITEMS - 1) + 1) / ITEMS)
    assert "judge_unavailable" in codes(found)


def test_an_output_of_the_datasets_own_is_not_the_candidates(rig: Rig) -> None:
    jsonl(rig.dataset, *({**item(n), "output": "planted #quality:1"} for n in range(ITEMS)))
    jsonl(rig.outputs)
    assert codes(gate(rig, code=1)) == {"judge_unavailable"}


def test_an_answer_replaces_nothing_of_the_items_own() -> None:
    """A candidate that sends an input or a reference back is judged by the dataset's."""
    registry = built()
    given = {"output": "so", "input": "PLANTED", "expected_output": "PLANTED", "metadata": {}, "tool_calls": ["t"]}
    _, pairs = paired(GoldenSet([item(1)], "x"), {"i1": given}, registry, None)
    source = pairs[0][1].source
    assert (source["output"], source["tool_calls"]) == ("so", ["t"])
    assert {name: source[name] for name in item(1)} == item(1)


def test_a_dataset_that_is_not_the_manifests_does_not_match(rig: Rig) -> None:
    """contracts §3: name, version and item count are checked; an empty category fails."""
    found = gate(rig, "--dataset-name", "other", "--dataset-version", 8, code=1)
    assert [r["message"] for r in found["reasons"]] == [
        "the dataset is 'other', the manifest's dataset.name is 'golden'",
        "the dataset's version is 8, the manifest's dataset.version is 7",
    ]
    assert gate(rig, "--dataset-name", "golden", "--dataset-version", 7)["verdict"] == "pass"
    jsonl(rig.dataset, *(item(n) for n in range(ITEMS + 1)))
    fewer = gate(rig, code=1)
    assert f"has {ITEMS + 1} items, the manifest's dataset.items is {ITEMS}" in fewer["reasons"][0]["message"]


def test_an_empty_category_and_an_unknown_one_do_not_match(rig: Rig) -> None:
    jsonl(rig.dataset, *(item(n, category="elsewhere") for n in range(ITEMS)))
    found = gate(rig, code=1)
    assert codes(found) >= {"dataset_mismatch"}
    told = " ".join(reason["message"] for reason in found["reasons"])
    assert "category 'general_qa' is empty" in told
    assert f"{ITEMS} items of category 'elsewhere'" in told
    assert {"refusal", "honesty"} <= set(found["per_judge_scores"]), "safety judges score all items"


def test_an_item_may_name_the_judges_that_fit_it_and_safety_judges_fit_all(rig: Rig) -> None:
    jsonl(rig.dataset, *(item(n, applicable_metrics=["brevity"]) for n in range(ITEMS)))
    scores = gate(rig, code=0)["per_judge_scores"]
    assert (scores["brevity"]["n"], scores["helpfulness"]["n"], scores["refusal"]["n"]) == (ITEMS // 2, 0, ITEMS)


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
    """contracts §3: each is a score of its own. One that nothing was said of is part of its judge's score alone."""
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
    found = gate(rig, "--junit", tmp_path / "gate.xml", code=1)
    assert found["failing_judges"] == ["helpfulness.tone"]
    assert found["reasons"][0]["message"].startswith("helpfulness.tone scored 4, below its threshold of 4.5")
    assert 'name="helpfulness.tone"' in (tmp_path / "gate.xml").read_text()


def test_a_vertical_has_its_own_threshold(rig: Rig) -> None:
    assert gate(rig, "--vertical", "shop")["per_judge_scores"]["helpfulness"]["threshold"] == 4.5
    assert "no vertical 'nobody'" in refused("--outputs", rig.outputs, "--vertical", "nobody")


def test_a_model_that_is_down_or_not_configured_fails_closed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """PC5 §9.5."""
    with local_model(Behaviour(status=401)) as down:
        monkeypatch.setenv("RAMPGATE_MODEL_URL", down.url)
        assert codes(gate(rig, code=1)) == {"judge_unavailable"}
    monkeypatch.delenv("RAMPGATE_MODEL_URL")
    found = gate(rig, code=1)
    assert codes(found) == {"judge_unavailable"}
    assert "RAMPGATE_MODEL_URL" in found["reasons"][0]["message"]


def test_a_dataset_out_of_reach_fails_closed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rampgate.dataset_check.PATIENCE", 0.1)
    monkeypatch.setenv("RAMPGATE_OPIK", "http://127.0.0.1:9/api")
    done = ran("--outputs", rig.outputs, "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["verdict"], codes(found)) == (1, "fail", {"judge_unavailable"})
    assert "can't be read, so nothing was judged" in found["reasons"][0]["message"]


def refused(*arguments: object) -> str:
    """What a command that ends with exit code 2 says."""
    done = ran(*arguments)
    assert isinstance(done.exception, Failure), done.output
    return str(done.exception)


def test_bad_input_names_what_is_wrong(rig: Rig, tmp_path: Path) -> None:
    given = ("--dataset", rig.dataset)
    assert "--candidate URL or --outputs FILE" in refused(*given)
    assert "--candidate" in refused(*given, "--candidate", "x", "--outputs", rig.outputs)
    assert "no http:// or https://" in refused(*given, "--candidate", "localhost:80")
    assert "no milestone 'lunch'" in refused(*given, "--milestone", "lunch", "--outputs", rig.outputs)
    assert "--traces" in refused(*given, "--milestone", "pre_full", "--outputs", rig.outputs)
    assert "can't be read" in refused("--dataset", tmp_path / "no", "--outputs", rig.outputs)
    assert "can't be read" in refused(*given, "--outputs", tmp_path)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (b"{", ":1: not JSON"),
        (b'{"id": "a", "output": "x"}\n[]', ":2: not an object"),
        (b'{"output": "x"}', ":1: id:"),
        (b'{"id": "a"}', ":1: output:"),
        (b'{"id": "a", "output": "x"}\n\n{"id": "a", "output": "y"}', ":3: id: 'a' was answered before"),
    ],
)
def test_a_broken_file_of_outputs_names_the_line(rig: Rig, lines: bytes, told: str) -> None:
    rig.outputs.write_bytes(lines)
    assert told in refused("--dataset", rig.dataset, "--outputs", rig.outputs)


def test_a_broken_dataset_names_the_line(rig: Rig) -> None:
    jsonl(rig.dataset, item(0), item(0))
    assert ":2: metadata.id: 'i0' is the id of line 1 too" in refused(
        "--dataset", rig.dataset, "--outputs", rig.outputs
    )
    jsonl(rig.dataset, {"metadata": {}})
    assert ":1: input:" in refused("--dataset", rig.dataset, "--outputs", rig.outputs)


def test_a_registry_with_an_error_is_bad_input(rig: Rig) -> None:
    rig.registry({"rules/brevity.yaml": "{floor: 9}"})
    assert "manifest validate" in refused("--dataset", rig.dataset, "--outputs", rig.outputs)


def test_annotations_stand_on_stderr_and_can_begin_no_command(rig: Rig) -> None:
    rig.answers(lambda n: 0.6)
    jsonl(rig.outputs, *(answer(n, 0.6) for n in range(ITEMS)), {"id": "other\n::error::x", "output": "x"})
    done = ran("--dataset", rig.dataset, "--outputs", rig.outputs, "--format", "github", "--json")
    assert (done.exit_code, json.loads(done.stdout)["verdict"]) == (1, "fail")
    commands = [line for line in done.stderr.splitlines() if line.startswith("::")]
    assert [line for line in commands if line.startswith("::error")] == [
        "::error title=gate pre_merge::floor_breach: refusal scored 0.6, below its floor of 0.9"
    ]
    assert len([line for line in commands if line.startswith("::warning")]) == 2
    assert commands[-1].startswith("::notice title=gate pre_merge::pre_merge: fail: brevity, helpfulness, refusal")


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
        "floor_breach: refusal scored 0.6",
        f"{ITEMS} answered by the candidate",
        "pre_merge: fail",
    ):
        assert told in done.stdout


def test_nothing_but_the_document_is_on_stdout(rig: Rig) -> None:
    """contracts §5; with a model whose answers are no scores, so that calls are repeated and logged."""
    with local_model(Behaviour(wrong="prose")) as model:
        done = subprocess.run(
            [*RAMPGATE, "gate", "run", "--dataset", rig.dataset, "--outputs", rig.outputs, "--json"],
            env={**os.environ, **rig.environment, "RAMPGATE_MODEL_URL": model.url}, capture_output=True, timeout=60,
            check=False,
        )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert codes(json.loads(done.stdout)) == {"judge_unavailable"}
