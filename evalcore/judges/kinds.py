"""The kinds of evaluators, by the scheme that a rule's `model` begins with: `check:valid-json`. Pure.

A new kind is one file, with an `Evaluator` in it, and one registration: an entry here, or a call of `register` by the
package that brings it. A model's name without a registered scheme is an LLM judge's, also with a colon in it
(`llama3:8b`).
"""

from __future__ import annotations

from evalcore.judges.evaluator import Evaluator
from evalcore.judges.llm_judge import LLMJudge
from evalcore.registry.judge import Judge

_LLM_JUDGE: Evaluator = LLMJudge()
_KINDS: dict[str, Evaluator] = {}


def register(scheme: str, evaluator: Evaluator) -> None:
    """Let `evaluator` score for all judges whose rule says `model: scheme:…`. Raises ValueError for a taken scheme."""
    if not scheme or ":" in scheme or scheme in _KINDS:
        raise ValueError(f"no evaluator can be registered as {scheme!r}: the scheme is taken, empty or has a colon")
    _KINDS[scheme] = evaluator


def evaluator_of(judge: Judge) -> Evaluator:
    """The evaluator that scores for this judge."""
    scheme, colon, _ = judge.rule.model.partition(":")
    return _KINDS.get(scheme, _LLM_JUDGE) if colon else _LLM_JUDGE


def needs_model(judge: Judge) -> bool:
    """Says whether a model has to be asked for this judge's scores."""
    return evaluator_of(judge).needs_model
