"""Results of queries as tests of reports write them."""

from __future__ import annotations

from typing import Any

from evalcore.specs.results import LayerResult, Message, QueryResult, Status

SKIP = LayerResult(Status.SKIP)


def layer(status: str, *messages: str, field: tuple[str | int, ...] = (), **details: Any) -> LayerResult:
    return LayerResult(Status(status), details, tuple(Message(words, field, Status(status)) for words in messages))


def result(name: str = "q1", query: str = "What's the weather?", **layers: Any) -> QueryResult:
    """A query that asserts nothing but what `layers` have."""
    return QueryResult(name, query, **({"correctness": SKIP, "path": SKIP, "cost": SKIP} | layers))


PASSED = result("ok", "How do I install it?", correctness=layer("pass", "All correctness checks passed"))
WARNED = result(
    "warned", correctness=layer("pass"),
    path=layer("warn", "Tool calls: 11 > max 0", field=("path", "max_tool_calls"), tool_recall=0.5,
               tool_precision=0.25),
    cost=layer("warn", "Tokens: 4200 > max 500", field=("cost", "max_total_tokens"),
               actual={"cost_usd": 0.008, "total_tokens": 4200, "llm_calls": 11, "latency_ms": 8200}),
)  # fmt: skip
FAILED = result(
    "failed", "x" * 80,
    correctness=layer("fail", "Expected 'pip' not found in answer", field=("correctness", "expected_in_answer", 0)),
)  # fmt: skip
FORBIDDEN = result(
    "forbidden", path=layer("fail", "Forbidden tools used: web_search", field=("path", "forbidden_tools"))
)
AWAY = result("away", infra="the candidate gave no answer in 60 s", correctness=layer("infra", "no answer"))
