"""Answers questions about the registry: what `/eval-config` shows, and the error for an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from evalcore.registry.registry import Judge, Registry, UnknownCategory
from evalcore.yaml.findings import Finding, ValidationResult
from rampgate.console import BadQuery, Failure
from schemas.answers import EvalConfig, ServedJudge
from schemas.answers import Finding as FindingAnswer
from schemas.dead_letters import clean

MOST_FINDINGS = 100
LISTED = 20


class UnknownName(BadQuery):
    """No vertical, category or judge has this name. `kind` says which of them; `near` has similar names, best first."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        self.kind = kind
        self.near = get_close_matches(name[:200].lower().replace("-", "_"), names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(self.near)}?" if self.near else f"there are {listed(names)}"
        super().__init__(f"no {kind} {clean(name, 100)!r}; {hint}", kind)


def require_vertical(name: str, known: Iterable[str]) -> None:
    """Raises Failure where `--vertical` names none of those that are known."""
    known = [*known]
    if name not in known:
        raise Failure(UnknownName("vertical", name, known).as_option())


def eval_config(registry: Registry, vertical: str | None, category: str) -> EvalConfig:
    """The judges of a category as a vertical sees them, global and inherited ones too. Raises UnknownName."""
    if vertical is not None and vertical not in registry.verticals:
        raise UnknownName("vertical", vertical, registry.verticals)
    try:
        judges = registry.category(category, vertical)
    except UnknownCategory as error:
        raise UnknownName("category", category, categories(registry)) from error
    return EvalConfig(
        vertical=vertical,
        category=category,
        manifest_version=registry.manifest["dataset"]["version"],
        config_hash=registry.config_hash,
        judges=[served(judge) for judge in judges],
    )


def served(judge: Judge) -> ServedJudge:
    rule = judge.rule
    return ServedJudge(
        id=judge.id,
        name=rule.name,
        classification=judge.classification,
        score_name=judge.score_name,
        score_type=judge.score_type,
        score_range=judge.score_range,
        thresholds=dict(judge.thresholds),
        floor=judge.floor,
        tolerance=judge.tolerance,
        enforcement=dict(judge.enforcement),
        baseline_source=judge.baseline_source,
        calibration_ref=judge.calibration_ref,
        recalibration_due=judge.recalibration_due,
        sub_agents=list(judge.sub_agents),
        filter=judge.filter.model_dump(mode="json") if judge.filter is not None else None,
        enabled=rule.enabled,
        sampling_rate=float(rule.sampling_rate),
        version=judge.version,
        floor_provenance=judge.floor_provenance,
    )


def no_category(registry: Registry) -> BadQuery:
    return BadQuery(f"category: give one, as in /eval-config?category=…; there are {listed(categories(registry))}")


def categories(registry: Registry) -> list[str]:
    return sorted(registry.manifest["categories"])


def listed(names: list[str]) -> str:
    shown = ", ".join(names[:LISTED]) or "none"
    return shown + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")


def finding_answers(findings: list[Finding]) -> list[FindingAnswer]:
    """The first `MOST_FINDINGS`; the answer that carries them counts them all."""
    return [finding_answer(finding) for finding in findings[:MOST_FINDINGS]]


def finding_answer(finding: Finding) -> FindingAnswer:
    return FindingAnswer(**{name: getattr(finding, name) for name in FindingAnswer.model_fields})


def validation_answer(result: ValidationResult) -> dict[str, Any]:
    """`{"valid", "errors": […], "warnings": […]}`, each finding with its place, rule and remedy."""
    return {"valid": result.valid, "errors": documents(result.errors), "warnings": documents(result.warnings)}


def documents(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    return [finding_answer(finding).model_dump() for finding in findings]
