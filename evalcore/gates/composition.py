"""Composes a rollout gate's sample of golden, production and adversarial items, and accounts for its traffic (PC5 §5.5;
contracts §3). Pure.

Golden items, and at pre_full adversarial ones, are the candidate's answers to a dataset. Production items are traces; a
production input that the candidate was run on is the trace it came in, with the candidate's answer in place of what
the production version answered.

What is eligible is counted where turns change; pools are filled where records come. So a fault in one shows against the
other: each eligible turn is in the pools or left out for a reason, and the sample's share of rated turns is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from evalcore.gates.golden import OF_ANSWERS, CandidateAnswer, answered, field_of, firing_on
from evalcore.registry.registry import Registry
from evalcore.remediation.sealing import ADDED
from evalcore.scoring.items import Failed, Item
from evalcore.scoring.sampling import POOL, share
from schemas.judges import Milestone
from schemas.manifests import Dataset, GateDefaults
from schemas.ramp_steps import RampStep
from schemas.verdicts import SampledSignal, SampleFacts, TrafficFacts

GOLDEN: Final = "golden"
ADVERSARIAL: Final = "adversarial"
WENT_IN: Final = ("trace_id", "response_id", "project_name", "started_at", "input", "metadata")
"""Fields of a trace that are there before an answer."""
OF_ANOTHER: Final = ("prompt_version", "experiment_id", "arm")
"""Metadata about the version that answered in production; it is dropped."""
TOLD: Final = ("vertical", "sub_agent", "category")
"""Metadata that a candidate gets with a production input; it never learns who asked."""


@dataclass(frozen=True)
class Part:
    """A dataset in the sample; `field` is where the manifest declares it."""

    name: str
    dataset: Dataset
    field: str


def parts(registry: Registry, milestone: Milestone, vertical: str | None = None) -> tuple[Part, ...]:
    """Returns the datasets of a gate: the golden set that the vertical is judged on, and adversarial ones at pre_full.
    A vertical's own adversarial set takes part beside the platform's: what a vertical names tightens a gate and never
    loosens it. Without a candidate there are none, since only a candidate has outputs for their items."""
    if registry.sample.candidate is None:
        return ()
    golden, field = registry.dataset(vertical), field_of(registry.owner(vertical))
    datasets = [Part(GOLDEN, golden, field)]
    if milestone is Milestone.PRE_FULL:
        named = {"sample.adversarial": registry.sample.adversarial, f"{field}.adversarial": golden.adversarial}
        datasets += [Part(ADVERSARIAL, one, where) for where, one in named.items() if one is not None]
    return tuple(datasets)


def production_wanted(registry: Registry, milestone: Milestone, vertical: str | None = None) -> int:
    """Returns how many production items the sample needs: as many as fill it up to its size, and at least the gate's
    minimum, so that datasets alone never decide a rollout."""
    minimum = registry.gates.minimum_sample[milestone]
    fixed = sum(part.dataset.items for part in parts(registry, milestone, vertical))
    return max(min(registry.sample.size[milestone] - fixed, POOL), minimum)


def dataset_version(taking_part: tuple[Part, ...]) -> str:
    """Returns names and versions of all datasets of a sample; a change of any of them begins new baselines."""
    return " + ".join(f"{part.dataset.name} v{part.dataset.version}" for part in taking_part)


def of_part(
    part: Part, row: Mapping[str, Any], number: int, answer: CandidateAnswer, registry: Registry, vertical: str | None
) -> Item:
    """Returns a dataset's item with the candidate's answer. All judges of the gate score an adversarial item whose
    category the manifest does not have."""
    item = answered(row, answer, registry, vertical, number)
    if part.name == ADVERSARIAL and firing_on(row, registry, vertical) is None:
        item = replace(item, judges=None)
    return replace(item, id=f"{part.dataset.name} v{part.dataset.version}: {item.id}")


def went_in(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the trace without anything that its answer added: no output, no calls, no scores."""
    inputs = {name: trace[name] for name in WENT_IN if name in trace}
    metadata = inputs.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else {}
    return {**inputs, "metadata": {name: value for name, value in known.items() if name not in OF_ANOTHER}}


