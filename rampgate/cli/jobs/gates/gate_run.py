"""Runs `rampgate gate run`: reads what was asked for, lets the judges score it, decides and reports."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

from agents.ports import Unavailable
from evalcore.gates.baselines import BaselineFile
from evalcore.gates.gate import Gate, prepare
from evalcore.gates.golden import GoldenSet, vertical_of
from evalcore.gates.overrides import Shift, accepted
from evalcore.gates.requests import named
from evalcore.gates.skips import GateSkip, SkippedGate, Skips
from evalcore.registry import disk
from evalcore.registry.registry import Registry
from evalcore.scoring.calls import Spend
from evalcore.scoring.items import items_of
from evalcore.scoring.runner import Scorer
from rampgate.checks.standing import suspended_judges
from rampgate.ci_gate import report_texts
from rampgate.ci_gate import run as gate_run
from rampgate.ci_gate.asked import registry_of, require_address, require_sealed
from rampgate.ci_gate.baselines import read_baselines, write_baselines
from rampgate.ci_gate.inputs import BadFile, from_opik, read_dataset, read_outputs, read_traces
from rampgate.ci_gate.publish import events_of_run, publish, verdict_of
from rampgate.ci_gate.report_files import Reports
from rampgate.ci_gate.respond import origin_of, refuse_strangers, respond
from rampgate.ci_gate.run import GateRequest, GateRun
from rampgate.console import Failure, Format, print_json, run
from rampgate.judging import scorer_of
from rampgate.logs import configure_logs
from rampgate.overrides import looked_up, read_skips
from rampgate.settings import Settings, revealed
from rampgate.settings_sources import load_settings
from rampgate.suite.pull_request.gate import joined, word_of
from schemas.dead_letters import clean
from schemas.judges import Enforcement, Milestone
from schemas.verdicts import VerdictLevel
from streams.gates.candidate import CandidateLimits, asking_candidate


@dataclass(frozen=True)
class Options:
    """The options of the command, under their own names."""

    milestone: str
    vertical: str | None
    publish: bool
    respond: str | None
    agent_id: str | None
    agent_version: str | None
    kafka: str | None
    within: float | None
    configs: Path | None
    dataset: Path | None
    dataset_name: str | None
    dataset_version: int | None
    candidate: str | None
    candidate_calls: int
    candidate_seconds: float
    candidate_tries: int
    outputs: Path | None
    traces: Path | None
    judges: str | None
    coverage: float | None
    standing: str | None
    skips: bool
    baselines: Path | None
    record: bool
    commit: str
    suite: Path | None
    repository: str | None
    pull_request: str
    junit: Path | None
    markdown: Path | None
    html: Path | None
    scores: Path | None
    metrics_file: Path | None
    format: Format
    as_json: bool


def decide(options: Options) -> int:
    """Run the gate, write its reports and return the exit code. Raises Failure."""
    at = _milestone(options.milestone)
    _check_options(at, options)
    reports = Reports(options.junit, options.markdown, options.html, options.metrics_file, options.scores)
    reports.check()
    settings = load_settings({"configs": options.configs, "kafka": options.kafka})
    if options.candidate is not None:
        require_sealed(options.candidate, settings)
    configure_logs("error", "console")
    registry = registry_of(settings, options.vertical)
    today = disk.today()
    try:
        past = read_baselines(options.baselines, may_be_new=options.record) if options.baselines else BaselineFile()
        golden = (
            read_dataset(options.dataset, options.dataset_name, options.dataset_version) if options.dataset else None
        )
        given = read_outputs(options.outputs) if options.outputs else None
        suspended = suspended_judges(options.standing, settings, registry.all(), today) if options.standing else {}
        overrides = _overrides(settings) if options.skips else Skips()
        skip = overrides.of(SkippedGate(at, *_agent(options)), today)
        gate = _gate_on_traces(options.traces, options, at, registry, skip) if options.traces else None
    except BadFile as error:
        raise Failure(str(error)) from error
    shift = _shift(options, registry, today)
    vertical = (
        gate.vertical if gate is not None else options.vertical or (vertical_of(golden, registry) if golden else None)
    )
    declared = registry.dataset(vertical)
    shifted = shift.judges if shift is not None else ()
    wanted = GateRequest(
        registry, today, at, vertical=vertical, within=options.within,
        spend=Spend(settings.gate_calls, settings.gate_tokens),
        accepted=dict.fromkeys(shifted, Enforcement.WARN),
        suspended=suspended,
        overrides=overrides,
        unrecorded="" if past.runs or options.record or not options.baselines else str(options.baselines),
        history=past.history(registry.all(), declared, at, vertical),
        outdated={} if options.record or at is not Milestone.PRE_MERGE
        # An accepted shift says that the old version's baseline no longer applies, also to the judge's dimensions.
        else past.outdated([one for one in registry.all() if one.id not in shifted], at, vertical),
    )  # fmt: skip

    async def read() -> GoldenSet | None:
        return golden if golden is not None else await from_opik(settings, registry, vertical)

    async def judge(scorer: Scorer | None) -> GateRun:
        if gate is not None:
            return await gate_run.run_traced(wanted, gate, str(options.traces), options.coverage, scorer)
        if given is not None:
            return await gate_run.run(wanted, read, lambda items: given, scorer)
        key = revealed(settings.candidate_key)
        limits = CandidateLimits(options.candidate_calls, options.candidate_seconds, options.candidate_tries)
        async with asking_candidate(str(options.candidate), key, limits) as asking:
            return await gate_run.run(wanted, read, asking, scorer)

    outcome = run(partial(_with_scorer, settings, judge))
    if options.suite is not None:
        word = word_of(options.suite, options.commit, options.agent_version)
        verdict = joined(outcome.verdict, word)
        outcome = replace(outcome, scored=replace(outcome.scored, verdict=verdict), suite=word.about)
    reports.write(outcome)
    if options.record and options.baselines is not None:
        made = past.with_run(outcome.verdict, declared, vertical, outcome.decided_at, options.commit)
        write_baselines(options.baselines, made)
    published = _published(outcome, options, settings) if options.publish else None
    tell(outcome, options.format, options.as_json)
    if options.respond is not None:
        respond(settings, outcome, origin_of(options.respond), _agent(options))
    if isinstance(published, Unavailable):
        raise Failure(f"--publish: the verdict is not on its topic: {published}") from published
    return 1 if outcome.verdict.verdict is VerdictLevel.FAIL else 0


def _published(outcome: GateRun, options: Options, settings: Settings) -> Unavailable | None:
    """Publish the outcome. Returns what kept it from its topic, to be told after the outcome itself."""
    version = options.agent_version or options.commit
    try:
        verdict = verdict_of(outcome, str(options.agent_id), version)
        run(partial(publish, settings, verdict, events_of_run(outcome, verdict)))
    except Unavailable as error:
        return error
    return None


def _shift(options: Options, registry: Registry, today: date) -> Shift | None:
    """The baseline shift that the pull request's description has accepted; None without one."""
    shift, refused = accepted(looked_up(options.repository, options.pull_request), registry, today)
    for wrong in refused:
        sys.stderr.write(f"override refused: {clean(wrong, 500)}\n")
    return shift


