"""What a scaffold's files say, of whatever it is asked for (PF-9 FR-8, §5.5)."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml

from evalcore.registry import disk
from evalcore.registry.files import SELECTION, VERTICALS, Tree, assemble
from evalcore.registry.judge import view
from evalcore.scaffold import Refused, Start, Wanted, start
from evalcore.scaffold import scaffolded_files as scaffolded
from evalcore.validation import validate_tree
from schemas.judges import Classification
from tests.unit.rampgate.cli.registry_copies import HERE

TODAY = date(2026, 11, 21)
SHIPPED = disk.read_tree(HERE / "configs")
FILES, _ = assemble(SHIPPED, TODAY)


def made(wanted: Wanted) -> tuple[Start, dict[str, str]]:
    chosen = start(wanted, FILES)
    return chosen, scaffolded(chosen, [view(FILES, name, None) for name in chosen.judges], [], TODAY)


def laid(found: dict[str, str]) -> Tree:
    tree = SHIPPED
    for name, text in found.items():
        tree = tree.with_file(name, text.encode()) if name.endswith(".yaml") else tree
    return tree


def test_every_quality_judge_can_be_started_with() -> None:
    quality = [name for name, rule in FILES.rules.items() if rule.model.classification is Classification.QUALITY]
    _, found = made(Wanted("shopping", judges=tuple(name.replace("_", "-") for name in quality)))
    assert {f"rules/shopping/{name}.yaml" for name in quality} <= found.keys()
    result = validate_tree(laid(found), TODAY)
    assert result.errors == []


@pytest.mark.parametrize("text", ["yes: no", "123", "null", "#x", "a'b\"c", "2026-01-01", "é ✓", "- x", "{a: b}"])
def test_any_text_of_a_flag_comes_back_from_the_file_as_it_was(text: str) -> None:
    _, found = made(Wanted("shopping", sub_agents=(text, "b"), ticket=text))
    files, findings = assemble(laid(found), TODAY)
    assert findings == []
    rule = files.vertical_rules["shopping", "ux_quality"].model
    assert rule.calibration_ref == text
    assert rule.filter is not None
    assert (rule.filter.operator, rule.filter.value) == ("in", [text, "b"])
    assert files.extensions["shopping"].model.archetypes == {"conversation": [text, "b"]}


def test_a_category_that_exists_is_reused_with_the_judges_it_has() -> None:
    chosen, found = made(Wanted("shopping", categories=("greeting", "shopping_talk")))
    assert (chosen.own, chosen.reused) == (("shopping_talk",), ("greeting",))
    files, _ = assemble(laid(found), TODAY)
    assert files.selections["shopping"].model.categories.keys() == {"shopping_talk"}
    assert validate_tree(laid(found), TODAY).errors == []
    _, found = made(Wanted("shopping", categories=("greeting",)))
    assert f"{VERTICALS}/shopping/eval/{SELECTION}" not in found
    assert validate_tree(laid(found), TODAY).errors == []


def test_seeds_are_the_platforms_thresholds_and_due_within_ninety_days() -> None:
    _, found = made(Wanted("shopping", judges=("response_quality", "privacy_location", "ux_quality")))
    rules = {name: yaml.safe_load(text) for name, text in found.items() if name.startswith("rules/")}
    assert {Path(name).stem: rule["threshold"] for name, rule in rules.items()} == {
        "response_quality": {"pre_merge": 4, "pre_ramp": 3, "pre_full": 4},
        "privacy_location": True,
        "ux_quality": 0.7,
    }
    assert {rule["recalibration_due"] for rule in rules.values()} == {TODAY + timedelta(days=90)}
    assert {rule["calibration"]["seeded_on"] for rule in rules.values()} == {TODAY}


def test_a_vertical_that_is_there_takes_a_judges_file_more_and_no_category() -> None:
    chosen, found = made(Wanted("receipts", judges=("data_integrity",)))
    assert chosen.own == ("receipt_scan", "receipt_scan_confirmation", "receipt_dispute_flow")
    assert [name for name in found if name not in SHIPPED.files and name.endswith(".yaml")] == [
        "rules/receipts/data_integrity.yaml"
    ]
    with pytest.raises(Refused, match=r"manifest-extension\.yaml is there already; write receipt_search into it"):
        start(Wanted("receipts", categories=("receipt_scan", "receipt_search")), FILES)


def test_a_registry_without_categories_or_archetypes_can_be_scaffolded_too() -> None:
    tree = Tree(SHIPPED.root, {name: text for name, text in SHIPPED.files.items() if name.startswith("rules/ux")})
    files, _ = assemble(tree, TODAY)
    chosen = start(Wanted("shopping"), files)
    assert (chosen.parent, chosen.archetype, chosen.judges) == (None, None, ("ux_quality",))
    found = scaffolded(chosen, [view(files, "ux_quality", None)], [], TODAY)
    for name, text in found.items():
        tree = tree.with_file(name, text.encode()) if name.endswith(".yaml") else tree
    assert assemble(tree, TODAY)[1] == []
