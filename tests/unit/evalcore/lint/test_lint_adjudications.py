"""What a person says of an item in a judge's place: of a judge that exists, at its present version, and for a time."""

from __future__ import annotations

from tests.unit.evalcore.lint.lint_cases import Case, check_cases
from tests.unit.evalcore.registry.registry_disk import built

FILE = "adjudications.yaml"
HONESTY = built().judge("honesty").version


def said(
    judge: str = "honesty", version: str = HONESTY, on: str = "2026-11-20", expires: str = "2027-02-20"
) -> dict[str, str | None]:
    entry = (
        f"judge: {judge}, judge_version: {version}, item: {'a' * 64}, score: true, pull_request: 'https://x/1', "
        f"adjudicated_by: ann, justification: A film., adjudicated_on: {on}, expires: {expires}"
    )
    return {FILE: f"adjudications: [{{{entry}}}]"}


PLACE = f"{FILE}: adjudications[0]"
CASES = [
    Case("adjudication-of-true-or-false", said("helpfulness"), f"{PLACE}.judge", said(), ("INTEGER",)),
    Case("adjudication-of-true-or-false", said("honestly"), f"{PLACE}.judge", says=("honesty",)),
    Case("adjudication-days", said(on="2026-11-24"), f"{PLACE}.adjudicated_on", said(on="2026-11-21")),
    Case("adjudication-days", said(expires="2026-11-20"), f"{PLACE}.expires", said(expires="2026-11-21")),
    Case("adjudication-days", said(expires="2099-01-01"), f"{PLACE}.expires", said(), ("92 days", "2027-02-20")),
    Case("adjudication-in-use", said(version="0123456789abcdef"), f"{PLACE}.judge_version", said(), (HONESTY,)),
]


def test_an_adjudication_is_of_somebodys_judge_and_for_a_time() -> None:
    check_cases(CASES)
