"""`calibrate jade --vertical V --write` changes rule files as `limits.diff` says, and no otherwise (PF-9 §5.3). What a
calibration round left is what the next run finds, or it is refused; a vertical's rounds come one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rampgate.calibration.steps import people
from tests.unit.rampgate.calibration.round_rig import BEGUN, JUDGES, OWN, ROUND, agreeing, calibrate, contents, filled
from tests.unit.rampgate.checks.score_commands import ran

pytestmark = pytest.mark.usefixtures("configs")


@pytest.fixture
def reported() -> tuple[object, ...]:
    """The words that go on with a round of which the difference was shown, and nothing was written."""
    assert calibrate(*BEGUN, "--sheet", "sheet.csv")[0] == 0
    words = ("--turns", "turns.jsonl", "--annotations", filled(Path("sheet.csv"), Path("s.csv"), ("a", "b"), agreeing))
    code, told, err = calibrate(*words)
    assert (code, told["done"], len(told["changes"])) == (0, True, 2), err
    return words


def test_pf9_5_3_what_is_written_is_what_was_reported(
    reported: tuple[object, ...], configs: Path, tmp_path: Path
) -> None:
    """Somebody edits a rule file between the report and --write: another difference is shown, and not yet written."""
    shown = (tmp_path / ROUND / "limits.diff").read_text()
    file = configs / OWN
    file.write_text(f"# we look at this one again in spring\n{file.read_text()}")
    before = contents(configs)
    code, told, err = calibrate(*reported, "--write")
    assert (code, told["steps"]["write"]["state"]) == (1, "refused"), err
    assert "limits.diff is another one than was reported" in told["steps"]["write"]["told"]
    assert "diff: again, since rule files changed" in err
    assert contents(configs) == before
    assert (tmp_path / ROUND / "limits.diff").read_text() != shown
    code, told, err = calibrate(*reported, "--write")
    assert (code, told["steps"]["write"]["state"]) == (0, "done"), err
    assert "in spring" in file.read_text()
    assert "jade_calibration" in file.read_text()


def test_pf9_5_3_where_one_rule_file_cant_be_written_none_is(
    reported: tuple[object, ...], configs: Path, tmp_path: Path
) -> None:
    shown = (tmp_path / ROUND / "limits.diff").read_bytes()
    (configs / OWN).chmod(0o444)
    before = contents(configs)
    code, _, err = calibrate(*reported, "--write")
    assert (code, "helpfulness.yaml: can't be written: is read-only" in err) == (2, True), err
    assert contents(configs) == before
    (configs / OWN).chmod(0o644)
    code, told, err = calibrate(*reported, "--write")
    assert (code, told["steps"]["write"]["state"]) == (0, "done"), (told, err)
    assert "again" not in err
    assert (tmp_path / ROUND / "limits.diff").read_bytes() == shown
    assert all("jade_calibration" in (configs / f"rules/shop/{name}.yaml").read_text() for name in JUDGES)


def test_pf9_5_3_a_round_killed_between_two_rule_files_writes_the_rest_of_the_same_difference(
    reported: tuple[object, ...], configs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, real, names = (tmp_path / ROUND / "limits.diff").read_bytes(), Path.replace, list[str]()

    def once(self: Path, target: Path) -> Path:
        if "rules" in target.parts:
            names.append(target.name)
            if len(names) == 2:
                raise OSError(5, "Input/output error")
        return real(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", once)
        code, _, err = calibrate(*reported, "--write")
    assert (code, "Input/output error" in err, len(names)) == (2, True, 2)
    code, told, err = calibrate(*reported, "--write")
    assert (code, told["steps"]["write"]["state"]) == (0, "done"), (told, err)
    assert "again" not in err
    assert (tmp_path / ROUND / "limits.diff").read_bytes() == shown
    assert all("jade_calibration" in (configs / "rules/shop" / name).read_text() for name in names)


def test_a_difference_that_was_written_is_never_derived_again(reported: tuple[object, ...], tmp_path: Path) -> None:
    """It would be empty now: the record of what was written was lost with an edited file."""
    assert calibrate(*reported, "--write")[0] == 0
    file, known = tmp_path / ROUND / "limits.diff", (tmp_path / ROUND / "cycle.json").read_bytes()
    written = file.read_text()
    file.write_text(f"{written}# a note\n")
    code, _, err = calibrate(*reported, "--write")
    assert code == 2
    assert "limits.diff: is not what diff left, and the round is written; take the file from the history" in err
    assert file.read_text() == f"{written}# a note\n"
    assert (tmp_path / ROUND / "cycle.json").read_bytes() == known
    file.write_text(written)
    assert calibrate(*reported, "--write")[0] == 0


def test_a_rule_file_that_changes_after_the_round_changes_nothing_of_it(
    reported: tuple[object, ...], configs: Path, tmp_path: Path
) -> None:
    assert calibrate(*reported, "--write")[0] == 0
    file = configs / OWN
    file.write_text(f"{file.read_text()}# later\n")
    before = contents(tmp_path)
    code, _, err = calibrate(*reported, "--write")
    assert (code, err) == (0, "")
    assert contents(tmp_path) == before


EVAL = "specs/verticals/shop/eval"
SET = Path(EVAL, "reference-set.jsonl")


def other(*words: object) -> tuple[int, dict[str, Any], str]:
    """Another round of the same vertical."""
    return ran("calibrate", "jade", "--vertical", "shop", "--round", "r2", "--json", *BEGUN, *words)


def scored(sheet: str, out: str) -> Path:
    return filled(Path(sheet), Path(out), ("ann", "ben"), agreeing)


@pytest.fixture
def done() -> tuple[object, ...]:
    """The words that go on with a round that is done, and has written nothing."""
    assert calibrate(*BEGUN, "--sheet", "sheet.csv")[0] == 0
    words = ("--turns", "turns.jsonl", "--annotations", scored("sheet.csv", "scores.csv"))
    code, told, err = calibrate(*words)
    assert (code, told["done"]) == (0, True), err
    return words


def test_two_rounds_at_once_lose_no_rating(monkeypatch: pytest.MonkeyPatch) -> None:
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
    done: tuple[object, ...], left: int | None
) -> None:
    """What is left of its chain holds."""
    lines = SET.read_text().splitlines(keepends=True)
    SET.unlink() if left is None else SET.write_text("".join(lines[:left]))
    for code, _, err in (calibrate(*done), other()):
        assert (code, "has not the ratings of r1 any more" in err) == (2, True), err
    assert SET.exists() is (left is not None)
    SET.write_text("".join(lines))
    assert calibrate(*done)[0] == 0


def test_a_number_that_somebody_wrote_into_a_rounds_document_is_in_no_report(done: tuple[object, ...]) -> None:
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


def test_a_plain_file_beside_the_rounds_stops_none() -> None:
    assert calibrate(*BEGUN, "--sheet", "sheet.csv")[0] == 0
    Path(EVAL, "rounds/README.md").write_text("notes")
    code, told, err = calibrate("--turns", "turns.jsonl", "--annotations", scored("sheet.csv", "scores.csv"))
    assert (code, told["done"]) == (0, True), err
