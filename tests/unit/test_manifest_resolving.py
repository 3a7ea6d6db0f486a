"""The resolved manifest is a pure function of what is declared (PF-9 FR-7, §5.6, AC-7, Decision 17)."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from evalcore.discovery import components
from evalcore.documents import Document, FieldPath, Parsed, Place
from evalcore.problems import Problem
from evalcore.resolving import edited_by_hand, resolved
from schemas.manifests import JudgeSelection, ManifestBase, ManifestExtension, ManifestFile

BASE: dict[str, Any] = {
    "dataset": {"name": "d", "version": 7, "items": 345},
    "schema": {"input": {"type": "string"}},
    "global_metrics": {"judges": ["data_integrity"]},
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
) -> tuple[str, list[Problem]]:
    found, problems = components(files)
    assert problems == []
    return resolved(
        Parsed(Document("manifest-base.yaml", base, {(): (1, 1)}), ManifestBase.model_validate(base)),
        found,
        {parsed.model.vertical: parsed for parsed in extensions},
        {parsed.model.vertical: parsed for parsed in selections},
    )


RECEIPTS = extension("receipts", {"receipt_scan": {"inherits_from": "general_qa"}, "dispute": {"description": "d"}})
RECEIPTS_PICKS = selection("receipts", {"receipt_scan": FOUR, "dispute": ["ux_quality"]})


def test_pf9_ac7_categories_are_exactly_those_the_components_declare() -> None:
    text, problems = run()
    assert problems == []
    manifest = ManifestFile.model_validate(yaml.safe_load(text))
    assert {name: c.judges for name, c in manifest.categories.items()} == {
        "general_qa": ["response_quality"],
        "greeting": ["greeting_quality"],
    }


def test_a_category_of_the_base_that_no_component_declares_is_refused() -> None:
    _, problems = run(base={**BASE, "categories": {"greting": {"judges": []}}})
    assert [p.check for p in problems] == ["category-not-declared"]
    assert "did you mean 'greeting'?" in problems[0].message


def test_a_vertical_adds_its_own_categories_with_the_judges_it_picked() -> None:
    text, problems = run(extensions=(RECEIPTS,), selections=(RECEIPTS_PICKS,))
    assert problems == []
    scan = ManifestFile.model_validate(yaml.safe_load(text)).categories["receipt_scan"]
    assert (scan.judges, scan.vertical, scan.inherits_from) == (FOUR, "receipts", "general_qa")


def test_a_category_that_picks_nothing_has_its_parents_judges() -> None:
    text, problems = run(extensions=(RECEIPTS,))
    assert problems == []
    assert yaml.safe_load(text)["categories"]["receipt_scan"]["judges"] == ["response_quality"]


def test_decision_17_another_selection_for_an_existing_category_names_it_and_the_way_to_change_it() -> None:
    _, (problem,) = run(
        extensions=(extension("shop", {"greeting": {}}),), selections=(selection("shop", {"greeting": ["ux_quality"]}),)
    )
    assert (problem.check, problem.file, problem.line) == ("category-conflict", "specs/shop.yaml", 3)
    assert "greeting" in problem.message
    assert "p/greeting.xml" in problem.message
    assert "pull request" in problem.fix


def test_two_verticals_with_other_judges_for_one_category_conflict_and_with_the_same_share_it() -> None:
    shop = extension("shop", {"dispute": {}})
    _, problems = run(
        extensions=(RECEIPTS, shop), selections=(RECEIPTS_PICKS, selection("shop", {"dispute": ["fetch_legal"]}))
    )
    assert [p.check for p in problems] == ["category-conflict"]
    text, problems = run(
        extensions=(RECEIPTS, shop), selections=(RECEIPTS_PICKS, selection("shop", {"dispute": ["ux_quality"]}))
    )
    assert problems == []
    assert "vertical" not in yaml.safe_load(text)["categories"]["dispute"]


def test_reuse_by_name_says_no_more_and_changes_nothing() -> None:
    plain = yaml.safe_load(run()[0])
    text, problems = run(extensions=(extension("shop", {"greeting": {}}),))
    assert problems == []
    assert yaml.safe_load(text) == plain


def test_what_does_not_exist_can_be_neither_reused_nor_inherited() -> None:
    _, problems = run(extensions=(extension("shop", {"greting": {}, "own": {"inherits_from": "general-q"}}),))
    assert [p.check for p in problems] == ["unknown-category", "unknown-category"]
    assert "'greeting'" in problems[0].message
    assert "'general_qa'" in problems[1].message


def test_a_verticals_sub_agents_join_an_archetype() -> None:
    text, problems = run(extensions=(extension("shop", {"greeting": {}}, archetypes={"conversation": ["shop"]}),))
    assert problems == []
    assert yaml.safe_load(text)["archetypes"] == {"conversation": ["chat", "shop"]}
    _, problems = run(extensions=(extension("shop", {"greeting": {}}, archetypes={"none": ["shop"]}),))
    assert [p.check for p in problems] == ["unknown-archetype"]


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
    assert run()[0].splitlines()[2] != run(extensions=(RECEIPTS,))[0].splitlines()[2]
