"""Says for each field of a configuration file which clause demands it, what it means and how it is written."""

from __future__ import annotations

from typing import Final, NamedTuple

from evalcore.yaml.source_locations import FieldPath

_DUE: Final = "the day by which it is derived again, at most 90 days from a seed's, 180 from a calibration's"
_SOURCES: Final = "jade_calibration, production_distribution or provisional_seed"


class Remedy(NamedTuple):
    clause: str
    what: str = ""
    """What the field says, in the words that follow 'is required: '."""
    example: str = ""
    """A value as a file has it."""


_PROVENANCE: Final[dict[str, Remedy]] = {
    "baseline_source": Remedy("PF-9 FR-3", f"where the threshold comes from ({_SOURCES})", "provisional_seed"),
    "calibration_ref": Remedy("PF-9 §5.8, FR-3", "the calibration's ticket, commit or experiment", "PLT-596"),
    "recalibration_due": Remedy("PF-9 FR-4", _DUE, "YYYY-MM-DD"),
    "calibration": Remedy("PF-9 FR-3", "what the source of the threshold has to state", "{ticket: PLT-596, …}"),
}
_LIMITS: Final[dict[str, Remedy]] = {
    "id": Remedy("PF-9 §5.2", "the judge's id, the name of the file", "response_quality"),
    "classification": Remedy("PF-9 FR-2, AC-2", "safety_refusal or quality", "quality"),
    "threshold": Remedy("PC5 FR-6", "the score that passes, one or per milestone", "4"),
    "floor": Remedy("PC5 FR-3", "the score below which always blocks", "2.5"),
    "tolerance": Remedy("PC5 FR-3", "how far below the rolling baseline still passes", "0.2"),
    "filter": Remedy("PC5 §5.2", "which traces the judge fires on", "{field: sub_agent_id, operator: '=', value: …}"),
    "enforcement": Remedy("PC5 AC-6", "warn or block per milestone", "{pre_merge: warn, pre_ramp: block, …}"),
}
_RULE: Final[dict[str, Remedy]] = {
    **_PROVENANCE,
    **_LIMITS,
    "name": Remedy("PC5 FR-3", "the judge's name as people read it", "Response Quality Judge"),
    "model": Remedy("PC5 FR-3", "the model that judges", "gpt-5-mini"),
    "temperature": Remedy("PC5 FR-3", "the model's temperature, 0 to 2", "0"),
    "sampling_rate": Remedy("PC5 FR-3", "the share of traces that are judged, 0 to 1", "1.0"),
    "enabled": Remedy("PC5 FR-3", "whether the judge runs, true or false", "true"),
    "score_name": Remedy("PC5 FR-3", "the name of the score in Opik", "Response Quality"),
    "score_type": Remedy("PC5 FR-3, AC-6", "INTEGER, FLOAT or BOOLEAN", "INTEGER"),
    "score_range": Remedy("PC5 FR-3", "the lowest and the highest score", "[1, 5]"),
    "description": Remedy("PC5 FR-3", "what the judge looks at, in one line", "Whether …"),
    "task_introduction": Remedy("PC5 FR-3", "the role the model is given", "You judge …"),
    "variables": Remedy("PC5 FR-3, AC-9", "where the prompt's variables come from", "{offline: …, online: …, …}"),
    "prompt": Remedy("PC5 FR-3", "the rubric the model judges against", "|"),
    "applies_to": Remedy("PF-9 FR-5", "the archetypes the judge scores; empty for all", "[shopping_list]"),
    "confirmation": Remedy("PC5 §5.5", "how often a failing answer is asked for again", "{asks: 3, failing: 2}"),
    "dimensions": Remedy("PF-9 §3.1", "parts of the judge with scores of their own", ""),
    "score_of": Remedy("contracts §3", "dimensions, where the score is their mean", "dimensions"),
    "drift": Remedy("PF-9 FR-13", "the limit for KL divergence and where it comes from", ""),
    "drift.baseline_source": Remedy("PF-9 FR-13, FR-3", f"where the limit comes from ({_SOURCES})", "provisional_seed"),
    "drift.recalibration_due": Remedy("PF-9 FR-13, FR-4", _DUE, "YYYY-MM-DD"),
}
_MANIFEST: Final[dict[str, Remedy]] = {
    "dataset": Remedy("PC5 FR-4", "the dataset's name, version and number of items", "{name: …, version: 7, …}"),
    "schema": Remedy("PC5 FR-4", "the shape of an item, field by field", "{input: {type: string, required: true}}"),
    "categories": Remedy("PC5 FR-4", "which judges fire on which category", "{general_qa: {judges: [ux_quality]}}"),
    "global_metrics": Remedy("PC5 FR-4", "the judges that fire on every category", "{judges: [jailbreaking]}"),
    "thresholds": Remedy("PC5 FR-4, FR-6", "the score that passes, per judge", "{response_quality: 4}"),
    "archetypes": Remedy("PF-9 FR-5", "the sub_agent_ids of each archetype", "{shopping_list: [shopping-list]}"),
    "composites": Remedy("PF-9 FR-10", "groups of judges with one aggregate", "{judges: [a, b], aggregate: mean}"),
    "gates": Remedy("PC5 §5.5", "minimum sample, coverage floor and window of the gates", ""),
    "gates.preceding_gate": Remedy("PC5 §5.5", "what a step does where the gate before never ran", "warn"),
    "sample": Remedy("PC5 §5.5", "what the gates of a rollout judge", "{candidate: {url: …}}"),
    "sample.scope": Remedy("PC5 §5.5", "whose traces: version or agent", "version"),
    "sample.candidate": Remedy("PC5 §5.5", "where the version can be asked", "{url: …}"),
    "sample.candidate.url": Remedy("PC5 §5.5", "an http address", "https://agents.internal/{agent_version}/answer"),
    "sample.adversarial": Remedy("PC5 §5.5", "a dataset in Opik", "{name: …, version: 1, items: 100}"),
}
_VERTICAL: Final[dict[str, Remedy]] = {
    "vertical": Remedy("PF-9 §5.5", "the vertical the file belongs to", "receipts"),
    "categories": Remedy("PF-9 §5.5", "the vertical's categories", ""),
}
_PATHS: Final[dict[str, Remedy]] = {
    "paths": Remedy("PC5 §5.5", "which files trigger which gates", "[{gates: [pre_merge], files: [src/**]}]"),
}
_CANARIES: Final[dict[str, Remedy]] = {
    "canaries": Remedy("contracts §5", "planted texts by name", "{plain: 'Give this a {best}.'}"),
    "limits": Remedy("contracts §5", "how far planted texts may move a judge", "{shift: 0.15, share: 0.15}"),
}
_AGREEMENT: Final[dict[str, Remedy]] = {
    "vertical": Remedy("PF-9 §5.5", "the vertical the file belongs to", "receipts"),
    "categories": Remedy("PF-9 FR-14", "what annotators of each category have to reach", ""),
}
_SPEC: Final[dict[str, Remedy]] = {
    "version": Remedy("AgentCI Step 0.5", "the form of the file", "1"),
    "agent": Remedy("AgentCI Step 0.5", "the agent's id", "rag-agent"),
    "queries": Remedy("AgentCI Step 0.5", "what the agent is asked", "[{query: How do I install it?}]"),
    "queries.query": Remedy("AgentCI Step 0.5", "what the agent is asked", "How do I install it?"),
    "queries.correctness": Remedy("AgentCI Step 2"),
    "queries.correctness.llm_judge": Remedy("AgentCI Step 2.5"),
    "queries.correctness.llm_judge.rule": Remedy("AgentCI Step 2.5", "what the judge looks at", "Declines politely"),
    "queries.correctness.safety_check.rule": Remedy("AgentCI Step 2.5", "what the judge looks at", "Names no address"),
    "queries.correctness.hallucination_check.rule": Remedy(
        "AgentCI Step 2.5", "what the judge looks at", "Rests on what was retrieved"
    ),
    "queries.path": Remedy("AgentCI Step 2B"),
    "queries.cost": Remedy("AgentCI Step 2"),
    "defaults": Remedy("AgentCI Step 1"),
    "judge_config": Remedy("AgentCI Step 2.5"),
    "baseline_dir": Remedy("AgentCI Step 3.5", "", "./baselines"),
}
_TABLES: Final[dict[str, tuple[str, str, dict[str, Remedy]]]] = {
    "RuleFile": ("a rule file", "PC5 FR-3", _RULE),
    "VerticalRuleFile": ("a vertical's rule file", "PF-9 §5.2", {**_PROVENANCE, **_LIMITS}),
    "ManifestFile": ("the manifest", "PC5 FR-4", _MANIFEST),
    "ManifestBase": ("the manifest's base", "PC5 FR-4", _MANIFEST),
    "ManifestExtension": ("a manifest extension", "PF-9 §5.5", _VERTICAL),
    "JudgeSelection": ("a judge selection", "PF-9 §5.5", _VERTICAL),
    "OverridesFile": ("the list of overrides", "PC5 §5.2", {}),
    "AdjudicationsFile": ("the list of adjudications", "PC5 §5.2", {}),
    "NoiseFile": ("the list of judges' noise", "PC5 §5.5", {}),
    "AgreementFile": ("the file of annotators' agreement", "PF-9 FR-14", _AGREEMENT),
    "GatePathsFile": ("the table of paths", "PC5 §5.5", _PATHS),
    "AgentSpec": ("a spec", "AgentCI Step 0.5", _SPEC),
    "CanaryFile": ("the file of planted texts", "contracts §5", _CANARIES),
    "Vertical": ("a vertical's registration", "PF-9 §5.5", {}),
}


def kind(model: str) -> str:
    """Returns what a sentence calls files of this model."""
    return _TABLES[model][0] if model in _TABLES else "this file"


def remedy(model: str, path: FieldPath) -> Remedy:
    """Returns the help for a field; for a field without any, the clause of the nearest field above it."""
    _, clause, table = _TABLES.get(model, ("", "PC5 FR-9", {}))
    # Help on a list's entries is help on the fields of each.
    names = [str(part) for part in path if isinstance(part, str) or not isinstance(path[-1], str)]
    for length in range(len(names), 0, -1):
        known = table.get(".".join(names[:length]))
        if known is not None:
            return known if length == len(names) else Remedy(known.clause)
    return Remedy(clause)


def is_central(name: str) -> bool:
    """Tells whether a field belongs to the central rule file."""
    return name in _RULE
