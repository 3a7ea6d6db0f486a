"""Topic names (contracts §1). The prefix is a setting; the audit topic is PS-5's own and carries none."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.outcomes import Kind
from schemas.signals import DECLARED

PRODUCED = (
    "verdicts",
    "dead-letters",
    "judge-scores",
    "ramp-commands",
    "gate-overrides",
    "judge-standing",
    "triage",
    "evaluations",
    "user-weeks",
)
STAMPED = ("gate-overrides", "judge-standing", "evaluations")
"""Topics of which the broker stamps the records, so that a time that lies ahead of its own is refused."""


def broker_settings(topic: str) -> dict[str, str]:
    """Returns what a topic is made with whoever makes it; its name may have any prefix."""
    return {"message.timestamp.type": "LogAppendTime"} if topic.endswith(STAMPED) else {}


def consumed() -> tuple[str, ...]:
    """Returns the topics we consume, without the prefix: those of the declared signals, traces and ramp steps."""
    return (*(signal.topic for signal in DECLARED.values()), "traces", "ramp-steps")


@dataclass(frozen=True)
class Topics:
    """The names under one prefix."""

    prefix: str = "rampgate."
    audit: str = "ps5.query_audit"

    def __getitem__(self, name: str) -> str:
        known = consumed() + PRODUCED
        if name not in known:
            raise KeyError(f"no topic called {name!r}; there are {', '.join(known)}")
        return self.prefix + name

    @property
    def all(self) -> list[str]:
        return [self.prefix + name for name in consumed() + PRODUCED] + [self.audit]

    def of(self, kind: str) -> str:
        """Returns the topic from which a kind of record is consumed."""
        if kind in DECLARED:
            return self.prefix + DECLARED[kind].topic
        return self.prefix + {Kind.TRACE.value: "traces", Kind.RAMP_STEP.value: "ramp-steps"}[kind]
