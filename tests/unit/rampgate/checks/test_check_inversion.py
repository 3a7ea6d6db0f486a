"""`rampgate check inversion` and `check agreement` on files: the document, the exit code, what is wrong with a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalcore.registry.disk import read_tree
from evalcore.registry.registry import build
from evalcore.validation import checked
from rampgate.checks.standing import suspended_judges
from rampgate.settings import Settings
from tests.root import ROOT
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.rampgate.checks.score_commands import said
from tests.unit.rampgate.ci_gate.gate_rig import jsonl

ROUND_1 = [-0.5] * 10 + [0.4] * 2


def check(*words: str | Path) -> tuple[int, str, str]:
    return said("check", *words)


def scored(correlations: list[float], items: int = 301, **more: Any) -> list[dict[str, Any]]:
    draw = np.random.default_rng(4)
    out = []
    for place, rho in enumerate(correlations):
        one, noise = draw.normal(size=(2, items))
        other = rho * one + np.sqrt(1 - rho**2) * noise
        judge, human = (np.clip(np.round(series + 3), 1, 5).astype(int) for series in (one, other))
        out += [
            {
                "judge_id": f"Judge {place}",
                "item_id": n,
                "judge_score": int(judge[n]),
                "human_score": int(human[n]),
                **more,
            }
            for n in range(items)
        ]
    return out


def test_pf9_ac10_the_report_has_pearson_spearman_the_interval_and_the_number(tmp_path: Path) -> None:
    """PF-9 AC-6: ten of the twelve judges of round 1; ids are told as written, and nothing is registered."""
    code, out, _ = check("inversion", jsonl(tmp_path / "round-1.jsonl", *scored(ROUND_1)), "--json")
    document = json.loads(out)
    assert code == 1
    assert document["inverted_count"] == 10
    assert [one["inverted"] for one in document["judges"]] == [True] * 10 + [False] * 2
    for one in document["judges"]:
        assert one["n"] == 301
        assert one["pearson_ci95"][0] < one["pearson"] < one["pearson_ci95"][1]
        assert (one["pearson_ci95"][1] < 0) is one["inverted"]
        assert -1 <= one["spearman"] <= 1
        assert one["detectable"] == pytest.approx(-0.161, abs=0.001)
        assert one["reason"]
    assert document["judges"][0]["judge_id"] == "Judge 0"


def test_judges_that_agree_with_people_end_with_0_and_one_that_nobody_can_tell_with_1(tmp_path: Path) -> None:
    assert check("inversion", jsonl(tmp_path / "a.jsonl", *scored([0.5])))[0] == 0
    code, out, _ = check("inversion", jsonl(tmp_path / "b.jsonl", *scored([0.5], items=9)), "--json")
    assert (code, json.loads(out)["judges"][0]["inverted"]) == (1, None)


def test_pf9_fr10_a_judge_of_noise_carries_no_signal_which_is_a_warning(tmp_path: Path) -> None:
    noise, report = jsonl(tmp_path / "noise.jsonl", *scored([0.02, 0.5, -0.5])), tmp_path / "report.md"
    code, out, _ = check("inversion", noise, "--json", "--report", report)
    judges = json.loads(out)["judges"]
    low, high = judges[0]["pearson_ci95"]
    assert low < 0 < high
    assert [(one["inverted"], one["carries_signal"]) for one in judges] == [(False, False), (False, True), (True, True)]
    assert judges[0]["reason"].startswith("not inverted, and no better than chance: Pearson")
    assert judges[1]["reason"].startswith("not inverted: Pearson")
    assert "1 inverted, 1 no better than chance" in report.read_text()
    alone = jsonl(tmp_path / "alone.jsonl", *scored([0.02]))
    code, out, _ = check("inversion", alone, "--report", report)
    assert (code, "not inverted, and no better than chance" in " ".join(out.split())) == (0, True), "it warns"
    assert "## ⚠️ Judges against people: none inverted, 1 no better than chance" in report.read_text()
    apart = jsonl(tmp_path / "apart.jsonl", *scored([0.0]))
    (told,) = json.loads(check("inversion", apart, "--json")[1])["judges"]
    assert (told["inverted"], told["carries_signal"]) == (None, False), "Pearson and Spearman of opposite sign"
    assert told["reason"].startswith("undecidable, and no better than chance: Pearson")
    few = jsonl(tmp_path / "few.jsonl", *scored([0.5], items=9))
    assert json.loads(check("inversion", few, "--json")[1])["judges"][0]["carries_signal"] is None


def test_pf9_fr10_a_composite_of_noise_is_counted_beside_its_judges(tmp_path: Path) -> None:
    """The shipped composite `dialogue`."""
    noise = scored([0.02])
    lines = [{**one, "judge_id": judge} for judge in ("conversation_flow", "greeting_quality") for one in noise]
    report = tmp_path / "report.md"
    words = (jsonl(tmp_path / "noise.jsonl", *lines), "--configs", ROOT / "configs", "--report", report)
    assert check("inversion", *words)[0] == 0
    assert "## ⚠️ Judges against people: none inverted, 3 no better than chance" in report.read_text()


def test_slices_are_reported_and_decide_nothing(tmp_path: Path) -> None:
    lines = scored([0.5]) + [{**one, "item_id": f"x{one['item_id']}", "category": "odd"} for one in scored([-0.6], 40)]
    code, out, _ = check("inversion", jsonl(tmp_path / "a.jsonl", *lines), "--json")
    (sliced,) = json.loads(out)["slices"]
    assert code == 0
    assert (sliced["field"], sliced["value"], sliced["n"], sliced["inverted"]) == ("category", "odd", 40, True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return written(tmp_path)


def test_an_inverted_judge_is_suspended_by_what_is_written_of_it_until_a_version_passes(
    tmp_path: Path, root: Path
) -> None:
    """PF-9 FR-10. Whoever reads the records, a gate in CI or a worker, knows it."""
    judge, standing = build(checked(read_tree(root), TODAY)[0]).judge("helpfulness"), tmp_path / "standing.jsonl"
    lines = [{**one, "judge_id": "helpfulness", "judge_version": judge.version} for one in scored([-0.6])]
    words = ("--standing", standing, "--configs", root)
    assert check("inversion", jsonl(tmp_path / "a.jsonl", *lines), *words)[0] == 1
    assert "check of inversion" in suspended_judges(str(standing), Settings(), [judge], TODAY)["helpfulness"]
    changed = replace(judge, version="another")
    assert suspended_judges(str(standing), Settings(), [changed], TODAY), (
        "a new version is compared with people before it counts"
    )
    sound = [{**one, "judge_version": "another", "judge_score": 6 - one["judge_score"]} for one in lines]
    assert check("inversion", jsonl(tmp_path / "b.jsonl", *sound), *words)[0] == 0
    assert suspended_judges(str(standing), Settings(), [changed], TODAY) == {}
    assert suspended_judges(str(standing), Settings(), [judge], TODAY)


def test_the_same_scores_of_people_decide_once_of_a_version(tmp_path: Path, root: Path) -> None:
    lines = [{**one, "judge_id": "helpfulness", "judge_version": "v1"} for one in scored([0.4])]
    standing = tmp_path / "standing.jsonl"
    words = ("--standing", standing, "--configs", root)
    assert check("inversion", jsonl(tmp_path / "a.jsonl", *lines), *words)[0] == 0
    again = [{**one, "judge_score": 6 - one["judge_score"]} for one in lines]
    code, _, err = check("inversion", jsonl(tmp_path / "b.jsonl", *again), *words)
    assert code == 1, "what was seen is told all the same"
    assert "decided by these scores of people" in err
    assert len(standing.read_text().splitlines()) == 1
    other = [{**one, "human_score": 6 - one["human_score"]} for one in lines]
    check("inversion", jsonl(tmp_path / "c.jsonl", *other), *words)
    assert len(standing.read_text().splitlines()) == 2, "a new round of people decides again"


def test_nobody_is_suspended_by_scores_of_which_the_judges_version_is_not_said(tmp_path: Path, root: Path) -> None:
    standing = tmp_path / "standing.jsonl"
    unsaid = jsonl(tmp_path / "a.jsonl", *({**one, "judge_id": "helpfulness"} for one in scored([-0.6])))
    code, _, err = check("inversion", unsaid, "--standing", standing, "--configs", root)
    assert (code, standing.exists()) == (2, False)
    assert "judge_version" in err
    stranger = jsonl(tmp_path / "b.jsonl", *scored([-0.6]))
    code, _, err = check("inversion", stranger, "--standing", standing, "--configs", root)
    assert (code, standing.read_text()) == (1, "")
    assert "not registered, and so not published: Judge 0" in err


def line(**fields: Any) -> dict[str, Any]:
    return {"judge_id": "a", "item_id": 1, "judge_score": 1, "human_score": 2, **fields}


def rating(**fields: Any) -> dict[str, Any]:
    return {"category": "c", "item_id": 1, "annotator": "x", "score": 2, **fields}


@pytest.mark.parametrize(
    ("command", "lines", "said"),
    [
        ("inversion", [line(human_score=float("-inf"))], "1: human_score: must be a finite number, got -inf"),
        ("inversion", [line(judge_score=None)], "1: judge_score: must be a number, got null"),
        ("inversion", [line(), line(item_id="1")], "2: item_id: must be there once, got '1' of 'a' on line 1 too"),
        (
            "inversion",
            [line(judge_version="v1"), line(item_id=2, judge_version="v2")],
            "2: judge_version: must be 'v1', as on the lines before, got 'v2'",
        ),
        ("inversion", [line(category=3)], "1: category: must be a text, got 3"),
        ("agreement", [rating(), rating(score=3)], "2: annotator: must be there once, got 'x' for '1' on line 1 too"),
        (
            "agreement",
            [rating(annotator=None)],
            "1: annotator: must be a text without blanks at its ends, or a whole number, got null",
        ),
    ],
)
def test_what_cannot_be_right_is_refused_with_file_line_and_field(
    tmp_path: Path, command: str, lines: list[dict[str, Any]], said: str
) -> None:
    file = tmp_path / "scores.jsonl"
    file.write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    code, out, err = check(command, file, "--json")
    assert (code, out) == (2, "")
    assert f"{file}" in err
    assert said in err


def test_pf9_fr14_the_report_has_alpha_its_threshold_and_source_and_every_items_agreement(tmp_path: Path) -> None:
    """PF-9 AC-14's report; an item rated once is told apart, and takes no part."""
    draw = np.random.default_rng(8)
    lines = [
        {"category": kind, "item_id": item, "annotator": who, "score": int(score)}
        for kind, spread in (("sound", 0.1), ("loose", 3.0))
        for item in range(30)
        for who in ("x", "y", "z")
        for score in [item % 5 + 1 + round(float(draw.normal() * spread))]
    ] + [rating(category="sound", item_id="alone")]
    code, out, _ = check("agreement", jsonl(tmp_path / "round.jsonl", *lines), "--level", "ordinal", "--json")
    sound, loose = json.loads(out)["categories"]
    assert code == 1
    assert (sound["passed"], sound["quarantined"], loose["passed"], loose["quarantined"]) == (True, False, False, True)
    assert (sound["n_items"], sound["n_single"]) == (30, 1)
    assert (sound["threshold"], sound["baseline_source"]) == (0.667, "provisional_seed")
    assert loose["alpha_ci95"][0] < loose["alpha"] < loose["alpha_ci95"][1]
    assert len(loose["items"]) == 30
    assert all(0 <= item["pairwise_agreement"] <= 1 for item in loose["items"])
    assert sum(item["disagreement"] for item in loose["items"]) == pytest.approx(1)
    assert {one["annotator"] for one in loose["annotators"]} == {"x", "y", "z"}


