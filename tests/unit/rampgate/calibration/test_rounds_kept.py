"""What a calibration round left is what the next run finds, or it is refused; a vertical's rounds come one by one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rampgate.calibration.steps import people
from tests.unit.rampgate.calibration.round_rig import agreeing, filled
from tests.unit.rampgate.checks.score_commands import ran

Calibrate = Callable[..., tuple[int, dict[str, Any], str]]
BEGUN = ("--ticket", "PLT-700", "--acceptable", "4", "--runs", "2", "--turns", "turns.jsonl")
EVAL = "specs/verticals/shop/eval"
SET = Path(EVAL, "reference-set.jsonl")


@pytest.fixture
def other(
    configs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, dict[str, Any], str]]:
    """Another round of the same vertical."""

    def run(*words: object) -> tuple[int, dict[str, Any], str]:
        own = ("calibrate", "jade", "--vertical", "shop", "--round", "r2", "--json", *BEGUN)
        return ran(capsys, monkeypatch, *own, *map(str, words))

    return run


def scored(sheet: str, out: str) -> Path:
    return filled(Path(sheet), Path(out), ("ann", "ben"), agreeing)


@pytest.fixture
def done(calibrate: Calibrate) -> tuple[object, ...]:
    """The words that go on with a round that is done, and has written nothing."""
    assert calibrate(*BEGUN, "--sheet", "sheet.csv")[0] == 0
    words = ("--turns", "turns.jsonl", "--annotations", scored("sheet.csv", "scores.csv"))
    code, told, err = calibrate(*words)
    assert (code, told["done"]) == (0, True), err
    return words


def test_two_rounds_at_once_lose_no_rating(
    calibrate: Calibrate, other: Calibrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one comes to its end between this one's look at the reference set and what it writes there."""
    assert calibrate(*BEGUN, "--sheet", "sheet.csv")[0] == 0
    assert other("--sheet", "other.csv")[0] == 0
    second, codes, real = scored("other.csv", "second.csv"), list[int](), people.agreements

    def meanwhile(*arguments: Any) -> Any:
        if not codes:
            codes.append(-1)
            codes[0] = other("--annotations", second)[0]
        return real(*arguments)

    monkeypatch.setattr(people, "agreements", meanwhile)
    first = calibrate("--turns", "turns.jsonl", "--annotations", scored("sheet.csv", "scores.csv"))
    rounds = [json.loads(line)["round"] for line in SET.read_text().splitlines()]
    assert [(first[0], rounds.count("r1")), (codes[0], rounds.count("r2"))] == [(0, 800), (2, 0)], first[2]


@pytest.mark.parametrize("left", [0, 400, None])
def test_a_reference_set_that_was_cut_or_emptied_is_noticed_by_each_round_of_the_vertical(
    calibrate: Calibrate, other: Calibrate, done: tuple[object, ...], left: int | None
) -> None:
    """What is left of its chain holds."""
    lines = SET.read_text().splitlines(keepends=True)
    SET.unlink() if left is None else SET.write_text("".join(lines[:left]))
    for code, _, err in (calibrate(*done), other()):
        assert (code, "has not the ratings of r1 any more" in err) == (2, True), err
    assert SET.exists() is (left is not None)
    SET.write_text("".join(lines))
    assert calibrate(*done)[0] == 0


def test_a_number_that_somebody_wrote_into_a_rounds_document_is_in_no_report(
    calibrate: Calibrate, done: tuple[object, ...]
) -> None:
    file = Path(EVAL, "rounds/r1/cycle.json")
    for field, name, false in (("inversion", "pearson", 0.999), ("floors", "floor", 1.5), ("drift", "kl_limit", 9.0)):
        known = file.read_text()
        document = json.loads(known)
        document[field][0][name] = false
        file.write_text(json.dumps(document))
        code, _, err = calibrate(*done)
        assert code == 2
        assert f"cycle.json: {field}: is not what " in err
        file.write_text(known)
    assert calibrate(*done)[0] == 0


def test_a_plain_file_beside_the_rounds_stops_none(calibrate: Calibrate) -> None:
    assert calibrate(*BEGUN, "--sheet", "sheet.csv")[0] == 0
    Path(EVAL, "rounds/README.md").write_text("notes")
    code, told, err = calibrate("--turns", "turns.jsonl", "--annotations", scored("sheet.csv", "scores.csv"))
    assert (code, told["done"]) == (0, True), err
