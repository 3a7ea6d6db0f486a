"""`rampgate calibrate diff`: what changed between two rounds of a vertical, as the later one's report has it."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from rampgate.calibration.folder import folder_of
from rampgate.calibration.report import REPORT, report_files
from schemas.calibration_cycle import AgainstPeople, Cycle, NewDriftLimit, NewFloor, RatedAlike, State, Step, StepDone
from schemas.checks.agreement import AgreementSource, Level
from tests.unit.rampgate.calibration.round_rig import vertical
from tests.unit.rampgate.checks.score_commands import alone, ran

OF = ("calibrate", "diff", "r1", "r2", "--vertical", "shop")


def cycle(name: str, **judges: dict[str, Any]) -> Cycle:
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
THEN = cycle("r1", tone=TONE, brevity=TONE)
NOW = cycle("r2", tone={**TONE, "alpha": 0.8, "pearson": -0.4, "version": "v2", "proposed": False}, depth=TONE)


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = vertical(tmp_path)
    alone(tmp_path, monkeypatch)
    for one in (THEN, NOW):
        folder_of(root, "shop", one.round).save(one)
    return root


def test_pf9_5_3_what_changed_between_two_rounds_is_told(
    configs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, found, _ = ran(capsys, monkeypatch, *OF, "--configs", str(configs), "--json")
    assert (code, found["judges_added"], found["judges_removed"]) == (0, ["depth"], ["brevity"])
    of_tone = {one["what"]: (one["then"], one["now"]) for one in found["changes"] if one["of"].endswith("tone")}
    assert of_tone == {
        "Alpha": (0.7, 0.8), "Pearson with people": (0.5, -0.4), "Inverted": ("no", "yes"), "Floor": (3.0, None),
        "Version": ("v1", "v2"),
    }  # fmt: skip
    assert next(one["difference"] for one in found["changes"] if one["what"] == "Alpha") == pytest.approx(0.1)
    assert found["same"] == 2, "the cut and the limit of drift of tone, which both rounds have"


def test_a_terminal_shows_what_changed_and_counts_the_rest(
    configs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    code, found, _ = ran(capsys, monkeypatch, *OF, "--configs", str(configs))
    assert code == 0
    words = [line.split() for line in found["text"].splitlines()]
    assert ["Alpha", "returns,", "tone", "0.7", "0.8", "0.1"] in words
    assert ["Inverted", "tone", "no", "yes"] in words
    assert "brevity: no longer in the round" in found["text"]
    assert "2 as they were" in found["text"]


def test_the_report_of_a_round_tells_the_same_changes(
    configs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ran(capsys, monkeypatch, *OF, "--configs", str(configs), "--json")[1]
    text = report_files(NOW, THEN)[REPORT]
    rows = {(cells[1].strip(), cells[2].strip()) for row in text.splitlines() if len(cells := row.split("|")) == 7}
    assert {(one["what"], one["of"]) for one in found["changes"]} <= rows
    assert "depth: new in this round" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("r1", "r9"), "r9: no such round; there are: r1, r2"),
        (("r1", "../r2"), "is no name"),
    ],
)
def test_a_round_that_is_not_there_is_refused_with_those_that_are(
    words: tuple[str, str],
    said: str,
    configs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = ("calibrate", "diff", *words, "--vertical", "shop", "--configs", str(configs))
    code, _, error = ran(capsys, monkeypatch, *own)
    assert code == 2
    assert said in " ".join(error.split())


def test_a_round_without_its_report_is_refused_with_the_command_that_goes_on(
    configs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of(configs, "shop", "r2").save(NOW.model_copy(update={"steps": {}}))
    code, _, error = ran(capsys, monkeypatch, *OF, "--configs", str(configs))
    assert code == 2
    assert "`rampgate calibrate jade --vertical shop --round r2`" in " ".join(error.split())
    assert ran(capsys, monkeypatch, *OF[:-1], "nobody", "--configs", str(configs))[0] == 2
