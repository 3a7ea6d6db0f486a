"""`--report` of `suite compare`, `suite run` and `suite report`: a page, Markdown, JUnit, JSON of what `--json` tells.
None runs anything that an output brings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rampgate.local.model.server import Running
from rampgate.suite.report.comparison import comparison_report
from tests.browser import opened
from tests.unit.rampgate.checks.report_pages import HOSTILE, Page
from tests.unit.rampgate.checks.score_commands import alone, ran
from tests.unit.rampgate.ci_gate.gate_commands import commands
from tests.unit.rampgate.ci_gate.gate_rig import Rig, jsonl
from tests.unit.rampgate.junit_files import junit_suite
from tests.unit.rampgate.suite.suite_folders import case, written

COMPARE = ("suite", "compare", "main.jsonl", "branch.jsonl")
IMAGE = '<img src="http://evil.test/x.png" onerror="document.title=1"><script src="http://evil.test/x.js"></script>'


def lines(bad: float, **rest: Any) -> list[dict[str, Any]]:
    """Thirty cases of two slices and two of safety; the odd ones get `bad`."""
    return [
        {
            "case_id": f"c{n}", "slices": ["safety"] if n >= 30 else ["even" if n % 2 == 0 else HOSTILE],
            "sample": sample, "scores": {"ok": bad if n % 2 else 1.0}, "latency_ms": 100.0 * sample + n, **rest,
        }
        for n in range(32)
        for sample in (1, 2, 3)
    ]  # fmt: skip


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    alone(tmp_path, monkeypatch)
    jsonl(tmp_path / "main.jsonl", *lines(1.0, output="You have 30 days.", cost_usd=0.001))
    hostile = {"output": f"{IMAGE}\n{HOSTILE}", "reasons": {"ok": f"{HOSTILE} says the judge"}}
    jsonl(tmp_path / "branch.jsonl", *lines(0.0, **hostile, trace={"url": "https://traces.test/t/1?a=b&c"}))
    return tmp_path


def reported(folder: Path, *words: str) -> dict[str, Any]:
    reports = [word for ending in ("html", "md", "json", "xml") for word in ("--report", str(folder / f"r.{ending}"))]
    code, found, _ = ran(*words, *reports, "--json")
    assert code < 2
    return found


def test_a_page_shows_first_why_and_both_outputs_side_by_side_and_nothing_of_them_runs(files: Path) -> None:
    """Opened in a browser: no script, no picture, no request comes of a hostile output, and links lead to traces."""
    reported(files, *COMPARE)
    shown = opened(files / "r.html", files)
    assert shown.asked == []
    assert shown.said == ""
    assert "<title>branch.jsonl against main.jsonl</title>" in shown.dom
    page = Page(shown.dom)
    assert not {"script", "img", "iframe", "link"} & set(page.tags)
    assert 'href="https://traces.test/t/1?a=b&amp;c"' in shown.dom
    for said in (
        "blocked",
        "safety_regressed",
        "slice_regressed",
        "You have 30 days.",
        "says the judge",
        "0.096",
        "worse (p = 0.05)",
    ):
        assert said in page.words, said
    assert page.words.index("safety_regressed") < page.words.index("You have 30 days.") < page.words.index("Delta")
    assert page.words.index("c31 (safety)") < page.words.index("c1 ("), "cases of safety come first"
    assert "svg" in page.tags
    assert (files / "page.png").stat().st_size > 10_000


def test_markdown_of_a_comparison_brings_nothing_of_an_output_to_life(files: Path) -> None:
    reported(files, *COMPARE)
    text = (files / "r.md").read_text()
    assert text.startswith("## ❌ branch.jsonl against main.jsonl: blocked")
    assert "](<https://traces.test/t/1?a=b&amp;c>)" in text
    assert not re.search(r"<(img|script)", text)
    assert "@team" not in text
    for table in text.split("\n\n"):
        rows = [re.sub(r"\\.", "", row).count("|") for row in table.splitlines() if row.startswith("| ")]
        assert len(set(rows)) <= 1, "no text ends a cell"


def test_junit_has_a_test_for_each_slice_and_a_failed_one_names_its_slice_and_cases(files: Path) -> None:
    found = reported(files, *COMPARE)
    suite = junit_suite((files / "r.xml").read_bytes())
    tests = {str(one.get("name")): one.find("failure") for one in suite}
    assert len(tests) == len(found["slices"]) + 3, "one for safety, one for all cases, one for the whole"
    failed = {name: failure.get("type") for name, failure in tests.items() if failure is not None}
    broken = next(name for name in tests if name.startswith("<script>"))
    safety = "safety: no case fails that never did"
    slices = {"safety": "slice_regressed", broken: "slice_regressed", "all cases": "headline_regressed"}
    assert failed == {safety: "safety_regressed"} | slices
    told = "".join(suite.itertext())
    assert "c31: 1 → 0" in told
    assert "baseline: You have 30 days." in told
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == (str(len(tests)), "4", "0")
    assert json.loads((files / "r.json").read_text()) == found


def test_missing_scores_that_decide_are_an_error_and_no_failure_of_a_test(files: Path) -> None:
    unscored = [one | {"scores": {"ok": None if one["case_id"] == "c31" else 1.0}} for one in lines(1.0)]
    jsonl(files / "branch.jsonl", *unscored)
    reported(files, *COMPARE)
    suite = junit_suite((files / "r.xml").read_bytes())
    assert (suite.get("failures"), suite.get("errors")) == ("0", "2"), "of the case, and of its slice"


def test_annotations_name_what_blocks_on_stderr_beside_the_document(files: Path) -> None:
    code, found, said = ran(*COMPARE, "--report", "github", "--json")
    assert (code, found["verdict"]) == (1, "fail")
    told = said.splitlines()
    assert [line.split(" ")[0] for line in told].count("::error") == len(found["reasons"])
    assert any("safety_regressed" in line for line in told)
    assert told[-1].startswith("::notice title=branch.jsonl against main.jsonl::blocked")


def test_a_page_of_equal_runs_says_that_nothing_regresses(files: Path) -> None:
    (files / "branch.jsonl").write_bytes((files / "main.jsonl").read_bytes())
    found = reported(files, *COMPARE)
    report = comparison_report(found, "a run")
    said = "no regression found; 1 of 3 slices is too small to tell"
    assert (report.result, report.tone, found["said"]) == (said, "pass", said)
    assert [one["word"] for one in found["slices"]] == ["holds", "holds", "cannot tell"]
    told = junit_suite((files / "r.xml").read_bytes())
    assert [one.findtext("system-out") for one in told if one.get("name") == "safety"] == ["cannot tell"]
    assert said in (files / "r.md").read_text()
    assert said in ran(*COMPARE, "--report", "github", "--json")[2]
    assert said in ran(*COMPARE)[1]["text"]
    assert "Why" not in [section.title for section in report.sections]


def test_a_report_goes_to_a_folder_that_exists_or_nothing_is_read(files: Path) -> None:
    code, _, said = ran(*COMPARE, "--report", str(files / "nowhere" / "r.html"))
    assert (code, "--report" in said) == (2, True)


def test_stored_runs_show_the_trend_of_each_slice(files: Path) -> None:
    jsonl(files / "third.jsonl", *lines(0.5))
    words = ("suite", "report", "main.jsonl", "third.jsonl", "branch.jsonl", "--scale", "0", "1")
    found = reported(files, *words)
    by_slice = {one["slice"]: one for one in found["slices"]}
    assert by_slice[None]["means"] == pytest.approx([1.0, 0.75, 0.5])
    assert by_slice["even"]["means"] == [1.0, 1.0, 1.0]
    assert by_slice["safety"]["change"] == -0.5
    assert [one["run"] for one in found["runs"]] == ["main.jsonl", "third.jsonl", "branch.jsonl"]
    assert found["runs"][0]["cost_usd"] == pytest.approx(0.096)
    assert (found["runs"][0]["latency_p50_ms"], found["runs"][1]["cost_usd"]) == (215.0, None)
    page = Page((files / "r.html").read_text())
    assert "svg" in page.tags
    assert "third.jsonl" in page.words
    assert "█" in (files / "r.md").read_text()
    code, told, _ = ran(*words)
    assert (code, "over 3 runs" in told["text"]) == (0, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("main.jsonl", "none.jsonl"), "none.jsonl: can't be read"),
        (("main.jsonl", "--score", "kind"), "--score: no line of the main.jsonl has 'kind'"),
    ],
)
def test_a_run_that_can_not_be_shown_is_named(
    words: tuple[str, ...],
    said: str,
    files: Path,
) -> None:
    code, _, told = ran("suite", "report", *words)
    assert (code, said in told) == (2, True), told


def test_a_run_s_page_has_the_stored_trace_of_a_case_that_fell_and_links_to_it(
    tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    with commands(Rig(tmp_path, model.url).environment, monkeypatch):
        path = written(tmp_path / "suite", [case(number) for number in range(20)])
        main, page = tmp_path / "main.jsonl", tmp_path / "r.html"
        words = ("suite", "run", str(path), "--out", str(main), "--report", str(page), "--first-run", "--json")
        ran(*words)
        assert "Runs" in Page(page.read_text()).words, "a run without a baseline is shown, too"
        (path.parent / "prompt.md").write_text("bad\n")
        words = ("suite", "run", str(path), "--baseline", str(main), "--report", str(page), "--json")
        code, found, _ = ran(*words)
    trace = found["comparison"]["flipped"][0]["candidate_sample"]["trace"]
    text = page.read_text()
    assert code == 1
    assert f'href="#trace-{trace}"' in text
    assert f'id="trace-{trace}"' in text
    assert '"latency_ms"' in Page(text).words
