"""Checks what the manifest and verticals say of datasets, and that gates get a sample.

Each field of the manifest's `schema` says what an item holds (PC5 FR-4, §5.3). A vertical's golden set lives in its own
Opik project (PC5 FR-7, §5.6). A rollout's samples have golden items, at pre_full adversarial ones of another
dataset, and a candidate that answers both (PC5 §5.5).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from evalcore.lint.check import Find, Manifest, Subject, of_manifest
from evalcore.lint.limits import platform
from evalcore.registry.files import RegistryFiles
from evalcore.stats.mean_fall import items_to_tell
from evalcore.stats.multiple_tests import CONFIRMED, TESTS
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import FieldPath, Parsed
from evalcore.yaml.suggestions import near_miss
from schemas.judges import Milestone, ScoreType, judge_id, score_range
from schemas.manifests import ROLLING, Dataset, GateDefaults, VerticalDataset

ITEMS = Subject("Items", "PC5 FR-4, §5.3")
SAMPLING = Subject("Sampling", "PC5 FR-11, R-5")
TYPES: Final = ("string", "number", "integer", "boolean", "array", "object", "null")
KEYWORDS: Final = frozenset({
    "type", "required", "description", "enum", "items", "properties", "format", "default", "examples", "example",
    "minimum", "maximum", "pattern", "minLength", "maxLength", "minItems", "maxItems",
})  # fmt: skip
"""Words of JSON Schema that may describe a field; `required` belongs to the field itself."""
USUAL_SPREAD: Final = 0.2
"""The σ of a judge's scores as a share of its scale: 0.8 from 1 to 5, and about that of shares of 0.95."""
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


LEAST_RATE = 1e-6