def test_labels_are_ratings_at_nominal_level_without_numbers_beside_them(tmp_path: Path) -> None:
    lines = [rating(item_id=n, annotator=who, score="ab"[n % 2]) for n in range(12) for who in ("x", "y")]
    code, out, _ = check("agreement", jsonl(tmp_path / "a.jsonl", *lines), "--level", "nominal", "--json")
    assert (code, json.loads(out)["categories"][0]["alpha"]) == (0, pytest.approx(1.0))
    mixed = jsonl(tmp_path / "b.jsonl", *lines, rating(item_id="n", score=1))
    assert (
        "25: score: must be a label, as on lines of 'c' before, got 1"
        in check("agreement", mixed, "--level", "nominal")[2]
    )
    below = jsonl(tmp_path / "c.jsonl", rating(score=-1))
    assert "1: score: must be a number from 0 at ratio level" in check("agreement", below, "--level", "ratio")[2]
    assert "'cardinal' is not one of 'nominal', 'ordinal'" in check("agreement", below, "--level", "cardinal")[2]


def _against(count: int = 60) -> list[dict[str, Any]]:
    """A judge that scores against people, line by line."""
    return [
        {"judge_id": "helpfulness", "item_id": n, "judge_score": 1 + n % 5, "human_score": 5 - n % 5}
        for n in range(count)
    ]


