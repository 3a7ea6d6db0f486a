"""Gives readers of traces the workflows of a cluster: what the watch knows, and the whole where one has ended."""

from __future__ import annotations

from evalcore.remediation.objects import Kinds, Why
from evalcore.remediation.phase import Phase
from evalcore.remediation.workflow import Workflow, standing
from streams.cluster.port import Cluster, Unread
from streams.cluster.reading import read_workflow
from streams.cluster.watching import Known, Proposals


class ClusterWorkflows:
    """The agents' `Workflows`. Who makes it lets `proposals` run."""

    def __init__(self, cluster: Cluster, kinds: Kinds, proposals: Proposals) -> None:
        self._cluster, self._kinds, self._proposals = cluster, kinds, proposals

    def known(self, namespace: str, name: str) -> Phase | Why | None:
        """Returns what the watch knows of a workflow: its phase, why it can't be told, or None."""
        found = self._proposals.known(namespace, name)
        return found.phase if isinstance(found, Known) else found.why if found is not None else None

    async def read(self, namespace: str, name: str, began_ms: int, ended_ms: int) -> Workflow:
        """Returns the workflow in two round trips, if it is that of a trace which began and ended then."""
        found = await self._cluster.get(self._kinds.proposal, namespace, name)
        if not isinstance(found, Unread):
            why = standing(found, self._proposals.first_uid(namespace, name), began_ms, ended_ms)
            found = Unread(why) if why is not None else found
        return await read_workflow(self._cluster, self._kinds, namespace, found, f"{self._kinds.proposal}/{name}")
