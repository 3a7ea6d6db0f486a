"""The published JSON Schemas of the registry's files: every shipped file names its own and fits it, and they accept and
refuse what the models do (PC5 FR-3, FR-4, AC-6, AC-10; PF-9 §5.5)."""

from __future__ import annotations

import copy
import json
import os.path
import re
from collections.abc import Iterator
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker
from pydantic import ValidationError

from evalcore import scaffold
from evalcore.registry.disk import read_tree
from evalcore.registry.registry import build
from evalcore.scaffold import Start
from evalcore.validation import checked
from evalcore.yaml.loader import read_yaml
from evalcore.yaml.models import read_as
from schemas.publish.file_schemas import FILES, WRITTEN, schema
from tests.root import ROOT

CONFIGS = ROOT / "configs"
MODELINE = re.compile(r"# yaml-language-server: \$schema=(\S+)\n")


def kind_of(path: Path) -> str:
    """The schema a file of the registry has, by where it lies."""
    inside = path.relative_to(ROOT).parts
    match inside:
        case ("configs", "rules", _):
            return "rule-file"
        case ("configs", "rules", _, _):
            return "vertical-rule-file"
        case ("configs", "verticals", _):
            return "vertical"
        case ("examples", "suite", _):
            return "suite"
        case ("docs", _):
            return "agent-spec"
    return path.stem.replace("_", "-")


SHIPPED = sorted(
    [Path(CONFIGS / name).resolve() for name in read_tree(CONFIGS).files if Path(name).suffix in {".yaml", ".yml"}]
    + [ROOT / "examples" / "suite" / "suite.yaml", ROOT / "docs" / "sample_spec.yaml"]
)


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name), format_checker=FormatChecker())


def data(path: Path) -> Any:
    """As an editor reads it: days are text."""
    document, findings = read_yaml(path.name, path.read_bytes())
    assert document is not None
    assert not findings
    return as_json(document.data)


def as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: as_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    return value.isoformat() if isinstance(value, date) else value


def test_what_the_scaffold_writes_names_its_schemas_and_fits_them() -> None:
    """PF-9 §5.5, PC5 §9.4: so do the files of the next vertical."""
    registry = build(checked(read_tree(CONFIGS), date(2026, 11, 21))[0])
    judges = [registry.judge(name) for name in ("response_quality", "fetch_legal")]
    begun = Start("shopping", "p", ("shopping",), "conversation", ("a",), (), "general_qa", (), "PLT-1")
    written = scaffold.scaffolded_files(begun, judges, [], date(2026, 11, 21))
    assert len(written) == 7
    for name, text in written.items():
        if name.endswith(".yaml"):
            path = Path(os.path.normpath(CONFIGS / name))
            kind = kind_of(path)
            named = MODELINE.match(text)
            assert named, name
            assert (path.parent / named.group(1)).resolve() == ROOT / "docs" / "schemas" / f"{kind}.json"
            document, _ = read_yaml(name, text.encode())
            assert document is not None
            validator(kind).validate(as_json(document.data))


def test_there_are_files_of_every_kind() -> None:
    assert {kind_of(path) for path in SHIPPED} == set(FILES)


# AgentCI Step 0.5 box 2.
def test_a_shipped_file_names_its_schema_in_its_first_line_and_fits_it() -> None:
    """PC5 AC-10 for the manifest; the schema is the committed one, as an editor finds it."""
    for path in SHIPPED:
        named = MODELINE.match(path.read_text())
        assert named, f"begin {path.relative_to(ROOT)} with '# yaml-language-server: $schema=…'"
        found = (path.parent / named.group(1)).resolve()
        assert found == ROOT / "docs" / "schemas" / f"{kind_of(path)}.json"
        published = json.loads(found.read_text())
        Draft202012Validator(published, format_checker=FormatChecker()).validate(data(path))


@pytest.mark.parametrize("name", FILES)
def test_a_schema_is_one_in_the_words_that_older_editors_know(name: str) -> None:
    body = schema(name)
    Draft202012Validator.check_schema(body)
    Draft7Validator.check_schema({key: value for key, value in body.items() if key != "$schema"})
    assert body["title"]
    assert body["description"]
    assert body["$id"] == f"urn:rampgate:schema:{name}"
    text = json.dumps({key: value for key, value in body.items() if key != "$schema"})
    assert "://" not in text
    assert not re.search(r'"(ge|gt|le|lt|prefixItems|dependentRequired|unevaluatedProperties)":', text)
    if name != "agent-spec":  # there null switches an assertion off
        assert '"null"' not in text, "a field is there with a value or is left out"


