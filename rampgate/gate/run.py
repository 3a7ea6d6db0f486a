"""Runs `rampgate gate run`: reads what was asked for, lets the judges score it, and decides (PC5 §5.5, AC-3, AC-4)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure, run
from schemas.dead_letters import clean
from schemas.terms import Milestone

if TYPE_CHECKING:
    from datetime import date

    from evalcore.gates.baselines import BaselineFile
    from evalcore.gates.gate import Gate
    from evalcore.gates.golden import GoldenSet
    from evalcore.gates.skips import GateSkip, Skips
    from evalcore.registry.registry import Registry
    from evalcore.scoring.runner import Scorer
    from rampgate.ci_gate.run import GateRun
    from rampgate.settings import Settings

METRICS = (
    "eval_gate_fired_total", "eval_gate_verdict_total", "eval_gate_duration_seconds", "eval_judge_score_distribution"
)  # fmt: skip
GONE = {
    "--junit": "say --report FILE.xml",
    "--html": "say --report FILE.html",
    "--markdown": "say --report FILE: Markdown goes at the end of a file whose name ends neither in .html nor .xml",
    "--dataset-name": "say --dataset-version NAME@VERSION",
    "--repository": "say --pull-request OWNER/NAME#NUMBER",
    "--candidate-tries": "an item is asked for three times at most",
}


@command("rampgate.gate.report:gate_report", flags="configs kafka metrics_file", metrics=METRICS, gone=GONE)
def gate_run(
    context: Context,
    milestone: Annotated[Milestone, Option(help="which gate")] = Milestone.PRE_MERGE,
    dataset: Annotated[
        Path | None, Option(help="items, JSON Lines; without it the manifest's dataset, from Opik")
    ] = None,
    dataset_version: Annotated[
        str | None, Option(metavar="NAME@VERSION", help="what the file is in Opik, compared with the manifest's")
    ] = None,
    candidate: Annotated[str | None, Option(help="URL that takes POST {input, metadata} -> {output}")] = None,
    candidate_calls: Annotated[int, Option(min=1, help="calls to the candidate at once")] = 8,
    candidate_seconds: Annotated[float, Option(min=0.1, help="seconds for one call")] = 60.0,
    outputs: Annotated[Path | None, Option(help="the candidate's outputs, JSON Lines: {id, output}")] = None,
    traces: Annotated[
        Path | None, Option(help="at pre_ramp and pre_full: the sample, JSON Lines, as on the topic or from Opik")
    ] = None,
    judges: Annotated[
        str | None, Option(help="with --traces: a,b, as an experiment lists them; else those of their categories")
    ] = None,
    coverage: Annotated[
        float | None, Option(min=0, max=1, help="with --traces: the join's rate, compared with the floor")
    ] = None,
    standing: Annotated[
        str | None,
        Option(help="what checks found of judges, so that a suspended one decides nothing: a file, or `topic`"),
    ] = None,
    skips: Annotated[
        bool, Option("--skips", help="with --traces: honour the override on the topic that skips this gate")
    ] = False,
    baselines: Annotated[Path | None, Option(help="the runs on main, a JSON file")] = None,
    record: Annotated[bool, Option("--record", help="add this run to --baselines; on main only")] = False,
    commit: Annotated[str, Option(help="the commit that --record notes, and of which --suite must be")] = "",
    suite: Annotated[
        Path | None,
        Option(help="at pre_merge: the document of `suite run --json` on --commit; the worse of both decides"),
    ] = None,
    pull_request: Annotated[
        str | None,
        Option(metavar="OWNER/NAME#N", help="on GitHub, which says who approves; no shift is accepted without"),
    ] = None,
    vertical: Annotated[str | None, Option(help="use this vertical's limits; without it the platform's")] = None,
    publish: Annotated[
        bool, Option("--publish", help="at pre_merge: to the verdicts' topic, for the version's first step")
    ] = False,
    agent_id: Annotated[str | None, Option(help="the agent, as its ramp steps name it")] = None,
    agent_version: Annotated[str | None, Option(help="its version; else --commit")] = None,
    respond: Annotated[
        str | None,
        Option(metavar="ad_hoc|scheduled", help="of a live agent: floor breaches page, ramp down, are triaged"),
    ] = None,
    within: Annotated[float | None, Option(min=1, help="most seconds for judges after the last answer")] = None,
    scores: Annotated[
        Path | None, Option(help="write each score, JSON Lines {judge_id, item_id, score, …}, as checks read it")
    ] = None,
) -> Document:
    """Let the judges score a candidate's outputs to the manifest's dataset, or traces, and decide.

    Each judge scores the items of its categories; global and safety judges score all. On traces, filters and sampling
    rates select what a judge scores. A quality judge below its threshold warns before a merge; a safety judge blocks.
    Exit code 0 pass or warn, 1 fail, 2 bad input.

    Example: rampgate gate run --milestone pre_merge --candidate http://127.0.0.1:8000/answer --report github
    """
    from evalcore.gates.baselines import BaselineFile
    from evalcore.gates.golden import pending, vertical_of
    from evalcore.gates.skips import SkippedGate, Skips
    from evalcore.remediation.sealing import ANSWERS, TRACES
    from evalcore.scoring.answers import by_name
    from evalcore.scoring.calls import Spend
    from rampgate.checks.standing import suspended_judges
    from rampgate.ci_gate import respond as responding
    from rampgate.ci_gate import run as gates
    from rampgate.ci_gate.inputs import from_opik, read_dataset, read_outputs, read_traces
    from rampgate.cluster import seals_of
    from rampgate.files import replace_file, writable
    from rampgate.judging import scorer_of
    from rampgate.logs import configure_logs
    from rampgate.suite.candidates.configured import at_address, require_address
    from rampgate.suite.pull_request.gate import joined, word_of
    from schemas.judges import Enforcement
    from streams.metrics import gate_decided, scores_given

    merging, agent = milestone is Milestone.PRE_MERGE, (agent_id or "", agent_version or commit)
    if merging:
        _refuse(milestone, "a dataset and a candidate's outputs to it", traces=traces, judges=judges, coverage=coverage)
        if (candidate is None) == (outputs is None):
            raise Failure("say where the candidate's outputs come from: --candidate URL or --outputs FILE")
        if skips:
            raise Failure("--skips: not at pre_merge, which no override skips")
    else:
        before = {"dataset": dataset, "candidate": candidate, "outputs": outputs}
        _refuse(milestone, "--traces FILE", **before, pull_request=pull_request, suite=suite)
        if traces is None:
            raise Failure(f"{milestone} looks at traces: --traces FILE")
        if publish:
            raise Failure(f"--publish: not at {milestone}: a rollout's own gates stand in the history already")
    for option, given in (("--publish", publish), ("--skips", skips), ("--respond", respond)):
        if given and not all(agent):
            raise Failure(f"{option}: say of which agent definition: --agent-id ID --agent-version VERSION")
    origin = responding.origin_of(respond) if respond is not None else None
    if suite is not None and not commit:
        raise Failure("--suite: say of which commit its run must be: --commit SHA")
    if record and baselines is None:
        raise Failure("--record: say where: --baselines FILE")
    if scores is not None and not writable(scores):
        raise Failure(f"--scores {scores}: name a regular file in a folder that exists")
    settings, today = context.settings, context.today
    if candidate is not None:
        require_address("--candidate", candidate, settings)
    configure_logs("error", "console")
    registry = context.judging(vertical)
    past = read_baselines(baselines, may_be_new=record) if baselines else BaselineFile()
    golden = read_dataset(dataset, *_version(dataset_version)) if dataset else None
    answers = read_outputs(outputs, seals_of(context.settings, ANSWERS)) if outputs else None
    suspended = suspended_judges(standing, settings, registry.all(), today) if standing else {}
    overrides = _overrides(settings) if skips else Skips()
    skip = overrides.of(SkippedGate(milestone, *agent), today)
    rows = read_traces(traces, seals_of(settings, TRACES)) if traces else {}
    gate = _gate_on_traces(rows, judges, milestone, registry, vertical, skip) if traces else None
    if gate is not None:
        if agent_id is not None and all(agent):
            responding.refuse_strangers(gate, agent)
        vertical = gate.vertical
    elif golden is not None:
        vertical = vertical or vertical_of(golden, registry)
    shifted = _shifted(pull_request, registry, today)
    declared = registry.dataset(vertical)
    wanted = gates.GateRequest(
        registry, today, milestone, vertical=vertical, within=within,
        spend=Spend(settings.gate_calls, settings.gate_tokens),
        accepted=dict.fromkeys(shifted, Enforcement.WARN),
        suspended=suspended,
        overrides=overrides,
        unrecorded="" if past.runs or record or not baselines else str(baselines),
        history=past.history(registry.all(), declared, milestone, vertical),
        outdated={} if record or not merging
        # An accepted shift says that the old version's baseline no longer applies, also to the judge's dimensions.
        else past.outdated([one for one in registry.all() if one.id not in shifted], milestone, vertical),
    )  # fmt: skip

    async def read() -> GoldenSet | None:
        return golden if golden is not None else await from_opik(settings, registry, vertical)

    async def judged(scorer: Scorer | None) -> GateRun:
        if gate is not None:
            return await gates.run_traced(wanted, gate, str(traces), coverage, scorer)
        if answers is not None:
            return await gates.run(wanted, read, lambda items: answers, scorer)
        async with at_address(settings, str(candidate), {}, candidate_calls, candidate_seconds) as asked:
            return await gates.run(wanted, read, partial(pending, candidate=asked), scorer)

    async def decided() -> GateRun:
        async with scorer_of(settings) as scorer:
            return await judged(scorer)

    outcome = run(decided)
    if suite is not None:
        word = word_of(suite, commit, agent_version)
        verdict = joined(outcome.verdict, word)
        outcome = replace(outcome, scored=replace(outcome.scored, verdict=verdict), suite=word.about)
    gate_decided(context.metrics, outcome.verdict, outcome.duration_seconds)
    scores_given(
        context.metrics,
        milestone,
        by_name((judge for judge, _ in outcome.scored.assignments), outcome.scored.judgements),
    )
    if outcome.unknown:
        few = ", ".join(clean(name, 80) for name in outcome.unknown[:3])
        sys.stderr.write(f"rampgate: {len(outcome.unknown)} answers belong to no item of the dataset: {few}\n")
    steps: list[Callable[[], None]] = []
    if scores is not None:
        steps.append(lambda: replace_file(scores, b"".join(score_lines(outcome)), "--scores"))
    if baselines is not None and record:
        made = past.with_run(outcome.verdict, declared, vertical, outcome.decided_at, commit)
        steps.append(partial(write_baselines, baselines, made))
    if publish:
        steps.append(partial(_publish, settings, outcome, agent))
    if origin is not None:
        steps.append(partial(responding.respond, settings, outcome, origin, agent))
    return gates.GateAnswer(outcome, _done(steps))


def _done(steps: list[Callable[[], None]]) -> Failure | None:
    """Do what is to be done with the outcome, all of it. Returns what failed, for after the outcome."""
    failed = []
    for step in steps:
        try:
            step()
        except Failure as error:
            failed.append(str(error))
    return Failure("\n".join(failed)) if failed else None


def _refuse(milestone: Milestone, judged: str, **options: object) -> None:
    """Raise Failure where an option is given that only another milestone looks at."""
    if strange := [f"--{name.replace('_', '-')}" for name, given in options.items() if given is not None]:
        raise Failure(f"{', '.join(strange)}: not at {milestone}, which looks at {judged}")


def _version(given: str | None) -> tuple[str | None, int | None]:
    """The name and the version of a dataset. Raises Failure."""
    if given is None:
        return None, None
    name, _, version = given.rpartition("@")
    if not name or not (version.isascii() and version.isdecimal()):
        raise Failure(f"--dataset-version: must be NAME@VERSION, as golden@7, got {given[:80]!r}")
    return name, int(version)


def _gate_on_traces(
    rows: Mapping[int, Mapping[str, Any]], listed: str | None, at: Milestone, registry: Registry,
    vertical: str | None, skip: GateSkip | None,
) -> Gate:  # fmt: skip
    """The gate on a file's traces, by the listed judges or by those of their categories. Raises Failure."""
    from evalcore.gates.gate import prepare
    from evalcore.gates.requests import named
    from evalcore.scoring.items import items_of

    items = items_of([*rows.values()], at, registry.manifest.get("schema", {}))
    names = None
    if listed is not None:
        judges = [name.strip() for name in listed.split(",") if name.strip()]
        names, wrong = named(judges, "--judges", registry, vertical)
        if wrong:
            raise Failure("; ".join(wrong))
    gate = prepare(at, items, names, registry, vertical, skip)
    if not gate.judges:
        raise Failure("no trace has a metadata.category that the manifest has: name the judges, --judges a,b")
    return gate


