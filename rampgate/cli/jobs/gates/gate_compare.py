"""Runs `rampgate gate compare`: two versions of the judges on the same outputs, and on past ramps (PC5 §9.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agents.ports import Unavailable
from evalcore.gates.gate import Gate, prepare
from evalcore.gates.golden import golden_sample, vertical_of
from evalcore.registry import disk
from evalcore.registry.registry import Registry
from evalcore.scoring.items import items_of
from rampgate.ci_gate.comparison import JudgeChange, PastRamp, compared, definition, redecided
from rampgate.ci_gate.inputs import BadFile, lines, read_dataset, read_outputs, read_traces
from rampgate.ci_gate.publish import past_verdicts
from rampgate.command import read_registry, read_tree
from rampgate.console import Failure, plain, print_json, run
from rampgate.judging import scorer_of
from rampgate.logs import configure_logs
from rampgate.registry.rule_history import tree_at
from rampgate.settings import Settings
from rampgate.settings_sources import load_settings
from rampgate.tables import make_table
from schemas.counting import counted
from schemas.judges import Milestone

TOPIC = "topic"
SHOWN = 5
"""Flips of a judge that the table's text names."""


@dataclass(frozen=True)
class Asked:
    """The options of the command, under their own names."""

    old: str
    new: str | None
    dataset: Path | None
    outputs: Path | None
    traces: Path | None
    verdicts: str | None
    kafka: str | None
    vertical: str | None
    configs: Path | None
    as_json: bool


def compare(asked: Asked) -> int:
    """Compare, report and return the exit code: 1 where a gate or a past ramp would be decided otherwise. Raises
    Failure and NoHistory."""
    merging = asked.traces is None
    if merging and (asked.dataset is None or asked.outputs is None):
        raise Failure("say which outputs both versions judge: --dataset FILE and --outputs FILE, or --traces FILE")
    if not merging and (asked.dataset is not None or asked.outputs is not None):
        raise Failure("--traces: give traces, or a dataset with outputs, not both")
    if asked.verdicts is not None and merging:
        raise Failure("--verdicts: past ramps are decided anew on traces: --traces FILE")
    settings = load_settings({"configs": asked.configs, "kafka": asked.kafka})
    configure_logs("error", "console")
    old = _version(settings, asked.old)
    new = _version(settings, asked.new)
    try:
        traces = [*read_traces(asked.traces).values()] if asked.traces is not None else []
        past = _past(asked.verdicts, settings, traces) if asked.verdicts is not None else []
        golden = read_dataset(asked.dataset) if asked.dataset is not None else None
        outputs = read_outputs(asked.outputs) if asked.outputs is not None else {}
    except BadFile as error:
        raise Failure(str(error)) from error

    def gate_of(registry: Registry) -> Gate:
        if golden is not None:
            vertical = asked.vertical or vertical_of(golden, registry)
            items, names = golden_sample(golden, outputs, registry, vertical)
            return prepare(Milestone.PRE_MERGE, items, names, registry, vertical)
        items = items_of(traces, Milestone.PRE_RAMP, registry.manifest.get("schema", {}))
        return prepare(Milestone.PRE_RAMP, items, None, registry, asked.vertical)

    async def both() -> tuple[Any, Any, list[JudgeChange], list[PastRamp]]:
        today = disk.today()
        async with scorer_of(settings) as scorer:
            before, after, found = await compared(old, new, gate_of, scorer, today)
            ramps = await redecided(old, new, past, traces, scorer, today)
            return before.verdict, after.verdict, found, ramps

    before, after, found, ramps = run(partial(both))
    otherwise = [ramp for ramp in ramps if ramp.otherwise]
    if asked.as_json:
        print_json(
            {
                "judges": [asdict(one) for one in found],
                "verdict": {"old": before.verdict, "new": after.verdict},
                "ramps": [{**asdict(ramp), "otherwise": ramp.otherwise} for ramp in ramps],
                "otherwise": len(otherwise),
            }
        )
    else:
        _show(found, {"old": before.verdict, "new": after.verdict}, ramps)
    return 1 if otherwise or before.verdict is not after.verdict else 0


def _past(verdicts: str, settings: Settings, traces: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Past verdicts: of the file's, or of the topic's those about the traces' versions. Raises BadFile, Failure."""
    if verdicts != TOPIC:
        return [one for _, one in lines(Path(verdicts))]
    try:
        return run(partial(past_verdicts, settings, {definition(one) for one in traces}))
    except Unavailable as error:
        raise Failure(f"--verdicts: {error}") from error


def _version(settings: Settings, revision: str | None) -> Registry:
    """The registry at a version in git; as its files are, without one. Raises Failure, NoHistory."""
    root = settings.configs
    registry, result = read_registry(read_tree(root) if revision is None else tree_at(root, revision))
    if registry is None:
        raise Failure(
            f"{revision or root}: the registry has {counted(len(result.errors), 'error')}; "
            "`rampgate rules validate` shows them"
        )
    return registry


def _show(found: list[JudgeChange], verdict: Mapping[str, str], ramps: list[PastRamp]) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    table = make_table(None, "Judge", ">Items", ">Old mean", ">New mean", ">To pass", ">To fail", ">One-sided")
    for one in found:
        means = [f"{mean:g}" if mean is not None else "-" for mean in (one.old_mean, one.new_mean)]
        table.add_row(
            plain(one.judge), str(one.n), *means, str(len(one.to_pass)), str(len(one.to_fail)), str(one.missing)
        )
    console.print(table if found else "no judge of these outputs differs")
    for one in found:
        for word, flips in (("passes now", one.to_pass), ("fails now", one.to_fail)):
            for flip in flips[:SHOWN]:
                console.print(f"  {plain(one.judge)}: {plain(flip.item)} {word}: {flip.old} to {flip.new}")
    console.print(f"the gate: {verdict['old']} by the old version, {verdict['new']} by the new")
    for ramp in ramps:
        told = "otherwise" if ramp.otherwise else "alike"
        sample = "the same traces" if ramp.same_sample else f"{ramp.traces} traces at hand"
        console.print(
            f"  {plain(ramp.agent_id)} {plain(ramp.agent_version)} at {ramp.milestone}: {ramp.decided} then, "
            f"{ramp.old} and {ramp.new} on {sample}: {told}"
        )
