"""Reads a whole workflow: the Proposal, then all of its children at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from evalcore.remediation.objects import Kinds, Object
from evalcore.remediation.workflow import Workflow, children, workflow_of
from streams.cluster.port import Cluster, Unread


async def read_workflow(
    cluster: Cluster,
    kinds: Kinds,
    namespace: str,
    proposal: Object | Unread,
    what: str,
    seen: Callable[[Object], None] = lambda child: None,
) -> Workflow:
    """Returns the workflow of a Proposal that was read (or why not), with its children, read in one round trip. `seen`
    is called with each child that was read."""
    if isinstance(proposal, Unread):
        return workflow_of(proposal.why, {}, what)
    named, missing = children(proposal, kinds)
    answers = await asyncio.gather(*(cluster.get(child.kind, namespace, child.name) for child in named))
    read = {child: one.why if isinstance(one, Unread) else one for child, one in zip(named, answers, strict=True)}
    for one in answers:
        if not isinstance(one, Unread):
            seen(one)
    return workflow_of(proposal, read, what, missing)
