"""What a rollout gate's sample is made of, and what becomes of each part's items (PC5 §5.5; contracts §3). Pure.

Golden items, and at pre_full adversarial ones, are the candidate's answers to a dataset. Production items are traces; a
production input that the candidate was run on is the trace it came in, with the candidate's answer in place of all that
came out of it then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evalcore.gates.golden import AN_ANSWERS, CandidateAnswer, Failed, answered, firing_on
from evalcore.registry.registry import Registry
from evalcore.scoring.items import Item
from evalcore.scoring.sampling import POOL, share
from schemas.judges import Milestone
from schemas.manifests import Dataset
from schemas.ramp_steps import RampStep
from schemas.verdicts import SampleFacts

GOLDEN: Final = "golden"
ADVERSARIAL: Final = "adversarial"
WENT_IN: Final = ("trace_id", "response_id", "project_name", "started_at", "input", "metadata")
"""What of a trace was there before anybody answered."""
OF_AN_ANSWER: Final = (*sorted(AN_ANSWERS), "handoffs", "proposal", "llm_calls", "usage")
"""What a candidate's answer may say of itself in a trace."""
OF_ANOTHER: Final = ("prompt_version", "experiment_id", "arm")
"""Metadata that told of the version that answered then."""
TOLD: Final = ("vertical", "sub_agent", "category")
"""Metadata that a candidate is told with a production input: who asked is none of its business."""


@dataclass(frozen=True)
class Part:
    """A dataset that takes part; `field` is where the manifest declares it."""

    name: str
    dataset: Dataset
    field: str


def parts(registry: Registry, milestone: Milestone) -> tuple[Part, ...]:
    """Of a gate: golden, and adversarial at pre_full. None without a candidate, who alone has outputs for them."""
    if registry.sample.candidate is None:
        return ()
    found = [Part(GOLDEN, Dataset.model_validate(registry.manifest["dataset"]), "dataset")]
    if milestone is Milestone.PRE_FULL and registry.sample.adversarial is not None:
        found.append(Part(ADVERSARIAL, registry.sample.adversarial, "sample.adversarial"))
    return tuple(found)


def production_wanted(registry: Registry, milestone: Milestone) -> int:
    """Production items that fill the sample up to its size, and that would be enough for the gate's minimum by
    themselves: however large the datasets are, a rollout is not decided by them alone."""
    minimum = registry.gates.minimum_sample[milestone]
    fixed = sum(part.dataset.items for part in parts(registry, milestone))
    return max(min(registry.sample.size[milestone] - fixed, POOL), minimum)


def dataset_version(taking_part: tuple[Part, ...]) -> str:
    """Of all datasets of a sample: a change of any of them begins new baselines."""
    return " + ".join(f"{part.dataset.name} v{part.dataset.version}" for part in taking_part)


def of_part(
    part: Part, one: Mapping[str, Any], number: int, answer: CandidateAnswer, registry: Registry, vertical: str | None
) -> Item:
    """An item of a dataset with the candidate's answer. An adversarial one that is of no category of the manifest is
    for all judges of the gate."""
    item = answered(one, answer, registry, vertical, number)
    if part.name == ADVERSARIAL and firing_on(one, registry, vertical) is None:
        item = replace(item, judges=None)
    return replace(item, id=f"{part.dataset.name} v{part.dataset.version}: {item.id}")


def went_in(trace: Mapping[str, Any]) -> dict[str, Any]:
    """A trace without anything that came out of it: no output, no call, no score of its own."""
    found = {name: trace[name] for name in WENT_IN if name in trace}
    metadata = found.get("metadata")
    kept = metadata if isinstance(metadata, Mapping) else {}
    return {**found, "metadata": {name: value for name, value in kept.items() if name not in OF_ANOTHER}}


def told(source: Mapping[str, Any]) -> dict[str, Any]:
    """What a candidate is asked with: the input, and what the turn is about."""
    metadata = source["metadata"]
    return {"input": source["input"], "metadata": {name: metadata[name] for name in TOLD if name in metadata}}


def topped_up(trace: bytes, source: Mapping[str, Any], answer: CandidateAnswer, agent_version: str) -> Item:
    """`source` is what went in; judges see it as a trace of the version that was run on it."""
    known = f"{trace.hex()} by the candidate"
    metadata = {**source["metadata"], "agent_version": agent_version}
    if isinstance(answer, Failed):
        return Item(known, "online", {**source, "metadata": metadata}, share=share(trace), missing=answer.why)
    given = {name: answer[name] for name in OF_AN_ANSWER if name in answer}
    return Item(known, "online", {"tool_calls": [], **source, "metadata": metadata, **given}, share=share(trace))


def looked(step: RampStep, registry: Registry, facts: SampleFacts, lost: int) -> str:
    """Where a sample's items were looked for, and how many were found there; `lost` were drawn and are gone."""
    made = facts.composition
    whose = f"{step.agent_id} {step.agent_version}" if facts.scope == "version" else f"{step.agent_id} in production"
    said = (
        f"{made.production - facts.topped_up} are traces of {whose} that ended in the last {facts.window_seconds} s"
        f"{f' under {step.vertical}' if step.vertical else ''}"
    )
    if lost:
        why = "no longer on their topic, carry no input and output, or are of a turn that has a later one"
        said += f" ({lost} of those drawn are {why})"
    if registry.sample.candidate is None:
        return f"{said}; no sample.candidate is named that could be run on more"
    said += f", {facts.topped_up} production inputs that the candidate was run on, {made.golden} golden items"
    return said + (f", {made.adversarial} adversarial ones" if made.adversarial else "")
