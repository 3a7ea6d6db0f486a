"""Composes a rollout gate's sample of golden, production and adversarial items (PC5 §5.5; contracts §3). Pure.

Golden items, and at pre_full adversarial ones, are the candidate's answers to a dataset. Production items are traces; a
production input that the candidate was run on is the trace it came in, with the candidate's answer in place of what
the production version answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evalcore.gates.golden import FIELDS_OF_ANSWERS, CandidateAnswer, Failed, answered, field_of, firing_on
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
"""Fields of a trace that are there before an answer."""
OF_AN_ANSWER: Final = (*sorted(FIELDS_OF_ANSWERS), "handoffs", "proposal", "llm_calls", "usage")
"""Fields of a trace that a candidate's answer may set."""
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
    given = {name: answer[name] for name in OF_AN_ANSWER if name in answer}
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
