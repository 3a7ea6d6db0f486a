"""JSON Schemas of the registry's files, for editors and other validators (PC5 §5.2, §5.3, PF-9 §5.5).

They are closed, as the models are. They accept everything that the models accept; what no schema can say (which judge
exists, which threshold fits which scale) is the linter's business. Those of files that rampgate itself writes say what
stands in them. Only words that drafts 7 to 2020-12 share are used,
so that older editors understand them, too.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from schemas.calibration_cycle import Cycle
from schemas.checks.agreement import AgreementFile
from schemas.checks.canaries import CanaryFile
from schemas.checks.suite import SuiteFile
from schemas.checks.suite_again import SuiteAgain
from schemas.judges import SAME_OPERATOR, NoiseFile, Operator, RuleFile, VerticalRuleFile
from schemas.manifests import (
    AdjudicationsFile,
    GatePathsFile,
    JudgeSelection,
    ManifestBase,
    ManifestExtension,
    ManifestFile,
    OverridesFile,
)
from schemas.specs import AgentSpec, Rubric, SimilarTo
from schemas.verticals import Vertical


class FileForm(NamedTuple):
    title: str
    model: type[BaseModel]


SPEC: Final = "agent-spec"
FILES: Final[dict[str, FileForm]] = {
    "rule-file": FileForm("A judge of the central registry", RuleFile),
    "vertical-rule-file": FileForm("What a vertical sets for a judge", VerticalRuleFile),
    "evaluation-manifest": FileForm("The evaluation manifest", ManifestFile),
    "manifest-base": FileForm("The part of the evaluation manifest that is kept by hand", ManifestBase),
    "manifest-extension": FileForm("Categories of a vertical", ManifestExtension),
    "judge-selection": FileForm("Quality judges of a vertical's categories", JudgeSelection),
    "agreement": FileForm("How far the annotators of a vertical's categories have to agree", AgreementFile),
    "enforcement-overrides": FileForm("Audited exceptions to enforcement", OverridesFile),
    "adjudications": FileForm("What people say of items in a judge's place", AdjudicationsFile),
    "judge-noise": FileForm("How much judges disagree with themselves", NoiseFile),
    "gate-paths": FileForm("Which gates a change triggers", GatePathsFile),
    "canaries": FileForm("Planted instructions, and how far they may move a judge", CanaryFile),
    "suite": FileForm("A suite: cases, and what is looked at in their answers", SuiteFile),
    SPEC: FileForm("An agent's spec: golden queries, and what is asserted of each answer", AgentSpec),
    "vertical": FileForm("A registered vertical", Vertical),
}
WRITTEN: Final[dict[str, FileForm]] = {
    "calibration-round": FileForm("A calibration round: how far it is and what it found", Cycle),
    "suite-again": FileForm("What both sides of a suite's run answer again", SuiteAgain),
}
"""Files that rampgate writes and others read: all fields are there, `null` where they have no value."""
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_BOUNDS: Final = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
_OF_NAMES: Final = ("properties", "$defs")
"""Below these, keys are names and not words of a schema."""


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a kind of file."""
    if name in WRITTEN:
        form = WRITTEN[name]
        body = form.model.model_json_schema(mode="serialization")
    else:
        form = FILES[name]
        body = form.model.model_json_schema(schema_generator=_SpecGenerator if name == SPEC else _Generator)
    head = {"$schema": DIALECT, "$id": f"urn:rampgate:schema:{name}", "title": form.title}
    return head | cast(dict[str, Any], _tidy(body))


class _Generator(GenerateJsonSchema):
    """As files are read: a field is there with a value or is left out, and a day is a day without a time."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        made = super().default_schema(schema)
        return {key: value for key, value in made.items() if key != "default" or value is not None}

    def any_schema(self, schema: core_schema.AnySchema) -> JsonSchemaValue:
        return {"type": ["string", "number", "boolean", "array", "object"]}

    def date_schema(self, schema: core_schema.DateSchema) -> JsonSchemaValue:
        return {"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """With the names it takes also where those are a union, which pydantic leaves out."""
        made = super().dict_schema(schema)
        keys = schema.get("keys_schema", {})
        if keys.get("type") == "union":
            made["propertyNames"] = self.generate_inner(keys)
        elif keys.get("type") == "str" and made.get("additionalProperties") == self.any_schema({"type": "any"}):
            made["additionalProperties"] = True  # a mapping of the file's own making, which may hold empty fields
        return made

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """Operators are taken in any case and by their other names; the list is what an editor completes."""
        made = super().enum_schema(schema)
        if schema["cls"] is not Operator:
            return made
        names = "|".join(_any_case(name) for name in [*Operator, *SAME_OPERATOR])
        known = {"enum": [*made["enum"], *SAME_OPERATOR]}
        return {"type": "string", "anyOf": [known, {"pattern": rf"^\s*({names})\s*$"}]}


class _SpecGenerator(_Generator):
    """As a spec is read: null switches an assertion off, and a query may have a part of a rubric of `defaults`."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        made = super().nullable_schema(schema)
        if isinstance(made.get("type"), str) and "enum" not in made:
            return made | {"type": [made["type"], "null"]}
        return {"anyOf": [made, {"type": "null"}]}

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        return {
            key: value for key, value in made.items() if key != "required" or schema["cls"] not in (Rubric, SimilarTo)
        }


def _any_case(name: str) -> str:
    return "".join(f"[{letter.upper()}{letter}]" if letter.isalpha() else letter for letter in name)


def _tidy(value: Any, names: bool = False) -> Any:
    """Without the titles that pydantic makes from names, in one line each, with bounds as JSON Schema calls them and
    without the choice between a whole number and a number."""
    if isinstance(value, list):
        return [_tidy(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if names:
        return {key: _tidy(inner) for key, inner in value.items()}
    out: dict[Any, Any] = {}
    for key, inner in value.items():
        if key == "description":
            out[key] = " ".join(inner.split())
        elif key == "anyOf":
            out |= _choice([_tidy(one) for one in inner])
        elif key in ("default", "enum", "const"):
            out[key] = inner
        elif key != "title":
            out[_BOUNDS.get(key, key)] = _tidy(inner, key in _OF_NAMES)
    return out


def _choice(members: list[Any]) -> dict[str, Any]:
    if {"type": "number"} in members:
        members = [one for one in members if one != {"type": "integer"}]
    if all(set(one) == {"type"} for one in members):
        types = [one["type"] for one in members]
        return {"type": types[0] if len(types) == 1 else types}
    return {"anyOf": members}