async def _with_scorer(settings: Settings, judge: Callable[[Scorer | None], Awaitable[GateRun]]) -> GateRun:
    async with scorer_of(settings) as scorer:
        return await judge(scorer)


def _overrides(settings: Settings) -> Skips:
    """The overrides on their topic; none where it can't be read: then the gate runs whole."""
    try:
        return run(partial(read_skips, settings))
    except Unavailable as error:
        sys.stderr.write(f"--skips: no override is honoured: {clean(str(error), 500)}\n")
        return Skips()


def _gate_on_traces(
    traces: Path, options: Options, at: Milestone, registry: Registry, skip: GateSkip | None = None
) -> Gate:
    """The gate on a file's traces, by the listed judges or by those of their categories. Raises Failure, BadFile."""
    items = items_of([*read_traces(traces).values()], at, registry.manifest.get("schema", {}))
    names = None
    if options.judges is not None:
        listed = [name.strip() for name in options.judges.split(",") if name.strip()]
        names, wrong = named(listed, "--judges", registry, options.vertical)
        if wrong:
            raise Failure("; ".join(wrong))
    gate = prepare(at, items, names, registry, options.vertical, skip)
    if options.agent_id is not None and all(_agent(options)):
        refuse_strangers(gate, _agent(options))
    if not gate.judges:
        raise Failure("no trace has a metadata.category that the manifest has: name the judges, --judges a,b")
    return gate


def _agent(options: Options) -> tuple[str, str]:
    """The agent's id and version; the empty text where none is named."""
    return options.agent_id or "", options.agent_version or options.commit


def tell(outcome: GateRun, format: Format, as_json: bool) -> None:
    """Report the outcome. `--json` with `--format github` gives both: the document on stdout, annotations on stderr."""
    if outcome.unknown:
        few = ", ".join(clean(name, 80) for name in outcome.unknown[:3])
        sys.stderr.write(f"rampgate: {len(outcome.unknown)} answers belong to no item of the dataset: {few}\n")
    if format is Format.GITHUB:
        sys.stderr.write("".join(f"{line}\n" for line in report_texts.commands(outcome)))
    if as_json or format is Format.JSON:
        print_json(outcome.document())
    elif format is Format.TEXT:
        report_texts.show(outcome)


def _milestone(word: str) -> Milestone:
    try:
        return Milestone(word)
    except ValueError:
        raise Failure(f"--milestone: no milestone {word!r}; there are {', '.join(Milestone)}") from None


def _check_options(at: Milestone, options: Options) -> None:
    """Raise Failure unless the options say what this milestone judges, and nothing that only another one does."""
    merging = at is Milestone.PRE_MERGE
    others = ("traces", "judges", "coverage") if merging else ("dataset", "candidate", "outputs", "repository", "suite")
    judges = "a dataset and a candidate's outputs to it" if merging else "--traces FILE"
    strange = [f"--{name}" for name in others if getattr(options, name) is not None]
    if strange:
        raise Failure(f"{', '.join(strange)}: not at {at}, which looks at {judges}")
    if not merging and options.traces is None:
        raise Failure(f"{at} looks at traces: --traces FILE")
    if merging and (options.candidate is None) == (options.outputs is None):
        raise Failure("say where the candidate's outputs come from: --candidate URL or --outputs FILE")
    if options.candidate is not None:
        require_address(options.candidate)
    if options.publish and not merging:
        raise Failure(f"--publish: not at {at}: a rollout's own gates stand in the history already")
    if options.skips and merging:
        raise Failure("--skips: not at pre_merge, which no override skips")
    about = {"--publish": options.publish, "--skips": options.skips, "--respond": options.respond}
    which = next((name for name, given in about.items() if given), "")
    if which and not all(_agent(options)):
        raise Failure(f"{which}: say of which agent definition: --agent-id ID --agent-version VERSION")
    if options.respond is not None:
        origin_of(options.respond)
    if options.suite is not None and not options.commit:
        raise Failure("--suite: say of which commit its run must be: --commit SHA")
    if options.record and options.baselines is None:
        raise Failure("--record: say where: --baselines FILE")
