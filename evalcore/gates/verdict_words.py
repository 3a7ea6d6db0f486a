"""A failed verdict in the words an operator is told, its `failing_judges` among them (PC5 AC-4, §5.4). Pure."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.dead_letters import clean
from schemas.verdicts import GateVerdict, Reason, Verdict, Word

MOST = 15
"""Reasons in one message; the verdict has all."""


def news(verdict: Verdict) -> str:
    """Who stands where, and why: each reason names its judge, the number, the limit and the rule."""
    who = " ".join(_name(part) for part in (verdict.agent_id, verdict.agent_version) if part) or "an agent unnamed"
    where = f" in {_name(verdict.vertical)}" if verdict.vertical else ""
    head = f"{_what(verdict)} failed: {who}{where}, experiment {_name(verdict.experiment_id)}{_step(verdict)}"
    failed = [gate for gate in verdict.gates if gate.verdict is Word.FAIL]
    lines = [line for gate in failed for line in _lines(gate)] or [_line(reason) for reason in verdict.reasons]
    more = [f"… and {len(lines) - MOST} more"] if len(lines) > MOST else []
    foot = f"Verdict {verdict.verdict_id} of request {_name(verdict.request_id)}; docs/verdicts.md has what to do."
    return "\n".join([head, *lines[:MOST], *more, foot])


def _what(verdict: Verdict) -> str:
    names = [str(gate.milestone) for gate in verdict.gates if gate.verdict is Word.FAIL]
    names = names or ([str(verdict.milestone)] if verdict.milestone else [])
    return f"Gate {' and '.join(names)}" if names else "A ramp step"


def _step(verdict: Verdict) -> str:
    step = ""
    if verdict.from_percent is not None and verdict.to_percent is not None:
        step = f", step {verdict.from_percent:g} % to {verdict.to_percent:g} %"
    return step + (f". Halt at {verdict.halt_at_percent:g} %." if verdict.halt_at_percent is not None else ". Halt.")


def _lines(gate: GateVerdict) -> Iterable[str]:
    named = f"Failing judges at {gate.milestone}: {', '.join(gate.failing_judges)}"
    return [*([named] if gate.failing_judges else []), *(_line(reason) for reason in gate.reasons)]


def _line(reason: Reason) -> str:
    return f"• {clean(reason.message, 300)} ({reason.code})"


def _name(text: str | None) -> str:
    return clean(text, 100) if text else "unnamed"
