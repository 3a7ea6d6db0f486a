"""Reads a whole workflow: the Proposal, then all of its children at once."""

from __future__ import annotations

from evalcore.remediation.objects import Kinds, Object
from evalcore.remediation.workflow import Workflow
from streams.cluster.port import Cluster, Unread


async def read_workflow(
    cluster: Cluster, kinds: Kinds, namespace: str, proposal: Object | Unread, what: str
) -> Workflow:
    """Returns the workflow of a Proposal that was read (or why not), with its children, read in one round trip."""
    raise NotImplementedError
