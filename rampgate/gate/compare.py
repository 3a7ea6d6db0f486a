"""Runs `rampgate gate compare`: two versions of the judges on the same outputs, and on past ramps (PC5 §9.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from rampgate.command import Context, Document, command, read_registry, read_tree
from rampgate.console import Failure, run
from rampgate.gate.report import compare_report

if TYPE_CHECKING:
    from evalcore.gates.gate import Gate
    from evalcore.registry.registry import Registry

TOPIC = "topic"


@command(compare_report, flags="kafka configs")
def gate_compare(
    context: Context,
    old: Annotated[str, Option(metavar="REF", help="the earlier version of the registry, in git")],
    new: Annotated[str | None, Option(metavar="REF", help="the later one; without it the files as they are")] = None,
    dataset: Annotated[Path | None, Option(help="items, JSON Lines, with --outputs")] = None,
    outputs: Annotated[Path | None, Option(help="answers to them, JSON Lines: {id, output}")] = None,
    traces: Annotated[Path | None, Option(help="instead, traces, JSON Lines")] = None,
    verdicts: Annotated[
        str | None, Option(help="with --traces: past verdicts, JSON Lines as on their topic, or `topic`")
    ] = None,
    vertical: Annotated[str | None, Option(help="use this vertical's limits")] = None,
) -> Document:
    """Let two versions of the judges score the same outputs, and show what flips.

    With --verdicts each gate of the past is decided by both versions, on the traces of its agent's version. Exit code 1
    if the gate, or a past one, is decided otherwise by the new version.

    Example: rampgate gate compare --old main --dataset golden.jsonl --outputs outputs.jsonl
    """
    from dataclasses import asdict

    from evalcore.gates.gate import prepare
    from evalcore.gates.golden import golden_sample, vertical_of
    from evalcore.remediation.sealing import ANSWERS, TRACES
    from evalcore.scoring.items import items_of
    from rampgate.ci_gate.comparison import compared, redecided
    from rampgate.ci_gate.inputs import read_dataset, read_outputs, read_traces
    from rampgate.cluster import seals_of
    from rampgate.judging import scorer_of
    from rampgate.logs import configure_logs
    from schemas.judges import Milestone

    if traces is None and (dataset is None or outputs is None):
        raise Failure("say which outputs both versions judge: --dataset FILE and --outputs FILE, or --traces FILE")
    if traces is not None and (dataset is not None or outputs is not None):
        raise Failure("--traces: give traces, or a dataset with outputs, not both")
    if verdicts is not None and traces is None:
        raise Failure("--verdicts: past ramps are decided again on traces: --traces FILE")
    configure_logs("error", "console")
    before, after = (_version(context, one) for one in (old, new))
    rows = [*read_traces(traces, seals_of(context.settings, TRACES)).values()] if traces is not None else []
    past = _past(verdicts, context, rows) if verdicts is not None else []
    golden = read_dataset(dataset) if dataset is not None else None
    answers = read_outputs(outputs, seals_of(context.settings, ANSWERS)) if outputs is not None else {}

    def gate_of(registry: Registry) -> Gate:
        if golden is not None:
            of = vertical or vertical_of(golden, registry)
            items, names = golden_sample(golden, answers, registry, of)
            return prepare(Milestone.PRE_MERGE, items, names, registry, of)
        items = items_of(rows, Milestone.PRE_RAMP, registry.manifest.get("schema", {}))
        return prepare(Milestone.PRE_RAMP, items, None, registry, vertical)

    async def both() -> Document:
        async with scorer_of(context.settings) as scorer:
            then, now, found = await compared(before, after, gate_of, scorer, context.today)
            ramps = await redecided(before, after, past, rows, scorer, context.today)
        otherwise = sum(ramp.otherwise for ramp in ramps)
        decided = {"old": then.verdict.verdict, "new": now.verdict.verdict}
        fields = {
            "judges": [asdict(one) for one in found],
            "verdict": decided,
            "ramps": [{**asdict(ramp), "otherwise": ramp.otherwise} for ramp in ramps],
            "otherwise": otherwise,
        }
        return Document(fields, 1 if otherwise or decided["old"] is not decided["new"] else 0)

    return run(both)


def _past(verdicts: str, context: Context, traces: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Past verdicts: of the file's, or of the topic's those about the traces' versions. Raises Failure."""
    from agents.ports import Unavailable
    from rampgate.ci_gate.comparison import definition
    from rampgate.ci_gate.publish import past_verdicts
    from rampgate.input_files import lines

    if verdicts != TOPIC:
        return [one for _, one in lines(Path(verdicts))]
    try:
        return run(partial(past_verdicts, context.settings, {definition(one) for one in traces}))
    except Unavailable as error:
        raise Failure(f"--verdicts: {error}") from error


def _version(context: Context, revision: str | None) -> Registry:
    """The registry at a version in git; as its files are, without one. Raises Failure, NoHistory."""
    from rampgate.registry.rule_history import tree_at
    from rampgate.registry.verticals import require_folder
    from schemas.counting import counted

    root = context.settings.configs
    require_folder(root)
    tree = read_tree(root) if revision is None else tree_at(root, revision)
    registry, result = read_registry(tree, context.today)
    if registry is None:
        raise Failure(
            f"{revision or root}: the registry has {counted(len(result.errors), 'error')}; "
            "`rampgate rules validate` shows them"
        )
    return registry