def _overrides(settings: Settings) -> Skips:
    """The overrides on their topic; none where it can't be read: then the gate runs whole."""
    from agents.ports import Unavailable
    from evalcore.gates.skips import Skips
    from rampgate.overrides import read_skips

    try:
        return run(partial(read_skips, settings))
    except Unavailable as error:
        sys.stderr.write(f"--skips: no override is honoured: {clean(str(error), 500)}\n")
        return Skips()


def _shifted(pull_request: str | None, registry: Registry, today: date) -> Sequence[str]:
    """The judges whose baseline shift the pull request's description has accepted."""
    from evalcore.gates.overrides import accepted
    from rampgate.overrides import looked_up

    shifts, refused = accepted(looked_up(pull_request), registry, today)
    for wrong in refused:
        sys.stderr.write(f"override refused: {clean(wrong, 500)}\n")
    return [judge for shift in shifts for judge in shift["judges"]]


def read_baselines(path: Path, *, may_be_new: bool) -> BaselineFile:
    """The runs on main. `may_be_new`: a missing file, which --record will write, has no runs. Raises BadFile."""
    from evalcore.gates.baselines import BaselineFile
    from rampgate.input_files import document

    if may_be_new and not path.exists() and path.absolute().parent.is_dir():
        return BaselineFile()
    return document(path, BaselineFile, "--record on main makes it")[0]


