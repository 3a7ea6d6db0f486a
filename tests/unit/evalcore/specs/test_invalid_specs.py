"""Each rule of a spec refuses what breaks it, with file, line, field and fix, all findings at once (AgentCI Step 0.5,
"10+ invalid spec variants fail correctly"; here each breaks another rule)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import pytest

from evalcore.yaml.findings import Severity
from schemas.files import FileModel
from schemas.specs import (
    AgentSpec,
    Blocking,
    Correctness,
    CostLimits,
    GoldenQuery,
    JudgeConfig,
    MatchMode,
    PathLimits,
    Rubric,
)
from tests.unit.evalcore.specs.spec_texts import FILE, reading

VALID = """\
# yaml-language-server: $schema=agent-spec.json
version: 1
agent: rag-agent
baseline_dir: ./baselines
candidate:
  command: [python, agent.py]
  environment: [OPENAI_API_KEY]
  parts: {code: {files: [agent.py]}}
defaults:
  correctness:
    hallucination_check:
      rule: Answer is grounded
      threshold: 0.8
  cost: {max_cost_multiplier: 2.0}
judge_config:
  model: claude-sonnet-4-5-20250929
  temperature: 0
  structured_output: true
  ensemble:
    models: [claude-sonnet-4-5-20250929, gpt-4o-mini]
    strategy: majority_vote
fail_on: [max_tool_calls]
queries:
  - query: How do I install it?
    id: install
    tags: [smoke]
    correctness:
      expected_in_answer: [pip install]
      not_in_answer: [sudo]
      regex_match: pip.*install
      json_schema: {type: object}
      similar_to: {text: pip install it, min_similarity: 0.5}
      llm_judge:
        - rule: Clear steps
          scale: ["1: none", "3: some", "5: all"]
          threshold: 0.7
          few_shot_examples: [{output: Run pip, score: 4}]
    path:
      max_tool_calls: 5
      expected_tools: [retriever]
      forbidden_tools: [web_search]
      max_loops: 2
      match_mode: subset
      min_tool_recall: 1.0
      expected_handoff: BillingAgent
    cost:
      max_total_tokens: 500
      max_latency_ms: 2000
    matcher: {tag: install}
  - query: What's the weather in Tokyo?
    path: {max_tool_calls: 0}
