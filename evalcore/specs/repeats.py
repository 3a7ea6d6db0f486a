"""How reliably an agent answers: pass^k over queries that were asked several times (AgentCI 2.0). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb

from evalcore.suite.comparison import SEED, interval_of


@dataclass(frozen=True)
class Reliability:
    """The chance that `k` answers to a query all pass, as a mean over `queries`, with its 95 % interval; None with
    fewer than five queries."""

    k: int
    value: float
    ci95: tuple[float, float] | None
    queries: int


def pass_hat_k(passed: int, asked: int, k: int) -> float:
    """Returns the unbiased estimate of the chance that k answers all pass, C(c, k) / C(n, k), of c that passed of n.
    Raises ValueError where fewer than k answers were asked for, or the counts do not fit."""
    if not 1 <= k <= asked or not 0 <= passed <= asked:
        raise ValueError(f"k must be 1 to {asked} and passed 0 to {asked}, got {k} and {passed}")
    return comb(passed, k) / comb(asked, k)


def reliability(counts: Mapping[str, tuple[int, int]], k: int, seed: int = SEED) -> Reliability:
    """Returns pass^k of queries, by whose ids `counts` has how many of their answers passed, and how many there were.
    Queries are what the interval is over. Raises ValueError without any."""
    if not counts:
        raise ValueError("counts: must be of one query or more, got none")
    import numpy as np

    values = np.array([pass_hat_k(passed, asked, k) for passed, asked in counts.values()])
    found = interval_of(values, np.ones(len(values)), seed)
    ends = None if found is None else (max(found[0], 0.0), min(found[1], 1.0))
    return Reliability(k, float(values.mean()), ends, len(values))
