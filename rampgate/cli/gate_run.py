"""`rampgate gate run`: a gate from CI (PC5 §5.5, AC-3; contracts §5)."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from evalcore import loading
from evalcore.evaluating import scorer_for
from evalcore.gates.baselines import BaselineFile
from evalcore.gates.golden import CandidateAnswer, GoldenSet
from evalcore.gates.overrides import accepted
from evalcore.gates.traced import Traced, traced
from evalcore.live import BrokenRegistry, LiveRegistry
from evalcore.registry import Registry
from evalcore.scoring import CallLimits, Scorer, Spend
from rampgate import gate_run
from rampgate.baseline_file import read_baselines, write_baselines
from rampgate.cli.common import Failure, print_json, run
from rampgate.cli.findings import Format
from rampgate.cli.options import ConfigsOption, JsonOption, MetricsOption
from rampgate.cli.override_audit import append, read_description
from rampgate.gate_files import BadFile, from_opik, read_dataset, read_outputs, read_traces
from rampgate.gate_reports import console
from rampgate.gate_reports.files import Reports
from rampgate.gate_run import Outcome, Wanted
from rampgate.logs import configure_logs
from rampgate.settings import Settings, load_settings
from schemas.dead_letters import clean
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import Word
from streams.candidate import CandidateLimits, ask_candidate

LOOKS_AT = {True: "a dataset and a candidate's outputs to it", False: "--traces FILE"}
"""By whether it is pre_merge."""


def run_command(
    milestone: Annotated[str, typer.Option(help="which gate: pre_merge, pre_ramp, pre_full")] = Milestone.PRE_MERGE,
    dataset: Annotated[
        Path | None, typer.Option(help="items, JSON Lines; without it the manifest's dataset, from Opik")
    ] = None,
    dataset_name: Annotated[
        str | None, typer.Option(help="the file's name in Opik, held against the manifest's")
    ] = None,
    dataset_version: Annotated[int | None, typer.Option(help="the file's version, held against the manifest's")] = None,
    candidate: Annotated[str | None, typer.Option(help="URL that takes POST {input, metadata} -> {output}")] = None,
    candidate_key: Annotated[
        str | None,
        typer.Option(help="bearer token of the candidate, instead of RAMPGATE_CANDIDATE_KEY", show_default=False),
    ] = None,
    candidate_calls: Annotated[int, typer.Option(min=1, help="calls to the candidate at once")] = 8,
    candidate_seconds: Annotated[float, typer.Option(min=0.1, help="one call may take so long")] = 60.0,
    candidate_tries: Annotated[int, typer.Option(min=1, help="calls for one item")] = 3,
    outputs: Annotated[Path | None, typer.Option(help="the candidate's outputs, JSON Lines: {id, output}")] = None,
    traces: Annotated[
        Path | None, typer.Option(help="at pre_ramp and pre_full: the sample, JSON Lines, as on the topic or from Opik")
    ] = None,
    judges: Annotated[
        str | None, typer.Option(help="with --traces: a,b, as an experiment lists them; else those of their categories")
    ] = None,
    coverage: Annotated[
        float | None, typer.Option(min=0, max=1, help="with --traces: the join's rate, held against the floor")
    ] = None,
    baselines: Annotated[Path | None, typer.Option(help="the runs on main, a JSON file")] = None,
    record: Annotated[bool, typer.Option("--record", help="add this run to --baselines; on main only")] = False,
    commit: Annotated[str, typer.Option(help="which commit --record is of")] = "",
    description: Annotated[
        Path | None, typer.Option(help="file with the pull request's description; - for stdin")
    ] = None,
    pull_request: Annotated[str, typer.Option(help="its number or address, for the audit")] = "",
    audit: Annotated[Path | None, typer.Option(help="JSON Lines file to which an accepted shift is appended")] = None,
    vertical: Annotated[str | None, typer.Option(help="whose limits hold; without it the platform's")] = None,
    within: Annotated[float | None, typer.Option(min=1, help="seconds for all judges together")] = None,
    junit: Annotated[Path | None, typer.Option(help="leave a JUnit report there")] = None,
    markdown: Annotated[Path | None, typer.Option(help="append a report, as to $GITHUB_STEP_SUMMARY")] = None,
    html: Annotated[Path | None, typer.Option(help="leave a page there, with the scores' distributions")] = None,
    metrics_file: MetricsOption = None,
    configs: ConfigsOption = None,
    format: Annotated[Format, typer.Option(help="text, json, or github for annotations on stderr")] = Format.TEXT,
    as_json: JsonOption = False,
) -> None:
    """Run the candidate on the manifest's dataset, or take traces; let the judges score them, and decide.

    Each judge scores the items of its categories; global and safety judges score all. On traces filters and sampling
    rates say which a judge scores. A quality judge that falls short warns before a merge, a safety judge blocks. Exit
    code 0 pass or warn, 1 fail, 2 bad input.

    Example: rampgate gate run --milestone pre_merge --candidate http://127.0.0.1:8000/answer --format github
    """
    at = _milestone(milestone)
    _asked_for(
        at,
        {"dataset": dataset, "candidate": candidate, "outputs": outputs, "description": description},
        {"traces": traces, "judges": judges, "coverage": coverage},
    )
    if record and baselines is None:
        raise Failure("--record: say where: --baselines FILE")
    reports = Reports(junit, markdown, html, metrics_file)
    reports.check()
    settings = load_settings({"configs": configs, "candidate_key": candidate_key})
    configure_logs("error", "console")
    registry = registry_of(settings, vertical)
    spend = Spend(settings.gate_calls, settings.gate_tokens)
    today = loading.today()
    try:
        past = read_baselines(baselines, may_be_new=record) if baselines is not None else BaselineFile()
        golden = read_dataset(dataset, dataset_name, dataset_version) if dataset is not None else None
        given = read_outputs(outputs) if outputs is not None else None
        sample = _traced(traces, judges, at, registry, vertical) if traces is not None else None
    except BadFile as error:
        raise Failure(str(error)) from error
    shift, refused = accepted(read_description(description), registry, today)
    for wrong in refused:
        sys.stderr.write(f"override refused: {clean(wrong, 500)}\n")
    if shift is not None:
        append(audit, "baseline_shift", pull_request, [asdict(shift)])
    declared = gate_run.manifest_dataset(registry)
    wanted = Wanted(
        registry, today, at, vertical=vertical, spend=spend, within=within,
        accepted=dict.fromkeys(shift.judges if shift is not None else (), Enforcement.WARN),
        history=past.history(registry.all(), declared, at, vertical),
        outdated={} if record or at is not Milestone.PRE_MERGE else past.outdated(registry.all(), at, vertical),
    )  # fmt: skip
    limits = CandidateLimits(candidate_calls, candidate_seconds, candidate_tries)

    async def read() -> GoldenSet | None:
        return golden if golden is not None else await from_opik(settings, registry)

    async def answer(items: Sequence[Mapping[str, Any]]) -> Mapping[str, CandidateAnswer]:
        if given is not None:
            return given
        key = settings.candidate_key.get_secret_value() if settings.candidate_key is not None else None
        return await ask_candidate(str(candidate), items, key, limits)

    async def decide(scorer: Scorer | None) -> Outcome:
        if sample is not None:
            return await gate_run.run_traced(wanted, sample, coverage, scorer)
        return await gate_run.run(wanted, read, answer, scorer)

    outcome = run(partial(_with_scorer, settings, decide))
    reports.write(outcome)
    if record and baselines is not None:
        made = past.with_run(outcome.verdict, declared, vertical, outcome.decided_at, commit)
        try:
            write_baselines(baselines, made)
        except BadFile as error:
            raise Failure(str(error)) from error
    tell(outcome, format, as_json)
    raise typer.Exit(1 if outcome.verdict.verdict is Word.FAIL else 0)


async def _with_scorer(settings: Settings, decide: Callable[[Scorer | None], Awaitable[Outcome]]) -> Outcome:
    limits = CallLimits(
        settings.model_calls_at_once, settings.model_calls_per_minute, settings.model_call_seconds,
        settings.model_patience_seconds,
    )  # fmt: skip
    key = settings.model_key.get_secret_value() if settings.model_key is not None else None
    async with scorer_for(limits=limits, url=settings.model_url, key=key) as scorer:
        return await decide(scorer)


def _traced(traces: Path, judges: str | None, at: Milestone, registry: Registry, vertical: str | None) -> Traced:
    """Raises Failure, BadFile."""
    listed = [name.strip() for name in judges.split(",") if name.strip()] if judges is not None else None
    found, wrong = traced(read_traces(traces), str(traces), listed, at, registry, vertical)
    if wrong:
        raise Failure("; ".join(wrong))
    return found


def registry_of(settings: Settings, vertical: str | None) -> Registry:
    """Raises Failure where the files hold an error, or no such vertical."""
    try:
        registry = LiveRegistry(settings.configs, ttl=None).current()
    except BrokenRegistry as error:
        raise Failure(f"{error}; `rampgate manifest validate` tells all") from error
    if "dataset" not in registry.manifest:
        raise Failure(f"{settings.configs}: there is no evaluation manifest")
    if vertical is not None and vertical not in registry.verticals:
        raise Failure(f"--vertical: no vertical {vertical!r}; there are {', '.join(sorted(registry.verticals))}")
    return registry


def tell(outcome: Outcome, format: Format, as_json: bool) -> None:
    """`--json` beside `--format github` gives both, the document on stdout and annotations on stderr."""
    if outcome.unknown:
        few = ", ".join(clean(name, 80) for name in outcome.unknown[:3])
        sys.stderr.write(f"rampgate: {len(outcome.unknown)} answers are to no item of the dataset: {few}\n")
    if format is Format.GITHUB:
        sys.stderr.write("".join(f"{line}\n" for line in console.commands(outcome)))
    if as_json or format is Format.JSON:
        print_json(outcome.document())
    elif format is Format.TEXT:
        console.show(outcome)


def _milestone(word: str) -> Milestone:
    try:
        return Milestone(word)
    except ValueError:
        raise Failure(f"--milestone: no milestone {word!r}; there are {', '.join(Milestone)}") from None


def _asked_for(at: Milestone, before_a_merge: Mapping[str, Any], on_traces: Mapping[str, Any]) -> None:
    """What a gate looks at is said, by options that are its own."""
    merging = at is Milestone.PRE_MERGE
    strange = [f"--{name}" for name, value in (on_traces if merging else before_a_merge).items() if value is not None]
    if strange:
        raise Failure(f"{', '.join(strange)}: not at {at}, which looks at {LOOKS_AT[merging]}")
    if not merging and on_traces["traces"] is None:
        raise Failure(f"{at} looks at traces: --traces FILE")
    candidate, outputs = before_a_merge["candidate"], before_a_merge["outputs"]
    if merging and (candidate is None) == (outputs is None):
        raise Failure("say where the candidate's outputs come from: --candidate URL or --outputs FILE")
    if candidate is not None and not candidate.startswith(("http://", "https://")):
        raise Failure(f"--candidate: {candidate!r} is no http:// or https:// address")
