"""An agent's spec: golden queries and what is asserted of each answer, in three layers (AgentCI 2.0, Step 0.5)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr

from schemas.checks.suite import Candidate
from schemas.files import FileModel, Number, Prose, Text

Share = Annotated[Number, Field(ge=0, le=1)]
Count = Annotated[StrictInt, Field(ge=0)]
Words = Annotated[StrictStr, Field(min_length=1, max_length=10_000)]
Id = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Names = Annotated[tuple[Text, ...], Field(max_length=1_000)]


class MatchMode(StrEnum):
    """How the calls made are compared with the reference, as multisets; `strict` compares in order."""

    STRICT = "strict"
    UNORDERED = "unordered"
    SUBSET = "subset"
    """Every call of the reference appears; others may."""
    SUPERSET = "superset"
    """Every call made is in the reference."""


class Example(FileModel):
    """An output with the score that it deserves."""

    input: Prose | None = None
    output: Prose
    score: Number


class Rubric(FileModel):
    """What a model judges an answer by."""

    id: Id | None = None
    rule: Prose
    scale: Annotated[tuple[Words, ...], Field(min_length=2, max_length=10)] | None = None
    """Anchors such as `1: off topic`, the lowest first."""
    threshold: Share = 0.5
    """The least score that passes, as a part of the scale: 0.7 asks for 4 of 5."""
    few_shot_examples: Annotated[tuple[Example, ...], Field(max_length=20)] | None = None


class Correctness(FileModel):
    """Layer 1: a failure blocks."""

    expected_in_answer: Annotated[tuple[Words, ...], Field(max_length=100)] | None = None
    not_in_answer: Annotated[tuple[Words, ...], Field(max_length=100)] | None = None
    exact_match: StrictStr | None = None
    regex_match: Annotated[StrictStr, Field(min_length=1, max_length=1_000)] | None = None
    json_schema: dict[str, Any] | None = None
    llm_judge: Annotated[tuple[Rubric, ...], Field(max_length=20)] | None = None
    safety_check: Rubric | None = None
    hallucination_check: Rubric | None = None


class PathLimits(FileModel):
    """Layer 2: how the agent came to its answer. What is exceeded warns; a forbidden tool blocks."""

    max_tool_calls: Count | None = None
    expected_tools: Names | None = None
    forbidden_tools: Names | None = None
    max_loops: Annotated[StrictInt, Field(ge=1)] | None = None
    match_mode: MatchMode | None = None
    min_tool_recall: Share | None = None
    min_tool_precision: Share | None = None
    min_sequence_similarity: Share | None = None
    expected_handoff: Annotated[tuple[Text, ...], Field(min_length=1, max_length=100)] | Text | None = None
    """The agent that takes over, or any of these."""
    expected_handoffs_available: Names | None = None
    max_handoff_count: Count | None = None


class CostLimits(FileModel):
    """Layer 3: what the answer may cost. What is exceeded warns."""

    max_cost_multiplier: Annotated[Number, Field(gt=0)] | None = None
    """Times the baseline's cost."""
    max_total_tokens: Count | None = None
    max_llm_calls: Count | None = None
    max_latency_ms: Count | None = None
    max_cost_usd: Annotated[Number, Field(ge=0)] | None = None


class Layers(FileModel):
    """What is asserted; in `defaults` of all queries that do not say otherwise."""

    correctness: Correctness | None = None
    path: PathLimits | None = None
    cost: CostLimits | None = None


class GoldenQuery(Layers):
    """One query with its assertions, those of `defaults` merged in."""

    query: Prose
    id: Id | None = None
    """Default: the hash of the text."""
    description: Prose | None = None
    tags: Names = ()
    baseline: Id | None = None
    """The version of the baseline that this query is compared with."""
    fail_on: Names = ()
    """Path and cost limits that block here."""


class Ensemble(FileModel):
    """Several models that vote."""

    enabled: StrictBool = False
    models: Annotated[tuple[Text, ...], Field(min_length=2, max_length=9)]
    strategy: Literal["majority_vote"] = "majority_vote"


class JudgeConfig(FileModel):
    """Which models judge."""

    model: Text = "claude-sonnet-4-5-20250929"
    temperature: Literal[0] = 0
    structured_output: Literal[True] = True
    ensemble: Ensemble | None = None


class AgentSpec(FileModel):
    """`agentci_spec.yaml`. Paths are from its own folder on."""

    version: Literal[1] = 1
    agent: Text
    baseline_dir: Words = "./baselines"
    candidate: Candidate | None = None
    """Who answers."""
    defaults: Layers | None = None
    judge_config: JudgeConfig | None = None
    baseline: Id | None = None
    """The version of the baselines that queries are compared with."""
    fail_on: Names = ()
    """Path and cost limits that block in every query."""
    queries: Annotated[tuple[GoldenQuery, ...], Field(min_length=1, max_length=10_000)]