def told(source: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the candidate's request body: the input, and what the turn is about."""
    metadata = source["metadata"]
    return {"input": source["input"], "metadata": {name: metadata[name] for name in TOLD if name in metadata}}


def topped_up(trace: bytes, source: Mapping[str, Any], answer: CandidateAnswer, agent_version: str) -> Item:
    """Returns the item of a production input that the candidate was run on. `source` is the input's trace without its
    answer; judges see it as a trace of `agent_version`."""
    identity = f"{trace.hex()} by the candidate"
    metadata = {**source["metadata"], "agent_version": agent_version}
    if isinstance(answer, Failed):
        return Item(identity, "online", {**source, "metadata": metadata}, share=share(trace), missing=answer.why)
    given = {name: answer[name] for name in OF_ANSWERS if name in answer and name not in ADDED}
    return Item(identity, "online", {"tool_calls": [], **source, "metadata": metadata, **given}, share=share(trace))


def looked(step: RampStep, registry: Registry, facts: SampleFacts, lost: int) -> str:
    """Returns a sentence that says where the sample's items come from and how many came from there; `lost` traces were
    drawn and could not be read."""
    made = facts.composition
    whose = f"{step.agent_id} {step.agent_version}" if facts.scope == "version" else f"{step.agent_id} in production"
    sentence = (
        f"{made.production - facts.topped_up} are traces of {whose} that ended in the last {facts.window_seconds} s"
        f"{f' under {step.vertical}' if step.vertical else ''}"
    )
    if lost:
        sentence += f" ({lost} of those drawn are no longer on their topic)"
    if registry.sample.candidate is None:
        return f"{sentence}; no sample.candidate is named that could be run on more"
    sentence += f", {facts.topped_up} production inputs that the candidate was run on, {made.golden} golden items"
    return sentence + (f", {made.adversarial} adversarial ones" if made.adversarial else "")


CHANCE: Final = 0.0005
"""A share that chance explains less often than this, two-sided, is no chance."""
BEYOND: Final = "beyond_pool"
"""The reason of turns that a full pool has no place for: chosen by their hash, so they bias nothing."""


@dataclass(frozen=True)
class Traffic:
    """The eligible turns of a window. `difference`: turns by which counts and pools disagree. `signals`: of each signal
    the eligible turns that carry it. `records` of traces were read in the window's hours, `unreadable` of them did not
    say of which version they are, and `unnamed` turns have no agent or version. `refused` turns were of new versions
    beyond the bound on them, in the hour in which this version was first heard of."""

    eligible: int = 0
    pooled: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    difference: int = 0
    signals: Mapping[str, int] = field(default_factory=dict)
    records: int = 0
    unreadable: int = 0
    unnamed: int = 0
    refused: int = 0


@dataclass(frozen=True)
class Drawn:
    """What became of a draw: `drawn` turns, `read` of them could be read. Of a signal, by its name: `carry` of the
    `population` of turns whose record came carry it, and `sampled` of those read."""

    drawn: int
    read: int
    population: int
    carry: Mapping[str, int]
    sampled: Mapping[str, int]


def facts_of(traffic: Traffic, made: Drawn, gates: GateDefaults) -> TrafficFacts:
    """Returns the figures of a sample, and in `incomplete` why it is not the traffic."""
    facts = TrafficFacts(
        eligible=traffic.eligible,
        pooled=traffic.pooled,
        left_out=dict(traffic.left_out),
        not_drawn=traffic.pooled - made.drawn,
        record_gone=made.drawn - made.read,
        signals={name: SampledSignal(traffic.signals[name], made.sampled[name]) for name in traffic.signals},
        unattributed=traffic.unreadable + traffic.unnamed,
        refused=traffic.refused,
    )
    return replace(facts, incomplete=tuple(_incomplete(traffic, made, gates)))


def _incomplete(traffic: Traffic, made: Drawn, gates: GateDefaults) -> Iterator[str]:
    named = ", ".join(f"{many} {reason}" for reason, many in sorted(traffic.left_out.items())) or "none left out"
    if traffic.difference or traffic.eligible != traffic.pooled + sum(traffic.left_out.values()):
        yield (
            f"the sum does not add up: {traffic.eligible} turns are eligible, {traffic.pooled} are pooled ({named}), "
            f"and counts and pools disagree about {traffic.difference}"
        )
    out = sum(many for reason, many in traffic.left_out.items() if reason != BEYOND)
    if out > gates.left_out_share * traffic.eligible:
        limit = f"the manifest's left_out_share allows {gates.left_out_share:g} of them"
        yield f"{out} of {traffic.eligible} eligible turns are left out ({named}); {limit}"
    if traffic.unreadable > gates.unreadable_share * traffic.records:
        limit = f"the manifest's unreadable_share allows {gates.unreadable_share:g} of them"
        read = f"{traffic.unreadable} of the window's {traffic.records} records of traces"
        yield f"{read} do not say of which version they are; {limit}"
    gone = made.drawn - made.read
    if gone > gates.left_out_share * made.drawn:
        limit = f"the manifest's left_out_share allows {gates.left_out_share:g} of them"
        yield f"the records of {gone} of {made.drawn} drawn turns have left their topic; {limit}"
    for name, carry in made.carry.items():
        chance = share_chance(made.population, carry, made.read, made.sampled[name], gone)
        if chance < CHANCE:
            yield (
                f"{made.sampled[name]} of the sample's {made.read} turns are {name}, and {carry} of the "
                f"{made.population} that it was drawn from; chance explains that with p = {chance:.1g}"
            )


def share_chance(population: int, carry: int, read: int, sampled: int, gone: int = 0) -> float:
    """Returns the two-sided chance of `sampled` turns with a signal among `read`, drawn from a `population` of which
    `carry` have it (exact, hypergeometric). Of `gone` turns, which left the topic, no one knows whether they have it:
    the likeliest number of them counts."""
    left = population - gone
    if not 0 < read <= left:
        return 1.0
    likeliest = round(sampled * left / read)
    carry = min(max(likeliest, carry - gone), carry, left)
    lowest, highest = max(0, read - (left - carry)), min(read, carry)
    if not lowest <= sampled <= highest:
        return 0.0
    logs: Sequence[float] = [
        _choose(carry, k) + _choose(left - carry, read - k) - _choose(left, read) for k in range(lowest, highest + 1)
    ]
    seen = logs[sampled - lowest]
    return min(math.fsum(math.exp(one) for one in logs if one <= seen + 1e-9), 1.0)


def _choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