def test_two_lines_off_the_scale_acquit_no_inverted_judge(tmp_path: Path, root: Path) -> None:
    """500 and -500 on both sides outweigh all other pairs in Pearson's correlation."""
    far = [
        {"judge_id": "Helpfulness", "item_id": f"far{score}", "judge_score": score, "human_score": score}
        for score in (500, -500)
    ]
    same = [{**line, "judge_id": "Helpfulness"} for line in _against()]
    code, _, err = check("inversion", jsonl(tmp_path / "far.jsonl", *same, *far), "--configs", root)
    assert code == 2
    assert "far.jsonl:61: judge_score: 500 is none: helpfulness scores INTEGER from 1 to 5" in err.replace("\n", "")


def test_where_pearson_and_spearman_are_of_opposite_sign_nobody_can_tell(tmp_path: Path) -> None:
    """A judge that is not registered has no scale: two far pairs make its Pearson +0.99 at Spearman -0.8."""
    far = [
        {"judge_id": "mine", "item_id": f"far{score}", "judge_score": score, "human_score": score}
        for score in (500, -500)
    ]
    same = [{**line, "judge_id": "mine"} for line in _against()]
    code, out, _ = check("inversion", jsonl(tmp_path / "far.jsonl", *same, *far), "--json")
    (one,) = json.loads(out)["judges"]
    assert one["pearson"] > 0.9
    assert one["spearman"] < -0.5
    assert (code, one["inverted"], "of opposite sign" in one["reason"]) == (1, None, True)


def test_a_line_nested_a_thousand_deep_is_bad_input(tmp_path: Path) -> None:
    deep = f'{{"judge_score": {"[" * 990}{"]" * 990}}}'
    file = tmp_path / "deep.jsonl"
    file.write_text(f'{{"judge_id": "mine", "item_id": 1, "judge_score": {deep}, "human_score": 3}}\n')
    code, _, err = check("inversion", file)
    assert (code, "deep.jsonl:1: must be nested at most 100 levels deep" in err.replace("\n", "")) == (2, True)
