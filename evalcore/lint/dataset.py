"""Checks what the manifest says of datasets.

Each field of the manifest's `schema` says what an item holds (PC5 FR-4, §5.3). The adversarial set of pre_full is
another dataset than the golden one, and a candidate answers it (PC5 §5.5).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from evalcore.lint.check import Find, check
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.loader import FieldPath
from evalcore.yaml.suggestions import near_miss

TYPES: Final = ("string", "number", "integer", "boolean", "array", "object", "null")
SAYS: Final = frozenset({
    "type", "required", "description", "enum", "items", "properties", "format", "default", "examples", "example",
    "minimum", "maximum", "pattern", "minLength", "maxLength", "minItems", "maxItems",
})  # fmt: skip
"""What may be said of a field, as in JSON Schema; `required` stands at the field itself."""
Wrong = tuple[FieldPath, str, str]


@check(
    "item-field-shape",
    "PC5 FR-4, §5.3",
    "Each field of the manifest's `schema` has a type of JSON Schema, and says nothing that has no meaning there; a "
    "mapping without a type is a group of fields.",
    Severity.WARNING,
)
def item_field_shape(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    for path, message, fix in _group(files.manifest.model.schema_, ("schema",)):
        yield find(files.manifest, path, message, fix)


def _group(fields: dict[str, Any], path: FieldPath) -> Iterator[Wrong]:
    for name, said in fields.items():
        if not isinstance(said, dict) or not said:
            message = f"{name!r} does not say what it holds"
            yield (*path, name), message, f"write `{name}: {{type: string, required: true}}`"
        elif name != name.strip():
            yield (*path, name), f"{name!r} has space around it", f"write {name.strip()!r}"
        elif _is_field(said):
            yield from _field(said, (*path, name))
        else:
            yield from _group(said, (*path, name))


def _is_field(said: dict[str, Any]) -> bool:
    return any(name in SAYS and not isinstance(value, dict) for name, value in said.items())


def _field(said: dict[str, Any], path: FieldPath) -> Iterator[Wrong]:
    kind = said.get("type")
    if "type" not in said:
        yield path, "has no type", f"add `type:`, one of {', '.join(TYPES)}"
    elif kind not in TYPES:
        hint = near_miss(kind, TYPES) if isinstance(kind, str) else ""
        yield (*path, "type"), f"{kind!s:.60} is no type{hint}", f"write one of {', '.join(TYPES)}"
    for name in said:
        if name not in SAYS:
            message = f"{name!r} means nothing of a field{near_miss(name, SAYS)}"
            yield (*path, name), message, "remove it or correct its name"
    if not isinstance(said.get("required", True), bool):
        yield (*path, "required"), "is neither true nor false", "write `required: true` or `required: false`"
    description = said.get("description", "-")
    if not isinstance(description, str) or not description.strip():
        yield (*path, "description"), "is no text", "say what the field holds, or remove the line"
    if "enum" in said:
        yield from _choices(said["enum"], (*path, "enum"))


def _choices(choices: Any, path: FieldPath) -> Iterator[Wrong]:
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
            yield (*path, place), f"{value!s:.60} stands there twice", "remove one of the two"
        seen.append(value)


ITEM_CHECKS = (item_field_shape,)


@check(
    "adversarial-has-candidate",
    "PC5 §5.5",
    "Beside an adversarial set stands the endpoint of the candidate that answers it.",
)
def adversarial_has_candidate(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    sample = files.manifest.model.sample
    if sample.adversarial is not None and sample.candidate is None:
        message = "nobody would have outputs for the adversarial items, and none of them would be judged"
        fix = "add `candidate: {url: …}` below sample, or remove the set"
        yield find(files.manifest, ("sample", "adversarial"), message, fix)


@check(
    "adversarial-is-another-set",
    "PC5 §5.5",
    "The adversarial set is another dataset than the golden set.",
)
def adversarial_is_another_set(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    if files.manifest is None:
        return
    golden, adversarial = files.manifest.model.dataset, files.manifest.model.sample.adversarial
    if adversarial is not None and (adversarial.name, adversarial.project) == (golden.name, golden.project):
        message = f"{adversarial.name!r} is the golden set: its items would count twice at pre_full"
        fix = "name the adversarial set, or remove the section"
        yield find(files.manifest, ("sample", "adversarial", "name"), message, fix)


ADVERSARIAL_CHECKS = (adversarial_has_candidate, adversarial_is_another_set)
