"""`--report` of `check inversion`, `drift` and `agreement`: a page and Markdown of what `--json` tells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rampgate.report.html import html
from rampgate.report.markdown import markdown
from rampgate.report.model import Report, Section
from rampgate.report.values import MOST_ROWS
from tests.browser import opened, overflow
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.rampgate.checks.report_pages import HOSTILE, Page
from tests.unit.rampgate.checks.score_commands import ran, scored
from tests.unit.rampgate.ci_gate.gate_rig import jsonl

FIGURES = {
    "inversion": ("Pearson", "Spearman", "95 %", "60"),
    "drift": ("KL", "Ceiling", "Unscored", "100"),
    "agreement": ("Alpha", "95 %", "0.667", "ordinal"),
}
"""What a page has of its check's figures."""


def pairs(judge: str, sign: int) -> list[dict[str, Any]]:
    return [
        {"judge_id": judge, "item_id": f"i{n}", "judge_score": sign * (n % 7) + n % 3, "human_score": n % 7}
        for n in range(60)
    ]


def ratings(category: str, apart: int) -> list[dict[str, Any]]:
    return [
        {"category": category, "item_id": f"{HOSTILE}{n}", "annotator": who, "score": (n + apart * place * n) % 5}
        for n in range(30)
        for place, who in enumerate(("ann", "bob"))
    ]


CHECKS = {
    "inversion": (["human.jsonl"], ["1 inverted", "not inverted"]),
    "drift": (["then.jsonl", "now.jsonl"], ["unknown of 1", "no limit"]),
    "agreement": (["rated.jsonl"], ["1 quarantined", "clears", "items to talk about", "codebook entries"]),
}
"""Each check's files, and what its report says."""


@pytest.fixture(autouse=True)
def files(in_an_empty_folder: None, tmp_path: Path) -> None:
    written(tmp_path)
    jsonl(tmp_path / "human.jsonl", *pairs(HOSTILE, -1), *pairs("sound", 1))
    jsonl(tmp_path / "then.jsonl", *scored(HOSTILE, [1, 2, 3, 4, 5] * 20))
    jsonl(tmp_path / "now.jsonl", *scored(HOSTILE, [2, 3, 4, 5, 5] * 20))
    jsonl(tmp_path / "rated.jsonl", *ratings(HOSTILE, 1), *ratings("sound", 0))


def reported(check: str, report: Path) -> tuple[int, dict[str, Any], str]:
    """Runs a check of its files with a report."""
    return ran("check", check, *CHECKS[check][0], "--report", report, "--json")


@pytest.mark.parametrize("check", CHECKS)
def test_a_report_says_what_was_found_and_runs_nothing_that_a_file_brings(check: str, tmp_path: Path) -> None:
    page, text = tmp_path / "report.html", tmp_path / "summary"
    text.write_text("before\n")
    for file in (page, text):
        code, told, _ = reported(check, file)
        assert code == 1
        assert told, "the document stays what it is"
    whole = Page(page.read_text())
    assert not {"script", "img", "a", "iframe", "link"} & set(whole.tags)
    assert "default-src 'none'" in page.read_text(), "a browser loads nothing for it"
    summary = text.read_text()
    assert summary.startswith("before\n## ")
    assert "<script" not in summary
    assert "@team" not in summary
    assert not re.search(r"^# ", summary, re.MULTILINE)
    for said in CHECKS[check][1]:
        assert said in whole.words, whole.words
        assert said in summary
    for table in summary.split("\n\n"):
        rows = [re.sub(r"\\.", "", row).count("|") for row in table.splitlines() if row.startswith("| ")]
        assert len(set(rows)) <= 1, "no text ends a cell"


@pytest.mark.parametrize("check", CHECKS)
def test_a_browser_shows_the_page_asks_for_nothing_and_nobody_scrolls_sideways(check: str, tmp_path: Path) -> None:
    page = tmp_path / f"{check}.html"
    reported(check, page)
    shown = opened(page, tmp_path)
    assert (shown.said, shown.asked) == ("", [])
    seen = Page(shown.dom).words
    for said in (*CHECKS[check][1], *FIGURES[check]):
        assert said in seen, seen
    for width in (1100, 500):
        assert overflow(page, tmp_path, width) <= 0, f"wider than {width} pixels"


def test_a_page_that_is_too_wide_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "wide.html"
    page.write_text('<!doctype html><body><p style="width:1300px">wide</p></body>')
    assert overflow(page, tmp_path, 1100) > 100


@pytest.mark.parametrize("check", CHECKS)
def test_a_report_goes_to_a_folder_that_exists_or_the_check_does_not_begin(check: str, tmp_path: Path) -> None:
    code, _, told = reported(check, tmp_path / "nowhere" / "report.html")
    assert (code, "--report" in told) == (2, True), told


def test_a_report_of_very_many_rows_says_how_many_it_leaves_out() -> None:
    rows = [[f"i{n}", n / 7, None, (0.1, 0.25), 1_234] for n in range(MOST_ROWS + 5)]
    report = Report("T", "fine", "pass", [Section("S", ("a", "b", "c", "d", "e"), rows)])
    for made in (html(report), markdown(report)):
        assert "5 rows more" in made
        assert "0.1 to 0.25" in made
        assert "1,234" in made
