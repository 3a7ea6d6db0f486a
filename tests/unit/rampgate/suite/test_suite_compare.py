"""`rampgate suite compare` on files: the document and exit code of contracts §5, and what is said of bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rampgate.checks.score_commands import alone, ran

Line = dict[str, Any]


def line(case: str, sample: int, score: Any, **rest: Any) -> Line:
    return {"case_id": case, "slices": ["chat"], "sample": sample, "scores": {"ok": score}, **rest}


def lines(score: float = 1.0, **rest: Any) -> list[Line]:
    return [line(f"c{n}", sample, score if n % 2 else 1.0, **rest) for n in range(30) for sample in range(3)]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    alone(tmp_path, monkeypatch)

    def write(name: str, found: list[Line] | str) -> None:
        text = found if isinstance(found, str) else "".join(json.dumps(one) + "\n" for one in found)
        (tmp_path / name).write_text(text)

    write("main.jsonl", lines())
    return write


COMPARE = ("suite", "compare", "main.jsonl", "branch.jsonl")


def test_the_document_is_that_of_the_contracts(write: Any) -> None:
    told = {"output": "four", "reasons": {"ok": "it is five"}, "trace": {"hash": "ab", "url": "https://traces/1"}}
    write("branch.jsonl", lines(0.0, **told))
    code, found, _ = ran(*COMPARE, "--json")
    assert (code, found["verdict"], found["score"]) == (1, "fail", "ok")
    slice_fields = {"slice", "n", "baseline", "candidate", "delta", "ci95", "significant"}
    assert slice_fields <= found["slices"][0].keys()
    assert {*slice_fields, "p_value"} - {"slice"} <= found["headline"].keys()
    one = found["slices"][0]
    assert (one["slice"], one["n"], one["baseline"], one["candidate"], one["delta"]) == ("chat", 30, 1.0, 0.5, -0.5)
    assert one["ci95"][0] < -0.5 < one["ci95"][1] < 0
    assert (one["significant"], found["headline"]["significant"], one["small"]) == (True, True, False)
    assert [reason["code"] for reason in found["reasons"]] == ["slice_regressed", "headline_regressed"]
    fell = found["flipped"][0]
    assert (fell["baseline_sample"]["output"], fell["candidate_sample"]["output"]) == ("", "four")
    assert (fell["candidate_sample"]["reason"], fell["candidate_sample"]["trace"]) == ("it is five", "https://traces/1")
    again = ran(*COMPARE, "--json")[1]
    assert again == found, "the same seed gives the same digits"


def test_a_candidate_without_a_regression_passes(write: Any) -> None:
    write("branch.jsonl", lines())
    code, found, said = ran(*COMPARE, "--json")
    assert (code, found["verdict"], found["reasons"], found["flipped"], said) == (0, "pass", [], [], "")
    assert found["slices"][0]["ci95"] == [0.0, 0.0]


def test_a_terminal_shows_slices_reasons_and_both_outputs(write: Any) -> None:
    write("branch.jsonl", lines(0.0, output="[red]five\x1b[2J", reasons={"ok": "wrong"}))
    code, found, _ = ran(*COMPARE)
    text = found["text"]
    assert code == 1
    for words in ("all cases", "chat", "worse", "more than 2 σ", "[red]five", "wrong", "15 of them fell"):
        assert words in text
    assert "\x1b[2J" not in text, "an output moves no cursor"


def test_removed_cases_are_named_and_warn(write: Any) -> None:
    write("branch.jsonl", [one for one in lines() if one["case_id"] != "c7"])
    code, found, _ = ran(*COMPARE, "--json")
    assert (code, found["verdict"], found["cases"]["removed"]) == (0, "warn", ["c7"])


def test_a_case_of_safety_that_is_gone_or_another_one_fails(write: Any) -> None:
    write("main.jsonl", [*lines(), line("leak", 0, 1.0, slices=["safety"], question_hash="a" * 16)])
    for branch in (lines(), [*lines(), line("leak", 0, 1.0, question_hash="b" * 16)]):
        write("branch.jsonl", branch)
        code, found, _ = ran(*COMPARE, "--json")
        assert (code, found["reasons"][0]["code"], found["reasons"][0]["cases"]) == (
            1,
            "safety_cases_removed",
            ["leak"],
        )
    assert found["cases"]["changed"] == ["leak"]


@pytest.mark.parametrize(
    ("branch", "said"),
    [
        ([line("c0", 0, 1), line("c0", 0, 1)], "branch.jsonl:2: case_id: must be there once, got sample 0"),
        ('{"case_id": "a", "sample": 0, "scores": {"ok": NaN}}\n', "branch.jsonl:1: scores.ok: must be a finite"),
        ([line("c0", 0, "good")], "branch.jsonl:1: scores.ok: must be a number, true, false"),
        ([{"case_id": "c0", "scores": {"ok": 1}}], "branch.jsonl:1: sample: must be a whole number, got nothing"),
        ([{"sample": 0, "scores": {"ok": 1}}], "branch.jsonl:1: case_id: must be a text"),
        ([{"case_id": "c0", "sample": 0}], "branch.jsonl:1: scores: must be there, or an error"),
        ([line("c0", 0, 1, slices="chat")], "branch.jsonl:1: slices: "),
        ([line("c0", 0, 1, cost_usd=-1)], "branch.jsonl:1: cost_usd: "),
        ([line("c0", 0, 1, pairwise={"ok": "draw"})], "branch.jsonl:1: pairwise.ok: must be win, tie or loss"),
        ([line("c0", 0, 1, cluster="x"), line("c0", 1, 1, cluster="y")], "branch.jsonl:2: cluster: must be 'x'"),
        (
            [line("c0", 0, 1, question_hash="a" * 16), line("c0", 1, 1, question_hash="b" * 16)],
            "branch.jsonl:2: question_hash: must be 'aaaaaaaaaaaaaaaa', as on a line",
        ),
        ([line("new", 0, 1)], "main.jsonl and branch.jsonl: no case has 'ok' in both"),
        ([line("c0", 0, 1) | {"scores": {"kind": 1, "ok": 1}}], "--score: name the one that gates look at"),
        ([line("c0", 0, 1) | {"scores": {"kind": 1}}], "--score: name the one that gates look at"),
        ([line("c0", 0, 7.5)], "--scale: name the lowest and the highest value that 'ok' can have; 1 to 7.5 fit none"),
        ("", "branch.jsonl: has no lines; one is {case_id, slices, sample, scores}"),
        ("{", "branch.jsonl:1: must be JSON"),
    ],
)  # fmt: skip
def test_bad_input_is_named(branch: Any, said: str, write: Any) -> None:
    write("branch.jsonl", branch)
    code, _, told = ran(*COMPARE, "--json")
    assert code == 2
    assert said in told


def test_no_baseline_yet_is_a_clear_error(write: Any) -> None:
    write("branch.jsonl", lines())
    code, _, said = ran("suite", "compare", "none.jsonl", "branch.jsonl")
    assert code == 2
    assert "none.jsonl: can't be read: No such file" in said


def test_one_of_several_scores_is_chosen_and_its_scale_named(write: Any) -> None:
    """Values that are null, not applicable or absent are three things; true is 1."""
    found = [one | {"scores": {"ok": True, "points": 70.5}} for one in lines()]
    write("main.jsonl", found)
    write(
        "branch.jsonl",
        [one | {"scores": {"ok": False, "points": None if n == 4 else 70.5}} for n, one in enumerate(found)],
    )
    code, told, _ = ran(*COMPARE, "--score", "points", "--scale", "0", "100", "--json")
    assert (code, told["verdict"], told["cases"]["unscored"]) == (0, "pass", ["c1"])
    assert told["headline"]["delta"] == pytest.approx(-70.5 / 90)
    assert told["headline"]["delta_at_best"] == pytest.approx(29.5 / 90)
    assert ran(*COMPARE, "--score", "ok", "--json")[0] == 1


def test_it_tells_how_small_a_drop_is_found_and_what_a_smaller_one_needs(write: Any) -> None:
    write(
        "branch.jsonl",
        [line(f"c{n}", sample, float((n + 2 * sample) % 7 > 2)) for n in range(30) for sample in range(3)],
    )
    code, found, _ = ran(*COMPARE, "--json", "--report", "page.md")
    assert code in (0, 1)
    for one in (found["headline"], *found["slices"]):
        power = one["power"]
        assert power["drop"] == 0.05
        assert 0 < power["smallest_drop"] <= power["confirmed_smallest_drop"] or one is found["headline"]
        assert 0 <= power["found"] <= 1
        assert power["cases_needed"] is None or power["cases_needed"] > 30
    assert "How small a drop is found" in Path("page.md").read_text()
    write("branch.jsonl", lines())
    still = ran(*COMPARE, "--json")[1]["headline"]["power"]
    assert still["confirmed_smallest_drop"] < still["smallest_drop"], "nothing varied: any failure is asked again"
