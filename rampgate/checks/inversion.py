"""Runs `rampgate check inversion`: compares a file's scores of judges with people's; who scores against them?"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalcore.canaries.suspensions import Suspensions
from evalcore.inversion.check import (
    Composed,
    Pairs,
    SliceStanding,
    Standing,
    check,
    check_composites,
    check_slices,
)
from evalcore.registry.registry import Registry
from evalcore.stats.correlation import Correlation
from rampgate.checks.drift import registered, registry_or_none, require_on_scale, required_registry
from rampgate.checks.score_files import read_pairs
from rampgate.checks.standing import append_standings, known_by_file, known_by_topic, publish
from rampgate.ci_gate.inputs import BadFile
from rampgate.console import Failure, plain, print_json
from rampgate.report.checks import inversion_report
from rampgate.report.files import check_paths, write_all
from rampgate.settings_sources import load_settings
from rampgate.tables import make_table
from schemas.checks.standing import CheckedFor, CheckVerdict, StandingRecord
from schemas.dead_letters import clean
from schemas.judges import judge_id
from schemas.manifests import Composite

VERDICTS = {True: CheckVerdict.SUSPENDED, False: CheckVerdict.PASSED, None: CheckVerdict.UNDECIDED}
RESULTS = {True: "[red]inverted[/]", False: "[green]not inverted[/]", None: "[yellow]undecidable[/]"}
CHANCE = "[yellow]no better than chance[/]"


@dataclass(frozen=True)
class InversionRun:
    """A check that was run."""

    judges: Sequence[Standing]
    composites: Sequence[Standing]
    slices: Sequence[SliceStanding]

    def document(self) -> dict[str, Any]:
        return {
            "judges": [{"judge_id": one.name, **told(one)} for one in self.judges],
            "inverted_count": sum(one.inverted is True for one in self.judges),
            "composites": [{"composite": one.name, **told(one)} for one in self.composites],
            "slices": [slice_told(one) for one in self.slices],
        }


@dataclass(frozen=True)
class Options:
    """The options of the command."""

    file: Path
    publish: bool
    standing: Path | None
    kafka: str | None
    configs: Path | None
    as_json: bool
    reports: tuple[Path, ...] = ()


def check_inversion(options: Options) -> int:
    """Check, report, and return the exit code. Raises Failure."""
    check_paths(options.reports)
    try:
        judges = read_pairs(options.file)
        told = options.publish or options.standing is not None
        registry = required_registry(options.configs) if told else registry_or_none(options.configs)
        for name, pairs in judges.items():
            if (judge := registered(registry, name, None)) is not None:
                require_on_scale(options.file, "judge_score", pairs.judge, pairs.lines, judge)
    except BadFile as error:
        raise Failure(str(error)) from error
    composites = check_composites(*composites_of(judges, registry.composites if registry else {}))
    done = InversionRun(check(judges), composites, check_slices(judges))
    if told:
        _tell(options, records(judges, done.judges, registry))
    document = done.document()
    write_all(options.reports, inversion_report(document))
    print_json(document) if options.as_json else _show(done)
    return 0 if all(one.inverted is False for one in (*done.judges, *done.composites)) else 1


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
            what = "lines have to say which version of the judge gave the scores, else nobody knows whom to suspend"
            raise Failure(f"judge_version: {plain(one.name, 80)}: {what}")
        out.append(
            StandingRecord(
                event_id=str(uuid.uuid4()), judge_id=judge.id, judge_version=pairs.version, model=judge.rule.model,
                reason=CheckedFor.INVERSION, verdict=VERDICTS[one.inverted], message=one.reason,
                at=datetime.now(UTC), reference=pairs.reference,
            )
        )  # fmt: skip
    return out


def _tell(options: Options, found: Sequence[StandingRecord]) -> None:
    if options.standing is not None:
        try:
            known = known_by_file(options.standing) if options.standing.exists() else Suspensions()
        except BadFile as error:
            raise Failure(str(error)) from error
        append_standings(options.standing, _undecided(known, found))
    if options.publish:
        settings = load_settings({"configs": options.configs, "kafka": options.kafka})
        publish(settings, _undecided(known_by_topic(settings), found))


def _undecided(known: Suspensions, found: Sequence[StandingRecord]) -> list[StandingRecord]:
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


def result(one: Standing) -> str:
    """The same as a cell of a table."""
    return CHANCE if (one.inverted, one.carries_signal) == (False, False) else RESULTS[one.inverted]


def slice_told(one: SliceStanding) -> dict[str, Any]:
    """The same of a slice."""
    about = {"judge_id": one.name, "field": one.field, "value": one.value}
    return {**about, **numbers(one.found), "holm_p": one.adjusted_p, "inverted": one.against}


def _show(done: InversionRun) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    table = make_table("Judges against people", "Judge", ">n", ">Pearson", "95 %", ">Spearman", ">Detectable", "Result")
    for one in (*done.judges, *done.composites):
        table.add_row(plain(one.name), *_cells(one.found), _figure(one.detectable), result(one))
    console.print(table)
    for one in (*done.judges, *done.composites):
        if one.inverted is not False or one.carries_signal is False:
            console.print(f"{plain(one.name)}: {plain(one.reason, 400)}")
    if done.slices:
        heads = ("Judge", "Slice", ">n", ">Pearson", "95 %", ">Spearman", ">Holm's p", "Result")
        table = make_table("By slice, which decides nothing", *heads)
        for part in done.slices:
            where = plain(f"{part.field}: {part.value}")
            table.add_row(plain(part.name), where, *_cells(part.found), _figure(part.adjusted_p), RESULTS[part.against])
        console.print(table)


def _cells(found: Correlation) -> tuple[str, str, str, str]:
    ends = "" if found.ci95 is None else f"{found.ci95[0]:.3f} to {found.ci95[1]:.3f}"
    return f"{int(found.n):,}", _figure(found.pearson), ends, _figure(found.spearman)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
