"""Topic names (contracts §1). The prefix is a setting; the audit topic is PS-5's own and carries none."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.outcomes import Kind

CONSUMED = ("thumbs", "rerolls", "traces", "ramp-steps")
PRODUCED = ("verdicts", "dead-letters", "ramp-commands")


@dataclass(frozen=True)
class Topics:
    """The names under one prefix."""

    prefix: str = "rampgate."
    audit: str = "ps5.query_audit"

    def __getitem__(self, name: str) -> str:
        if name not in CONSUMED + PRODUCED:
            raise KeyError(f"no topic called {name!r}; there are {', '.join(CONSUMED + PRODUCED)}")
        return self.prefix + name

    @property
    def all(self) -> list[str]:
        return [self.prefix + name for name in CONSUMED + PRODUCED] + [self.audit]

    def of(self, kind: Kind) -> str:
        """The topic a kind of record is consumed from."""
        names = {Kind.THUMBS: "thumbs", Kind.REROLL: "rerolls", Kind.TRACE: "traces", Kind.RAMP_STEP: "ramp-steps"}
        return self.prefix + names[kind]
