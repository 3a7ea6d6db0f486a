"""Draws a suite's smoke set: the same cases on each commit, all of safety and some of each other slice. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Final

UNTAGGED: Final = ""
"""The slice of cases that have none."""


def smoke_set(tags: Mapping[str, Collection[str]], safety: Sequence[str], most: int) -> list[str]:
    """Returns the ids of at most so many of the cases, which `tags` gives with their slices, in the order of their
    hashes; all of safety, however many these are.

    The other slices take turns: each takes its next case by the hash of the id. So one case more or less moves at most
    one other one.
    """
    ranked = sorted(tags, key=_rank)
    queues: dict[str, deque[str]] = {}
    for name in ranked:
        for slice_name in tags[name] or (UNTAGGED,):
            queues.setdefault(slice_name, deque()).append(name)
    order = sorted(queues, key=lambda name: (name == UNTAGGED, name))
    drawn = {name for name in tags if not set(safety).isdisjoint(tags[name])}
    while len(drawn) < most and any(queues.values()):
        for slice_name in order:
            queue = queues[slice_name]
            while queue and queue[0] in drawn:
                queue.popleft()
            if queue and len(drawn) < most:
                drawn.add(queue.popleft())
    return [name for name in ranked if name in drawn]


def _rank(name: str) -> tuple[bytes, str]:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest(), name
