"""The clauses of PC5 and PF-9, the boxes of AgentCI 2.0 and the points of the remediation document's test plan that can
be held by a test, and when this repository owes them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Due(StrEnum):
    NOW = "now"
    LATER = "later"


class Clause(NamedTuple):
    document: str
    name: str
    words: str
    due: Due = Due.NOW

    @property
    def title(self) -> str:
        return f"{self.document} {self.name}"


_L = Due.LATER
_PC5: Final[list[tuple[str, str] | tuple[str, str, Due]]] = [
    ("FR-1", "the lifecycle's transitions fire gates"),
    ("FR-2", "three milestones"),
    ("FR-3", "the schema of a rule file"),
    ("FR-4", "the schema of the manifest"),
    ("FR-5", "judges by id and by category"),
    ("FR-6", "thresholds per milestone"),
    ("FR-7", "each vertical's own Opik project"),
    ("FR-8", "the eval-config API"),
    ("FR-9", "files are the source of truth"),
    ("FR-10", "rollback without a deployment"),
    ("FR-11", "sampling rate by milestone"),
    ("FR-12", "changes of judges are reviewed, baselines made again or given up"),
    ("FR-13", "categories come from XML prompt components"),
    ("FR-14", "validation on every pull request"),
    ("NFR-1", "lookups without file access"),
    ("NFR-2", "pre_merge within 5 minutes"),
    ("NFR-3", "100 traces within 10 minutes"),
    ("NFR-4", "a warning at 50 rules"),
    ("NFR-5", "threshold changes give their reason"),
    ("NFR-6", "rollback within 15 minutes"),
    ("AC-1", "a new rule file passes and its judge is found"),
    ("AC-2", "a new category has its judges and the global ones"),
    ("AC-3", "pre_merge judges the dataset and blocks"),
    ("AC-4", "pre_ramp halts at 0 %"),
    ("AC-5", "the milestone's threshold before the default"),
    ("AC-6", "a malformed file names the field"),
    ("AC-7", "a bad change is taken back without a deployment"),
    ("AC-8", "lookups with a vertical's own project, without write access"),
    ("AC-9", "one judge offline and online"),
    ("AC-10", "the shipped manifest is valid"),
    ("§5.2", "fields of a rule file"),
    ("§5.3", "fields of the manifest"),
    ("§5.4", "functions and their shapes"),
    ("§5.5", "semantics of the gates, overrides"),
    ("§5.6", "who owns what"),
    ("§5.7", "rollback"),
    ("§5.8", "what PC6 reads"),
    ("§5.9", "what PF1 reads"),
    ("§9.3", "coverage of categories, and of a changed judge"),
    ("§9.4", "contracts with PC6, PF1, PF5 and PS5"),
    ("§9.5", "failure modes"),
    ("§10.1", "the phases of its rollout"),
    ("§10.2", "metrics of gates, judges and rollbacks"),
]
_PF9: Final[list[tuple[str, str] | tuple[str, str, Due]]] = [
    ("FR-1", "one registry: by id, classification, sub-agent"),
    ("FR-2", "safety_refusal or quality"),
    ("FR-3", "where a threshold comes from"),
    ("FR-4", "until when it holds"),
    ("FR-5", "archetypes of sub-agents"),
    ("FR-6", "user signals on the trace"),
    ("FR-7", "the manifest out of XML components"),
    ("FR-8", "a vertical inherits the substrate"),
    ("FR-9", "optimisation proposes, never merges"),
    ("FR-10", "inverted judges are found"),
    ("FR-11", "coverage of the join"),
    ("FR-12", "curated export"),
    ("FR-13", "drift of judges", _L),
    ("FR-14", "agreement of annotators", _L),
    ("NFR-1", "signals within 5 minutes"),
    ("NFR-2", "lookups within 50 ms"),
    ("NFR-3", "a calibration cycle within 4 hours"),
    ("NFR-4", "the single vertical keeps its verdicts"),
    ("NFR-5", "every section has its tests"),
    ("AC-1", "the registry answers with provenance and classification"),
    ("AC-2", "every rule file declares its classification"),
    ("AC-3", "a threshold without baseline_source fails"),
    ("AC-4", "the thumb lands on the trace"),
    ("AC-5", "a new vertical without a change of code"),
    ("AC-6", "Round 1's inverted judges are found"),
    ("AC-7", "categories match the XML exactly"),
    ("AC-8", "verticals leave one another alone"),
    ("AC-9", "an overdue seed warns, then blocks"),
    ("AC-10", "the inversion check reports its statistics"),
    ("AC-11", "coverage per vertical"),
    ("AC-12", "the export is audited"),
    ("AC-13", "the drift check is machine-readable", _L),
    ("AC-14", "agreement gates the reference set"),
    ("AC-15", "the reserved prefix is refused"),
    ("§5.2", "registry and taxonomy"),
    ("§5.3", "calibration methodology"),
    ("§5.4", "the correlation pipeline"),
    ("§5.5", "multi-vertical extension"),
    ("§5.6", "manifest discovery"),
    ("§5.7", "the optimisation loop"),
    ("§5.8", "shape is PC5's, content PF-9's"),
    ("§5.9", "what is read from PC6: the components, never written"),
    ("§5.10", "the worked example: receipts"),
    ("Decision 7", "no candidate of the loop merges by itself"),
    ("Decision 10", "no vertical changes a classification"),
    ("Decision 11", "verticals calibrate by themselves, and what lies apart is told"),
    ("Decision 12", "rerolls are a dimension of their own"),
    ("Decision 17", "categories are shared; conflicting declarations are refused"),
    ("Decision 18", "who reviews a shared category's change"),
    ("Decision 19", "signals and judges' scores are in Opik; people's stay in the annotation queue"),
    ("R-4", "user_signal_ is reserved"),
    ("R-5", "candidates don't bury their reviewers"),
]
_AGENTCI: Final[list[tuple[str, str]]] = [
    ("Step 0.5 box 1", "models of every field, which refuse what is none"),
    ("Step 0.5 box 2", "a JSON Schema, made from the models"),
    ("Step 0.5 box 3", "`spec validate`: exit code 0 valid, 1 invalid"),
    ("Step 0.5 box 4", "`docs/sample_spec.yaml`, each part with a comment"),
    ("Step 0.5 box 5", "`docs/metrics_reference.md`: a formula for every metric of path and cost"),
    ("Step 0.5 box 6", "valid specs pass, 10 and more invalid ones fail, each for its own reason"),
    ("Step 1 box 1", "a spec is loaded with its defaults merged in, after AgentCI's own way (decision 258)"),
    ("Step 1 box 2", "a spec includes files: `!include`, in the place of `$ref`"),
    ("Step 1 box 3", "`spec test --tags`"),
    ("Step 1 box 4", "tests of merging, overriding, filtering"),
    ("Step 2 box 1", "correctness: without a model first, then judges; those of safety in any case (decision 259)"),
    ("Step 2 box 2", "path: every match mode (four are defined, not five), precision, recall, LCS"),
    ("Step 2 box 3", "cost: multiplier, tokens, calls, latency, US dollars"),
    ("Step 2 box 4", "metrics are pure functions with formulas"),
    ("Step 2 box 5", "all three layers of each query"),
    ("Step 2 box 6", "40 and more tests of metrics' edge cases"),
    ("Step 2.5 box 1", "judges: structured answers, ensembles, rubrics' templates"),
    ("Step 2.5 box 2", "templates `polite_refusal`, `factual_grounded`, `actionable_steps`"),
    ("Step 2.5 box 3", "`--sample-ensemble`"),
    ("Step 2.5 box 4", "tests with a model's stand-in: calls, votes, thresholds"),
    ("Step 3 box 1", "reports: console, annotations, JSON, Prometheus"),
    ("Step 3 box 2", "exit codes 0 passes, 1 wrong, 2 can't be decided; a forbidden tool is 1, too (decision 259)"),
    ("Step 3 box 3", "GitHub Actions is noticed"),
    ("Step 3 box 4", "`spec init` writes the workflow, in which no job has both code and key"),
    ("Step 3 box 5", "tests of annotations and exit codes"),
    ("Step 3.5 box 1", "baselines: save, load, list, precheck"),
    ("Step 3.5 box 2", "`--precheck-correctness`, on by default, and `--force-save`"),
    ("Step 3.5 box 3", "`spec save --version`"),
    ("Step 3.5 box 4", "`spec diff --baseline --compare`"),
    ("Step 3.5 box 5", "model, hash of the spec, time and rubrics in each baseline"),
    ("Step 4 box 1", "differences in three tiers"),
    ("Step 4 box 2", "console, JSON, annotations"),
    ("Step 4 box 3", "the four DiffTypes"),
    ("Step 4 box 4", "`spec diff` compares kept versions (decision 263)"),
    ("Step 5 box 1", "`examples/rag/agentci_spec.yaml` is valid"),
    ("Step 5 box 2", "`examples/rag/baselines/v1-broken.json`: 11 calls for the weather"),
    ("Step 5 box 3", "`examples/rag/baselines/v2-fixed.json`: none"),
    ("Step 5 box 4", "the playbook's story"),
    ("Step 6 box 1", "`examples/support-router`: 32 queries"),
    ("Step 6 box 2", "`examples/dev-agent`: deterministic tests"),
    ("Step 6 box 3", "`--workers`, 4 by default"),
    ("Step 6 box 4", "another try where it may pass, `[INFRA]` after it"),
    ("Step 6 box 5", "pytest-xdist, by tests with parameters"),
    ("Step 6 box 6", "a matrix over specs in the workflow"),
]
_REMEDIATION: Final[list[tuple[str, str]]] = [
    ("test plan 1", "phases as the driver has them: a table of all combinations"),
    ("test plan 2", "what completes a trace: analysis only, with execution, full, failed step, empty, Markdown"),
    ("test plan 3", "the judge: mock model, dimensions, missing response, conversations, persona"),
    ("test plan 4", "its answers: all dimensions, N/A, the average computed, unparseable"),
    ("test plan 5", "the OOM kill's life cycle, analysis only and Claude on Vertex, through a cluster's API"),
    ("test plan 6", "the crash loop's fixture, for both providers"),
    ("test plan 7", "Shellcheck passes"),
    ("test plan 8", "`make check` and `make test` are green"),
]
CLAUSES: Final = [
    *(Clause("PC5", *about) for about in _PC5),
    *(Clause("PF-9", *about) for about in _PF9),
    *(Clause("AgentCI", *about) for about in _AGENTCI),
    *(Clause("Remediation", *about) for about in _REMEDIATION),
]

NOT_YET: Final[dict[str, str]] = {}
"""What of a clause that is held in its other parts is not there."""
TRIED: Final = frozenset(
    f"PC5 {name}"
    for name in (
        "FR-2", "FR-7", "FR-12", "NFR-2", "AC-3", "AC-8", "AC-9", "§5.4", "§5.5", "§5.6", "§5.7", "§9.3", "§9.4",
        "§10.1", "§10.2",
    )
) | {
    "PF-9 FR-9", "PF-9 FR-12", "PF-9 AC-12", "PF-9 §5.7",
    "PF-9 Decision 7", "PF-9 R-5", "PF-9 FR-10", "PF-9 NFR-1", "PF-9 AC-6", "PF-9 AC-10",
    "PF-9 FR-13", "PF-9 AC-13", "PF-9 FR-14", "PF-9 AC-14", "PF-9 Decision 11",
    "PF-9 Decision 12", "PF-9 Decision 19",
} | {
    f"AgentCI Step {step} box {box}"
    for step, boxes in {
        "0.5": (1, 6), "1": (1, 2, 3, 4), "2": (1, 2, 3, 4, 5), "2.5": (1, 4), "3": (1, 2, 5), "3.5": (1, 2, 3),
        "4": (1, 3), "6": (4,),
    }.items()
    for box in boxes
} | {f"Remediation test plan {point}" for point in (1, 2, 3, 4)}  # fmt: skip
"""Clauses that have mutants: changes that break them, each of which a test that holds the clause must notice."""