@SAMPLING.error()
def sampling_leaves_some(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A judge samples one trace in a million or more; at a rate near 0 the gates on live traces have nothing to go by,
    and a score's weight no bound."""
    for judge, rule in files.rules.items():
        if not rule.model.safety and rule.model.sampling_rate < LEAST_RATE:
            message = (
                f"{judge} would score no trace: pre_ramp and pre_full have no sample, and pre_merge ignores the rate"
            )
            fix = f"write a rate of {LEAST_RATE:.6f} or more; `enabled: false` switches a judge off"
            yield find(rule, ("sampling_rate",), message, fix)


Named = tuple[str, Parsed[Any], FieldPath, VerticalDataset]
"""Vertical, the file that names its golden set, the place there, the set."""


def _of_verticals(files: RegistryFiles) -> Iterator[Named]:
    """Yields the golden sets of verticals, each at its source: the vertical's extension, else the manifest."""
    for vertical, extension in sorted(files.extensions.items()):
        if extension.model.dataset is not None:
            yield vertical, extension, ("dataset",), extension.model.dataset
    if files.manifest is None:
        return
    for vertical, own in sorted(files.manifest.model.datasets.items()):
        source = files.extensions.get(vertical)
        if source is None or source.model.dataset is None:
            yield vertical, files.manifest, ("datasets", vertical), own


def _same_set(one: Dataset, other: Dataset | None) -> bool:
    return other is not None and (one.name, one.project) == (other.name, other.project)


@SAMPLING.error("contracts §3")
@of_manifest
def not_applicable_share_of_a_judge(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """Each key of `gates.not_applicable_share_of` is a judge, or `judge.dimension`."""
    for key in manifest.model.gates.not_applicable_share_of:
        judge, _, dimension = judge_id(key).partition(".")
        rule = files.rules.get(judge)
        parts = {judge_id(name) for name in rule.model.dimensions or ()} if rule is not None else set()
        if ("rule", judge) not in files.unread and (rule is None or (dimension and dimension not in parts)):
            message = f"{key} is no judge of the registry, and no dimension of one: the share holds for nothing"
            yield find(manifest, ("gates", "not_applicable_share_of", key), message, "correct the name, or remove it")


@SAMPLING.warning("PC5 §5.3, §5.5")
@of_manifest
def sample_within_dataset(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """The dataset, and each vertical's, has the items that the gate at pre_merge requires."""
    least = manifest.model.gates.minimum_sample[Milestone.PRE_MERGE]
    golden = [(manifest, ("dataset",), manifest.model.dataset)]
    for parsed, path, dataset in [*golden, *((source, at, own) for _, source, at, own in _of_verticals(files))]:
        if dataset.items < least:
            message = f"{dataset.items} items are fewer than the {least} that pre_merge requires: it could never pass"
            fix = "correct the number, or add items; gates.minimum_sample.pre_merge holds for all verticals"
            yield find(parsed, (*path, "items"), message, fix)


@SAMPLING.error("PC5 FR-7, §5.6")
def dataset_of_a_vertical(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Whose dataset the manifest names is a vertical that is registered."""
    known = {*files.verticals, *files.extensions}
    for vertical, parsed, path, _ in _of_verticals(files):
        if vertical not in known and ("vertical", vertical) not in files.unread:
            message = f"there is no vertical {vertical!r}{near_miss(vertical, known)}: no gate judges its dataset"
            yield find(parsed, path, message, f"correct the name, or add verticals/{vertical}.yaml")


@SAMPLING.warning("PC5 FR-7, §5.6")
def dataset_in_own_project(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A vertical's dataset lives in the vertical's own Opik project."""
    for vertical, parsed, path, dataset in _of_verticals(files):
        registered = files.registrations.get(vertical)
        own = registered.model.project if registered is not None else None
        if own is not None and dataset.project not in (None, own):
            message = f"the dataset lives in project {dataset.project!r}; that of {vertical} is {own!r}"
            fix = f"remove the line, or write `project: {own}`; the vertical owns its dataset"
            yield find(parsed, (*path, "project"), message, fix)


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


@SAMPLING.warning("PC5 §5.5")
@of_manifest
def rollout_sample_composed(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """A rollout's samples have golden items, and pre_full's adversarial ones as well: the manifest names the candidate
    that answers them, and an adversarial set that has items."""
    sample = manifest.model.sample
    if sample.candidate is None:
        message = "pre_ramp and pre_full judge no golden item: no candidate is named that answers the dataset"
        fix = "add `sample: {candidate: {url: …}}`: the address of the version that asks to ramp"
        yield find(manifest, ("sample", "candidate"), message, fix)
    if sample.adversarial is None or not sample.adversarial.items:
        path: FieldPath = (
            ("sample", "adversarial") if sample.adversarial is None else ("sample", "adversarial", "items")
        )
        fix = "add `sample: {adversarial: {name: …, version: …, items: …}}`: a dataset in Opik"
        yield find(manifest, path, "pre_full judges no adversarial item of the platform's", fix)


@SAMPLING.warning("PC5 §5.5, R-4")
@of_manifest
def tolerance_is_seen(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """With the least sample of a rollout's gate each judge can tell a fall by its own tolerance from chance, where
    scores have a σ of a fifth of their scale. A judge without a tolerance, and one of true and false that allows no
    false, are left out."""
    for milestone in (Milestone.PRE_RAMP, Milestone.PRE_FULL):
        blind = [name for name in sorted(files.rules) if _is_blind(files, manifest.model.gates, name, milestone)]
        if blind:
            least = manifest.model.gates.minimum_sample[milestone]
            message = (
                f"of {least} items at {milestone} a fall by its own tolerance may be chance for {', '.join(blind)}"
            )
            fix = (
                "ask for more items, or give the judge more of them; until then only larger falls are called regressed"
            )
            yield find(manifest, ("gates", "minimum_sample", milestone), message, fix)


def _is_blind(files: RegistryFiles, gates: GateDefaults, judge: str, milestone: Milestone) -> bool:
    rule, (low, high) = files.rules[judge].model, score_range(files.rules[judge].model)
    if rule.score_type is ScoreType.BOOLEAN and platform(files, judge, milestone) >= 1:
        return False
    if not low < high or not rule.tolerance:
        return False
    absent = gates.may_be_not_applicable(judge, milestone) if rule.takes_na else 0.0
    items = gates.minimum_sample[milestone] * (1 - absent) * float(rule.sampling_rate)
    tolerance = float(rule.tolerance) / (high - low)
    return items_to_tell(tolerance, USUAL_SPREAD**2, ROLLING, CONFIRMED / TESTS / len(files.rules)) > items


@SAMPLING.error("PC5 §5.5")
@of_manifest
def adversarial_has_candidate(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """A manifest with an adversarial set, its own or a vertical's, names the endpoint of the candidate that answers
    it."""
    if manifest.model.sample.candidate is not None:
        return
    message = "without a candidate the adversarial items have no outputs, and no judge could score them"
    if manifest.model.sample.adversarial is not None:
        fix = "add `candidate: {url: …}` below sample, or remove the set"
        yield find(manifest, ("sample", "adversarial"), message, fix)
    for _, parsed, path, dataset in _of_verticals(files):
        if dataset.adversarial is not None:
            fix = "have `sample.candidate` added, or remove the set"
            yield find(parsed, (*path, "adversarial"), message, fix)


@SAMPLING.error("PC5 §5.5")
@of_manifest
def adversarial_is_another_set(files: RegistryFiles, manifest: Manifest, find: Find) -> Iterator[Finding]:
    """An adversarial set is another dataset than the golden set, and a vertical's another than the platform's."""
    golden, adversarial = manifest.model.dataset, manifest.model.sample.adversarial
    if adversarial is not None and _same_set(adversarial, golden):
        message = f"{adversarial.name!r} is the golden set: its items would count twice at pre_full"
        fix = "name the adversarial set, or remove the section"
        yield find(manifest, ("sample", "adversarial", "name"), message, fix)
    for _, parsed, path, dataset in _of_verticals(files):
        for other, what in ((dataset, "the golden set"), (adversarial, "the platform's adversarial set")):
            if dataset.adversarial is not None and _same_set(dataset.adversarial, other):
                message = f"{dataset.adversarial.name!r} is {what}: its items would count twice at pre_full"
                fix = "name the vertical's own adversarial set, or remove it"
                yield find(parsed, (*path, "adversarial", "name"), message, fix)
