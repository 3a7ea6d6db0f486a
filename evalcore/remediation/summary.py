"""Writes a workflow as Markdown, for people and judges.

Only this module writes headings. Each text of a status is quoted as a block of code, which no renderer reads as markup
and whose lines all begin with `>`; short ones stand in backticks. An agent that writes `## Checks` into a status can't
make a line that begins like ours.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evalcore.remediation.objects import Missing, part
from evalcore.remediation.phase import Phase, conditions_of

MOST_BYTES: Final = 256 * 1024
"""Of a summary, and of all results together."""
_LONGEST_LINE: Final = 300
_QUOTE: Final = ">     "
_NOT_SHOWN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of Unicode that are no text: controls, marks of direction, halves of surrogates, separators."""

_Attempts = Sequence[Mapping[str, Any] | None]


def markdown(
    request: str,
    conditions: Any,
    attempts: Mapping[str, _Attempts],
    selected: Any,
    missing: Sequence[Missing],
    phase: Phase = Phase.IN_PROGRESS,
) -> str:
    """Returns the summary. `attempts`: step -> the statuses of its results in the list's order, None for one that could
    not be read. `selected`: the index of the option that was approved. Without attempts the conditions stand alone."""
    lines = ["## Request", "", *quoted(request)] if request else []
    for step, made in attempts.items():
        for number, status in enumerate(made, 1):
            lines += ["", f"## {step.capitalize()}" + (f", attempt {number} of {len(made)}" if len(made) > 1 else "")]
            if status is None:
                lines += ["", "It could not be read."]
                continue
            lines += _analysis(status, selected if number == len(made) else None) if step == "analysis" else []
            lines += _SECTIONS[step](status) if step in _SECTIONS else []
            lines += _said("The step broke off for a fault of the system", status.get("failureReason"))
    lines += ["", "## Outcome", "", f"Phase: {phase}"]
    for one in conditions_of(conditions):
        head = " ".join(code(one.get(name)) for name in ("type", "status", "reason") if one.get(name))
        lines += _said(f"Condition {head}", one.get("message"))
    if missing:
        lines += ["", "## Not read", "", *(f"- {code(one.what)}: {one.why}" for one in missing)]
    text = "\n".join(lines).strip()
    if len(text.encode()) > MOST_BYTES:
        text = text.encode()[:MOST_BYTES].decode(errors="ignore") + "\n\nThe summary is cut here."
    return f"{text}\n"


def with_own_answer(summary: str, answer: str) -> str:
    """Returns the summary with what the agent itself answered, quoted last."""
    own = ["", "## The agent's own answer", "", *quoted(answer)] if answer.strip() else []
    return "\n".join([summary.rstrip(), *own]) + "\n"


def quoted(text: str) -> list[str]:
    """Returns a text as the lines of a quoted block of code, without control characters."""
    return [(_QUOTE + _plain(one)).rstrip() for one in text.strip("\n").splitlines()]


def line(text: object) -> str:
    """Returns a text as one short line without control characters; `?` for what is no text."""
    words = " ".join(_plain(text[: 4 * _LONGEST_LINE]).split()) if isinstance(text, str) else "?"
    return words if len(words) <= _LONGEST_LINE else words[:_LONGEST_LINE] + "…"


def code(text: object) -> str:
    """Returns a short text in backticks."""
    return f"`{line(text).replace('`', chr(39)) or '?'}`"


def _plain(text: str) -> str:
    shown = (one if one not in "\t\n" else " " for one in text)
    return "".join(one for one in shown if unicodedata.category(one) not in _NOT_SHOWN)


def _said(label: str, text: object) -> list[str]:
    """Returns a labelled quote of a status's text; nothing where there is none."""
    return ["", f"{label}:", "", *quoted(text)] if isinstance(text, str) and text.strip() else []


def _named(label: str, of: Mapping[str, Any], name: str) -> list[str]:
    return ["", f"{label}: {code(of[name])}"] if of.get(name) not in (None, "") else []


def _analysis(status: Mapping[str, Any], selected: Any) -> Iterator[str]:
    options = _listed(status, "options")
    shown = _shown(len(options), selected)
    for number in shown:
        option = options[number]
        approved = ", the approved one" if len(shown) == 1 and selected is not None else ""
        yield from ["", f"### Option {number + 1} of {len(options)}{approved}", "", code(option.get("title"))]
        diagnosis, plan = part(option, "diagnosis"), part(option, "proposal")
        yield from _said("Diagnosis", diagnosis.get("summary"))
        yield from _said("Root cause", diagnosis.get("rootCause"))
        yield from _named("Confidence", diagnosis, "confidence")
        yield from _said("Plan", plan.get("description"))
        for action in _listed(plan, "actions"):
            yield from _said(f"Proposed action {code(action.get('type'))}", action.get("description"))
            yield from _said("Command", action.get("command"))
        for label, name in (("Risk", "risk"), ("Reversible", "reversible")):
            yield from _named(label, plan, name)
        yield from _said("Estimated impact", plan.get("estimatedImpact"))
        yield from _said("Rollback", part(plan, "rollbackPlan").get("description"))
        yield from _said("Planned verification", part(option, "verification").get("description"))


def _shown(options: int, selected: Any) -> range:
    """Returns the indices of the options to show: the one approved. The operator cuts the list and keeps the index:
    with one option left, that one; without an index that fits, all."""
    fits = isinstance(selected, int) and not isinstance(selected, bool) and 0 <= selected < options
    return range(selected, selected + 1) if fits and options > 1 else range(options)


def _execution(status: Mapping[str, Any]) -> Iterator[str]:
    for action in _listed(status, "actionsTaken"):
        head = f"Action {code(action.get('type'))}, outcome {code(action.get('outcome'))}"
        yield from _said(head, action.get("description")) or ["", head]
        yield from _said("Output", action.get("output"))
        yield from _said("Error", action.get("error"))
    seen = part(status, "verification")
    yield from _named("Condition afterwards", seen, "conditionOutcome")
    yield from _said("Seen afterwards", seen.get("summary"))


def _verification(status: Mapping[str, Any]) -> Iterator[str]:
    for check in _listed(status, "checks"):
        head = f"Check {code(check.get('name'))} by {code(check.get('source'))}, result {code(check.get('result'))}"
        yield from _said(head, check.get("value")) or ["", head]
    yield from _said("Summary", status.get("summary"))


def _escalation(status: Mapping[str, Any]) -> Iterator[str]:
    yield from _said("Summary", status.get("summary"))
    yield from _said("Content", status.get("content"))


_SECTIONS: Final = {"execution": _execution, "verification": _verification, "escalation": _escalation}


def _listed(of: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    found = of.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []
