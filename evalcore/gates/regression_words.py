"""A regression's response in the shapes that others take: PC6's command, PagerDuty, Slack, Grafana, the trend log. Pure
(PC5 §5.7; contracts §1)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from evalcore.gates.regression import Event, Response, Step
from evalcore.gates.slack import message
from schemas.wire_forms import RampCommand

SOURCE = "rampgate"
HEADER = (
    "| at | event | tier | judge | vertical | agent | version | score | floor | n | response | triage due |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
)


def ramp_command(response: Response) -> RampCommand:
    """For `rampgate.ramp-commands`, keyed by agent_id."""
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
    }


def page(response: Response, routing_key: str) -> dict[str, Any]:
    """PagerDuty's Events API v2. The same breach has the same `dedup_key`, so that it is one incident whatever happens,
    and its end resolves it."""
    breach = response.breach
    event: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "resolve" if response.over else "trigger",
        "dedup_key": breach.key,
    }
    if response.over:
        return event
    details = {**ramp_command(response), "vertical": breach.vertical, "n": breach.n}
    return event | {
        "client": SOURCE,
        "payload": {
            "summary": summary(response)[:1024],
            "source": SOURCE,
            "severity": "critical",
            "timestamp": breach.detected_at,
            "component": breach.agent_id,
            "group": breach.vertical or "platform",
            "class": "safety_floor_breach",
            "custom_details": {name: value for name, value in details.items() if name not in ("command", "to_percent")},
        },
    }


def slack_message(response: Response) -> dict[str, str]:
    return message(summary(response))


def annotation(response: Response) -> dict[str, Any]:
    """Grafana's `POST /api/annotations`."""
    breach = response.breach
    tags = [SOURCE, "regression", breach.judge_id, breach.agent_id]
    return {
        "time": round(datetime.fromisoformat(breach.detected_at).timestamp() * 1000),
        "tags": tags + ([breach.vertical] if breach.vertical else []),
        "text": summary(response),
    }


def log_line(response: Response) -> str:
    """One row of the trend log's table, `HEADER` above it."""
    breach = response.breach
    cells = [
        breach.detected_at,
        response.event,
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


def summary(response: Response) -> str:
    breach = response.breach
    where = f"{breach.agent_id} {breach.agent_version}" + (f" in {breach.vertical}" if breach.vertical else "")
    if response.event is Event.LAPSED:
        was = f"{breach.judge_id} was below its floor of {breach.floor:g} for {where}"
        return f"{was} and has {breach.n} live scores left: closed, the next breach is a new one"
    numbers = f"{breach.score:.4g} over {breach.n} live scores, floor {breach.floor:g}"
    if response.event is Event.RECOVERED:
        return f"{breach.judge_id} is back above its floor for {where}: {numbers}"
    text = f"{breach.judge_id} is below its floor for {where}: {numbers}"
    if Step.RAMP_DOWN in response.steps:
        return f"{text}. It is being ramped down to 0 %."
    if Step.MANUAL_RAMP_DOWN in response.steps:
        return f"{text}. Ramp it down to 0 % by hand via Feature Flipper: automatic ramp-down is off."
    return f"{text}. Triage is due by {response.triage_due}."


def _cell(text: str) -> str:
    """Keeps the table whole whatever a name contains."""
    line = "".join(sign if sign.isprintable() else " " for sign in text)
    return line.replace("\\", "\\\\").replace("|", "\\|")
