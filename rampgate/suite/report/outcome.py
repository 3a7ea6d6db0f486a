"""Says why a run of a suite does not pass where neither its comparison nor its means tell. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from rampgate.report.junit import Tested
from rampgate.report.page import Section


class Stopped(NamedTuple):
    """`code` is of the list that readers of a machine go by, `message` for people."""

    code: str
    message: str

    def tested(self) -> Tested:
        """A test of the run as a whole: it has found nothing, or the agent fails."""
        failed = self.code == "agent_failed"
        return Tested("the run", "failure" if failed else "error", self.code, self.message, self.message)

    def section(self) -> Section:
        return Section("Why", notes=[self.message])


def stopped(run: Mapping[str, Any]) -> Stopped | None:
    """Why the run, by its document, does not pass, beside what its comparison says; None where there is no such
    reason."""
    verdict, left = run.get("verdict"), run.get("left")
    if left is not None:
        rest = f"{left['answers']:,} answers and {left['scores']:,} scores are left"
        return Stopped("incomplete", f"incomplete, which is no pass: {left['why']}; {rest}")
    if verdict == "unscored":
        return Stopped("unscored", "the score that decides is missing somewhere")
    if verdict == "fail" and run.get("comparison") is None:
        return Stopped("agent_failed", "the agent failed every time")
    return None
