"""Single fields of a YAML file are written again, and every other byte of it stays (PF-9 AC-8)."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.yaml.editing import NotEditable, as_text, edited, written
from evalcore.yaml.loader import read_yaml

FILE = b"""\
# yaml-language-server: $schema=x
# What shop sets.
classification: quality
recalibration_due: 2027-02-18  # 90 days from the seed
calibration:
  seeded_on: 2026-11-20

# Why it is what it is.
threshold: {pre_merge: 4, pre_full: 4}
filter:
  field: sub_agent_id
# the end
"""


def data(raw: bytes) -> Any:
    document, findings = read_yaml("f", raw)
    assert findings == []
    assert document is not None
    return document.data


def test_fields_are_written_in_their_place_and_new_ones_beside_their_neighbour() -> None:
    fields = {
        "floor": 2.5,
        "recalibration_due": date(2027, 5, 1),
        "calibration": {"window_days": 30, "calibrated_on": date(2026, 11, 23)},
        "threshold": 4.2,
    }
    assert (
        edited("f", FILE, fields).decode()
        == """\
# yaml-language-server: $schema=x
# What shop sets.
classification: quality
floor: 2.5
recalibration_due: 2027-05-01
calibration:
  window_days: 30
  calibrated_on: 2026-11-23

# Why it is what it is.
threshold: 4.2
filter:
  field: sub_agent_id
# the end
"""
    )


def test_a_field_that_has_its_value_keeps_its_line_and_its_comment() -> None:
    same = {"recalibration_due": date(2027, 2, 18), "calibration": {"seeded_on": date(2026, 11, 20)}, "floor": None}
    assert edited("f", FILE, same) == FILE
    assert b"# 90 days from the seed" in edited("f", FILE, {**same, "floor": 1})


def test_a_field_is_taken_away_whole_and_line_ends_stay_as_they_are() -> None:
    without = edited("f", FILE, {"calibration": None})
    assert without == FILE.replace(b"calibration:\n  seeded_on: 2026-11-20\n", b"")
    windows = edited("f", FILE.replace(b"\n", b"\r\n"), {"floor": 1, "calibration": None})
    assert windows.count(b"\r\n") == windows.count(b"\n")
    assert data(windows) == {**data(without), "floor": 1}


def test_fields_that_share_a_line_are_refused_and_nothing_is_guessed() -> None:
    with pytest.raises(NotEditable, match="lines of their own"):
        edited("f", b"{classification: quality, floor: 2}\n", {"floor": 3})
    with pytest.raises(NotEditable, match="can't be read"):
        edited("f", b"floor: 2\nfloor: 3\n", {"floor": 4})


@given(st.text(alphabet=st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=30))
def test_any_text_comes_back_as_itself(text: str) -> None:
    """Also one that looks like a number, a day, a comment or a field."""
    assert data(written("note", text).encode()) == {"note": text}
    for tricky in ("1e5", "2026-11-23", "true", "null", ".inf", "a: b", "# no", "x # no", "-", text):
        assert data(f"note: {as_text(tricky)}\n".encode()) == {"note": tricky}