def write_baselines(path: Path, baselines: BaselineFile) -> None:
    """Write the file whole or not at all. Raises Failure."""
    import orjson

    from rampgate.files import replace_file

    content = orjson.dumps(baselines.document(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    replace_file(path, content, "--baselines")


def _publish(settings: Settings, outcome: GateRun, agent: tuple[str, str]) -> None:
    from agents.ports import Unavailable
    from rampgate.ci_gate import publish

    verdict = publish.verdict_of(outcome, *agent)
    try:
        run(partial(publish.publish, settings, verdict, publish.events_of_run(outcome, verdict)))
    except Unavailable as error:
        raise Failure(f"--publish: the verdict is not on its topic: {error}") from error


def score_lines(outcome: GateRun) -> Iterator[bytes]:
    """Yield each judge's score of each item as a line of scores (contracts §5), a dimension's as `judge.dimension`."""
    import orjson

    from evalcore.scoring.answers import written
    from evalcore.scoring.items import category_of

    for (judge, item), found in zip(outcome.scored.assignments, outcome.scored.judgements, strict=True):
        about = {"judge_version": judge.version, "category": category_of(item.source)}
        for name, answer in found.named(judge.id):
            line = {"judge_id": name, "item_id": item.id, "score": written(answer), **about}
            yield orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
