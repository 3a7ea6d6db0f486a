"""Files of scores that can't be right: each command refuses them in one line that says where and what to do, and writes
nothing. What merely looks odd is read as what it is (issue 13, contracts §5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from evalcore.registry.disk import today
from tests.unit.evalcore.registry.registry_disk import written
from tests.unit.rampgate.checks.score_commands import ran
from tests.unit.rampgate.ci_gate.gate_rig import jsonl

LIMITS = ("--vertical", "shop", "--write", "--ticket", "PLT-7")
COMMANDS = {
    "inversion": (("check", "inversion", "FILE"), ("--report", "page.html", "--standing", "standing.jsonl")),
    "agreement": (
        ("check", "agreement", "FILE"),
        ("--report", "page.html", "--thresholds", "bounds.yaml", "--reference", "set.jsonl", "--round", "first"),
    ),
    "drift": (("check", "drift", "good.jsonl", "FILE"), ("--report", "page.html")),
    "drift from": (("check", "drift", "FILE", "good.jsonl"), ("--report", "page.html")),
    "jade": (("calibrate", "jade", "FILE", "--acceptable", "4"), (*LIMITS, "--report", "there")),
    "production": (("calibrate", "production", "FILE"), LIMITS),
    "seed": (("calibrate", "seed", "FILE"), LIMITS),
}
"""Each command, and the options by which it would write something."""
PAIRED = ("inversion", "jade")


def good(command: str) -> list[dict[str, Any]]:
    """Lines that are right."""
    if command == "agreement":
        return [
            {"category": "c", "item_id": f"i{n // 2}", "annotator": f"p{n % 2}", "score": 1 + n % 3} for n in range(24)
        ]
    fields = ("judge_score", "human_score") if command in PAIRED else ("score",)
    return [{"judge_id": "helpfulness", "item_id": f"i{n}", **dict.fromkeys(fields, 3 + n % 3)} for n in range(24)]


def field_of(command: str, kind: str) -> str:
    if kind == "score":
        return "judge_score" if command in PAIRED else "score"
    return "category" if command == "agreement" else "judge_id"


def lines(command: str) -> list[bytes]:
    return [f"{json.dumps(one)}\n".encode() for one in good(command)]


def with_raw(command: str, kind: str, raw: str) -> bytes:
    """The good lines, with this piece of JSON as a field of the sixth."""
    some, field = lines(command), field_of(command, kind)
    some[5] = (
        json.dumps({**good(command)[5], field: "HERE"})
        .replace('"HERE"', raw.replace("FIELD", field).replace("SPELT", f"\\u{ord(field[0]):04x}{field[1:]}"))
        .encode()
        + b"\n"
    )
    return b"".join(some)


@pytest.fixture(autouse=True)
def files(in_an_empty_folder: None, tmp_path: Path) -> None:
    written(tmp_path)
    jsonl(tmp_path / "good.jsonl", *good("drift"))
    bound = {
        "threshold": 0.5,
        "baseline_source": "provisional_seed",
        "set_on": f"{today()}",
        "recalibration_due": f"{today() + timedelta(days=60)}",
    }
    (tmp_path / "bounds.yaml").write_text(json.dumps({"vertical": "shop", "categories": {"c": bound}}))


def run(command: str, writing: bool) -> tuple[int, dict[str, Any], str]:
    """Runs a command on `scores.jsonl`, with or without the options by which it writes."""
    words, options = COMMANDS[command]
    named = ["scores.jsonl" if word == "FILE" else word for word in (*words, *(options if writing else ()))]
    where = ["--configs", "configs"] if words[0] == "calibrate" else []
    return ran(*named, *where, "--json")


def everything(folder: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


NO_NUMBER = "must be a finite number, got "
TEXT = ("must be a number, got '", 'must be a number, true, false, "N/A"', "must be a number at level ")
KIND = ("must be a number", "must be a number or a label, got [4]")
ANEW = "half of a surrogate pair, which is no character; write it again"
ID = "must be a text without blanks at its ends, or a whole number, got "
TWICE = "must be there once, got it twice in this line; keep one"
IN_A_FIELD: list[tuple[str, str, str | tuple[str, ...]]] = [
    *(("score", raw, NO_NUMBER) for raw in ("NaN", "-Infinity", "1e400")),
    *(("score", raw, TEXT) for raw in ('"4"', '"good"', '""', '"NA"', '"n/a"', '"N/A "')),
    *(("score", raw, KIND) for raw in ("[4]",)),
    *((kind, '"\\ud800"', ANEW) for kind in ("score", "id")),
    *(("id", raw, ID) for raw in ('""', '" "', "null", "1.5", "true", "1" * 30)),
    *(("id", raw, ID) for raw in ('"p "', '" p"', '"p\\t"')),
    *(("score", raw, TWICE) for raw in ('4, "FIELD": 4', '4, "FIELD" : 5', '4, "SPELT": 5')),
]  # fmt: skip


@pytest.mark.parametrize("command", ["inversion", "agreement", "drift"])  # one of each kind of line
@pytest.mark.parametrize(("kind", "raw", "says"), IN_A_FIELD)
def test_a_field_that_cannot_be_right_is_named_with_its_line_and_what_to_do(
    command: str, kind: str, raw: str, says: str | tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "scores.jsonl").write_bytes(with_raw(command, kind, raw))
    before = everything(tmp_path)
    code, told, err = run(command, True)
    assert (code, told["text"], err.count("\n")) == (2, "", 1), err
    assert err.startswith(f"rampgate: scores.jsonl:6: {field_of(command, kind)}: "), err
    assert any(said in err for said in ((says,) if isinstance(says, str) else says)), err
    assert everything(tmp_path) == before, "nothing is written"


def test_an_annotators_name_with_a_blank_at_an_end_is_no_second_annotator(tmp_path: Path) -> None:
    some = good("agreement")
    some[1]["annotator"] += " "
    jsonl(tmp_path / "scores.jsonl", *some)
    code, _, err = run("agreement", False)
    assert (code, "scores.jsonl:2: annotator: must be a text without blanks at its ends" in err) == (2, True), err


def test_what_is_not_applicable_is_spelt_in_one_way_and_counted(tmp_path: Path) -> None:
    jsonl(
        tmp_path / "scores.jsonl", *(one | ({"score": "N/A"} if n == 0 else {}) for n, one in enumerate(good("drift")))
    )
    code, told, err = run("drift", False)
    assert (code, told["judges"][0]["na_share"]) == (1, 1 / 24), err


UTF8 = "scores.jsonl:1: must be UTF-8, got other bytes; save the file as UTF-8"
OF_A_FILE: dict[str, tuple[Callable[[list[bytes]], bytes], str]] = {
    "empty": (lambda _: b"", "scores.jsonl: has no "),
    "blank": (lambda _: b"\xef\xbb\xbf\n  \n", "scores.jsonl: has no "),
    "a line twice": (lambda some: b"".join([*some, some[3]]), "on line 4 too; keep one"),
    "cut short": (lambda some: b"".join(some)[:-9], "its end may be cut off"),
    "one document": (
        lambda some: b"[" + b",".join(some).replace(b"\n", b"") + b"]",
        "scores.jsonl:1: must be an object, got [{",
    ),
    "a nest": (lambda some: b"".join(some[:5]) + b"[" * 100_000, "scores.jsonl:6: must be JSON"),
    "UTF-16": (lambda some: b"".join(some).decode().encode("utf-16"), UTF8),
    "Latin-1": (lambda some: some[0].replace(b"i0", b"\xe9"), UTF8),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("fault", OF_A_FILE)
def test_a_file_that_is_none_is_named_with_its_line(command: str, fault: str, tmp_path: Path) -> None:
    make, says = OF_A_FILE[fault]
    (tmp_path / "scores.jsonl").write_bytes(make(lines(command)))
    before = everything(tmp_path)
    code, told, err = run(command, True)
    assert (code, told["text"], err.count("\n")) == (2, "", 1), err
    assert says in err, err
    assert everything(tmp_path) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_or_nothing_in_place_of_the_file_ends_with_2(command: str, tmp_path: Path) -> None:
    assert "scores.jsonl: can't be read: No such file" in run(command, True)[2]
    (tmp_path / "scores.jsonl").mkdir()
    code, _, err = run(command, True)
    assert (code, "scores.jsonl: can't be read: Is a directory" in err) == (2, True), err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_byte_order_mark_blank_lines_and_line_ends_of_windows_change_nothing(command: str, tmp_path: Path) -> None:
    some, file = lines(command), tmp_path / "scores.jsonl"
    file.write_bytes(b"".join(some))
    code, plain, err = run(command, False)
    assert (code < 2, err) == (True, "")
    for content in (
        b"\xef\xbb\xbf" + b"".join(some),
        b"\n \n".join(some) + b"\n\n",
        b"".join(some).replace(b"\n", b"\r\n"),
        b"".join(some).rstrip(b"\n"),
        b"".join(some).replace(b": ", b" :\t"),
    ):
        file.write_bytes(content)
        again = run(command, False)
        assert (again[0], without_source(again[1])) == (code, without_source(plain))


def without_source(told: dict[str, Any]) -> str:
    """The document without the hash of the file's bytes, which limits cite."""
    return json.dumps(told).split("sha256:")[0]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("raw", ["1e308", "-1e308", "5e-324"])
def test_a_number_of_any_size_is_one_and_upsets_no_arithmetic(
    command: str, raw: str, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """Of a judge that no one registered; a registered one's scale says which scores it has."""
    content = with_raw(command, "score", raw).replace(b"helpfulness", b"stranger")
    (tmp_path / "scores.jsonl").write_bytes(content)
    code, told, err = run(command, False)
    assert (code < 2, err) == (True, ""), err
    assert "Infinity" not in json.dumps(told)
    assert "NaN" not in json.dumps(told)
    assert [str(one.message) for one in recwarn] == []