def mappings(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, part in {"": body, **body.get("$defs", {})}.items():
        if "properties" in part:
            yield name, part


@pytest.mark.parametrize("name", [*FILES, *WRITTEN])
def test_every_field_is_described_and_no_other_is_allowed(name: str) -> None:
    for where, part in mappings(schema(name)):
        assert part["additionalProperties"] is False, where
        for field, about in part["properties"].items():
            assert len(about.get("description", "")) > 8, f"{where}.{field} needs a docstring: editors show it"
            assert "\n" not in about["description"]


def test_every_field_of_a_model_is_in_its_schema() -> None:
    for name, form in {**FILES, **WRITTEN}.items():
        fields = {info.alias or field for field, info in form.model.model_fields.items()}
        assert set(schema(name)["properties"]) == fields


RULE = data(CONFIGS / "rules" / "response_quality.yaml")
OWN = data(CONFIGS / "rules" / "receipts" / "ux_quality.yaml")
MANIFEST = data(CONFIGS / "evaluation_manifest.yaml")
DRIFT = {"kl_threshold": 0.1, "baseline_source": "provisional_seed", "recalibration_due": "2026-12-01"}
OVERRIDE = {
    "judge": "ux_quality",
    "milestone": "pre_ramp",
    "enforcement": "warn",
    "pull_request": "#12",
    "justification": "why",
    "approved_on": "2026-11-23",
    "expires": "2026-12-23",
}
TAKEN: list[tuple[str, Any]] = [
    *[
        ("vertical-rule-file", {**OWN, "filter": {"field": "sub_agent_id", "operator": operator, "value": "receipts"}})
        for operator in ("equals", "=", "==", "eq", "Equals", " IN ", "not_equals", "ne", "MATCHES", "is_empty")
    ],
    ("vertical-rule-file", {**OWN, "filter": {"field": "f", "operator": "in", "value": ["a", 1, None]}}),
    ("vertical-rule-file", {**OWN, "filter": {"field": "f", "operator": "is_empty"}}),
    ("rule-file", {**RULE, "drift": DRIFT}),
    ("vertical-rule-file", {**OWN, "threshold": 0.55}),
    ("vertical-rule-file", {**OWN, "threshold": True}),
    ("vertical-rule-file", {**OWN, "threshold": {"default": 4, "pre_full": 4.5}}),
    ("vertical-rule-file", {**OWN, "recalibration_due": "2026-08-22"}),
    ("evaluation-manifest", {**MANIFEST, "thresholds": {"a-b": 4, "a-b.pre_full": 4.5, "jailbreaking": True}}),
    ("evaluation-manifest", {**MANIFEST, "thresholds": {"a": {"pre_merge": 4, "default": 3}, "a.relevance": 3}}),
    ("evaluation-manifest", {**MANIFEST, "schema": {"input": None}}),
    ("enforcement-overrides", {}),
    ("enforcement-overrides", {"overrides": [OVERRIDE, {**OVERRIDE, "vertical": "receipts"}]}),
    ("gate-paths", {"paths": [{"gates": [], "files": ["src/**"]}, {"gates": ["pre_full"], "files": ["*.md"]}]}),
    ("canaries", {"canaries": {"a": "Answer {best}"}, "limits": {"shift": 0.1}, "judges": {"j": {"share": 0.3}}}),
    ("vertical", {"name": "shopping", "project": "p", "reroll_window_seconds": 60, "live_judge": "opik"}),
    ("manifest-extension", {"vertical": "v", "categories": {"c": {}}}),
    ("judge-selection", {"vertical": "v", "categories": {"c": {}}}),
]
REFUSED: list[tuple[str, Any]] = [
    ("rule-file", {**RULE, "score_type": "STRING"}),
    ("rule-file", {**RULE, "sampling_rate": 1.5}),
    ("rule-file", {**RULE, "tolerance": -0.1}),
    ("rule-file", {**RULE, "temperature": "1.0"}),
    ("rule-file", {**RULE, "enabled": "yes"}),
    ("rule-file", {**RULE, "name": ""}),
    ("rule-file", {**RULE, "threshhold": 4}),
    ("rule-file", {**RULE, "filter": None}),
    ("rule-file", {**RULE, "filter": {"field": "f", "operator": "like", "value": 1}}),
    ("rule-file", {**RULE, "filter": {"field": "f", "operator": "=", "value": None}}),
    ("rule-file", {**RULE, "enforcement": {"pre_launch": "block"}}),
    ("rule-file", {**RULE, "enforcement": {"pre_ramp": "stop"}}),
    ("rule-file", {**RULE, "score_range": [1, 2, 3]}),
    ("rule-file", {**RULE, "threshold": {"pre_rampe": 4}}),
    ("rule-file", {**RULE, "threshold": "4"}),
    ("rule-file", {**RULE, "recalibration_due": "22.08.2026"}),
    ("rule-file", {**RULE, "recalibration_due": "2026-08-22T10:00:00"}),
    ("rule-file", {**RULE, "recalibration_due": "2026-02-30"}),
    ("rule-file", {**RULE, "variables": {"offline": {}, "online": {"a": "b"}, "playground": {"a": "b"}}}),
    ("rule-file", {**RULE, "variables": {key: {"input": "a..b"} for key in ("offline", "online", "playground")}}),
    ("rule-file", {**RULE, "drift": {**DRIFT, "kl_threshold": 0}}),
    ("vertical-rule-file", {**OWN, "prompt": "fork"}),
    ("evaluation-manifest", {**MANIFEST, "categories": {}}),
    ("evaluation-manifest", {**MANIFEST, "dataset": {**MANIFEST["dataset"], "version": 0}}),
    ("evaluation-manifest", {**MANIFEST, "dataset": {**MANIFEST["dataset"], "version": "7"}}),
    ("evaluation-manifest", {**MANIFEST, "gates": {"coverage_floor": 0}}),
    ("evaluation-manifest", {**MANIFEST, "gates": {"minimum_sample": {"pre_ramp": 0}}}),
    ("enforcement-overrides", {"overrides": [{**OVERRIDE, "expires": None}]}),
    ("gate-paths", {"paths": []}),
    ("gate-paths", {"paths": [{"gates": [], "files": []}]}),
    ("gate-paths", {"paths": [{"gates": ["pre_launch"], "files": ["a"]}]}),
    ("gate-paths", {"paths": [{"files": ["a"]}]}),
    ("canaries", {"canaries": {}}),
    ("canaries", {"canaries": {"a": ""}}),
    ("canaries", {"canaries": {"a": "x"}, "limits": {"shift": 1}}),
    ("canaries", {"canaries": {"a": "x"}, "classes": ["told-best"]}),
    ("vertical", {"name": "Receipts", "project": "p"}),
    ("vertical", {"name": "receipts", "project": "p", "reroll_window_seconds": "300"}),
    ("vertical", {"name": "receipts", "project": "p", "reroll_window_seconds": True}),
    ("manifest-extension", {"vertical": "v", "categories": {}}),
    ("judge-selection", {"vertical": "v", "categories": {"c": {"judges": []}}}),
]  # fmt: skip


def by_model(name: str, value: Any) -> bool:
    """Whether the registry reads it, out of a file."""
    parsed, _ = read_as(FILES[name].model, f"{name}.yaml", yaml.safe_dump(value, allow_unicode=True).encode())
    return parsed is not None


def test_what_a_file_may_hold_is_accepted_and_what_the_models_refuse_for_its_shape_is_refused() -> None:
    for held, cases in ((True, TAKEN), (False, REFUSED)):
        for name, value in cases:
            assert by_model(name, value) is held, (name, value)
            assert validator(name).is_valid(value) is held, (name, value)


def test_without_a_required_field_or_with_an_unknown_one_a_file_is_refused() -> None:
    for path in SHIPPED:
        name, whole = kind_of(path), data(path)
        for field in schema(name).get("required", []):
            lacking = {key: value for key, value in whole.items() if key != field}
            assert not validator(name).is_valid(lacking), (path, field)
            assert not by_model(name, lacking), (path, field)
        assert not validator(name).is_valid({**whole, "unknown_field": 1}), path


ODD = st.sampled_from([None, True, False, 0, 1, -1, 0.5, 7.5, "", "x", "warn", "pre_ramp", "2026-08-22", [], ["a"], {}])


@given(st.sampled_from(SHIPPED), st.data())
def test_whatever_one_field_is_changed_to_the_schema_accepts_what_the_model_does(
    path: Path, draw: st.DataObject
) -> None:
    """An editor never marks what validation accepts."""
    name, changed = kind_of(path), copy.deepcopy(data(path))
    place: Any = changed
    while True:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = draw.draw(st.sampled_from(keys))
        if isinstance(place[key], (dict, list)) and draw.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = draw.draw(ODD)
        break
    try:
        FILES[name].model.model_validate(changed)
    except ValidationError:
        return
    if by_model(name, changed):
        validator(name).validate(changed)
