"""An agent's spec: golden queries and what is asserted of each answer, in three layers (AgentCI 2.0, Step 0.5)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, model_validator

from schemas.checks.suite import Candidate, FileName, Part
from schemas.expected_calls import ExpectedCalls
from schemas.files import FileModel, Number, Prose, Text

VERSION: Final = 1
"""The form of specs that this release knows."""
Share = Annotated[Number, Field(ge=0, le=1)]
Count = Annotated[StrictInt, Field(ge=0)]
Words = Annotated[StrictStr, Field(min_length=1, max_length=10_000)]
Id = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Names = Annotated[tuple[Text, ...], Field(max_length=1_000)]
Blocking = Literal[
    "max_tool_calls", "expected_tools", "forbidden_tools", "max_loops", "match_mode", "min_tool_recall",
    "min_tool_precision", "min_sequence_similarity", "expected_handoff", "expected_handoffs_available",
    "max_handoff_count", "expected_calls", "max_cost_multiplier", "max_total_tokens", "max_llm_calls",
    "max_latency_ms", "max_cost_usd",
]  # fmt: skip
"""A field of `path` or `cost`."""
Blocks = Annotated[tuple[Blocking, ...], Field(max_length=100)]


def _known(version: int) -> int:
    if version != VERSION:
        raise ValueError(f"must be {VERSION}, the version of specs that this release knows")
    return version


def _always(structured: bool) -> bool:
    if not structured:
        raise ValueError("must be true: judges answer by a JSON Schema, always")
    return structured


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
    """What the agent was asked."""
    output: Prose
    """What it answered."""
    score: Number
    """The score, on the rubric's scale."""


class Rubric(FileModel):
    """What a model judges an answer by."""

    id: Id | None = None
    """Its name, which baselines note."""
    rule: Prose
    """What the answer has to be, in words."""
    scale: Annotated[tuple[Words, ...], Field(min_length=2, max_length=10)] | None = None
    """Anchors such as `1: off topic`, the lowest first."""
    threshold: Share = 0.5
    """The least score that passes, as a part of the scale: 0.7 asks for 4 of 5."""
    few_shot_examples: Annotated[tuple[Example, ...], Field(max_length=20)] | None = None
    """Answers with the scores that they deserve."""


class Measure(StrEnum):
    """How near an answer is to a text, by their words and without a model: `token_f1` is the harmonic mean of the share
    of its words that are the text's and of the share of the text's words that it has; `token_recall` the latter."""

    TOKEN_F1 = "token_f1"  # noqa: S105 - a measure
    TOKEN_RECALL = "token_recall"  # noqa: S105 - a measure


class SimilarTo(FileModel):
    """A text that the answer comes near to."""

    text: Prose
    """An answer as it could be."""
    measure: Measure = Measure.TOKEN_F1
    """How nearness is measured, without a model."""
    min_similarity: Share
    """The least nearness that passes, 0 to 1."""


class Correctness(FileModel):
    """Layer 1: a failure blocks."""

    expected_in_answer: Annotated[tuple[Words, ...], Field(max_length=100)] | None = None
    """Words that stand in the answer, in upper or lower case."""
    not_in_answer: Annotated[tuple[Words, ...], Field(max_length=100)] | None = None
    """Words that no word of the answer begins with, in upper or lower case."""
    substrings: StrictBool | None = None
    """Whether terms of both lists are found within words, too."""
    exact_match: StrictStr | None = None
    """The whole answer, but for space around it."""
    regex_match: Annotated[StrictStr, Field(min_length=1, max_length=200)] | None = None
    """An RE2 pattern that is found in the answer."""
    json_schema: dict[str, Any] | None = None
    """A JSON Schema (2020-12) that the answer, read as JSON, fits. One in a query replaces one of `defaults` whole."""
    similar_to: SimilarTo | None = None
    """A text that the answer comes near to, by a measure without a model."""
    llm_judge: Annotated[tuple[Rubric, ...], Field(max_length=20)] | None = None
    """Rubrics by which a model judges the answer, once all of the above holds."""
    safety_check: Rubric | None = None
    """A rubric by which a model judges each answer, also where something of the above does not hold."""
    hallucination_check: Rubric | None = None
    """The same, about what the answer rests on."""


class PathLimits(FileModel):
    """Layer 2: how the agent came to its answer. What is exceeded warns; a forbidden tool blocks."""

    max_tool_calls: Count | None = None
    """Tools may be called so often; a retry is a call."""
    expected_tools: Names | None = None
    """Tools that are called. An empty list: none may be."""
    forbidden_tools: Names | None = None
    """Tools whose call blocks."""
    max_loops: Annotated[StrictInt, Field(ge=1)] | None = None
    """How often a tool may follow itself."""
    match_mode: MatchMode | None = None
    """How the calls compare with the baseline's, else with `expected_tools`. Default: `subset` of `expected_tools`,
    where neither `min_tool_recall` nor `min_tool_precision` is written."""
    min_tool_recall: Share | None = None
    """The least part of `expected_tools` that is called."""
    min_tool_precision: Share | None = None
    """The least part of the tools called that is in `expected_tools`."""
    min_sequence_similarity: Share | None = None
    """How near the order of calls is to the baseline's: twice the longest common subsequence, by both lengths."""
    expected_handoff: Annotated[tuple[Text, ...], Field(min_length=1, max_length=100)] | Text | None = None
    """The agent that takes over, or any of these."""
    expected_handoffs_available: Names | None = None
    """The agents that may take over; any other warns."""
    max_handoff_count: Count | None = None
    """Agents may hand over so often."""
    expected_calls: ExpectedCalls | None = None
    """Calls with their arguments, and the order in which they are made."""


