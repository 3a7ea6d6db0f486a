"""Keeps the last run's answers as a version of the agent's baselines: `rampgate spec save` (AgentCI Step 3.5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.options import StoreOption
from rampgate.spec.chosen import AgentOption, ConfigOption, QueryOption

if TYPE_CHECKING:
    from rampgate.report.model import Report
    from rampgate.spec.seen import SeenAnswer
    from rampgate.suite.runs.stored import StoredRun
    from rampgate.suite.suite_files import Suite
    from schemas.spec_baselines import KeptQuery
    from schemas.specs import GoldenQuery


def _report(told: Document) -> Report:
    from rampgate.report.model import Reason, Report
    from schemas.counting import counted

    passed = told["metadata"]["precheck_passed"]
    reasons = [Reason("warning", f"precheck failed: {why}") for why in told["refused"]]
    reasons += [Reason("warning", note) for note in told["notes"]]
    result = f"{counted(len(told['queries']), 'query', 'queries')} in {told['file']}"
    return Report(f"Baseline {told['version']} of {told['agent']}", result, "pass" if passed else "warn", (), reasons)


@command(_report)
def save(
    context: Context,
    version: Annotated[str, Option(help="the baseline's name: letters, digits and ._-")],
    config: ConfigOption = None,
    agent: AgentOption = None,
    query: QueryOption = None,
    precheck_correctness: Annotated[
        bool, Option("--precheck-correctness/--no-precheck-correctness", help="refuse answers that are not correct")
    ] = True,
    force_save: Annotated[bool, Option("--force-save", help="save them all the same; the file says so")] = False,
    replace: Annotated[bool, Option("--replace", help="in place of the version of this name")] = False,
    store: StoreOption = None,
) -> Document:
    """Save the answers of the last `spec test` as a version of the agent's baselines.

    No agent and no model is asked again; where the agent changed since, a note says so. Exit code 2 without such a
    run, and where an answer is not correct or its verdict is of another spec.

    Example: rampgate spec save --agent rag-agent --version v2-fixed
    """
    from rampgate.spec.chosen import baselines_of, chosen, loaded_spec, opened_spec
    from rampgate.spec.seen import last_seen
    from schemas.spec_baselines import BaselineFile, Capture

    loaded = loaded_spec(config, agent)
    versions = baselines_of(loaded)
    versions.file(version)
    opened = opened_spec(loaded, context.settings, store)
    seen = last_seen(opened)
    wanted = chosen(loaded.spec, query or (), ())
    if not query:
        wanted = [one for one in wanted if one.id in seen.answers]
    for one in wanted:
        if one.id not in seen.answers:
            raise Failure(f"--query {one.id}: the last run did not ask it; `rampgate spec test` does")
    if not wanted:
        raise Failure("the last run asked none of the spec's queries; `rampgate spec test` asks them")
    refused = [why for one in wanted for why in _refusals(seen.answers[str(one.id)], loaded.hash)]
    if refused and precheck_correctness and not force_save:
        raise Failure("\n".join(["Precheck failed: baseline does not pass correctness:", *refused,
                                 "Use --force-save to bypass."]))  # fmt: skip
    kept = {str(one.id): _kept(one, seen.answers[str(one.id)]) for one in wanted}
    traces = [trace for one in kept.values() for trace in (one.trace, *one.repeats)]
    capture = Capture(
        model=_models(traces),
        spec_hash=seen.answers[str(wanted[0].id)][0].spec,
        judge_rubric_ids=tuple(_rubrics(wanted)),
        precheck_passed=not refused,
        configuration=seen.stored.configuration,
    )
    made = BaselineFile(
        version=version, agent=loaded.spec.agent, captured_at=seen.stored.at, metadata=capture, queries=kept
    )
    path = versions.write(made, replace=replace)
    told = made.model_dump(mode="json", warnings="error", exclude={"queries"})
    notes = [*_changes(seen.stored, opened.suite)]
    return Document({**told, "file": str(path), "queries": [*kept], "refused": refused, "notes": notes})


def _changes(seen: StoredRun, suite: Suite) -> Iterator[str]:
    """What is another candidate now than the one whose answers are saved, or may be."""
    if seen.configuration != suite.configuration:
        names = {*seen.parts, *suite.parts}
        changed = sorted(name for name in names if seen.parts.get(name) != suite.parts.get(name))
        what = ", ".join(changed) or "what is in no part of it"
        yield f"the candidate changed since the run whose answers these are: {what}; `rampgate spec test` asks it again"
    elif suite.unnamed and not suite.code:
        yield f"{suite.unnamed} is in no part of the candidate: it may have changed since the run; name it in `parts`"


def _refusals(answers: Sequence[SeenAnswer], spec: str) -> list[str]:
    """Why the answers to a query are no baseline: unknown is no pass."""
    found = []
    for one in answers:
        status = one.result.correctness.status
        if one.spec != spec:
            found.append(f"{one.result.id}: its verdict is unknown: the spec changed since; run `rampgate spec test`")
        elif one.result.infra or status not in ("pass", "skip", "warn"):
            words = "; ".join(message.words for message in one.result.correctness.messages)
            found.append(f"{one.result.id}: {one.result.infra or words or status}")
    return list(dict.fromkeys(found))


def _kept(query: GoldenQuery, answers: Sequence[SeenAnswer]) -> KeptQuery:
    """Raises Failure where there is nothing to keep."""
    from evalcore.specs.results import Status, worst
    from rampgate.spec.baselines import kept_trace
    from schemas.spec_baselines import KeptQuery

    traces = [kept_trace(one.trace) for one in answers if one.trace is not None]
    if len(traces) < len(answers):
        raise Failure(f"{query.id}: the agent gave no answer, or the store lost it; --query names those to save")
    status = worst(Status.INFRA if one.result.infra else one.result.correctness.status for one in answers)
    return KeptQuery(
        query=query.query,
        correctness=Status.PASS.value if status is Status.WARN else status.value,
        trace=traces[0],
        repeats=tuple(traces[1:]),
    )


def _models(traces: Iterable[Mapping[str, Any]]) -> str | None:
    names = {str(call["model"]) for trace in traces for call in trace.get("llm_calls") or () if call.get("model")}
    return ", ".join(sorted(names)) or None


def _rubrics(queries: Sequence[GoldenQuery]) -> list[str]:
    """The ids of the rubrics that judge the queries; of one without an id, the hash of its rule."""
    from evalcore.registry.judge import digest
    from evalcore.specs.rubric import rubrics_of

    rubrics = [placed.rubric for query in queries for placed in rubrics_of(query.correctness)]
    return sorted({one.id or f"sha256:{digest(one.rule)[:12]}" for one in rubrics})
