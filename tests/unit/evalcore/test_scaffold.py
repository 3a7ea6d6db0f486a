"""A new vertical: scaffolded, filled in, resolved, and judged beside the others with no code change. PF-9 FR-8, §5.5,
§5.10, AC-5, AC-8; PC5 AC-2. What a scaffold's files say, of whatever it is asked for (PF-9 FR-8, §5.5)."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

import evalcore
from evalcore import reloading
from evalcore.registry import disk
from evalcore.registry.files import EXTENSION, MANIFEST, SELECTION, VERTICALS, Tree, assemble
from evalcore.registry.judge import view
from evalcore.registry.registry import Registry, build
from evalcore.scaffold import TAKEN, Refused, Start, Wanted, start
from evalcore.scaffold import scaffolded_files as scaffolded
from evalcore.validation import checked, validate_tree
from schemas.judges import Classification
from tests.shipped import LACKS
from tests.unit.rampgate.cli.registry_copies import HERE, copied, edit, files, run

TODAY = date(2026, 11, 21)
SHIPPED = disk.read_tree(HERE / "configs")
FILES, _ = assemble(SHIPPED, TODAY)


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    return copied(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For tests in which nothing may be written."""
    return copied(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def serving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever registry a test has evalcore serve, the next test finds what was there before."""
    monkeypatch.setattr(reloading, "_chosen", None)


def views(registry: Registry, vertical: str | None) -> dict[str, Any]:
    """All that a vertical sees, but for the sub-agents that others have let join an archetype."""
    judges = {judge.id: replace(judge, sub_agents=()) for judge in registry.all(vertical)}
    return {"judges": judges, **{name: [j.id for j in registry.category(name, vertical)] for name in OF_THE_PLATFORM}}


OF_THE_PLATFORM = [name for name, one in build(FILES).category_files.items() if one.vertical is None]


def registry_at(configs: Path) -> Registry:
    files, findings = checked(disk.read_tree(configs), disk.today())
    assert [one for one in findings if one.severity == "error"] == []
    return build(files)


def test_pf9_ac5_the_scaffold_is_valid_before_anything_is_filled_in(configs: Path) -> None:
    assert run(configs, "vertical", "scaffold", "shopping").code == 0
    assert run(configs, "manifest", "validate").code == 0
    assert run(configs, "manifest", "resolve", "--json").json["outcome"] == "written"
    assert [one["field"] for one in run(configs, "manifest", "validate", "--json").json["warnings"]] == [*LACKS]
    shown = run(configs, "rules", "list", "--vertical", "shopping", "--category", "shopping_general", "--json").json
    assert {"response_quality", "jailbreaking", "safety_restricted", "sensitive_topics"} <= {
        one["id"] for one in shown["judges"]
    }


@pytest.mark.usefixtures("serving")
def test_pc5_10_1_the_guide_to_onboard_a_vertical_works_as_it_is_written(configs: Path) -> None:
    """Phase 6: the commands of docs/registry.md one after the other, and then the call that it ends with. What
    `manifest sync` does with the vertical's Opik project is held by tests/contract/opik/test_manifest_sync.py."""
    guide = (HERE / "docs/registry.md").read_text().partition("## Onboard a vertical")[2].partition("\n## ")[0]
    commands = re.findall(r"^ +rampgate (.+)$", guide, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["vertical", "manifest", "manifest", "rules"]
    for command in commands:
        done = run(configs, *command.split())
        assert done.code == 0, (command, done.err)
    evalcore.use(configs, ttl=None)
    own = evalcore.get_metrics_for_category("basket_questions", vertical="shopping")
    assert {"response_quality", "jailbreaking"} <= {metric.id for metric in own}
    steps = re.findall(r"^\d\. \*\*([\w ]+)", guide, re.MULTILINE)
    assert [step.split()[0] for step in steps] == [
        "Scaffold", "Opik", "Categories", "Judges", "Seeds", "Owner", "Resolve", "Opik",
    ]  # fmt: skip


def test_the_files_are_those_of_pf9s_walkthrough(configs: Path, tmp_path: Path) -> None:
    before = files(tmp_path)
    categories = ("receipt_scan_confirmation", "receipt_dispute_flow")
    flags = [flag for name in categories for flag in ("--category", name)]
    for path in [*tmp_path.glob("specs/verticals/receipts/eval/*"), *configs.glob("rules/receipts/*")]:
        path.unlink()
    (configs / "verticals/receipts.yaml").unlink()
    ran = run(configs, "vertical", "scaffold", "receipts", *flags, "--ticket", "PLT-812", "--json")
    assert (ran.code, ran.json["kept"]) == (0, [])
    assert files(tmp_path).keys() == before.keys()
    folder = tmp_path / "specs/verticals/receipts/eval"
    assert yaml.safe_load((folder / EXTENSION).read_text())["categories"].keys() == set(categories)
    four = ["response_quality", "tool_compliance", "ux_quality", "fetch_legal"]
    assert yaml.safe_load((folder / SELECTION).read_text()) == {
        "vertical": "receipts",
        "categories": {name: {"quality_judges": four} for name in categories},
    }
    rule = yaml.safe_load((configs / "rules/receipts/response_quality.yaml").read_text())
    assert rule["filter"] == {"field": "sub_agent_id", "operator": "equals", "value": "receipts"}
    assert (rule["classification"], rule["baseline_source"], rule["calibration_ref"]) == (
        "quality",
        "provisional_seed",
        "PLT-812",
    )
    assert rule["recalibration_due"] - rule["calibration"]["seeded_on"] <= timedelta(days=90)
    plan = (folder / "calibration-plan.md").read_text()
    assert "JADE Round 1" in plan
    assert str(rule["recalibration_due"]) in plan


def test_pf9_ac8_two_verticals_side_by_side_leave_each_other_and_the_rest_alone(
    configs: Path, tmp_path: Path, serving: None
) -> None:
    before = registry_at(configs)
    for name in ("shopping", "travel"):
        assert run(configs, "vertical", "scaffold", name, "--category", f"{name}_talk").code == 0
    assert run(configs, "manifest", "resolve").code == 0
    first = registry_at(configs)
    for vertical in (None, "receipts", "rewards_assistant"):
        assert views(first, vertical) == views(before, vertical)

    # Shopping fills in what is its own: another judge, a stricter threshold and floor, another block.
    selection = tmp_path / "specs/verticals/shopping/eval/judge-selection.yaml"
    edit(selection, "quality_judges: [", "quality_judges: [data_integrity, ")
    rule = configs / "rules/shopping/ux_quality.yaml"
    edit(rule, "threshold: 0.7", "threshold: 0.9\nfloor: 0.6\nenforcement: {pre_merge: block}")
    assert run(configs, "manifest", "resolve").code == 0
    assert [one["field"] for one in run(configs, "manifest", "validate", "--json").json["warnings"]] == [*LACKS]
    second = registry_at(configs)
    for vertical in (None, "receipts", "rewards_assistant", "travel"):
        assert views(second, vertical) == views(first, vertical)
    assert views(second, "shopping") != views(first, "shopping")

    reloading.use(configs)
    metrics = evalcore.get_metrics_for_category("shopping_talk", vertical="shopping")
    ids = {metric.judge.id for metric in metrics}
    assert ids == {
        "data_integrity", "response_quality", "tool_compliance", "ux_quality", "fetch_legal",
        "jailbreaking", "safety_restricted", "sensitive_topics",
    }  # fmt: skip
    assert evalcore.get_threshold("ux_quality", "pre_ramp", vertical="shopping") == 0.9
    assert evalcore.get_threshold("ux_quality", "pre_ramp", vertical="travel") == 0.7
    assert evalcore.get_threshold("ux_quality", "pre_ramp") == 0.7


def test_nothing_that_is_there_is_overwritten(configs: Path, tmp_path: Path) -> None:
    before = files(tmp_path)
    ran = run(configs, "vertical", "scaffold", "receipts")
    assert ran.code == 1
    assert "receipts: exists already" in ran.out
    assert "kept, it is there already" in ran.out
    assert files(tmp_path) == before

    (configs / "verticals/shopping.yaml").write_text("name: shopping\nproject: theirs\n")
    ran = run(configs, "vertical", "scaffold", "shopping", "--json")
    assert (ran.code, ran.json["outcome"]) == (0, "written")
    assert ran.json["kept"] == [(configs / "verticals/shopping.yaml").as_posix()]
    assert (configs / "verticals/shopping.yaml").read_text() == "name: shopping\nproject: theirs\n"


@pytest.mark.parametrize("gone", [EXTENSION, SELECTION])
def test_a_vertical_that_is_half_there_gets_what_its_other_file_needs(configs: Path, tmp_path: Path, gone: str) -> None:
    folder = tmp_path / "specs/verticals/receipts/eval"
    categories = yaml.safe_load((folder / gone).read_text())["categories"].keys()
    (folder / gone).unlink()
    ran = run(configs, "vertical", "scaffold", "receipts", "--json")
    assert list(ran.json["files"]) == [(folder / gone).as_posix()]
    assert yaml.safe_load((folder / gone).read_text())["categories"].keys() == categories
    assert run(configs, "manifest", "validate").code == 0


def test_a_dry_run_writes_nothing_and_shows_what_it_would(configs: Path, tmp_path: Path) -> None:
    before = files(tmp_path)
    ran = run(configs, "vertical", "scaffold", "shopping", "--dry-run", "--json")
    assert (ran.code, ran.json["outcome"]) == (0, "would_write")
    assert files(tmp_path) == before
    told = ran.json["files"]
    assert run(configs, "vertical", "scaffold", "shopping", "--json").json["files"] == told
    assert {path: Path(path).read_text() for path in told} == told


NAMES = [
    "",
    "Shopping",
    "1st",
    "a b",
    "../shopping",
    "a/b",
    "a\\b",
    ".hidden",
    "-x",
    "ä",
    "x" * 64,
    "sh\nopping",
    "a.b",
]


@pytest.mark.parametrize("name", [*NAMES, *sorted(TAKEN), "null", "true", "no", "nul", "rewards-assistant"])
def test_what_cannot_name_a_vertical_is_refused(shared: Path, name: str) -> None:
    before = files(shared.parent).keys()
    ran = run(shared, "vertical", "scaffold", "--", name)
    assert (ran.code, ran.out) == (2, "")
    assert "NAME" in ran.err
    assert files(shared.parent).keys() == before


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        (["--judge", "jailbreaking"], "safety judge"),
        (["--judge", "ux_qualty"], "did you mean 'ux_quality'?"),
        (["--category", "Scan!"], "--category"),
        (["--category", "general-qa"], "there is 'general_qa'"),
        (["--ticket", " "], "--ticket"),
        (["--sub-agent", "a\x1b[31m"], "--sub-agent"),
    ],
)
def test_a_choice_the_registry_does_not_have_is_refused(shared: Path, flags: list[str], hint: str) -> None:
    ran = run(shared, "vertical", "scaffold", "shopping", *flags)
    assert ran.code == 2
    assert hint in ran.err
    assert not (shared / "verticals/shopping.yaml").exists()


