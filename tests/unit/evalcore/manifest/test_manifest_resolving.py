"""The resolved manifest is a pure function of what is declared (PF-9 FR-7, §5.6, AC-7, Decision 17)."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from evalcore.manifest.discovery import components
from evalcore.manifest.resolving import Resolution, edited_by_hand, resolve, resolved
from evalcore.registry.disk import read_tree
from evalcore.registry.files import COMPONENTS, MANIFEST, VERTICALS
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import Document, FieldPath, Parsed, Place
from schemas.manifests import JudgeSelection, ManifestBase, ManifestExtension, ManifestFile
from tests.shipped import LACKS

BASE: dict[str, Any] = {
    "dataset": {"name": "d", "version": 7, "items": 345},
    "schema": {"input": {"type": "string"}},
    "global_metrics": {"judges": ["data_integrity"]},
    "thresholds": {},
    "archetypes": {"conversation": ["chat"]},
}
FOUR = ["response_quality", "tool_compliance", "ux_quality", "fetch_legal"]


def xml(category: str, *judges: str) -> bytes:
    listed = "".join(f'<judge id="{judge}"/>' for judge in judges)
    capability = f'<capability category="{category}" archetype="conversation"><judges>{listed}</judges></capability>'
    return f'<component id="{category}" version="1">{capability}<prompt>x</prompt></component>'.encode()


XML = {"p/general_qa.xml": xml("general_qa", "response_quality"), "p/greeting.xml": xml("greeting", "greeting_quality")}


def extension(vertical: str, categories: dict[str, Any], **more: Any) -> Parsed[ManifestExtension]:
    data = {"vertical": vertical, "categories": categories, **more}
    places: dict[FieldPath, Place] = {(): (1, 1)}
    places |= {("categories", name): (3 + n, 3) for n, name in enumerate(categories)}
    return Parsed(Document(f"specs/{vertical}.yaml", data, places), ManifestExtension.model_validate(data))


def selection(vertical: str, categories: dict[str, list[str]]) -> Parsed[JudgeSelection]:
    data = {"vertical": vertical, "categories": {name: {"quality_judges": js} for name, js in categories.items()}}
    return Parsed(Document(f"specs/{vertical}-selection.yaml", data, {(): (1, 1)}), JudgeSelection.model_validate(data))


def run(
    files: dict[str, bytes] = XML,
    extensions: tuple[Parsed[ManifestExtension], ...] = (),
    selections: tuple[Parsed[JudgeSelection], ...] = (),
    base: dict[str, Any] = BASE,
) -> tuple[str, list[Finding]]:
    found, findings = components(files)
    assert findings == []
    return resolved(
        Parsed(Document("manifest-base.yaml", base, {(): (1, 1)}), ManifestBase.model_validate(base)),
        found,
        {parsed.model.vertical: parsed for parsed in extensions},
        {parsed.model.vertical: parsed for parsed in selections},
    )


SHIPPED = read_tree(Path("configs"))
TODAY = date(2026, 11, 21)


def errors(resolution: Resolution) -> list[Finding]:
    return [finding for finding in resolution.findings if finding.severity is Severity.ERROR]


def with_verticals(verticals: dict[str, Any]) -> Resolution:
    """Of the shipped registry with these extensions beside its own."""
    tree = SHIPPED
    for vertical, categories in verticals.items():
        raw = yaml.safe_dump({"vertical": vertical, "categories": categories}).encode()
        tree = tree.with_file(f"{VERTICALS}/{vertical}/eval/manifest-extension.yaml", raw)
    return resolve(tree, TODAY)


def refused(**verticals: Any) -> list[Finding]:
    resolution = with_verticals(verticals)
    assert not resolution.sound
    return errors(resolution)


def accepted(**verticals: Any) -> str:
    resolution = with_verticals(verticals)
    assert errors(resolution) == []
    assert resolution.text is not None
    return resolution.text


RECEIPTS = extension("receipts", {"receipt_scan": {"inherits_from": "general_qa"}, "dispute": {"description": "d"}})
RECEIPTS_PICKS = selection("receipts", {"receipt_scan": FOUR, "dispute": ["ux_quality"]})


def test_pf9_ac7_categories_are_exactly_those_the_components_declare() -> None:
    text, findings = run()
    assert findings == []
    manifest = ManifestFile.model_validate(yaml.safe_load(text))
    assert {name: c.judges for name, c in manifest.categories.items()} == {
        "general_qa": ["response_quality"],
        "greeting": ["greeting_quality"],
    }


def test_a_category_of_the_base_that_no_component_declares_is_refused() -> None:
    _, findings = run(base={**BASE, "categories": {"greting": {"judges": []}}})
    assert [p.check for p in findings] == ["category-not-declared"]
    assert "did you mean 'greeting'?" in findings[0].message


def test_a_vertical_adds_its_own_categories_with_the_judges_it_picked() -> None:
    text, findings = run(extensions=(RECEIPTS,), selections=(RECEIPTS_PICKS,))
    assert findings == []
    scan = ManifestFile.model_validate(yaml.safe_load(text)).categories["receipt_scan"]
    assert (scan.judges, scan.vertical, scan.inherits_from) == (FOUR, "receipts", "general_qa")


def test_a_category_that_picks_nothing_has_its_parents_judges() -> None:
    text, findings = run(extensions=(RECEIPTS,))
    assert findings == []
    assert yaml.safe_load(text)["categories"]["receipt_scan"]["judges"] == ["response_quality"]


def test_decision_17_another_selection_for_an_existing_category_names_it_and_the_way_to_change_it() -> None:
    found = refused(shop={"greeting": {"judges": ["ux_quality"]}})
    assert [(p.check, p.field) for p in found] == [("category-not-redeclared", "categories.greeting")]
    assert "greeting" in found[0].message
    assert "pull request" in found[0].fix
    assert "Decision 18" in found[0].fix


def test_a_component_that_says_otherwise_of_a_category_conflicts_with_the_first() -> None:
    _, (finding,) = run(
        {**XML, "p/hello.xml": xml("greeting", "ux_quality").replace(b'id="greeting"', b'id="hello"', 1)}
    )
    assert (finding.check, finding.file) == ("category-conflict", "p/hello.xml")
    assert "p/greeting.xml" in finding.message


def test_two_verticals_with_other_judges_for_one_category_conflict_and_with_the_same_share_it() -> None:
    alike = {"dispute": {"judges": ["ux_quality"]}}
    assert [p.check for p in refused(shop=alike, store={"dispute": {"judges": ["fetch_legal"]}})] == [
        "category-not-redeclared"
    ]
    text = accepted(shop=alike, store=alike)
    assert "vertical" not in yaml.safe_load(text)["categories"]["dispute"]


def test_one_that_inherits_what_another_states_says_the_same() -> None:
    stated = {"dispute": {"judges": ["conversation_flow", "greeting_quality"]}}
    accepted(shop={"dispute": {"inherits_from": "greeting"}}, store=stated)
    accepted(shop=stated, store={"dispute": {"inherits_from": "greeting"}})


def test_what_another_vertical_declares_can_be_reused_by_name_whatever_its_name() -> None:
    declared = {"dispute": {"inherits_from": "greeting"}}
    for first, second in (("aaa", "zzz"), ("zzz", "aaa")):
        accepted(**{first: {"dispute": {}}, second: declared})


def test_a_circle_of_parents_is_refused() -> None:
    found = refused(shop={"one": {"inherits_from": "two"}, "two": {"inherits_from": "one"}})
    assert {p.check for p in found} == {"category-parents-end"}


def test_a_selection_without_an_extension_is_refused() -> None:
    name = f"{VERTICALS}/shop/eval/judge-selection.yaml"
    raw = b"vertical: shop\ncategories: {dispute: {quality_judges: [ux_quality]}}\n"
    found = errors(resolve(SHIPPED.with_file(name, raw), TODAY))
    assert [p.check for p in found] == ["selected-category-exists"]


def test_judges_and_archetypes_that_nobody_declares_are_told_where_the_component_names_them() -> None:
    raw = xml("hello", "ux_qualty").replace(b"conversation", b"conversations")
    found = errors(resolve(SHIPPED.with_file(f"{COMPONENTS}/hello.xml", raw), TODAY))
    assert {(p.check, p.file.rpartition("/")[2]) for p in found} == {
        ("component-judge-exists", "hello.xml"),
        ("archetype-exists", "hello.xml"),
    }
    assert any("did you mean 'ux_quality'?" in p.message for p in found)
    remedies = " ".join(p.fix for p in found)
    assert "a file in rules/" in remedies
    assert "manifest-base.yaml" in remedies
    assert MANIFEST not in remedies, "a remedy names the source, not what is made of it"


def test_an_unknown_judge_or_a_safety_judge_in_a_selection_is_refused() -> None:
    assert [p.check for p in refused(shop={"dispute": {"judges": ["ux_qualty"]}})] == ["selected-judge-exists"]


def test_the_shipped_manifest_is_what_resolving_gives_wherever_the_registry_lies() -> None:
    resolution = resolve(SHIPPED, TODAY)
    assert [one.field for one in resolution.findings] == [*LACKS]
    assert resolution.text == Path("configs/evaluation_manifest.yaml").read_text()
    assert resolve(read_tree(Path("configs").absolute()), TODAY).text == resolution.text


def test_reuse_by_name_says_no_more_and_changes_nothing() -> None:
    plain = yaml.safe_load(run()[0])
    text, findings = run(extensions=(extension("shop", {"greeting": {}}),))
    assert findings == []
    assert yaml.safe_load(text) == plain


def test_what_does_not_exist_can_be_neither_reused_nor_inherited() -> None:
    found = refused(shop={"greting": {}, "own": {"inherits_from": "general-q"}})
    assert {p.check for p in found} == {"category-says-something", "category-parent-exists"}
    assert any("'greeting'" in p.message for p in found)
    assert any("'general_qa'" in p.message for p in found)


def test_a_verticals_sub_agents_join_an_archetype() -> None:
    text, findings = run(extensions=(extension("shop", {"greeting": {}}, archetypes={"conversation": ["shop"]}),))
    assert findings == []
    assert yaml.safe_load(text)["archetypes"] == {"conversation": ["chat", "shop"]}
    raw = b"vertical: shop\ncategories: {greeting: {}}\narchetypes: {conversations: [shop]}\n"
    found = errors(resolve(SHIPPED.with_file(f"{VERTICALS}/shop/eval/manifest-extension.yaml", raw), TODAY))
    assert [p.check for p in found] == ["archetype-exists"]


@given(st.permutations(sorted(XML)), st.booleans())
def test_any_order_of_files_gives_the_same_bytes(names: list[str], backwards: bool) -> None:
    others = (RECEIPTS, extension("shop", {"dispute": {}, "greeting": {}}))
    there = others[::-1] if backwards else others
    assert run({n: XML[n] for n in names}, there, (RECEIPTS_PICKS,)) == run(XML, others, (RECEIPTS_PICKS,))


def test_a_hand_edit_is_noticed() -> None:
    text, _ = run()
    assert not edited_by_hand(text)
    assert not edited_by_hand(text.replace("\n", "\r\n"))
    assert edited_by_hand(text.replace("response_quality", "ux_quality"))
    assert edited_by_hand(text + "# note\n")
    assert edited_by_hand("dataset: {}\n")


def test_another_input_is_another_header() -> None:
    def inputs(text: str) -> str:
        return next(line for line in text.splitlines() if line.startswith("# inputs: "))

    assert inputs(run()[0]) != inputs(run(extensions=(RECEIPTS,))[0])


OWN: dict[str, Any] = {
    "name": "receipts-eval",
    "version": 2,
    "items": 60,
    "adversarial": {"name": "edges", "version": 1, "items": 9},
}


def test_pc5_fr7_a_verticals_dataset_stands_in_the_resolved_manifest_beside_the_platforms() -> None:
    receipts = extension("receipts", {"receipt_scan": {"inherits_from": "general_qa"}}, dataset=OWN)
    text, findings = run(extensions=(receipts, extension("shop", {"buy": {"inherits_from": "general_qa"}})))
    assert findings == []
    manifest = ManifestFile.model_validate(yaml.safe_load(text))
    assert {name: one.model_dump(exclude_unset=True) for name, one in manifest.datasets.items()} == {"receipts": OWN}
    assert manifest.dataset.name == BASE["dataset"]["name"]


def test_a_base_that_names_another_dataset_of_a_vertical_is_refused() -> None:
    receipts = extension("receipts", {"receipt_scan": {"inherits_from": "general_qa"}}, dataset=OWN)
    assert run(extensions=(receipts,), base={**BASE, "datasets": {"receipts": OWN}})[1] == []
    _, findings = run(extensions=(receipts,), base={**BASE, "datasets": {"receipts": {**OWN, "items": 61}}})
    assert [(found.check, found.file) for found in findings] == [("vertical-dataset-once", "specs/receipts.yaml")]
