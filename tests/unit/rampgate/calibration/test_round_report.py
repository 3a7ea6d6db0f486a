"""The report of a calibration round: Markdown, and a page that a browser shows. PF-9 §5.3: what changed between two
rounds of a vertical, as the later one's report has it."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from rampgate.calibration.report import PAGE, REPORT, report_files
from schemas.calibration_cycle import AgainstPeople, Cycle, NewDriftLimit, NewFloor, RatedAlike, State, Step, StepDone
from schemas.checks.agreement import AgreementSource, Level
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


def cycle_of(name: str, **judges: dict[str, Any]) -> Cycle:
    """A reported round; of each judge alpha, pearson, floor, whether that is proposed, version, limit of drift."""
    agreement, inversion, floors, drift = [], [], [], []
    for judge, one in judges.items():
        agreement.append(
            RatedAlike(
                category="returns", judge_id=judge, level=Level.ORDINAL, alpha=one["alpha"], alpha_ci95=None,
                n_items=200, n_ratings=400, threshold=0.667, baseline_source=AgreementSource.PROVISIONAL_SEED,
                passed=True, reason="", pairwise_agreement=0.9,
            )
        )  # fmt: skip
        inversion.append(
            AgainstPeople(
                judge_id=judge, n=200, effective_n=180.0, pearson=one["pearson"], pearson_ci95=None, spearman=None,
                inverted=one["pearson"] < 0, detectable=None, reason="",
            )
        )  # fmt: skip
        floors.append(
            NewFloor(
                judge_id=judge, old=2.0, floor=one["floor"], acceptable=4.0, traces=200, n=150, mean=4.2, sigma=0.5,
                breach_probability=0.01, detectable_drop=0.4, proposed=one.get("proposed", True), reason="",
            )
        )  # fmt: skip
        drift.append(
            NewDriftLimit(
                judge_id=judge, judge_version=one["version"], items=200, unscored=0, old=0.1, kl_limit=one["kl"]
            )
        )
    return Cycle(
        vertical="shop", round=name, day=date(2026, 11, int(name[1:])), ticket="PLT-700", report="r", size=200, runs=3,
        acceptable={"*": 4.0}, agreement=agreement, inversion=inversion, floors=floors, drift=drift,
        steps={Step.REPORT: StepDone(state=State.DONE)},
    )  # fmt: skip


TONE = {"alpha": 0.7, "pearson": 0.5, "floor": 3.0, "version": "v1", "kl": 0.1}
THEN = cycle_of("r1", tone=TONE, brevity=TONE)
NOW = cycle_of("r2", tone={**TONE, "alpha": 0.8, "pearson": -0.4, "version": "v2", "proposed": False}, depth=TONE)


def test_pf9_5_3_a_rounds_report_has_what_changed_since_the_one_before() -> None:
    text = report_files(NOW, THEN)[REPORT]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines() if row.count("|") == 6]
    of_tone = {what: (then, now, by) for what, of, then, now, by in rows if of.endswith("tone")}
    assert of_tone == {
        "Alpha": ("0.7", "0.8", "0.1"), "Pearson with people": ("0.5", "-0.4", "-0.9"), "Inverted": ("no", "yes", ""),
        "Acceptable from": ("4", "4", "0"), "Floor": ("3", "", ""), "Version": ("v1", "v2", ""),
        "Limit of drift": ("0.1", "0.1", "0"),
    }  # fmt: skip
    assert "depth: new in this round" in text
    assert "brevity: no longer in the round" in text
    assert "Since r1" not in report_files(NOW)[REPORT]
