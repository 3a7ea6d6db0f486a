"""A manifest that is not what its sources give is reported, field by field, and still serves (PF-9 §5.6, §10.3). The
dataset in Opik and the one the manifest is about: what differs is reported, as warnings (PC5 §5.3, §9.3, R-1)."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from evalcore.manifest.dataset import DatasetThere, unfit
from evalcore.manifest.resolving import resolve
from evalcore.manifest.staleness import departures, difference
from evalcore.registry.disk import read_tree
from evalcore.registry.files import BASE, COMPONENTS, EXTENSION, MANIFEST, VERTICALS, Tree, assemble
from evalcore.validation import validate_manifest, validate_sources, validate_tree
from evalcore.yaml.findings import Finding, Severity
from tests.root import ROOT
from tests.shipped import LACKS

TODAY = date(2026, 11, 21)
CONFIGS = ROOT / "configs"
SHIPPED = read_tree(CONFIGS)
WRITTEN = SHIPPED.files[MANIFEST]
ABOUT = {"manifest-is-current", "manifest-edited-by-hand"}


def told(tree: Tree) -> list[Finding]:
    """What is said about the manifest's currency, which never makes the registry invalid."""
    result = validate_tree(tree, TODAY)
    found = [finding for finding in result.findings if finding.check in ABOUT]
    assert not {finding for finding in found if finding in result.errors}
    return found


def changed(name: str, old: bytes, new: bytes) -> Tree:
    assert old in SHIPPED.files[name]
    return SHIPPED.with_file(name, SHIPPED.files[name].replace(old, new, 1))


def test_the_shipped_manifest_is_what_its_sources_give() -> None:
    assert told(SHIPPED) == []
    assert resolve(SHIPPED, TODAY).text == WRITTEN.decode()


@pytest.mark.parametrize("ends", [b"\r\n", b"\n"])
def test_line_ends_make_no_difference(ends: bytes) -> None:
    assert told(SHIPPED.with_file(MANIFEST, WRITTEN.replace(b"\n", ends))) == []
    assert difference(WRITTEN.replace(b"\n", ends).decode(), WRITTEN.decode(), "m") == ""


@pytest.mark.parametrize(
    ("name", "old", "new", "field"),
    [
        (BASE, b"ux_quality: 0.7", b"ux_quality: 0.8", "thresholds.ux_quality"),
        (BASE, b"version: 7", b"version: 8", "dataset.version"),
        (f"{COMPONENTS}/greeting.xml", b'<judge id="greeting_quality"/>', b"", "categories.greeting.judges"),
        (
            f"{VERTICALS}/receipts/eval/{EXTENSION}",
            b"or asks how to",
            b"or asks",
            "categories.receipt_scan.description",
        ),
    ],
)
def test_a_source_that_changed_is_told_at_the_manifests_field(name: str, old: bytes, new: bytes, field: str) -> None:
    found = told(changed(name, old, new))
    assert [(finding.check, finding.field) for finding in found] == [("manifest-is-current", field)]
    line = WRITTEN.decode().splitlines()[found[0].line - 1]
    assert line.strip().startswith(field.rpartition(".")[2])
    assert "manifest resolve" in found[0].fix


def test_a_field_changed_by_hand_is_told_as_that() -> None:
    [found] = told(changed(MANIFEST, b"  ux_quality: 0.7", b"  ux_quality: 0.6"))
    assert (found.check, found.field) == ("manifest-edited-by-hand", "thresholds.ux_quality")
    assert found.message == "0.6 here; its sources give 0.7"
    assert "into manifest-base.yaml" in found.fix, "what the command writes is not where a change belongs"


def test_a_comment_added_by_hand_is_told() -> None:
    [found] = told(SHIPPED.with_file(MANIFEST, WRITTEN + b"# mine\n"))
    assert "comments or layout only" in found.message


def test_a_manifest_kept_by_hand_without_a_base_is_no_finding() -> None:
    """PF-9 §10.3: the hand-maintained manifest remains valid as fallback indefinitely."""
    files = {name: content for name, content in SHIPPED.files.items() if name != BASE}
    assert told(Tree(SHIPPED.root, {**files, MANIFEST: WRITTEN.split(b"\n", 5)[5]})) == []


