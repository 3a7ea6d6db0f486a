"""Says what documents have of judges' scores beside people's, and what is published of it (PF-9 FR-10)."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evalcore.canaries.suspensions import Suspensions
from evalcore.inversion.check import Composed, Pairs, SliceStanding, Standing
from evalcore.registry.registry import Registry
from evalcore.stats.correlation import Correlation
from rampgate.console import Failure, plain
from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord
from schemas.dead_letters import clean
from schemas.judges import judge_id
from schemas.manifests import Composite

VERDICTS = {True: CheckVerdict.SUSPENDED, False: CheckVerdict.PASSED, None: CheckVerdict.UNDECIDED}


def records(judges: Mapping[str, Pairs], found: Sequence[Standing], registry: Registry | None) -> list[StandingRecord]:
    """What is published: of each registered judge what was found of the version that gave the scores. Raises Failure
    where lines don't say which."""
    known = {judge.id: judge for judge in registry.all()} if registry is not None else {}
    out = []
    for one in found:
        judge, pairs = known.get(judge_id(one.name)), judges[one.name]
        if judge is None:
            sys.stderr.write(f"not registered, and so not published: {clean(one.name, 80)}\n")
            continue
        if not pairs.version:
            what = "lines have to say which version of the judge gave the scores, else it is unknown which to suspend"
            raise Failure(f"judge_version: {plain(one.name, 80)}: {what}")
        out.append(
            StandingRecord(
                event_id=str(uuid.uuid4()), judge_id=judge.id, judge_version=pairs.version, model=judge.rule.model,
                reason=CheckedFor.INVERSION, verdict=VERDICTS[one.inverted], message=one.reason,
                at=datetime.now(UTC), reference=pairs.reference,
            )
        )  # fmt: skip
    return out


def undecided(known: Suspensions, found: Sequence[StandingRecord]) -> list[StandingRecord]:
    """What was not decided before by the same scores of people: a look again could only add a false alarm."""
    out = []
    for one in found:
        before = known.decided(one)
        if before is None:
            out.append(one)
        else:
            day = before.at.date().isoformat()
            sys.stderr.write(f"{one.judge_id}: decided by these scores of people on {day}: {before.verdict}\n")
    return out


def composites_of(
    judges: Mapping[str, Pairs], declared: Mapping[str, Composite]
) -> tuple[Mapping[str, Pairs], dict[str, Composed]]:
    """The judges by their ids in the registry's spelling, and how the manifest's composites are made of them."""
    made = {
        name: Composed(
            {judge_id(member): (one.weights or {}).get(member, 1.0) for member in one.judges}, one.aggregate == "min"
        )
        for name, one in declared.items()
    }
    return {judge_id(name): pairs for name, pairs in judges.items()}, made


def numbers(found: Correlation) -> dict[str, Any]:
    """A correlation as documents have it (PF-9 AC-10)."""
    return {
        "n": int(found.n),
        "pearson": found.pearson,
        "pearson_ci95": list(found.ci95) if found.ci95 is not None else None,
        "spearman": found.spearman,
    }


def told(one: Standing) -> dict[str, Any]:
    """What documents have of a judge or a composite."""
    found = {**numbers(one.found), "inverted": one.inverted, "carries_signal": one.carries_signal}
    return {**found, "detectable": one.detectable, "reason": one.reason}


def slice_told(one: SliceStanding) -> dict[str, Any]:
    """The same of a slice."""
    about = {"judge_id": one.name, "field": one.field, "value": one.value}
    return {**about, **numbers(one.found), "holm_p": one.adjusted_p, "inverted": one.against}
