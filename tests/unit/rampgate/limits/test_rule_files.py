"""New limits go into the rule files of one vertical, and into no one else's (PF-9 §5.2, §5.3, AC-8)."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalcore.gates.gate import judged
from evalcore.gates.judged import Judged
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import build
from evalcore.validation import checked, validate_root
from rampgate.console import Failure
from rampgate.limits.rule_files import NewLimits, write_limits
from schemas.judges import BaselineSource, Milestone
from schemas.verdicts import JudgeStanding
from tests.unit.evalcore.registry.registry_disk import rewritten, written
from tests.unit.rampgate.checks.score_commands import AGREEING, calibrated, ran, rated, scored
from tests.unit.rampgate.ci_gate.gate_rig import jsonl

pytestmark = pytest.mark.usefixtures("configs")
OWN = "rules/shop/helpfulness.yaml"
DAY = date(2026, 11, 21)


@pytest.fixture(autouse=True)
def on_one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.registry.disk.today", lambda: DAY)


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """A registry in which the vertical `shop` has a rule file with comments, and `travel` has one too."""
    root = written(tmp_path)
    rewritten(root / OWN, "threshold: 4.5\n", "# the least that shop takes\nthreshold: 4.5\n")
    (root / "rules/travel").mkdir()
    (root / "rules/travel/helpfulness.yaml").write_text((root / OWN).read_text().replace("shop", "travel"))
    return root


def calibrate(source: str, lines: list[dict[str, Any]], *words: str) -> tuple[int, dict[str, Any], str]:
    return calibrated(source, lines, "--vertical", "shop", "--configs", "configs", "--json", *words)


def contents(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(root.parent.rglob("*")) if path.is_file()}


def test_pf9_ac8_5_3_a_jade_round_changes_the_limits_of_its_vertical_alone(configs: Path) -> None:
    before = contents(configs)
    words = ("--acceptable", "4", "--ticket", "PLT-700", "--report", "Confluence 700", "--write")
    code, told, _ = calibrate("jade", rated("helpfulness", AGREEING), *words)
    after = contents(configs)
    assert (code, told["written"], [one["judge_id"] for one in told["changes"]]) == (0, True, ["helpfulness"])
    scores = configs.parent / "scores.jsonl"
    assert {path for path in after if after[path] != before.get(path)} - {scores} == {configs / OWN}
    text = (configs / OWN).read_text()
    assert "# the least that shop takes\nthreshold: 4.5\n" in text, "comments and other fields stay"
    stated = yaml.safe_load(text)
    of_floor = stated["floor_provenance"]
    assert (stated["floor"], of_floor["baseline_source"], of_floor["calibration_ref"]) == (
        3, "jade_calibration", "PLT-700",
    )  # fmt: skip
    facts = of_floor["calibration"]
    assert (facts["traces"], facts["report"], facts["calibrated_on"]) == (220, "Confluence 700", DAY)
    assert facts["agreement"]["metric"] == "krippendorff_alpha"
    assert facts["agreement"]["value"] > 0.9
    assert facts["inverted_findings"] == "None of 1 judges."
    assert of_floor["recalibration_due"] == DAY + timedelta(days=180)
    assert validate_root(configs).errors == []


JADE = ("--acceptable", "4", "--ticket", "PLT-700", "--report", "Confluence 700", "--write")


def test_pf9_fr3_fr4_ac9_a_round_gives_a_threshold_that_people_set_no_source_and_no_days(configs: Path) -> None:
    """PF-9 FR-3, AC-9: the seed's threshold stays a seed's, and blocks a ramp once its 90 days are over."""
    before = yaml.safe_load((configs / OWN).read_text())
    assert calibrate("jade", rated("helpfulness", AGREEING), *JADE)[0] == 0
    stated = yaml.safe_load((configs / OWN).read_text())
    for name in ("threshold", "baseline_source", "recalibration_due", "calibration"):
        assert stated[name] == before[name]
    again = (configs / OWN).read_bytes()
    assert calibrate("jade", rated("helpfulness", AGREEING), *JADE)[0] == 0
    assert (configs / OWN).read_bytes() == again, "the same scores change nothing"
    words = ("rules", "list", "--configs", str(configs), "--vertical", "shop", "--json")
    (judge,) = [one for one in ran(*words)[1]["judges"] if one["id"] == "helpfulness"]
    assert (judge["baseline_source"], judge["floor_provenance"]["baseline_source"]) == (
        "provisional_seed", "jade_calibration",
    )  # fmt: skip
    late = before["recalibration_due"] + timedelta(days=1)
    found = gated(configs, late, "shop")
    assert found.overdue_days == 1, "AC-9 asks of the threshold's seed"
    assert (found.standing, found.recalibration_due) == (JudgeStanding.OVERDUE, str(before["recalibration_due"]))


def test_pf9_fr3_ac9_a_verticals_floor_gives_the_platforms_threshold_no_source(configs: Path) -> None:
    lines = [{**one, "judge_id": "brevity"} for one in rated("helpfulness", AGREEING)]
    assert calibrate("jade", lines, *JADE)[0] == 0
    stated = yaml.safe_load((configs / "rules/shop/brevity.yaml").read_text())
    assert (stated["floor"], stated["baseline_source"], "threshold" in stated) == (3, "jade_calibration", False)
    assert gated(configs, date(2027, 2, 19), "shop", "brevity").overdue_days == 1, "of the central file's seed"
    assert gated(configs, date(2027, 2, 18), "shop", "brevity").standing is JudgeStanding.PROVISIONAL


def test_pf9_5_3_a_threshold_below_the_new_floor_gets_a_proposal(configs: Path) -> None:
    """From the same scores, so from the same source."""
    before = (configs / OWN).read_bytes()
    high = [{**one, "judge_score": 5, "human_score": 5} for one in rated("helpfulness", AGREEING)]
    high[:40] = [{**one, "judge_score": 1, "human_score": 1} for one in high[:40]]
    words = tuple(word for word in JADE if word != "--write")
    code, told, _ = calibrate("jade", high, *words)
    assert (code, (configs / OWN).read_bytes()) == (0, before)
    diff = told["changes"][0]["diff"]
    assert "-threshold: 4.5\n+threshold: 5.0\n" in diff
    assert calibrate("jade", high, *JADE)[0] == 0
    stated = yaml.safe_load((configs / OWN).read_text())
    assert (stated["floor"], stated["threshold"], stated["baseline_source"]) == (5, 5, "jade_calibration")
    assert "floor_provenance" not in stated
    assert validate_root(configs).errors == []
    again = (configs / OWN).read_bytes()
    assert calibrate("jade", high, *JADE)[0] == 0
    assert (configs / OWN).read_bytes() == again


@pytest.mark.parametrize(
    ("platform", "own", "proposed", "source"),
    [
        ("{pre_merge: 4, pre_ramp: 3, pre_full: 4}", None, {"pre_ramp": 3.5}, "production_distribution"),
        ("4", None, None, "production_distribution"),
        ("3", None, 3.5, "production_distribution"),
        ("3", "3.5", "3.5", "provisional_seed"),
        ("3", "{default: 3, pre_full: 4.5}", {"pre_full": 4.5, "pre_merge": 3.5, "pre_ramp": 3.5}, "provisional_seed"),
        ("3", "{default: 4.5, pre_ramp: 3}", {"default": 4.5, "pre_ramp": 3.5}, "provisional_seed"),
    ],
)
def test_pf9_5_3_only_what_lies_below_the_floor_is_raised(
    configs: Path, platform: str, own: str | None, proposed: Any, source: str
) -> None:
    """What a vertical stated and keeps leaves its source in force."""
    rewritten(configs / "rules/helpfulness.yaml", "threshold: 4\n", f"threshold: {platform}\n")
    rewritten(configs / OWN, "# the least that shop takes\nthreshold: 4.5\n", f"threshold: {own}\n" if own else "")
    rewritten(configs / "rules/travel/helpfulness.yaml", "threshold: 4.5\n", "")
    facts = {"window_days": 30, "percentile": 5, "sigma": 2}
    source_of = BaselineSource.PRODUCTION_DISTRIBUTION
    new = NewLimits("helpfulness", source_of, DAY, DAY + timedelta(days=180), 3.5, calibration_ref="PLT-1", facts=facts)
    write_limits(configs, "shop", [new])
    stated = yaml.safe_load((configs / OWN).read_text())
    assert stated.get("threshold") == (yaml.safe_load(proposed) if isinstance(proposed, str) else proposed)
    assert (stated["floor"], stated["baseline_source"]) == (3.5, source)
    assert ("floor_provenance" in stated) is (source == "provisional_seed")
    assert validate_root(configs).errors == []
    assert write_limits(configs, "shop", [new]) == []


def test_pf9_fr3_a_seed_leaves_the_floor_its_own_source_and_days(configs: Path) -> None:
    rewritten(configs / OWN, "threshold: 4.5\n", "threshold: 4.5\nfloor: 2.5\n")
    rewritten(configs / OWN, "seeded_on: 2026-11-20", "seeded_on: 2026-11-10")
    rewritten(configs / OWN, "recalibration_due: 2027-02-18", "recalibration_due: 2027-02-08")
    assert calibrate("seed", scored("helpfulness", [5] * 30 + [4]), "--write")[0] == 0
    stated = yaml.safe_load((configs / OWN).read_text())
    assert (stated["threshold"], stated["calibration"]["seeded_on"]) == (pytest.approx(4.609, abs=0.001), DAY)
    assert stated["floor_provenance"]["calibration"]["seeded_on"] == date(2026, 11, 10)
    assert stated["floor_provenance"]["recalibration_due"] == date(2027, 2, 8)
    assert validate_root(configs).errors == []
    assert calibrate("seed", scored("helpfulness", [5] * 40 + [4]), "--write")[0] == 0
    again = yaml.safe_load((configs / OWN).read_text())
    assert again["threshold"] > stated["threshold"]
    assert again["floor_provenance"] == stated["floor_provenance"], "the next seed is not the floor's either"


def gated(configs: Path, day: date, vertical: str, judge: str = "helpfulness") -> Judged:
    """What a gate of that day sees of the judge."""
    registry = build(checked(read_tree(configs), day)[0])
    return judged(judge, registry.judge(judge, vertical), Milestone.PRE_RAMP, [], [], "", day)


def test_without_write_the_change_is_shown_and_a_second_run_changes_nothing(configs: Path) -> None:
    before = contents(configs)
    lines = scored("helpfulness", [4.5, 4.6, 4.7, 4.8])
    code, told, err = calibrate("seed", lines)
    assert (code, told, "4.5 is no score" in err) == (2, told, True)
    lines = scored("helpfulness", [5] * 30 + [4])
    code, told, _ = calibrate("seed", lines)
    assert (code, told["written"]) == (0, False)
    assert "+threshold: 4.6" in told["changes"][0]["diff"]
    assert {path for path, content in contents(configs).items() if content != before.get(path)} == {
        configs.parent / "scores.jsonl"
    }
    assert calibrate("seed", lines, "--write")[0] == 0
    written_once = contents(configs)
    code, told, _ = calibrate("seed", lines, "--write")
    assert (code, told["changes"]) == (0, [])
    assert contents(configs) == written_once


def test_a_judge_without_a_proposal_is_not_written_and_one_below_the_platform_neither(configs: Path) -> None:
    before = (configs / OWN).read_bytes()
    code, told, _ = calibrate("production", scored("helpfulness", [1, 2, 3, 4, 5] * 40), "--write")
    assert (code, told["changes"], told["judges"][0]["block"]) == (1, [], None)
    code, told, _ = calibrate("production", scored("helpfulness", [2] * 100 + [3] * 2), "--write")
    assert (code, told["changes"]) == (1, [])
    assert "below the platform's floor, 2" in told["judges"][0]["reason"]
    code, told, _ = calibrate("production", scored("stranger", [0.8, 0.85, 0.9] * 60), "--write")
    assert (code, told["changes"]) == (1, [])
    assert "is not registered" in told["judges"][0]["reason"]
    assert (configs / OWN).read_bytes() == before


def test_pf9_5_3_no_seed_takes_the_place_of_a_calibration(configs: Path) -> None:
    assert calibrate("production", scored("helpfulness", [4, 5] * 60), "--write")[0] == 0
    calibrated = (configs / OWN).read_bytes()
    code, told, _ = calibrate("seed", scored("helpfulness", [5] * 30 + [4]), "--write")
    assert (code, told["changes"], (configs / OWN).read_bytes()) == (1, [], calibrated)
    assert "a seed is for a judge that has none" in told["judges"][0]["reason"]


def test_a_limit_that_the_linter_would_refuse_is_not_written(configs: Path) -> None:
    """A threshold below the floor that stands beside it."""
    rewritten(configs / OWN, "threshold: 4.5\n", "threshold: 4.9\nfloor: 4.9\n")
    before = (configs / OWN).read_bytes()
    code, told, _ = calibrate("seed", scored("helpfulness", [5] * 30 + [4]), "--write")
    assert (code, told["changes"], (configs / OWN).read_bytes()) == (1, [], before)
    assert "is below its floor" in told["judges"][0]["reason"]


def test_old_scores_looked_at_again_make_a_limit_no_younger(configs: Path) -> None:
    day = DAY - timedelta(days=10)
    facts = {"window_days": 30, "percentile": 5, "sigma": 2}

    def new(since: int, floor: float = 3.5) -> NewLimits:
        made, source = day + timedelta(days=since), BaselineSource.PRODUCTION_DISTRIBUTION
        due = made + timedelta(days=180)
        return NewLimits("helpfulness", source, made, due, floor=floor, calibration_ref="sha256:1", facts=facts)

    assert len(write_limits(configs, "shop", [new(0)])) == 1
    assert write_limits(configs, "shop", [new(5)]) == []
    (change,) = write_limits(configs, "shop", [new(5, floor=3.6)])
    assert f"+  recalibration_due: {day + timedelta(days=185)}" in change.diff


def test_a_vertical_gets_a_file_for_a_judge_that_it_had_none_of_and_its_drift_limit(configs: Path) -> None:
    new = NewLimits(
        "brevity", BaselineSource.PROVISIONAL_SEED, DAY, DAY + timedelta(days=90), threshold=4.25,
        calibration_ref="PLT-1", kl_threshold=0.08,
    )  # fmt: skip
    (change,) = write_limits(configs, "shop", [new], write=False)
    assert (change.before, change.path.exists()) == (b"", False)
    write_limits(configs, "shop", [new])
    stated = yaml.safe_load(change.path.read_text())["drift"]
    assert (stated["kl_threshold"], stated["calibration_ref"]) == (0.08, "PLT-1")
    assert stated["calibration"] == {"seeded_on": DAY}
    assert validate_root(configs).errors == []
    assert write_limits(configs, "shop", [new]) == []


def test_where_the_platform_asks_for_more_at_a_milestone_a_vertical_asks_for_as_much(configs: Path) -> None:
    rewritten(configs / "rules/brevity.yaml", "threshold: 4\n", "threshold: {pre_merge: 4, pre_ramp: 3, pre_full: 4}\n")
    due = DAY + timedelta(days=90)
    new = NewLimits("brevity", BaselineSource.PROVISIONAL_SEED, DAY, due, threshold=3.5, calibration_ref="PLT-1")
    (change,) = write_limits(configs, "shop", [new])
    assert yaml.safe_load(change.after)["threshold"] == {"pre_merge": 4, "pre_ramp": 3.5, "pre_full": 4}
    assert validate_root(configs).errors == []
    with pytest.raises(Failure, match="below the platform's threshold, 3"):
        write_limits(configs, "shop", [NewLimits("brevity", new.source, new.set_on, new.due, threshold=2.9)])


def test_nothing_is_written_where_one_of_several_can_not_be(configs: Path) -> None:
    before = contents(configs)
    due = DAY + timedelta(days=90)
    good = NewLimits("helpfulness", BaselineSource.PROVISIONAL_SEED, DAY, due, threshold=4.6)
    bad = NewLimits("brevity", BaselineSource.PROVISIONAL_SEED, DAY, due, threshold=9.0)
    with pytest.raises(Failure, match="would hold an error"):
        write_limits(configs, "shop", [good, bad])
    with pytest.raises(Failure, match="no vertical"):
        write_limits(configs, "nowhere", [good])
    assert contents(configs) == before


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--acceptable", "4", "--write"), "--ticket"),
        (("--acceptable", "4", "--write", "--ticket", "PLT-1"), "--report"),
        (("--acceptable", "4", "--ticket", " PLT-1"), "--ticket"),
    ],
)
def test_what_a_jade_calibration_cites_is_asked_for(words: tuple[str, ...], why: str) -> None:
    code, _, err = calibrate("jade", rated("helpfulness", AGREEING), *words)
    assert (code, why in err) == (2, True)


def test_pf9_5_3_a_round_whose_people_disagree_with_the_judge_calibrates_nothing() -> None:
    """Also where their disagreement is too little to call the judge inverted."""
    pairs = [(4 + n % 2, 4 + (n + (n >= 100)) % 2) for n in range(220)]
    lines = [
        {**one, "judge_score": own, "human_score": human}
        for one, (own, human) in zip(rated("helpfulness", AGREEING), pairs, strict=True)
    ]
    code, told, _ = calibrate("jade", lines, "--acceptable", "4")
    assert (code, told["changes"]) == (1, [])
    assert "Krippendorff's alpha, is -0.0" in told["judges"][0]["reason"]


def test_what_people_say_may_be_the_mean_of_several() -> None:
    """Of a judge that gives whole numbers."""
    means = [{**one, "human_score": max(one["human_score"] - 0.5, 1.0)} for one in rated("helpfulness", AGREEING)]
    code, told, _ = calibrate("jade", means, "--acceptable", "3.5")
    assert (code, told["judges"][0]["proposed"]) == (0, True)


def test_people_score_on_the_judges_scale() -> None:
    far = [{**one, "human_score": one["human_score"] + 5} for one in rated("helpfulness", AGREEING)]
    code, told, _ = calibrate("jade", far, "--acceptable", "9")
    assert (code, "not on the judge's scale, 1 to 5" in told["judges"][0]["reason"]) == (1, True)


def test_write_names_a_vertical(tmp_path: Path, configs: Path) -> None:
    file = jsonl(tmp_path / "scores.jsonl", *scored("helpfulness", [4, 5] * 20))
    code, _, err = ran("calibrate", "seed", str(file), "--configs", str(configs), "--write")
    assert (code, "needs --vertical" in err) == (2, True)
