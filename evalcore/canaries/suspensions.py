"""Says which judges are suspended, by the checks that are known of them. Pure.

A judge that a check suspended decides nothing until it passes that check. A pass is the version's own: the hash of all
that decides a score, rubric and model included. So a judge whose rubric or model changes after a check stands suspended
until its new version has been checked; one that was never checked is not.

A check of inversion decides once of a version of a judge and a version of the reference set, by the earliest record.
One that could not tell leaves a suspension as it stands, and is a check of the new version all the same: of a judge
that nearly always says the same no one can ever tell. What the people of one vertical found, those of another don't
take back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from operator import attrgetter
from typing import Final

from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord

Versions = dict[str, dict[str, StandingRecord]]
"""The records that count, by the version of the judge, and of the reference set where there is one."""
AT: Final = attrgetter("at")


class Suspensions:
    """Takes records in any order, also twice; the latest of each judge, reason and version counts."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, CheckedFor], Versions] = {}

    def add(self, record: StandingRecord) -> None:
        if record.verdict is CheckVerdict.UNDECIDED and record.reason is CheckedFor.CANARIES:
            return
        versions = self._known.setdefault((record.judge_id, record.reason), {})
        decided = versions.setdefault(record.judge_version, {})
        known = decided.get(record.reference)
        if known is None or (record.at < known.at if record.reference else known.at <= record.at):
            decided[record.reference] = record

    def why(self, judge: str, version: str, today: date) -> str:
        """Returns why the judge is suspended; empty where it is not."""
        for reason in CheckedFor:
            versions = self._known.get((judge, reason))
            if not versions:
                continue
            own = versions.get(version)
            last = max(self._against(judge, reason, version), key=AT, default=None)
            if last is not None and not _over(last, today):
                until = f" until {last.until.isoformat()}" if last.until is not None else ""
                return f"by its check of {reason} on {last.at.date().isoformat()}{until}: {last.message or 'it failed'}"
            if own is None:
                day = max(one.at for one in _all(versions)).date().isoformat()
                return f"it changed since its check of {reason} on {day} and has not passed since"
        return ""

    def decided(self, record: StandingRecord) -> StandingRecord | None:
        """Returns what was found before of the same version of the judge, compared with the same people's scores."""
        versions = self._known.get((record.judge_id, record.reason), {})
        return versions.get(record.judge_version, {}).get(record.reference)

    def passed_at(self) -> dict[str, float]:
        """Returns when each judge last passed its canaries, as a time of Unix; a suspended one has none."""
        return {
            judge: max(record.at.timestamp() for record in _all(versions))
            for (judge, reason), versions in self._known.items()
            if reason is CheckedFor.CANARIES and max(_all(versions), key=AT).verdict is CheckVerdict.PASSED
        }

    def held_against_people_at(self) -> dict[str, float]:
        """Returns when each judge was last compared with people, whatever was found, as a time of Unix."""
        return {
            judge: max(record.at.timestamp() for record in _all(versions))
            for (judge, reason), versions in self._known.items()
            if reason is CheckedFor.INVERSION
        }

    def last_held(self, judge: str, version: str, vertical: str) -> StandingRecord | None:
        """Returns what was found when this version of the judge was last compared with the people of a vertical, or
        against those of a file, which are no one's."""
        of = self._known.get((judge, CheckedFor.INVERSION), {}).get(version, {}).values()
        return max((one for one in of if one.vertical in ("", vertical)), key=AT, default=None)

    def inverted(self, versions: Mapping[str, str], today: date) -> Counter[str]:
        """Returns how many judges stand as inverted, by the vertical whose people they score against; `platform` where
        those are of no vertical. `versions` has the version of each."""
        found = (self._against(judge, CheckedFor.INVERSION, version) for judge, version in versions.items())
        return Counter(one.vertical or "platform" for of in found for one in of if not _over(one, today))

    def _against(self, judge: str, reason: CheckedFor, version: str) -> list[StandingRecord]:
        """The checks that suspend the judge: of the same people the last one that could tell, of this version or else
        of any. Empty where they all found it sound."""
        told = [one for one in _all(self._known.get((judge, reason), {})) if one.verdict is not CheckVerdict.UNDECIDED]
        bad = (one for one in told if one.verdict is CheckVerdict.SUSPENDED)
        return [one for one in bad if _last_word(one, told, version) is one]


def _all(versions: Versions) -> list[StandingRecord]:
    return [record for decided in versions.values() for record in decided.values()]


def _last_word(record: StandingRecord, told: Iterable[StandingRecord], version: str) -> StandingRecord:
    same = [one for one in told if not (one.vertical and record.vertical) or one.vertical == record.vertical]
    return max([one for one in same if one.judge_version == version] or same, key=AT)


def _over(record: StandingRecord, today: date) -> bool:
    return record.until is not None and today > record.until
