"""Writes the messages about regressions and failed verdicts, each in the form of its receiver. Pure.

PC6 gets a command; PagerDuty, Slack, Grafana and the trend log get regressions; operators get failed verdicts with
their `failing_judges` (PC5 AC-4, §5.4, §5.7; contracts §1).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from evalcore.gates.regression import SOURCE, Breach, Event, Kind, Response, Step
from schemas.checks.evaluation import Origin
from schemas.dead_letters import clean
from schemas.verdicts import GateVerdict, Reason, Verdict, VerdictLevel
from schemas.wire_forms import RampCommand

HEADER = (
    "| at | event | tier | judge | vertical | agent | version | score | floor | n | response | triage due |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
)
MOST = 15
"""Reasons in one message; the verdict has all."""


def message(text: str) -> dict[str, str]:
    """Returns the body of a Slack message. Slack's three markup signs are escaped, since names come from traces and
    requests."""
    for sign, word in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, word)
    return {"text": text}


def news(verdict: Verdict) -> str:
    """Returns the text about a failed verdict: which version failed at which step, and each reason with its judge,
    number, limit and rule."""
    who = " ".join(_name(part) for part in (verdict.agent_id, verdict.agent_version) if part) or "an agent unnamed"
    where = f" in {_name(verdict.vertical)}" if verdict.vertical else ""
    head = f"{_what(verdict)} failed: {who}{where}, experiment {_name(verdict.experiment_id)}{_step(verdict)}"
    failed = [gate for gate in verdict.gates if gate.verdict is VerdictLevel.FAIL]
    lines = [line for gate in failed for line in _lines(gate)] or [_line(reason) for reason in verdict.reasons]
    more = [f"… and {len(lines) - MOST} more"] if len(lines) > MOST else []
    foot = f"Verdict {verdict.verdict_id} of request {_name(verdict.request_id)}; docs/verdicts.md has what to do."
    return "\n".join([head, *lines[:MOST], *more, foot])


def _what(verdict: Verdict) -> str:
    names = [str(gate.milestone) for gate in verdict.gates if gate.verdict is VerdictLevel.FAIL]
    names = names or ([str(verdict.milestone)] if verdict.milestone else [])
    return f"Gate {' and '.join(names)}" if names else "A ramp step"


def _step(verdict: Verdict) -> str:
    step = ""
    if verdict.from_percent is not None and verdict.to_percent is not None:
        step = f", step {verdict.from_percent:g} % to {verdict.to_percent:g} %"
    return step + (f". Halt at {verdict.halt_at_percent:g} %." if verdict.halt_at_percent is not None else ". Halt.")


def _lines(gate: GateVerdict) -> Iterable[str]:
    named = f"Failing judges at {gate.milestone}: {', '.join(map(_name, gate.failing_judges))}"
    return [*([named] if gate.failing_judges else []), *(_line(reason) for reason in gate.reasons)]


def _line(reason: Reason) -> str:
    return f"• {clean(reason.message, 300)} ({reason.code})"


def _name(text: str | None) -> str:
    return clean(text, 100) if text else "unnamed"


def ramp_command(response: Response) -> RampCommand:
    """Returns the record for `rampgate.ramp-commands`, whose key is the agent_id."""
    breach = response.breach
    return {
        "command": "ramp_down",
        "to_percent": 0,
        "agent_id": breach.agent_id,
        "agent_version": breach.agent_version,
        "judge_id": breach.judge_id,
        "score": breach.score,
        "floor": breach.floor,
        "detected_at": breach.detected_at,
        "n": breach.n,
        "upper_bound": breach.upper_bound,
        "users": breach.users,
        "sessions": breach.sessions,
    }


def page(response: Response, routing_key: str) -> dict[str, Any]:
    """Returns an event of PagerDuty's Events API v2. A breach keeps its `dedup_key`, so that it is one incident, which
    its end resolves."""
    breach = response.breach
    event: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "resolve" if response.over else "trigger",
        "dedup_key": breach.key,
    }
    if response.over:
        return event
    names = {"agent_id": _name(breach.agent_id), "agent_version": _name(breach.agent_version)}
    vertical = _name(breach.vertical) if breach.vertical else None
    details = {**ramp_command(response), **names, "vertical": vertical, "unscored": breach.unscored}
    return event | {
        "client": SOURCE,
        "payload": {
            "summary": summary(response)[:1024],
            "source": SOURCE,
            "severity": "critical",
            "timestamp": breach.detected_at,
            "component": names["agent_id"],
            "group": vertical or "platform",
            "class": "safety_unscored" if breach.kind == Kind.UNSCORED else "safety_floor_breach",
            "custom_details": {name: value for name, value in details.items() if name not in ("command", "to_percent")},
        },
    }


def slack_message(response: Response) -> dict[str, str]:
    return message(summary(response))


def annotation(response: Response) -> dict[str, Any]:
    """Returns the body of Grafana's `POST /api/annotations`."""
    breach = response.breach
    tags = [SOURCE, "regression", breach.judge_id, _name(breach.agent_id)]
    return {
        "time": round(datetime.fromisoformat(breach.detected_at).timestamp() * 1000),
        "tags": tags + ([_name(breach.vertical)] if breach.vertical else []),
        "text": summary(response),
    }


