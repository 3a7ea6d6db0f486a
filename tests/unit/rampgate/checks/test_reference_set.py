"""A round enters the reference set once all its categories clear a threshold that holds; the set only grows (FR-14)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalcore.agreement.reference import bounds
from evalcore.registry.disk import today
from schemas.checks.agreement import AgreementFile, AgreementSource
from tests.unit.rampgate.checks.score_commands import said
from tests.unit.rampgate.ci_gate.gate_rig import jsonl

Run = Callable[..., tuple[int, str, str]]
DAY = date(2026, 11, 23)


def stated(
    source: str = "provisional_seed", set_on: date = DAY, days: int = 90, ref: str | None = None
) -> dict[str, Any]:
    due = (set_on + timedelta(days=days)).isoformat()
    known = {"threshold": 0.667, "baseline_source": source, "set_on": set_on.isoformat(), "recalibration_due": due}
    return {**known, **({"calibration_ref": ref} if ref else {})}


def ratings(category: str, off: int = 0) -> Iterator[dict[str, Any]]:
    """Twenty items of two annotators, of whom the second is `off` on every other item."""
    for item in range(20):
        for who in ("x", "y"):
            wrong = off if who == "y" and item % 2 else 0
            yield {"category": category, "item_id": item, "annotator": who, "score": 1 + (item + wrong) % 5}


def check(name: str, thresholds: dict[str, Any], *lines: dict[str, Any]) -> tuple[int, Any, str]:
    """The command with thresholds by category, on a round; files are those of the working directory."""
    Path("agreement.yaml").write_text(json.dumps({"vertical": "receipts", "categories": thresholds}))
    words = ("--thresholds", "agreement.yaml", "--reference", "set.jsonl", "--round", name, "--json")
    code, out, err = said("check", "agreement", jsonl(Path("round.jsonl"), *lines), *words)
    return code, json.loads(out) if out else None, err


def now(source: str = "provisional_seed", **more: Any) -> dict[str, Any]:
    return stated(source, set_on=today(), **more)


def test_pf9_ac14_nothing_of_a_round_enters_before_every_category_clears(tmp_path: Path) -> None:
    both = {"sound": now(), "loose": now()}
    code, document, _ = check("round-1", both, *ratings("sound"), *ratings("loose", off=3))
    assert (code, document["reference"]["entered"]) == (1, 0)
    assert not (tmp_path / "set.jsonl").exists()
    code, document, _ = check("round-1", both, *ratings("sound"), *ratings("loose"))
    assert (code, document["reference"]["entered"]) == (0, 80)
    entries = [json.loads(line) for line in (tmp_path / "set.jsonl").read_text().splitlines()]
    assert {*entries[0]} == {"round", "category", "item_id", "annotator", "score", "at", "previous", "hash"}
    assert document["reference"]["version"] == entries[-1]["hash"]


def test_a_seed_holds_for_the_first_round_alone(tmp_path: Path) -> None:
    assert check("round-1", {"sound": now()}, *ratings("sound"))[0] == 0
    first = (tmp_path / "set.jsonl").read_text()
    code, document, _ = check("round-2", {"sound": now()}, *ratings("sound"))
    assert (code, document["categories"][0]["quarantined"]) == (1, True)
    assert "has had a round" in document["categories"][0]["reason"]
    derived = now("agreement_calibration", ref="PLT-700")
    code, _, err = check("round-1", {"sound": derived}, *ratings("sound"))
    assert code == 2
    assert "is in" in err
    assert check("round-2", {"sound": derived}, *ratings("sound"))[0] == 0
    assert (tmp_path / "set.jsonl").read_text().startswith(first), "the set only grows"


@pytest.mark.parametrize("change", ["score", "order", "removed", "text"])
def test_a_set_that_was_changed_takes_nothing_more(tmp_path: Path, change: str) -> None:
    check("round-1", {"sound": now()}, *ratings("sound"))
    file = tmp_path / "set.jsonl"
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    match change:
        case "score":
            entries[3]["score"] = 5 - entries[3]["score"]
        case "order":
            entries[3], entries[4] = entries[4], entries[3]
        case "removed":
            del entries[3]
        case _:
            entries[3]["user_query"] = "where are my points?"
    jsonl(file, *entries)
    code, document, err = check("round-2", {"other": now()}, *ratings("other"))
    assert (code, document) == (2, None)
    assert "set.jsonl:4: " in err


@pytest.mark.parametrize("change", ["cut", "written again", "emptied"])
def test_a_set_whose_end_was_cut_off_or_written_again_clears_nothing(tmp_path: Path, change: str) -> None:
    """Its chain holds by itself; the threshold that was derived from it has the hash of the last entry then."""
    _, document, _ = check("round-1", {"sound": now()}, *ratings("sound"))
    rests = {**now("agreement_calibration", ref="PLT-700"), "reference": document["reference"]["version"]}
    assert check("round-2", {"sound": rests}, *ratings("sound"))[0] == 0, "a set that grew since has that entry"
    file = tmp_path / "set.jsonl"
    whole = file.read_text().splitlines(keepends=True)
    match change:
        case "cut":
            file.write_text("".join(whole[:30]))
        case "emptied":
            file.unlink()
        case _:
            file.unlink()
            check(
                "round-1",
                {"sound": now()},
                *({**one, "score": 4} if one["item_id"] == 7 else one for one in ratings("sound")),
            )
    before = file.read_text() if file.exists() else None
    code, document, _ = check("round-3", {"sound": rests}, *ratings("sound"))
    assert (code, document["reference"]["entered"]) == (1, 0)
    assert "cut off, or written again" in document["categories"][0]["reason"]
    assert (file.read_text() if file.exists() else None) == before


def test_a_label_that_could_be_a_users_text_does_not_enter(tmp_path: Path) -> None:
    labels = ["good", "the user was angry"]
    lines = [{**one, "score": labels[int(one["item_id"]) % 2]} for one in ratings("sound")]
    code, _, err = check("round-1", {"sound": {**now(), "level": "nominal"}}, *lines)
    assert code == 2
    assert "holds no text" in err
    assert not (tmp_path / "set.jsonl").exists()


def test_a_category_without_a_threshold_is_quarantined() -> None:
    code, document, _ = check("round-1", {"other": now()}, *ratings("sound"))
    assert (code, document["reference"]["entered"]) == (1, 0)
    assert "has no threshold for it" in document["categories"][0]["reason"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (stated(), ""),
        (stated(days=91), "holds for 90 days at most"),
        (stated("agreement_calibration", days=180, ref="PLT-1"), ""),
        (stated("agreement_calibration", days=181, ref="PLT-1"), "holds for 180 days at most"),
        (stated("production_annotation_distribution"), "calibration_ref"),
        (stated(set_on=DAY + timedelta(days=1)), "has not come yet"),
        (stated(set_on=DAY - timedelta(days=91)), "overdue"),
        (stated(set_on=DAY - timedelta(days=90)), ""),
    ],
)
def test_a_threshold_cites_its_source_and_holds_for_its_days(given: dict[str, Any], why: str) -> None:
    """PF-9 FR-14, FR-4; an overdue seed fails CI."""
    file = AgreementFile.model_validate({"vertical": "receipts", "categories": {"a": given}})
    found = bounds(file, [], DAY)["a"]
    assert why in found.wrong
    assert bool(found.wrong) is bool(why)
    assert found.source is AgreementSource(given["baseline_source"])