"""


@dataclass(frozen=True)
class Bad:
    """In the valid spec, `new` stands for `old`. The finding is at `field`, `below` lines under the change; message or
    fix say `words`."""

    old: str
    new: str
    check: str
    field: str
    words: str
    below: int = 0


TEMPLATE = "queries[0].correctness"
JUDGE = f"{TEMPLATE}.llm_judge[0]"
GROUNDED = "defaults.correctness.hallucination_check"
BAD = [
    # The file as YAML.
    Bad("version: 1", "version: 1\nversion: 1", "yaml-duplicate-key", "version", "keep one", 1),
    Bad("agent: rag-agent", "agent: &name rag-agent", "yaml-anchor", "agent", "remove '&name'"),
    Bad("    id: install", "    id: !!str install", "yaml-tag", "queries[0].id", "remove the tag"),
    Bad("agent: rag-agent", "agent: rag: agent", "yaml-syntax", "agent", "put the text in quotes"),
    # The root.
    Bad("version: 1", "version: 2", "wrong-value", "version", "must be 1, the version"),
    Bad("agent: rag-agent\n", "", "missing-field", "agent", "add 'agent: rag-agent'", -1),
    Bad("agent: rag-agent", "agent:", "empty-value", "agent", "has no value"),
    Bad("agent: rag-agent", "agent: 7", "wrong-type", "agent", "put it in quotes: '7'"),
    Bad("agent: rag-agent", "agnet: rag-agent", "unknown-field", "agnet", "write 'agent' instead"),
    Bad("baseline_dir: ./baselines", "baseline_dir: ''", "empty-value", "baseline_dir", "write it like baseline_dir"),
    Bad("fail_on: [max_tool_calls]", "fail_on: [max_tools]", "unknown-value", "fail_on[0]", "none of max_tool_calls"),
    Bad("fail_on: [max_tool_calls]", "baseline: ../v1", "wrong-format", "baseline", "has not the form"),
    # Who answers.
    Bad("  command: [python, agent.py]\n", "", "wrong-value", "candidate", "exactly one of", -1),
    Bad("environment: [OPENAI_API_KEY]", "environment: [RAMPGATE_MODEL_KEY]", "setting-in-environment",
        "candidate.environment[0]", "none of our settings"),
    Bad("environment: [OPENAI_API_KEY]", "environment: [OPENAI_API_KEY=sk-1]", "no-variable",
        "candidate.environment[0]", "write the name alone"),
    Bad("[python, agent.py]", "[python, agent.py, '${OPENAI_API_KEY}']", "variable", "candidate.command[2]",
        "name OPENAI_API_KEY in candidate.environment"),
    # Judges.
    Bad("  temperature: 0", "  temperature: 0.7", "out-of-range", "judge_config.temperature", "at most 0"),
    Bad("structured_output: true", "structured_output: false", "wrong-value", "judge_config.structured_output",
        "must be true"),
    Bad("  temperature: 0", "  api_key: sk-123", "unknown-field", "judge_config.api_key", "RAMPGATE_MODEL_KEY"),
    Bad("  temperature: 0", "  base_url: http://x", "unknown-field", "judge_config.base_url", "RAMPGATE_MODEL_URL"),
    Bad("claude-sonnet-4-5-20250929\n", "${JUDGE}\n", "variable", "judge_config.model", "write the model's name"),
    Bad("strategy: majority_vote", "strategy: mean", "unknown-value", "judge_config.ensemble.strategy",
        "write one of majority_vote"),
    Bad("models: [claude-sonnet-4-5-20250929, gpt-4o-mini]", "models: [gpt-4o-mini]", "wrong-length",
        "judge_config.ensemble.models", "at least 2"),
    # Defaults, which every query has, and their author's line.
    Bad("      threshold: 0.8", "      threshold: 1.2", "out-of-range", f"{GROUNDED}.threshold", "at most 1"),
    Bad("      threshold: 0.8", "      treshold: 0.8", "unknown-field", f"{GROUNDED}.treshold",
        "did you mean 'threshold'"),
    Bad("      rule: Answer is grounded\n", "", "missing-field", f"{GROUNDED}.rule",
        "add 'rule:", -1),
    Bad("max_cost_multiplier: 2.0", "max_cost_multiplier: 0", "out-of-range", "defaults.cost.max_cost_multiplier",
        "more than 0"),
    # Queries.
    Bad("query: How do I install it?", "query: '  '", "empty-value", "queries[0].query", "has no text"),
    Bad("  - query: How do I install it?\n    id: install", "  - id: install", "missing-field", "queries[0].query",
        "add 'query: "),
    Bad("    id: install", "    id: in stall", "wrong-format", "queries[0].id", "has not the form"),
    Bad("path: {max_tool_calls: 0}", "id: install", "duplicate-id", "queries[1].id", "another id"),
    Bad("    id: install\n", "  - query: How do I install it?\n", "duplicate-query", "queries[1].query", "give each"),
    Bad("tags: [smoke]", "tags: smoke", "wrong-type", "queries[0].tags", "must be a list"),
    Bad("    matcher: {tag: install}", "    matcher: {}", "wrong-value", "queries[0].matcher", "picks every trace"),
    # Correctness.
    Bad("expected_in_answer: [pip install]", "expected_in_answer: pip", "wrong-type", f"{TEMPLATE}.expected_in_answer",
        "must be a list"),
    Bad("expected_in_answer: [pip install]", "expected_in_answer: ['']", "empty-value",
        f"{TEMPLATE}.expected_in_answer[0]", "has no text"),
    Bad("not_in_answer: [sudo]", "not_in_answer: [PIP install]", "contradiction", f"{TEMPLATE}.not_in_answer[0]",
        "no answer passes"),
    Bad("regex_match: pip.*install", "regex_match: (?=pip)install", "pattern", f"{TEMPLATE}.regex_match",
        "without lookaround"),
    Bad("regex_match: pip.*install", r"regex_match: ((a{1,100}){1,100}){1,100}$", "pattern", f"{TEMPLATE}.regex_match",
        "that RE2 takes"),
    Bad("json_schema: {type: object}", "json_schema: {type: thing}", "schema", f"{TEMPLATE}.json_schema",
        "must be a JSON Schema"),
    Bad("json_schema: {type: object}", "json_schema: {$ref: 'http://x/y'}", "schema", f"{TEMPLATE}.json_schema",
        "nothing is fetched"),
    Bad("min_similarity: 0.5", "measure: cosine", "unknown-value", f"{TEMPLATE}.similar_to.measure", "token_f1"),
    # Rubrics.
    Bad('scale: ["1: none", "3: some", "5: all"]', 'scale: ["1: none"]', "wrong-length",
        f"{JUDGE}.scale", "at least 2"),
    Bad("score: 4", "score: 6", "out-of-range", f"{JUDGE}.few_shot_examples[0].score", "1 to 5"),
    Bad("output: Run pip, ", "", "missing-field", f"{JUDGE}.few_shot_examples[0].output", "add 'output"),
    Bad("    llm_judge:\n", "    llm_judge:\n        - !include tone.yaml\n", "include", JUDGE, "write the file", 1),
    # Path and cost.
    Bad("max_tool_calls: 5", "max_tool_calls: -1", "out-of-range", "queries[0].path.max_tool_calls", "at least 0"),
    Bad("max_tool_calls: 5", "max_tool_calls: '5'", "wrong-type", "queries[0].path.max_tool_calls", "a whole number"),
    Bad("max_loops: 2", "max_loops: 0", "out-of-range", "queries[0].path.max_loops", "at least 1"),
    Bad("match_mode: subset", "match_mode: fuzzy", "unknown-value", "queries[0].path.match_mode", "strict, unordered"),
    Bad("min_tool_recall: 1.0", "min_tool_recall: 1.5", "out-of-range", "queries[0].path.min_tool_recall", "at most 1"),
    Bad("expected_tools: [retriever]", "expected_tools: [web_search]", "contradiction",
        "queries[0].path.expected_tools[0]", "forbidden_tools"),
    Bad("match_mode: subset", "expected_calls: {calls: [{tool: a, arguments: {regex: {q: '(?=x)'}}}]}", "pattern",
        "queries[0].path.expected_calls", "arguments.regex.q"),
    Bad("match_mode: subset", "expected_calls: {calls: [{tool: a, arguments: {ignored: [id]}}]}", "wrong-value",
        "queries[0].path.expected_calls.calls[0].arguments", "must stand beside exact"),
    Bad("expected_handoff: BillingAgent", "expected_handoff: []", "wrong-length", "queries[0].path.expected_handoff",
        "at least 1"),
    Bad("max_total_tokens: 500", "max_token: 500", "unknown-field", "queries[0].cost.max_token", "max_total_tokens"),
    Bad("max_latency_ms: 2000", "max_latency_ms: 2s", "wrong-type", "queries[0].cost.max_latency_ms", "a whole number"),
]  # fmt: skip


# AgentCI Step 0.5 box 6.
def test_the_spec_that_the_others_are_made_of_is_valid() -> None:
    found = reading(VALID)
    assert found.spec is not None
    assert [*found.findings] == []


# AgentCI Step 0.5 box 6.
def test_forty_specs_and_more_break_a_rule_each() -> None:
    assert len({(bad.check, bad.field, bad.words) for bad in BAD}) == len(BAD) >= 40


# AgentCI Step 0.5 box 1, Step 0.5 box 6.
@pytest.mark.parametrize("bad", BAD, ids=[f"{bad.field} {bad.check} {number}" for number, bad in enumerate(BAD)])
def test_a_broken_rule_is_an_error_at_its_line_with_its_field_and_a_fix(bad: Bad) -> None:
    assert bad.old in VALID
    line = VALID[: VALID.index(bad.old)].count("\n") + 1
    found = reading(VALID.replace(bad.old, bad.new, 1))
    assert found.spec is None
    those = [one for one in found.errors if (one.check, one.field) == (bad.check, bad.field)]
    assert len(those) == 1, found.findings
    one = those[0]
    assert one.severity is Severity.ERROR
    assert one.file == FILE
    assert one.line == line + bad.below
    assert bad.words in f"{one.message} {one.fix}"
    assert one.fix


def test_all_errors_of_a_spec_are_found_at_once() -> None:
    text = VALID.replace("max_loops: 2", "max_loops: 0").replace("threshold: 0.8", "threshold: 8")
    assert {one.field for one in reading(text).errors} == {
        "queries[0].path.max_loops", f"{GROUNDED}.threshold",
    }  # fmt: skip


@pytest.mark.parametrize("raw", [b"", b"\xff\xfe", b"- a\n", b"just text\n", b"queries: []\n", b"agent: a\nqueries:\n"])
def test_what_is_no_spec_is_an_error_and_never_an_empty_one(raw: bytes) -> None:
    found = reading(raw)
    assert found.spec is None
    assert found.errors


# AgentCI Step 0.5 box 1.
@pytest.mark.parametrize(
    ("model", "names"),
    [
        (AgentSpec, "version agent baseline_dir defaults judge_config queries"),
        (GoldenQuery, "query description tags correctness path cost"),
        (
            Correctness,
            "expected_in_answer not_in_answer exact_match regex_match json_schema llm_judge safety_check "
            "hallucination_check",
        ),
        (Rubric, "rule scale threshold few_shot_examples"),
        (
            PathLimits,
            "max_tool_calls expected_tools forbidden_tools max_loops match_mode min_tool_recall min_tool_precision "
            "min_sequence_similarity expected_handoff expected_handoffs_available max_handoff_count",
        ),
        (CostLimits, "max_cost_multiplier max_total_tokens max_llm_calls max_latency_ms max_cost_usd"),
        (JudgeConfig, "model temperature structured_output ensemble"),
    ],
)
def test_the_models_have_every_field_of_the_document(model: type[FileModel], names: str) -> None:
    assert {*names.split()} <= {*model.model_fields}
    assert [*MatchMode] == ["strict", "unordered", "subset", "superset"]


def test_what_may_block_is_every_limit_of_path_and_cost() -> None:
    assert set(get_args(Blocking)) == {*PathLimits.model_fields, *CostLimits.model_fields}
