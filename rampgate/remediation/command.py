"""Runs `rampgate remediation`: shows a workflow as judges read it, runs those of cases, deletes what a killed run
left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from rampgate.command import Context, Document, command
from rampgate.console import Failure
from rampgate.report.model import Report, Section

if TYPE_CHECKING:
    from evalcore.remediation.objects import Object
    from evalcore.remediation.sealing import Seals
    from rampgate.remediation.cases import CaseRunner
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
        datetime | None, Option(help="When its trace ended, in UTC: a Proposal created later is `replaced`")
    ] = None,
) -> Document:
    """Show a workflow as judges read it: phase, steps, results, what is missing and why, and the summary.

    Exit code 2 if the Proposal can't be read.

    Example: rampgate remediation show shop/fix-oom --json
    """
    from datetime import UTC

    from evalcore.remediation.objects import Why
    from evalcore.remediation.workflow import standing
    from rampgate.files import replace_file
    from rampgate.remediation.cases import said
    from streams.cluster.port import Unread
    from streams.cluster.reading import read_workflow
    from streams.cluster.twin import written_objects

    kinds = context.settings.cluster_kinds
    cluster, objects = _cluster(context, source)
    namespace, name = _place(proposal, [one for one in objects if one.get("kind") == kinds.proposal])
    what = f"{kinds.proposal}/{name}"
    try:
        found = await cluster.get(kinds.proposal, namespace, name)
        read: list[Object] = [found] if not isinstance(found, Unread) else []
        of: Object | Unread = found
        if ended_at is not None and not isinstance(found, Unread):
            ended = ended_at if ended_at.tzinfo is not None else ended_at.replace(tzinfo=UTC)
            if standing(found, None, 0, int(ended.timestamp() * 1000)) is Why.REPLACED:
                of = Unread(Why.REPLACED)
        workflow = await read_workflow(cluster, kinds, namespace, of, what, read.append)
    finally:
        await cluster.close()
    if record is not None:
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
    from evalcore.remediation.sealing import ANSWERS
    from rampgate.remediation.access import open_cluster, seals_of
    from rampgate.remediation.cases import CaseRunner

    settings = context.settings
    cluster = open_cluster(settings)
    runner = CaseRunner(cluster, settings.cluster_kinds, settings.enrichment_wait_seconds, _note)
    seals = seals_of(settings, ANSWERS)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _task().cancel)
    try:
        return await (_run_one(runner) if cases is None else _run_all(runner, cases, seals))
    finally:
        await cluster.close()


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
    from rampgate.remediation.access import open_cluster
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


async def _run_one(runner: CaseRunner) -> int:
    import orjson

    from evalcore.scoring.items import Failed
    from rampgate.remediation.cases import NoCase

    if sys.stdin.isatty():
        raise Failure("no case on the input: give one as JSON, or --cases FILE")
    try:
        case = orjson.loads(sys.stdin.buffer.read())
        answer = await runner.answer(case if isinstance(case, dict) else {})
    except (orjson.JSONDecodeError, NoCase) as error:
        raise Failure(f"the case on the input: {error}") from error
    if isinstance(answer, Failed):
        _note(answer.why)
        return os.EX_TEMPFAIL if answer.may_pass else 2
    sys.stdout.buffer.write(orjson.dumps(answer) + b"\n")
    return 0


async def _run_all(runner: CaseRunner, path: Path, seals: Seals) -> int:
    """Runs the cases of a namespace one after the other, since they repair the same things, and namespaces at once."""
    import orjson

    from evalcore.scoring.items import Failed, identity
    from rampgate.ci_gate.inputs import read_dataset
    from rampgate.remediation.cases import NoCase

    if not seals.held:
        _note("no RAMPGATE_SEAL_KEY: the answers bear no seal, and `gate run --outputs` drops what the cluster says")
    rows = list(enumerate(read_dataset(path).items))
    failed = []

    async def in_turn(some: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        for number, row in some:
            name = identity(row, number)
            try:
                answer = await runner.answer(row)
            except NoCase as error:
                answer = Failed(str(error))
            if isinstance(answer, Failed):
                failed.append(name)
                line: dict[str, Any] = {"id": name, "error": answer.why}
            else:
                line = {"id": name, **answer}
                line = seals.sealed(line) if seals.held else line
            sys.stdout.buffer.write(orjson.dumps(line) + b"\n")
            sys.stdout.buffer.flush()

    by_namespace: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
    for number, row in rows:
        told = (row.get("metadata") or {}).get("proposal")
        place = str(told.get("namespace")) if isinstance(told, Mapping) else ""
        by_namespace.setdefault(place, []).append((number, row))
    async with asyncio.TaskGroup() as group:
        for some in by_namespace.values():
            group.create_task(in_turn(some))
    return 1 if failed else 0


def _cluster(context: Context, source: Path | None) -> tuple[Cluster, Sequence[Object]]:
    """The cluster, or the file in its place with its objects. Raises Failure."""
    from rampgate.input_files import BadFile, content
    from rampgate.remediation.access import open_cluster
    from streams.cluster.twin import Twin, read_objects

    if source is None:
        return open_cluster(context.settings), ()
    try:
        objects = read_objects(content(source).decode())
    except ValueError as error:
        raise BadFile(f"{source}: {error}") from error
    return Twin(objects), objects


def _place(given: str | None, proposals: Sequence[Object]) -> tuple[str, str]:
    """The namespace and name that were given, or those of the file's one Proposal. Raises Failure."""
    if given is None:
        if len(proposals) != 1:
            raise Failure(f"NAMESPACE/NAME: must be there, unless --from has one Proposal; it has {len(proposals)}")
        metadata = proposals[0]["metadata"]
        return metadata["namespace"], metadata["name"]
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
