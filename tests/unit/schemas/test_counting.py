from __future__ import annotations

import pytest

from schemas.counting import counted


@pytest.mark.parametrize(
    ("many", "said"),
    [(0, "0 pairs"), (1, "1 pair"), (1.0, "1 pair"), (2, "2 pairs"), (12.5, "12.5 pairs"), (1_200, "1,200 pairs")],
)
def test_one_is_no_plural(many: float, said: str) -> None:
    assert counted(many, "pair") == said


def test_a_word_may_have_a_plural_of_its_own() -> None:
    assert [counted(many, "person", "people") for many in (1, 2)] == ["1 person", "2 people"]
