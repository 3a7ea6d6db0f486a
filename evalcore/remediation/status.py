"""Compares the phase of a workflow with the one that its dataset item expects: an evaluator without a model. Pure."""

from __future__ import annotations

from typing import Final

from evalcore.judges import kinds
from evalcore.judges.bindings import resolve
from evalcore.judges.evaluator import Evaluation, NoScore, Task
from evalcore.registry.judge import Judge
from evalcore.remediation.phase import Phase

SCHEME: Final = "proposal-status"
"""A rule whose `model` begins with it asks no model."""
EXPECTED: Final = "expected_proposal_status"
"""The field of a dataset item, which no answer replaces."""


class ProposalStatus:
    """Says whether a workflow ended in the phase that was expected."""

    needs_model = False

    def evaluate(self, task: Task) -> Evaluation:
        """Returns 1.0 or 0.0, or None where the item expects no phase. Raises NoScore where a trace brings an
        expectation of its own, or the expectation is no phase; Unbound without the workflow's phase."""
        expected = task.source.get(EXPECTED)
        if expected is None:
            return Evaluation(None, f"the item has no {EXPECTED}")
        if task.context != "offline":
            raise NoScore(f"{EXPECTED} is a dataset item's; a trace can't say what was expected of it")
        if expected not in list(Phase):
            raise NoScore(f"{EXPECTED}: must be one of {', '.join(Phase)}")
        phase = resolve("proposal_phase", task.source)
        return Evaluation(float(phase == expected), f"the workflow is {phase!s:.40}, expected was {expected}")

    def read(self, reply: str, judge: Judge) -> Evaluation:
        raise NoScore("no model is asked")


kinds.register(SCHEME, ProposalStatus())
