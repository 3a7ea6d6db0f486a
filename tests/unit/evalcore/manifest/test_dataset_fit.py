"""The dataset in Opik and the one the manifest is about: what differs is told, as warnings (PC5 §5.3, §9.3, R-1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from evalcore.manifest.dataset import DatasetThere, unfit
from evalcore.registry.disk import read_tree
from evalcore.registry.files import assemble
from evalcore.yaml.findings import Severity
from tests.root import ROOT

FILES, _ = assemble(read_tree(ROOT / "configs"), date(2026, 11, 21))
assert FILES.manifest is not None
MANIFEST = FILES.manifest
OF_THE_PLATFORM = [name for name, one in MANIFEST.model.categories.items() if one.vertical is None]
AS_DECLARED = DatasetThere(
    latest=8, version=7, items=345, categories=dict.fromkeys(OF_THE_PLATFORM, 34) | {"receipt_scan": 5}
)


def told(there: DatasetThere | None) -> list[tuple[str, str]]:
    found = list(unfit(MANIFEST, there))
    assert {finding.severity for finding in found} <= {Severity.WARNING}
    assert all(finding.line and finding.fix for finding in found)
    return [(finding.check, finding.message) for finding in found]


def test_the_dataset_that_is_declared_is_no_finding() -> None:
    assert told(AS_DECLARED) == []


def test_a_dataset_that_is_not_there_is_told_once() -> None:
    assert told(None) == [("dataset-is-there", "Opik has no dataset 'consumer-agent-eval' in project 'consumer-agent'")]


@pytest.mark.parametrize(
    ("there", "check", "said"),
    [
        (replace(AS_DECLARED, version=None), "dataset-version-is-there", "the latest is 8"),
        (replace(AS_DECLARED, items=340), "dataset-items", "345 here; 340 in Opik"),
        (
            replace(AS_DECLARED, categories={**AS_DECLARED.categories, "greeting": 0}),
            "category-has-items",
            "'greeting'",
        ),
        (
            replace(AS_DECLARED, categories={**AS_DECLARED.categories, "greting": 1}),
            "items-have-a-category",
            "1 item of the dataset, of category 'greting', which is not here; did you mean 'greeting'?",
        ),
        (replace(AS_DECLARED, categories={**AS_DECLARED.categories, "": 3}), "items-have-a-category", "3 items"),
    ],
)
def test_what_differs_is_told(there: DatasetThere, check: str, said: str) -> None:
    [(found, message)] = told(there)
    assert found == check
    assert said in message


def test_a_verticals_own_categories_need_no_items_of_the_platforms_dataset() -> None:
    assert "receipt_dispute_flow" not in AS_DECLARED.categories
    assert told(AS_DECLARED) == []


def test_pc5_fr7_a_verticals_own_set_is_held_against_its_own_declaration() -> None:
    own = [name for name, one in MANIFEST.model.categories.items() if one.vertical == "receipts"]
    there = DatasetThere(latest=1, version=1, items=60, categories=dict.fromkeys(own, 20))
    assert list(unfit(MANIFEST, there, "receipts")) == []
    assert list(unfit(MANIFEST, AS_DECLARED, "rewards_assistant")) == [], "it has none: the platform's"
    fewer = replace(there, items=59, categories=dict.fromkeys(own[1:], 20))
    found = {finding.check: finding for finding in unfit(MANIFEST, fewer, "receipts")}
    assert found.keys() == {"dataset-items", "category-has-items"}
    assert found["dataset-items"].field == "datasets.receipts.items"
    assert repr(own[0]) in found["category-has-items"].message