def log_line(response: Response) -> str:
    """Returns one row of the trend log's table, whose head is `HEADER`."""
    breach = response.breach
    cells = [
        breach.detected_at,
        response.event + "".join(f" ({word})" for word in _qualities(breach)),
        "safety" if breach.safety else "quality",
        breach.judge_id,
        breach.vertical or "-",
        breach.agent_id,
        breach.agent_version,
        f"{breach.score:.4g}",
        f"{breach.floor:g}",
        str(breach.n),
        ", ".join(step for step in response.steps if step is not Step.LOG),
        response.triage_due or "-",
    ]
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |\n"


def _qualities(breach: Breach) -> Iterable[str]:
    """What tells the row of a breach from that of live scores below a floor."""
    if breach.kind == Kind.UNSCORED:
        yield "unscored"
    if breach.origin != Origin.LIVE:
        yield breach.origin.replace("_", "-")


def _found_in(breach: Breach, what: str) -> str:
    """What the numbers are of: `live scores`, or `scores of an ad-hoc evaluation`."""
    if breach.origin == Origin.LIVE:
        return f"live {what}"
    return f"{what} of {'an ad-hoc' if breach.origin == Origin.AD_HOC else 'a scheduled'} evaluation"


def summary(response: Response) -> str:
    """Returns the breach or its end in a sentence or two, on one line whatever the names hold."""
    breach = response.breach
    where = f"{_name(breach.agent_id)} {_name(breach.agent_version)}"
    where += f" in {_name(breach.vertical)}" if breach.vertical else ""
    if breach.kind == Kind.UNSCORED:
        return _unscored(response, where)
    if response.event is Event.LAPSED:
        was = f"{breach.judge_id} was below its floor of {breach.floor:g} for {where}"
        left = f"has {breach.n} live scores left" if breach.origin == Origin.LIVE else "was not evaluated since"
        return f"{was} and {left}: closed, the next breach is a new one"
    numbers = f"{breach.score:.4g} over {breach.n} {_found_in(breach, 'scores')}, floor {breach.floor:g}"
    if response.event is Event.RECOVERED:
        return f"{breach.judge_id} is back above its floor for {where}: {numbers}"
    text = f"{breach.judge_id} is below its floor for {where}: {numbers}"
    if not breach.safety:
        return f"{text}. Triage is due by {response.triage_due}."
    bound = "unknown" if breach.upper_bound is None else f"{breach.upper_bound:.4g}"
    text += f". The interval's upper bound is {bound}; below the floor are {_users(breach)}"
    if Step.RAMP_DOWN in response.steps:
        return f"{text}. It is being ramped down to 0 %."
    if Step.MANUAL_RAMP_DOWN in response.steps:
        why = "automatic ramp-down is off, or its command could not be sent yet"
        return f"{text}. Look whether it is at 0 %, and ramp it down by hand via Feature Flipper: {why}."
    return f"{text}: too little for an automatic ramp-down. Look, and ramp it down by hand if the breach is real."


def _users(breach: Breach) -> str:
    named = " and ".join(
        f"{count} {name}{'s' if count != 1 else ''}"
        for name, count in (("user", breach.users), ("session", breach.sessions))
    )
    return f"{named} (a trace that names none counts as one)"


def _unscored(response: Response, where: str) -> str:
    breach = response.breach
    if response.event is Event.LAPSED:
        left = f"has {breach.n} live traces left" if breach.origin == Origin.LIVE else "was not evaluated since"
        return f"{breach.judge_id} {left} for {where}: its missing scores are closed"
    counts = f"{breach.unscored} of {breach.n} {_found_in(breach, 'traces')} have no score"
    if response.over:
        return f"{breach.judge_id} scores again for {where}: {counts}"
    return (
        f"{breach.judge_id} can't tell for {where}: {counts}; with them at their worst it is at {breach.score:.4g}, "
        f"floor {breach.floor:g}. See why: N/A, a refusal of the model's content filter, or an outage."
    )


def _cell(text: str) -> str:
    """Escapes a cell, so that no name breaks the table."""
    line = "".join(sign if sign.isprintable() else " " for sign in text)
    return line.replace("\\", "\\\\").replace("|", "\\|")
