"""`calibrate jade --vertical V --write` changes rule files as `limits.diff` says, and no otherwise (PF-9 §5.3)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rampgate.calibration.round_rig import JUDGES, OWN, agreeing, contents, filled

Calibrate = Callable[..., tuple[int, dict[str, Any], str]]
BEGUN = ("--ticket", "PLT-700", "--acceptable", "4", "--runs", "2", "--turns", "turns.jsonl")
ROUND = "specs/verticals/shop/eval/rounds/r1"


@pytest.fixture
def reported(calibrate: Calibrate) -> tuple[object, ...]:
    """The words that go on with a round of which the difference was shown, and nothing was written."""
    assert calibrate(*BEGUN, "--sheet", "sheet.csv")[0] == 0
    words = ("--turns", "turns.jsonl", "--annotations", filled(Path("sheet.csv"), Path("s.csv"), ("a", "b"), agreeing))
    code, told, err = calibrate(*words)
    assert (code, told["done"], len(told["changes"])) == (0, True, 2), err
    return words


def test_pf9_5_3_what_is_written_is_what_was_reported(
    calibrate: Calibrate, reported: tuple[object, ...], configs: Path, tmp_path: Path
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
    calibrate: Calibrate, reported: tuple[object, ...], configs: Path, tmp_path: Path
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
    calibrate: Calibrate, reported: tuple[object, ...], configs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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


def test_a_difference_that_was_written_is_never_derived_again(
    calibrate: Calibrate, reported: tuple[object, ...], tmp_path: Path
) -> None:
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
    calibrate: Calibrate, reported: tuple[object, ...], configs: Path, tmp_path: Path
) -> None:
    assert calibrate(*reported, "--write")[0] == 0
    file = configs / OWN
    file.write_text(f"{file.read_text()}# later\n")
    before = contents(tmp_path)
    code, _, err = calibrate(*reported, "--write")
    assert (code, err) == (0, "")
    assert contents(tmp_path) == before