def test_what_cannot_be_written_leaves_nothing_behind(configs: Path, tmp_path: Path) -> None:
    (tmp_path / "specs/verticals/shopping").write_text("in the way")
    before = files(tmp_path)
    ran = run(configs, "vertical", "scaffold", "shopping")
    assert ran.code == 2
    assert "shopping" in ran.err
    assert files(tmp_path) == before


def test_files_that_would_break_the_registry_are_not_written(configs: Path, tmp_path: Path) -> None:
    """A file in the other spelling is about the same judge."""
    (configs / "rules/shopping").mkdir()
    (configs / "rules/shopping/ux-quality.yaml").write_text((configs / "rules/receipts/ux_quality.yaml").read_text())
    before = files(tmp_path)
    ran = run(configs, "vertical", "scaffold", "shopping", "--json")
    assert (ran.code, ran.json["outcome"]) == (1, "refused")
    assert [one["check"] for one in ran.json["errors"]] == ["id-once"]
    assert files(tmp_path) == before


def test_errors_elsewhere_do_not_stand_in_the_way(configs: Path) -> None:
    edit(configs / "rules/receipts/ux_quality.yaml", "threshold: 0.7", "threshold: 0.1")
    assert run(configs, "vertical", "scaffold", "shopping").code == 0


def test_the_manifest_is_not_touched_by_a_scaffold(configs: Path) -> None:
    before = (configs / MANIFEST).read_bytes()
    run(configs, "vertical", "scaffold", "shopping")
    assert (configs / MANIFEST).read_bytes() == before


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
