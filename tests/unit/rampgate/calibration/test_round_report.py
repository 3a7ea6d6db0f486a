"""The report of a calibration round: Markdown, and a page that a browser shows."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from rampgate.calibration.report import PAGE, REPORT, report_files
from schemas.calibration_cycle import AgainstPeople, Cycle, NewDriftLimit
from tests.browser import opened

HOSTILE = "<script>document.title='ran'</script>"


def cycle(name: str, pearson: float, kl_limit: float) -> Cycle:
    held: dict[str, Any] = {
        "judge_id": HOSTILE, "n": 200, "effective_n": 180.0, "pearson": pearson, "spearman": pearson,
        "pearson_ci95": (pearson - 0.1, pearson + 0.1), "inverted": pearson < -0.1, "detectable": -0.2, "reason": "r",
    }  # fmt: skip
    drift = NewDriftLimit(judge_id="tone", judge_version="v", items=200, unscored=0, old=0.1, kl_limit=kl_limit)
    return Cycle(
        vertical="shop", round=name, day=date(2026, 11, 20), ticket="PLT-700", report="r", size=200, runs=3,
        acceptable={"*": 4.0}, inversion=[AgainstPeople(**held)], drift=[drift],
    )  # fmt: skip


def test_pf9_fr3_a_rounds_page_is_shown_by_a_browser_and_runs_nothing(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(report_files(cycle("r2", -0.4, 0.2), cycle("r1", 0.3, 0.1))[PAGE])
    shown = opened(page, tmp_path)
    assert (shown.said, shown.asked) == ("", [])
    assert "<title>Calibration of shop, r2</title>" in shown.dom
    for words in ("inverted", "Since r1", "To decide"):
        assert words in shown.dom


def test_a_rounds_report_tells_what_changed_since_the_round_before() -> None:
    text = report_files(cycle("r2", -0.4, 0.2), cycle("r1", 0.3, 0.1))[REPORT]
    rows = [row for row in text.splitlines() if row.startswith(("| Pearson with", "| Limit of drift"))]
    assert [[cell.strip() for cell in row.split("|")[3:6]] for row in rows] == [
        ["0.3", "-0.4", "-0.7"], ["0.1", "0.2", "0.1"]
    ]  # fmt: skip
    assert "Since" not in report_files(cycle("r1", 0.3, 0.1))[REPORT]
    assert "<script" not in text
