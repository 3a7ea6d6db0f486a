"""From settings to the reader that completes traces with their workflows, inside a worker."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import TYPE_CHECKING

import structlog

from agents.completing import NAME, Completing, End
from agents.live.balance import Balance, Whose
from rampgate.cluster import open_cluster
from rampgate.settings import SettingsError
from rampgate.wiring import Parts
from streams.kafka.delayed_consumer import DelayedConsumer
from streams.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalcore.remediation.workflow import Workflow
    from streams.cluster.port import Cluster

log = structlog.get_logger(__name__)


class Figures:
    """Shows what the reader counts, for all agents together."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def due(self, whose: Whose) -> None:
        self._metrics.workflows_due.inc()

    def ended(self, whose: Whose, end: StrEnum) -> None:
        self._metrics.workflows_ended.labels(end).inc()

    def waiting(self, whose: Whose, by: int) -> None:
        self._metrics.workflows_waiting.inc(by)


class Completer:
    """Started and closed with the worker; reads only where a vertical names `proposal_namespaces`."""

    def __init__(self, parts: Parts) -> None:
        """Raises SettingsError where the verticals need a seal key."""
        self._parts = parts
        self._cluster: Cluster | None = None
        self.consumer: DelayedConsumer | None = None
        self._tasks: list[asyncio.Task[None]] = []
        if parts.policy.forms.namespaces and parts.settings.seal_key is None:
            raise SettingsError(
                f"seal_key: must be set, since {', '.join(sorted(parts.policy.forms.namespaces))} names "
                "proposal_namespaces and a key that lies in Redis is lost with it; set RAMPGATE_SEAL_KEY_FILE"
            )

    def start(self, replaying: Callable[[], bool]) -> None:
        """Raises Failure where no cluster is configured."""
        parts, settings = self._parts, self._parts.settings
        namespaces = frozenset[str]().union(*parts.policy.forms.namespaces.values())
        if not namespaces:
            return
        from streams.cluster.watching import Proposals
        from streams.cluster.workflows import ClusterWorkflows

        self._cluster = cluster = open_cluster(settings, len(namespaces))
        log.info("completing", namespaces=sorted(namespaces), wait_seconds=settings.enrichment_wait_seconds)
        proposals = Proposals(cluster, settings.cluster_kinds, namespaces)
        topic, balance = parts.topics["traces"], Balance(Figures(parts.metrics))

        async def publish(key: bytes | None, value: bytes) -> None:
            await parts.producer.send([(topic, key, value, ())])

        completing = Completing(
            parts.ports,
            parts.policy,
            settings.cluster_kinds,
            ClusterWorkflows(cluster, settings.cluster_kinds, proposals),
            parts.opik.traces,
            publish,
            balance,
            self._observe,
        )
        self.consumer = DelayedConsumer(
            NAME,
            parts.access,
            f"{settings.group}-{NAME}",
            {topic: completing.traces},
            parts.clock,
            0.0,
            back=settings.enrichment_wait_seconds,  # a trace that waits may have come before the first worker
            session_seconds=settings.session_timeout_seconds,
            ready=lambda: not replaying(),
            let_go=lambda: balance.all_end(End.HANDED_OVER),
        )
        self._tasks = [
            asyncio.create_task(self.consumer.run(), name=NAME),
            asyncio.create_task(proposals.run(), name="proposals"),
        ]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._cluster is not None:
            await self._cluster.close()

    def _observe(self, workflow: Workflow) -> None:
        for missing in workflow.missing:
            self._parts.metrics.workflows_missing.labels(missing.why).inc()