@pytest.mark.parametrize("broken", [BASE, f"{VERTICALS}/receipts/eval/{EXTENSION}", f"{COMPONENTS}/greeting.xml"])
def test_of_sources_that_cannot_be_read_nothing_is_concluded(broken: str) -> None:
    assert told(SHIPPED.with_file(broken, b"<: [")) == []


def test_a_manifest_far_from_its_sources_is_told_in_at_most_twenty_fields() -> None:
    other = b"dataset: {name: x, version: 1, items: 0}\nschema: {a: {}}\ncategories: {c: {judges: []}}\n"
    other += b"global_metrics: {judges: []}\nthresholds: {}\n"
    assert 2 < len(told(SHIPPED.with_file(MANIFEST, other))) <= 20


def test_what_is_not_yaml_is_told_once() -> None:
    [found] = departures("m.yaml", "a: [", WRITTEN.decode())
    assert found.line == 1


def test_one_file_asked_for_by_its_name_has_the_same_warning(tmp_path: Path) -> None:
    """Of the registry's own manifest only: another file is not what `manifest resolve` writes."""
    other = tmp_path / MANIFEST
    other.write_bytes(WRITTEN.replace(b"version: 7", b"version: 8"))
    for found in (
        validate_manifest(other, root=CONFIGS, today=TODAY),
        validate_manifest(CONFIGS / MANIFEST, today=TODAY),
    ):
        assert [one.field for one in found.findings] == [*LACKS]


def test_the_manifest_is_validated_with_its_sources_and_without_the_rule_files() -> None:
    tree = changed(f"{VERTICALS}/receipts/eval/{EXTENSION}", b"vertical: receipts", b"vertical: recipts")
    tree = tree.with_file("rules/ux_quality.yaml", b"name: 1").with_file("verticals/receipts.yaml", b"name: 1")
    files = {finding.file for finding in validate_sources(tree, TODAY).errors}
    assert files == {SHIPPED.shown(f"{VERTICALS}/receipts/eval/{EXTENSION}")}


FILES, _ = assemble(read_tree(ROOT / "configs"), date(2026, 11, 21))
assert FILES.manifest is not None
DECLARED = FILES.manifest
OF_THE_PLATFORM = [name for name, one in DECLARED.model.categories.items() if one.vertical is None]
AS_DECLARED = DatasetThere(
    latest=8, version=7, items=345, categories=dict.fromkeys(OF_THE_PLATFORM, 34) | {"receipt_scan": 5}
)


def unlike(there: DatasetThere | None) -> list[tuple[str, str]]:
    found = list(unfit(DECLARED, there))
    assert {finding.severity for finding in found} <= {Severity.WARNING}
    assert all(finding.line and finding.fix for finding in found)
    return [(finding.check, finding.message) for finding in found]


def test_the_dataset_that_is_declared_is_no_finding() -> None:
    assert unlike(AS_DECLARED) == []


def test_a_dataset_that_is_not_there_is_told_once() -> None:
    assert unlike(None) == [
        ("dataset-is-there", "Opik has no dataset 'consumer-agent-eval' in project 'consumer-agent'")
    ]


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
    [(found, message)] = unlike(there)
    assert found == check
    assert said in message


def test_a_verticals_own_categories_need_no_items_of_the_platforms_dataset() -> None:
    assert "receipt_dispute_flow" not in AS_DECLARED.categories
    assert unlike(AS_DECLARED) == []


def test_pc5_fr7_a_verticals_own_set_is_held_against_its_own_declaration() -> None:
    own = [name for name, one in DECLARED.model.categories.items() if one.vertical == "receipts"]
    there = DatasetThere(latest=1, version=1, items=60, categories=dict.fromkeys(own, 20))
    assert list(unfit(DECLARED, there, "receipts")) == []
    assert list(unfit(DECLARED, AS_DECLARED, "rewards_assistant")) == [], "it has none: the platform's"
    fewer = replace(there, items=59, categories=dict.fromkeys(own[1:], 20))
    found = {finding.check: finding for finding in unfit(DECLARED, fewer, "receipts")}
    assert found.keys() == {"dataset-items", "category-has-items"}
    assert found["dataset-items"].field == "datasets.receipts.items"
    assert repr(own[0]) in found["category-has-items"].message
