"""Runs `rampgate remediation`: shows a workflow as judges read it, runs those of cases, deletes what a killed run
left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.report.model import Report, Section

if TYPE_CHECKING:
    from evalcore.remediation.objects import Object
    from rampgate.remediation.cases import CaseRunner
    from rampgate.settings import Settings
    from streams.cluster.port import Cluster, Unread


def show_report(told: Mapping[str, Any]) -> Report:
    """The report of a workflow: steps, what is missing, and the summary."""
    steps = Section("Steps", ("Step", "Known"), [*told["steps"].items()])
    missing = Section("Missing", ("What", "Why"), [(one["what"], one["why"]) for one in told["missing"]])
    summary = Section("Summary", text=told["summary"])
    found = [steps, missing, summary] if told["missing"] else [steps, summary]
    return Report("Remediation workflow", told["phase"], "pass" if told["terminal"] else "warn", found)


@command(show_report)
async def show(
    context: Context,
    proposal: Annotated[
        str | None,
        Argument(metavar="[NAMESPACE/NAME]", help="The Proposal; may be left out where --from has one"),
    ] = None,
    source: Annotated[Path | None, Option("--from", metavar="FILE", help="Read YAML objects, not the cluster")] = None,
    record: Annotated[Path | None, Option(metavar="FILE", help="Write what was read as YAML, for --from")] = None,
    ended_at: Annotated[
        str | None, Option(metavar="TIME", help="When its trace ended: a Proposal created later is `replaced`")
    ] = None,
) -> Document:
    """Show a workflow as judges read it: phase, steps, results, what is missing and why, and the summary.

    Exit code 2 if the Proposal can't be read.

    Example: rampgate remediation show shop/fix-oom --json
    """
    from evalcore.remediation.workflow import standing
    from rampgate.cluster import open_cluster, stand_in
    from rampgate.files import replace_file
    from rampgate.remediation.cases import said
    from schemas.settings import parse_moment
    from streams.cluster.port import Unread
    from streams.cluster.reading import read_workflow
    from streams.cluster.twin import written_objects

    kinds = context.settings.cluster_kinds
    try:
        ended = parse_moment(ended_at) if ended_at is not None else None
    except ValueError as error:
        raise Failure(f"--ended-at: {error}") from error
    twin = stand_in(source) if source is not None else None
    cluster: Cluster = twin or open_cluster(context.settings)
    places = [place[1:] for place in twin.objects if place[0] == kinds.proposal] if twin is not None else []
    namespace, name = _place(proposal, places)
    what = f"{kinds.proposal}/{name}"
    try:
        found = await cluster.get(kinds.proposal, namespace, name)
        read: list[Object] = [found] if not isinstance(found, Unread) else []
        of: Object | Unread = found
        if ended is not None and not isinstance(found, Unread) and (why := standing(found, None, 0, ended)) is not None:
            of = Unread(why)
        workflow = await read_workflow(cluster, kinds, namespace, of, what, read.append)
    finally:
        await cluster.close()
    if record is not None and read:
        replace_file(record, written_objects(read).encode(), "--record")
    fields = workflow.fields()
    told = {
        "phase": fields["proposal_phase"],
        "terminal": workflow.phase.terminal,
        "proposal_results": fields["proposal_results"],
        "steps": fields["proposal_steps"],
        "missing": fields["proposal_missing"],
        "summary": workflow.summary,
    }
    failed = Failure(f"{namespace}/{name}: can't be read: {said(found)}") if isinstance(found, Unread) else None
    return Document(told, failure=failed)


@command(None)
async def run(
    context: Context,
    cases: Annotated[
        Path | None,
        Option(metavar="FILE", help="run all cases of a dataset, JSON Lines; write answers for `gate run --outputs`"),
    ] = None,
) -> int:
    """Run a case's Proposal on the cluster, wait until its workflow has ended, read it, and delete it.

    The case is JSON on the input, {input, metadata: {proposal: {namespace, spec}}}, as a suite's `command` gets it; its
    answer is JSON on the output. RAMPGATE_SEAL_KEY seals what --cases writes. Exit code 75 if another try may succeed.

    Example: rampgate remediation run --cases cases.jsonl > outputs.jsonl
    """
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _task().cancel)
    return await (_run_one(context.settings) if cases is None else _run_all(context.settings, cases))


@command("rampgate.remediation.command:clean_report")
async def clean(
    context: Context,
    namespaces: Annotated[
        list[str] | None, Argument(metavar="[NAMESPACE]...", help="default: those that the verticals name")
    ] = None,
) -> Document:
    """Delete by their label the Proposals that a killed `remediation run` left, with all that belongs to them.

    It deletes those of a run that is under way, too. Exit code 2 if one can't be deleted.

    Example: rampgate remediation clean shop
    """
    from rampgate.cluster import open_cluster
    from rampgate.remediation.cases import LABEL, said
    from streams.cluster.port import Unread

    kind = context.settings.cluster_kinds.proposal
    named = namespaces or sorted({one for of in context.verticals.values() for one in of.proposal_namespaces})
    if not named:
        raise Failure("NAMESPACE: must be there, since no vertical names proposal_namespaces; name those of your cases")
    cluster = open_cluster(context.settings)
    deleted, failed = list[str](), list[str]()
    try:
        for namespace in named:
            found = await cluster.labelled(kind, namespace, LABEL)
            if isinstance(found, Unread):
                failed.append(f"{namespace}: can't be read: {said(found)}")
                continue
            for name in (str(one["metadata"].get("name")) for one in found):
                answer = await cluster.delete(kind, namespace, name)
                if answer is None:
                    deleted.append(f"{namespace}/{name}")
                else:
                    failed.append(f"{namespace}/{name}: is not deleted: {said(answer)}")
    finally:
        await cluster.close()
    return Document({"deleted": deleted, "failed": failed}, failure=Failure("\n".join(failed)) if failed else None)


def clean_report(told: Mapping[str, Any]) -> Report:
    """The report of what was deleted."""
    section = Section("Deleted", ("Proposal",), [(name,) for name in told["deleted"]])
    result = f"{len(told['deleted'])} deleted"
    return Report("Clean", result, "fail" if told["failed"] else "pass", [section] if told["deleted"] else [])


@asynccontextmanager
async def _running(settings: Settings, namespaces: Collection[str]) -> AsyncIterator[CaseRunner]:
    """Yields what runs cases in these namespaces. Raises Failure."""
    from rampgate.cluster import open_cluster
    from rampgate.remediation.cases import CaseRunner
    from streams.cluster.watching import Proposals

    kinds, cluster = settings.cluster_kinds, open_cluster(settings, len(namespaces))
    proposals = Proposals(cluster, kinds, namespaces)
    following = asyncio.create_task(proposals.run())
    try:
        yield CaseRunner(cluster, kinds, proposals, settings.enrichment_wait_seconds, _note)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await cluster.close()


async def _run_one(settings: Settings) -> int:
    import orjson

    from evalcore.scoring.items import Failed
    from rampgate.remediation.cases import NoCase, namespace_of

    if sys.stdin.isatty():
        raise Failure("no case on the input: give one as JSON, or --cases FILE")
    try:
        given = orjson.loads(sys.stdin.buffer.read())
        case = given if isinstance(given, dict) else {}
        async with _running(settings, {namespace_of(case)}) as runner:
            answer = await runner.answer(case)
    except (orjson.JSONDecodeError, NoCase) as error:
        raise Failure(f"the case on the input: {error}") from error
    if isinstance(answer, Failed):
        _note(answer.why)
        return os.EX_TEMPFAIL if answer.may_pass else 2
    sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
    return 0


async def _run_all(settings: Settings, path: Path) -> int:
    """Runs the cases of a namespace one after the other, since they repair the same things, and namespaces at once."""
    import orjson

    from evalcore.remediation.sealing import ANSWERS
    from evalcore.scoring.items import Failed, identity
    from rampgate.ci_gate.inputs import read_dataset
    from rampgate.cluster import seals_of
    from rampgate.input_files import BadFile
    from rampgate.remediation.cases import NoCase, namespace_of

    seals = seals_of(settings, ANSWERS)
    if not seals.held:
        _note("no RAMPGATE_SEAL_KEY: the answers bear no seal, and `gate run --outputs` drops what the cluster says")
    cases: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for number, case in enumerate(read_dataset(path).items):
        name = identity(case, number)
        try:
            cases.setdefault(namespace_of(case), []).append((name, case))
        except NoCase as error:
            raise BadFile(f"{path}: {name[:80]}: {error}") from error
    if not cases:
        raise BadFile(f"{path}: must have a case, got none; nothing was run")
    failed = []

    async def in_turn(runner: CaseRunner, some: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        for name, case in some:
            answer = await runner.answer(case)
            if isinstance(answer, Failed):
                failed.append(name)
                line: dict[str, Any] = {"id": name, "error": answer.why}
            else:
                line = {"id": name, **answer}
                line = seals.sealed(line) if seals.held else line
            sys.stdout.buffer.write(orjson.dumps(line) + b"\n")
            sys.stdout.buffer.flush()

    async with _running(settings, cases) as runner, asyncio.TaskGroup() as group:
        for some in cases.values():
            group.create_task(in_turn(runner, some))
    return 1 if failed else 0


def _place(given: str | None, places: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """The namespace and name that were given, or those of the file's one Proposal. Raises Failure."""
    if given is None:
        if len(places) != 1:
            raise Failure(f"NAMESPACE/NAME: must be there, unless --from has one Proposal; it has {len(places)}")
        return places[0]
    namespace, _, name = given.partition("/")
    if not name or "/" in name:
        raise Failure(f"NAMESPACE/NAME: must be a namespace and a name, as shop/fix-oom, got {given[:80]!r}")
    return namespace, name


def _note(text: str) -> None:
    from rampgate.console import failure_text

    sys.stderr.write(failure_text(text))


def _task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    return task