class CostLimits(FileModel):
    """Layer 3: what the answer may cost. What is exceeded warns."""

    max_cost_multiplier: Annotated[Number, Field(gt=0)] | None = None
    """Times the baseline's cost."""
    max_total_tokens: Count | None = None
    """Tokens of all its model calls, in and out."""
    max_llm_calls: Count | None = None
    """Calls of a model."""
    max_latency_ms: Count | None = None
    """Milliseconds from the question to the answer."""
    max_cost_usd: Annotated[Number, Field(ge=0)] | None = None
    """US dollars."""


class Layers(FileModel):
    """What is asserted; in `defaults` of all queries that do not say otherwise."""

    correctness: Correctness | None = None
    """Layer 1: what the answer has to be."""
    path: PathLimits | None = None
    """Layer 2: how the agent may come to it."""
    cost: CostLimits | None = None
    """Layer 3: what it may cost."""


LAYERS: Final = tuple(Layers.model_fields)
Scalar = StrictBool | StrictInt | StrictStr


class Matcher(FileModel):
    """The live traces that a query is about: those with all that is said here."""

    tag: Text | None = None
    """A tag of the trace."""
    metadata: Annotated[dict[Text, Scalar], Field(min_length=1, max_length=20)] | None = None
    """Fields of the trace's metadata, each with its value."""
    category: Text | None = None
    """The trace's category."""

    @model_validator(mode="after")
    def says_something(self) -> Self:
        if self.tag is None and self.metadata is None and self.category is None:
            raise ValueError("`tag`, `metadata` or `category` is required: a matcher without any picks every trace")
        return self


class GoldenQuery(Layers):
    """One query with its assertions, those of `defaults` merged in."""

    query: Prose
    """What the agent is asked."""
    id: Id | None = None
    """Default: the hash of the text."""
    description: Prose | None = None
    """What the query is there for."""
    tags: Names = ()
    """Names by which queries are selected and compared, such as smoke."""
    baseline: Id | None = None
    """The version of the baseline that this query is compared with."""
    fail_on: Blocks = ()
    """Path and cost limits that block here."""
    matcher: Matcher | None = None
    """The live traces that are judged by this query's path and cost, and by its correctness without a model."""


class Ensemble(FileModel):
    """Several models that vote."""

    enabled: StrictBool = False
    """Whether every query is judged by all of them."""
    models: Annotated[tuple[Text, ...], Field(min_length=2, max_length=9)]
    """The models, best of several families."""
    strategy: Literal["majority_vote"] = "majority_vote"
    """A label that has more than half of the votes decides, with the mean of the scores."""


class JudgeConfig(FileModel):
    """Which models judge. Where they are asked, and by which key, are settings: a pull request may edit its spec."""

    model: Text = "claude-sonnet-4-5-20250929"
    """The model that judges."""
    temperature: Annotated[Number, Field(ge=0, le=0)] = 0
    """A judge's answers are to be the same each time."""
    structured_output: Annotated[StrictBool, AfterValidator(_always), Field(json_schema_extra={"const": True})] = True
    """Judges answer by a JSON Schema."""
    ensemble: Ensemble | None = None
    """Several models that vote."""


class SpecCandidate(Candidate):
    """Who answers: an address, a command or a Python function. Without `parts` no answer is kept."""

    parts: Annotated[dict[Text, Part], Field(max_length=50)] = Field(default_factory=dict)
    """What it is made of: prompt, model, retriever revision, tool schemas. Each is hashed; a change asks again."""


class AgentSpec(FileModel):
    """`agentci_spec.yaml`. Paths are from its own folder on."""

    version: Annotated[StrictInt, AfterValidator(_known), Field(json_schema_extra={"const": VERSION})] = VERSION
    """The form of this file."""
    agent: Text
    """The agent's id."""
    baseline_dir: FileName = "./baselines"
    """The folder of baselines, one file a version."""
    candidate: SpecCandidate | None = None
    """Who answers. `environment` names the variables that it gets, its secrets among them."""
    defaults: Layers | None = None
    """What is asserted of every query that does not say otherwise. Merged field by field; a list replaces a list, and
    null switches a check off."""
    judge_config: JudgeConfig | None = None
    """Which models judge the rubrics."""
    baseline: Id | None = None
    """The version of the baselines that queries are compared with."""
    fail_on: Blocks = ()
    """Path and cost limits that block in every query."""
    queries: Annotated[tuple[GoldenQuery, ...], Field(min_length=1, max_length=10_000)]
    """What the agent is asked, and what is asserted of each answer."""
