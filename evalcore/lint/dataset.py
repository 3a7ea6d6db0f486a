"""Checks what the manifest says of datasets, and that gates get a sample.

Each field of the manifest's `schema` says what an item holds (PC5 FR-4, §5.3). The adversarial set of pre_full is
another dataset than the golden one, and a candidate answers it (PC5 §5.5).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from evalcore.lint.check import Find, Manifest, Subject, of_manifest
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import FieldPath
from evalcore.yaml.suggestions import near_miss
from schemas.judges import Milestone

ITEMS = Subject("Items", "PC5 FR-4, §5.3")
SAMPLING = Subject("Sampling", "PC5 FR-11, R-5")
TYPES: Final = ("string", "number", "integer", "boolean", "array", "object", "null")
KEYWORDS: Final = frozenset({
    "type", "required", "description", "enum", "items", "properties", "format", "default", "examples", "example",
    "minimum", "maximum", "pattern", "minLength", "maxLength", "minItems", "maxItems",
})  # fmt: skip
"""Words of JSON Schema that may describe a field; `required` belongs to the field itself."""
Problem = tuple[FieldPath, str, str]
"""Place, message, fix."""


@ITEMS.warning()
@of_manifest
def item_field_shape(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """Each field of the manifest's `schema` has a type of JSON Schema, and says nothing that has no meaning there; a
    mapping without a type is a group of fields."""
    for path, message, fix in _group(manifest.model.schema_, ("schema",)):
        yield find(manifest, path, message, fix)


def _group(fields: dict[str, Any], path: FieldPath) -> Iterator[Problem]:
    for name, described in fields.items():
        if not isinstance(described, dict) or not described:
            message = f"{name!r} does not say what it holds"
            yield (*path, name), message, f"write `{name}: {{type: string, required: true}}`"
        elif name != name.strip():
            yield (*path, name), f"{name!r} has space around it", f"write {name.strip()!r}"
        elif _is_field(described):
            yield from _field(described, (*path, name))
        else:
            yield from _group(described, (*path, name))


def _is_field(described: dict[str, Any]) -> bool:
    return any(name in KEYWORDS and not isinstance(value, dict) for name, value in described.items())


def _field(described: dict[str, Any], path: FieldPath) -> Iterator[Problem]:
    kind = described.get("type")
    if "type" not in described:
        yield path, "has no type", f"add `type:`, one of {', '.join(TYPES)}"
    elif kind not in TYPES:
        hint = near_miss(kind, TYPES) if isinstance(kind, str) else ""
        yield (*path, "type"), f"{kind!s:.60} is no type{hint}", f"write one of {', '.join(TYPES)}"
    for name in described:
        if name not in KEYWORDS:
            message = f"{name!r} means nothing of a field{near_miss(name, KEYWORDS)}"
            yield (*path, name), message, "remove it or correct its name"
    if not isinstance(described.get("required", True), bool):
        yield (*path, "required"), "is neither true nor false", "write `required: true` or `required: false`"
    description = described.get("description", "-")
    if not isinstance(description, str) or not description.strip():
        yield (*path, "description"), "is no text", "say what the field holds, or remove the line"
    if "enum" in described:
        yield from _choices(described["enum"], (*path, "enum"))


def _choices(choices: Any, path: FieldPath) -> Iterator[Problem]:
    if not isinstance(choices, list) or not choices:
        yield path, "is no list of values", "list the values that there are, or remove the line"
        return
    seen: list[Any] = []
    for place, value in enumerate(choices):
        if value is None or isinstance(value, (dict, list)) or (isinstance(value, str) and not value.strip()):
            yield (*path, place), "is no value", "write a text or a number"
        elif type(value) is not type(choices[0]):
            yield (*path, place), f"{value!s:.60} is of another type than {choices[0]!s:.60}", "put texts in quotes"
        elif value in seen:
            yield (*path, place), f"{value!s:.60} is listed twice", "remove one of the two"
        seen.append(value)


@SAMPLING.error()
def sampling_leaves_some(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A judge that is enabled samples some traces; at a rate of 0 the gates on live traces have nothing to go by."""
    for judge, rule in files.rules.items():
        if not rule.model.safety and not rule.model.sampling_rate > 0:
            message = (
                f"{judge} would score no trace: pre_ramp and pre_full have no sample, and pre_merge ignores the rate"
            )
            fix = "write a rate above 0; `enabled: false` switches a judge off"
            yield find(rule, ("sampling_rate",), message, fix)


@SAMPLING.warning("PC5 §5.3, §5.5")
@of_manifest
def sample_within_dataset(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """The dataset has the items that the gate at pre_merge requires."""
    items = manifest.model.dataset.items
    least = manifest.model.gates.minimum_sample.get(Milestone.PRE_MERGE)
    if least is not None and items < least:
        message = f"{items} items are fewer than the {least} that pre_merge requires: it could never pass"
        fix = "correct the number, or lower gates.minimum_sample.pre_merge"
        yield find(manifest, ("dataset", "items"), message, fix)


@SAMPLING.warning("PC5 §5.3")
@of_manifest
def items_have_category(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """The schema of an item has `input` and `metadata.category`: by the category it is known which judges fire."""
    shape = manifest.model.schema_
    metadata = shape.get("metadata")
    if "input" not in shape:
        fix = "add `input: {type: string, required: true}`"
        yield find(manifest, ("schema",), "items have no input", fix)
    if not isinstance(metadata, dict) or "category" not in metadata:
        fix = "add `category: {type: string, required: true}` below metadata"
        yield find(manifest, ("schema", "metadata"), "items have no category, so no judge fires on them", fix)


@SAMPLING.error("PC5 §5.5")
@of_manifest
def adversarial_has_candidate(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """A manifest with an adversarial set names the endpoint of the candidate that answers it."""
    sample = manifest.model.sample
    if sample.adversarial is not None and sample.candidate is None:
        message = "without a candidate the adversarial items have no outputs, and no judge could score them"
        fix = "add `candidate: {url: …}` below sample, or remove the set"
        yield find(manifest, ("sample", "adversarial"), message, fix)


@SAMPLING.error("PC5 §5.5")
@of_manifest
def adversarial_is_another_set(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """The adversarial set is another dataset than the golden set."""
    golden, adversarial = manifest.model.dataset, manifest.model.sample.adversarial
    if adversarial is not None and (adversarial.name, adversarial.project) == (golden.name, golden.project):
        message = f"{adversarial.name!r} is the golden set: its items would count twice at pre_full"
        fix = "name the adversarial set, or remove the section"
        yield find(manifest, ("sample", "adversarial", "name"), message, fix)
