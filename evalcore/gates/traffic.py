"""Accounts for a gate's window: each eligible turn is in the pools or left out for a reason, and the sample's share of
rated turns is that of the pools (contracts §3, "The sample is the traffic"). Pure.

What is eligible is counted where turns change; pools are filled where records come. So a fault in one shows against the
other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from schemas.manifests import GateDefaults
from schemas.verdicts import SampledSignal, TrafficFacts

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
