"""`rampgate check inversion --vertical V`: judges against the vertical's reference set, decided once."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rampgate.checks.standing import suspended_judges
from rampgate.local.model.server import Running
from rampgate.settings import Settings
from schemas.checks.standing import StandingRecord
from tests.unit.rampgate.checks.score_commands import alone, ran
from tests.unit.rampgate.ci_gate.gate_rig import environment, jsonl
from tests.unit.rampgate.inversion.reference_rig import TURNS, Shop, output, quality, turned


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    shop = Shop(tmp_path)
    alone(tmp_path, monkeypatch)
    for name, value in environment(shop.root, "http://127.0.0.1:9").items():
        monkeypatch.setenv(name, value)
    return shop


def check(*words: object, judges: tuple[str, ...] = ("helpfulness",)) -> tuple[int, dict[str, Any], str]:
    named = [word for judge in judges for word in ("--judge", judge)]
    return ran("check", "inversion", "--vertical", "shop", *named, "--json", *words)


def test_pf9_fr10_ac10_judges_are_held_against_the_verticals_reference_set(shop: Shop, tmp_path: Path) -> None:
    """By the scores that the round kept of the judges as they are; nothing is asked."""
    shop.people()
    shop.people(judge="brevity", says=turned)
    shop.round(shop.judge(), shop.judge("brevity"))
    standing = tmp_path / "standing.jsonl"
    code, told, _ = check("--standing", standing, judges=("helpfulness", "brevity"))
    assert code == 1
    sound, inverted = told["judges"]
    assert (sound["judge_id"], sound["n"], sound["inverted"]) == ("helpfulness", TURNS, False)
    assert (inverted["judge_id"], inverted["inverted"], told["inverted_count"]) == ("brevity", True, 1)
    for one in told["judges"]:
        low, high = one["pearson_ci95"]
        assert low <= one["pearson"] <= high
        assert one["carries_signal"] is True
        assert one["spearman"] == pytest.approx(one["pearson"])
        assert one["decided_at"]
        assert not one["overdue"]
    assert told["reference"]["version"] == shop.records(shop.folder / "reference-set.jsonl")[-1]["hash"]
    assert [(one["judge_id"], one["verdict"], one["vertical"]) for one in shop.records(standing)] == [
        ("helpfulness", "passed", "shop"), ("brevity", "suspended", "shop")
    ]  # fmt: skip
    judges = [shop.judge(), shop.judge("brevity")]
    assert [*suspended_judges(str(standing), Settings(), judges, datetime.now(UTC).date())] == ["brevity"]


def test_pf9_fr10_a_second_look_at_the_same_version_and_set_gives_the_kept_answer(shop: Shop, tmp_path: Path) -> None:
    shop.people()
    standing = tmp_path / "standing.jsonl"
    shop.round(shop.judge())
    assert check("--standing", standing)[0] == 0
    first = standing.read_bytes()
    other = jsonl(tmp_path / "other.jsonl", *(shop.score(shop.judge(), n, turned) for n in range(TURNS)))
    code, told, _ = check("--standing", standing, "--scores", other)
    (one,) = told["judges"]
    assert (code, one["inverted"], standing.read_bytes()) == (0, False, first)
    assert "decided on" in one["reason"]
    shop.people("r2", judge="brevity")
    assert check("--standing", standing, "--scores", other)[0] == 0, "another judge's people are no new chance"
    shop.people("r2", says=lambda n: quality(n + 1))
    code, told, _ = check("--standing", standing, "--scores", other)
    assert told["judges"][0]["inverted"] is not None
    assert len(shop.records(standing)) == 2, "a new round of people decides again"


def test_pf9_fr10_a_new_version_is_held_against_the_set_before_it_counts(
    shop: Shop, tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.people()
    standing, outputs = tmp_path / "standing.jsonl", jsonl(tmp_path / "outputs.jsonl", *map(output, range(TURNS)))
    shop.round(shop.judge())
    assert check("--standing", standing)[0] == 0
    new, day = shop.changed(), datetime.now(UTC).date()
    code, told, _ = check("--standing", standing)
    (one,) = told["judges"]
    assert (code, one["inverted"], one["overdue"], one["decided_at"]) == (1, None, True, None)
    assert "--outputs FILE asks it" in one["reason"]
    assert "has not passed since" in suspended_judges(str(standing), Settings(), [new], day)["helpfulness"]
    monkeypatch.setenv("RAMPGATE_MODEL_URL", model.url)
    code, told, _ = check("--standing", standing, "--outputs", outputs)
    assert (code, told["judges"][0]["inverted"]) == (0, False), told
    assert suspended_judges(str(standing), Settings(), [new], day) == {}
    monkeypatch.setenv("RAMPGATE_MODEL_URL", "http://127.0.0.1:9")
    assert check("--standing", standing, "--outputs", outputs)[0] == 0, "asked once"


def test_pf9_fr10_a_quarter_without_a_check_is_a_finding(shop: Shop, tmp_path: Path) -> None:
    shop.people()
    shop.round(shop.judge())
    standing = tmp_path / "standing.jsonl"
    check("--standing", standing)
    (record,) = (StandingRecord.model_validate(one) for one in shop.records(standing))
    for days, code in ((91, 0), (93, 1)):
        at = datetime.now(UTC) - timedelta(days=days)
        standing.write_text(record.model_copy(update={"at": at}).model_dump_json() + "\n")
        found, told, _ = check("--standing", standing)
        assert (found, told["judges"][0]["inverted"], told["overdue_count"]) == (code, False, code)
    assert "a round is due" in told["judges"][0]["reason"]


def test_judges_that_people_never_scored_are_findings(shop: Shop) -> None:
    code, told, _ = check(judges=())
    assert code == 1
    assert {one["judge_id"] for one in told["judges"]} >= {"helpfulness", "brevity", "refusal"}
    assert all((one["inverted"], one["overdue"], one["n"]) == (None, True, 0) for one in told["judges"])
    for one in told["judges"]:
        assert "`rampgate calibrate jade --vertical shop`" in one["reason"], "what to do"
        assert "`rampgate check inversion FILE --publish`" in one["reason"]


@pytest.mark.parametrize(("days", "says", "code"), [(1, quality, 0), (93, quality, 1), (1, turned, 1)])
def test_pf9_fr10_a_judge_that_people_scored_in_a_file_alone_is_held_against_them_by_it(
    shop: Shop,
    tmp_path: Path,
    days: int,
    says: Callable[[int], int],
    code: int,
) -> None:
    """A safety judge scores no turns of production: its own items are scored, and that holds for 92 days."""
    judge, standing = shop.judge("brevity"), tmp_path / "standing.jsonl"
    scores = [(shop.score(judge, n, says), quality(n)) for n in range(TURNS)]
    pairs = [{**one, "judge_score": one["score"], "human_score": human} for one, human in scores]
    file = str(jsonl(tmp_path / "own.jsonl", *pairs))
    found, _, _ = ran("check", "inversion", file, "--standing", str(standing), "--json")
    assert found == (1 if says is turned else 0)
    (record,) = (StandingRecord.model_validate(one) for one in shop.records(standing))
    at = datetime.now(UTC) - timedelta(days=days)
    standing.write_text(record.model_copy(update={"at": at}).model_dump_json() + "\n")
    exit_code, told, _ = check("--standing", standing, judges=("brevity",))
    (one,) = told["judges"]
    assert (exit_code, one["inverted"], one["overdue"]) == (code, says is turned, days > 92)
    assert "by a file of scores" in one["reason"]
    assert len(shop.records(standing)) == 1, "nothing is decided again"


def test_who_leaves_out_turns_decides_nothing(shop: Shop, tmp_path: Path) -> None:
    """Else who chooses the turns chooses what is found."""
    shop.people()
    standing = tmp_path / "standing.jsonl"
    for left, decided in ((5, None), (4, False)):
        some = jsonl(tmp_path / "some.jsonl", *(shop.score(shop.judge(), n, quality) for n in range(TURNS - left)))
        _, told, _ = check("--standing", standing, "--scores", some)
        assert told["judges"][0]["inverted"] is decided
        assert len(shop.records(standing)) == (decided is not None)


def test_scores_of_another_version_decide_nothing(shop: Shop, tmp_path: Path) -> None:
    shop.people()
    old = jsonl(tmp_path / "old.jsonl", *(shop.score(shop.judge(), n, quality) for n in range(TURNS)))
    shop.changed()
    code, told, err = check("--scores", old)
    assert (code, told["judges"][0]["inverted"]) == (1, None)
    assert f"{TURNS} scores are of other versions" in err


def test_turns_weigh_as_they_were_drawn(shop: Shop) -> None:
    """Of turns that were drawn for a disagreement there are more in the round than in what it was drawn from."""
    apart = dict.fromkeys(range(0, TURNS, 2), 0.05)
    shop.people(says=lambda n: turned(n) if n in apart else quality(n))
    shop.round(shop.judge(), weights=apart)
    _, told, _ = check()
    (one,) = told["judges"]
    assert one["pearson"] > 0.7
    assert one["effective_n"] < one["n"] == TURNS
    assert one["spearman"] is not None


def test_an_output_that_people_did_not_read_is_refused(shop: Shop, tmp_path: Path) -> None:
    shop.people()
    shop.round()
    outputs = jsonl(tmp_path / "outputs.jsonl", *(output(n, turned) for n in range(TURNS)))
    code, _, err = check("--outputs", outputs)
    assert (code, "is another turn than people scored" in err) == (2, True), err


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ({"judge_id": "helpfulness", "item_id": "r1", "score": 1}, "judge_version: must be a text"),
        ({"judge_id": "helpfulness", "judge_version": "v", "item_id": "r1"}, "score: must be a number"),
        (
            {"judge_id": "helpfulness", "judge_version": None, "item_id": "r1", "score": 1},
            "judge_version: must be a text",
        ),
    ],
)
def test_a_line_that_can_not_be_right_is_named(shop: Shop, tmp_path: Path, line: dict[str, Any], named: str) -> None:
    shop.people()
    code, _, err = check("--scores", jsonl(tmp_path / "bad.jsonl", line))
    assert (code, f"bad.jsonl:1: {named}" in err) == (2, True), err


def test_a_reference_set_that_was_changed_is_refused(shop: Shop) -> None:
    shop.people()
    file = shop.folder / "reference-set.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    jsonl(file, *[{**one, "score": 1} if n == 3 else one for n, one in enumerate(lines)])
    code, _, err = check()
    assert (code, "reference-set.jsonl:4" in err) == (2, True), err
