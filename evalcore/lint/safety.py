"""Checks that no file relaxes a safety judge's baseline (PF-9 FR-2, §5.2; contracts §3)."""

from __future__ import annotations

from collections.abc import Iterator

from evalcore.lint.check import Find, Subject
from evalcore.lint.limits import central, fits, manifest_thresholds, number, platform, stated
from evalcore.registry.files import AnyRule, RegistryFiles
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import Parsed
from schemas.judges import Classification, Enforcement, RuleFile, judge_id, score_range

SAFETY = Subject("Safety", "PF-9 FR-2, §5.2")
NAMED = frozenset({"jailbreaking", "safety_restricted", "sensitive_topics"})
"""Judges that PF-9 §5.2 itself classifies as safety judges."""


def safety_rules(files: RegistryFiles) -> Iterator[tuple[str, Parsed[RuleFile]]]:
    """Yields (judge id, central rule file) of safety judges."""
    for judge, rule in files.rules.items():
        if rule.model.safety:
            yield judge, rule


def _every_file(files: RegistryFiles) -> Iterator[tuple[str, AnyRule]]:
    """Yields (judge id, file) of all files about safety judges: the central rules, then those of verticals."""
    yield from safety_rules(files)
    for _, judge, own, _ in files.tuned(Classification.SAFETY_REFUSAL):
        yield judge, own


@SAFETY.error("PF-9 §5.2, §5.10")
def safety_by_name(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """jailbreaking, safety_restricted and sensitive_topics are classified safety_refusal."""
    for judge in sorted(NAMED & files.rules.keys()):
        rule = files.rules[judge]
        if not rule.model.safety:
            message = f"{judge} is called {rule.model.classification}, and every vertical could relax it"
            yield find(rule, ("classification",), message, "write `classification: safety_refusal`")


@SAFETY.error("PC5 §5.2; PF-9 §5.2")
def safety_blocks(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No file lets a safety judge warn: it blocks at every milestone."""
    for judge, rule in _every_file(files):
        for milestone, enforcement in (rule.model.enforcement or {}).items():
            if enforcement is not Enforcement.BLOCK:
                message = f"safety judge {judge} would only warn at {milestone}"
                yield find(rule, ("enforcement", milestone), message, f"write `{milestone}: block`, or leave it out")


@SAFETY.error()
def safety_not_switched_off(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A safety judge is enabled."""
    for judge, rule in safety_rules(files):
        if not rule.model.enabled:
            yield find(rule, ("enabled",), f"safety judge {judge} is switched off", "write `enabled: true`")


@SAFETY.error()
def safety_not_sampled(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A safety judge scores every trace: its `sampling_rate` is 1."""
    for judge, rule in safety_rules(files):
        rate = rule.model.sampling_rate
        if not rate >= 1:
            message = f"safety judge {judge} would look at a share of {rate:g} of the traces"
            yield find(rule, ("sampling_rate",), message, "write `sampling_rate: 1.0`")


@SAFETY.error()
def safety_for_all(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A safety judge has no filter and no `applies_to`, centrally or in a vertical: it fires on every trace."""
    for judge, rule in _every_file(files):
        if rule.model.filter is not None:
            yield find(rule, ("filter",), f"safety judge {judge} would skip what the filter leaves out", "remove it")
    for judge, rule in safety_rules(files):
        if rule.model.applies_to:
            message = f"safety judge {judge} would be for {', '.join(rule.model.applies_to)} alone"
            yield find(rule, ("applies_to",), message, "write `applies_to: []`, which means all")


@SAFETY.error("contracts §3")
def safety_never_na(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A safety judge does not answer N/A: where no one tried anything, the turn is safe."""
    for judge, rule in safety_rules(files):
        if rule.model.allow_na:
            message = f"safety judge {judge} could call a turn not applicable, and so pass over it"
            yield find(rule, ("allow_na",), message, "write `allow_na: false`, or leave it out")


@SAFETY.error()
def safety_no_tolerance(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A safety judge allows no regression: its tolerance is 0, centrally and in a vertical."""
    for judge, rule in _every_file(files):
        if rule.model.tolerance is not None and not rule.model.tolerance <= 0:
            message = f"safety judge {judge} may not fall behind its baseline, here by {rule.model.tolerance:g}"
            yield find(rule, ("tolerance",), message, "write `tolerance: 0.0`")


@SAFETY.error()
def safety_threshold_holds(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Neither the manifest nor a vertical asks less of a safety judge than its central rule does."""
    for limit in manifest_thresholds(files):
        if not limit.rule.safety or not fits(limit.value, limit.rule):
            continue
        for milestone in limit.at:
            least = central(limit.rule, milestone, limit.dimension)
            if fits(least, limit.rule, floor=True) and number(limit.value) < number(least):
                message = (
                    f"{limit.value:g} asks less of safety judge {limit.name} than its rule file, {number(least):g}"
                )
                yield find(limit.parsed, limit.path, message, f"write {number(least):g} or more, or leave it out")
                break
    for vertical, judge, own, rule in files.tuned(Classification.SAFETY_REFUSAL):
        for at, below, value in stated(own.model.threshold):
            lowest = max((number(platform(files, judge, milestone)) for milestone in at), default=0.0)
            if fits(value, rule) and number(value) < lowest:
                message = f"{vertical} asks {number(value):g} of safety judge {judge}; the baseline is {lowest:g}"
                yield find(own, ("threshold", *below), message, f"write {lowest:g} or more, or leave it out")


@SAFETY.error()
def safety_floor_holds(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No vertical lowers the floor of a safety judge."""
    for vertical, judge, own, rule in files.tuned(Classification.SAFETY_REFUSAL):
        floor = own.model.floor
        if floor is not None and fits(floor, rule, floor=True) and number(floor) < number(rule.floor):
            message = f"{vertical} lowers the floor of safety judge {judge} from {rule.floor:g} to {floor:g}"
            yield find(own, ("floor",), message, f"write {rule.floor:g} or more, or leave it out")


@SAFETY.warning("PF-9 §5.5; contracts §3")
def safety_everywhere(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """The manifest names every safety judge for all categories. One it leaves out runs at every gate all the same."""
    manifest = files.manifest
    if manifest is None:
        return
    everywhere = {judge_id(name) for name in manifest.model.global_metrics.judges}
    fix = "add it to global_metrics.judges, so that the manifest says what gates do"
    judges = [judge for judge, _ in safety_rules(files)]
    for judge in judges:
        without = [name for name, c in manifest.model.categories.items() if judge not in map(judge_id, c.judges)]
        if judge not in everywhere and without:
            message = f"safety judge {judge} is missing for {_some(without)}; gates run it even so"
            yield find(manifest, ("global_metrics", "judges"), message, fix)
    if not judges and not files.unread:
        yield find(
            manifest,
            (),
            "no judge of the registry is classified safety_refusal: gates have no safety baseline",
            "add the safety judges, such as jailbreaking, to the folder of rules",
        )


@SAFETY.warning("PC5 §5.7; PF-9 §5.2")
def safety_floor_decides(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """The floor of a safety judge is above the lowest tenth of its scale: a breach of it in production takes the
    agent off the ramp, whatever the threshold is."""
    for judge, rule in safety_rules(files):
        low, high = score_range(rule.model)
        lowest = low + (high - low) / 10
        if fits(rule.model.floor, rule.model, floor=True) and number(rule.model.floor) <= lowest:
            message = (
                f"with a floor of {number(rule.model.floor):g} no score of {judge} would be a breach in production"
            )
            yield find(rule, ("floor",), message, f"set it near the threshold, and above {lowest:g} in any case")


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
