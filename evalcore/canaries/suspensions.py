"""Says which judges are suspended, by the checks that are known of them. Pure.

A judge that a check suspended decides nothing until it passes that check. A pass is the version's own: the hash of all
that decides a score, rubric and model included. So a judge whose rubric or model changes after a canary check stands
suspended until its new version has passed; one that was never checked is not.
"""

from __future__ import annotations

from datetime import UTC, date, datetime

from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord

NEEDS_A_PASS = frozenset({CheckedFor.CANARIES})
"""Checks that a changed judge has to pass anew. By the others it stands as its last version did."""


class Suspensions:
    """Takes records in any order, also twice; the latest of each judge, reason and version counts."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, CheckedFor], dict[str, StandingRecord]] = {}

    def add(self, record: StandingRecord) -> None:
        if record.verdict is CheckVerdict.UNDECIDED:
            return
        versions = self._known.setdefault((record.judge_id, record.reason), {})
        known = versions.get(record.judge_version)
        if known is None or _at(known) <= _at(record):
            versions[record.judge_version] = record

    def why(self, judge: str, version: str, today: date) -> str:
        """Returns why the judge is suspended; empty where it is not."""
        for reason in CheckedFor:
            versions = self._known.get((judge, reason))
            if not versions:
                continue
            own = versions.get(version)
            last = own or max(versions.values(), key=_at)
            if last.verdict is CheckVerdict.SUSPENDED and (last.until is None or today <= last.until):
                until = f" until {last.until.isoformat()}" if last.until is not None else ""
                return f"by its check of {reason} on {last.at.date().isoformat()}{until}: {last.message or 'it failed'}"
            if own is None and reason in NEEDS_A_PASS:
                day = last.at.date().isoformat()
                return f"it changed since its check of {reason} on {day} and has not passed since"
        return ""

    def passed_at(self) -> dict[str, float]:
        """Returns when each judge last passed its canaries, as a time of Unix; a suspended one has none."""
        return {
            judge: max(_at(record).timestamp() for record in versions.values())
            for (judge, reason), versions in self._known.items()
            if reason is CheckedFor.CANARIES and max(versions.values(), key=_at).verdict is CheckVerdict.PASSED
        }


def _at(record: StandingRecord) -> datetime:
    return record.at if record.at.tzinfo is not None else record.at.replace(tzinfo=UTC)
