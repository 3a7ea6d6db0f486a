"""Apache Kafka (KRaft) of N nodes: one for tests, three for fault runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from rampgate.services.kafka_node import KafkaNode
from rampgate.services.ports import accepts
from rampgate.services.topics import count_brokers, create_topics, open_groups
from rampgate.services.unavailable import ServiceUnavailable

PARTITIONS = 4
_READY_SECONDS = 60.0


class KafkaCluster:
    """A cluster on free ports of 127.0.0.1. Data survives restarts, not close().

    Topics are made only by `create_topics`, as in production. `config` adds or overrides broker settings. With
    `proxied`, each node has a `TcpProxy` and clients of `proxied_bootstrap` pass through it, also after they have
    learnt the brokers' addresses.
    """

    def __init__(
        self,
        nodes: int = 1,
        *,
        heap_megabytes: int | None = None,
        config: Mapping[str, str] | None = None,
        proxied: bool = False,
    ) -> None:
        heap = heap_megabytes or (384 if nodes == 1 else 256)
        self.nodes = [KafkaNode(number, heap, proxied=proxied) for number in range(1, nodes + 1)]
        quorum = ",".join(f"{node.number}@127.0.0.1:{node.controller_port}" for node in self.nodes)
        self._replication = min(3, nodes)
        for node in self.nodes:
            node.join(quorum, {**_settings(self._replication), **(config or {})})
        self.started_in = 0.0

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes)

    @property
    def proxied_bootstrap(self) -> str:
        """Raises ValueError unless the cluster was made with `proxied=True`."""
        proxies = [node.proxy for node in self.nodes if node.proxy is not None]
        if not proxies:
            raise ValueError("this cluster has no proxies: make it with KafkaCluster(proxied=True)")
        return ",".join(proxy.address for proxy in proxies)

    @property
    def pids(self) -> list[int]:
        return [pid for node in self.nodes for pid in node.pids]

    def start(self) -> None:
        """Starts the nodes that don't run and blocks until all are in the cluster. Raises ServiceUnavailable."""
        began = time.monotonic()
        try:
            with ThreadPoolExecutor(len(self.nodes)) as pool:
                list(pool.map(KafkaNode.start, self.nodes))
            self.wait_ready(len(self.nodes))
            open_groups(self.bootstrap)
        except BaseException:
            self.close()
            raise
        self.started_in = time.monotonic() - began

    def wait_ready(self, brokers: int) -> None:
        """Blocks until a controller is elected and at least `brokers` brokers serve."""
        alive = next((node for node in self.nodes if accepts(node.port)), self.nodes[0])
        try:
            alive.process.wait_ready(lambda: count_brokers(alive.address) >= brokers, _READY_SECONDS)
        except ServiceUnavailable as error:
            raise ServiceUnavailable("kafka", f"node {alive.number}: {error.reason}", error.remedy) from error

    def stop(self) -> None:
        """All nodes at once: one after the other, the last ones would wait for a quorum they have lost."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(KafkaNode.stop, self.nodes))

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def pause(self) -> None:
        for node in self.nodes:
            node.pause()

    def resume(self) -> None:
        for node in self.nodes:
            node.resume()

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        for node in self.nodes:
            node.close()

    def create_topics(
        self,
        names: Iterable[str],
        partitions: int = PARTITIONS,
        replication: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Blocks until they can be written. Topics that exist are left as they are. Raises aiokafka's KafkaError."""
        create_topics(self.bootstrap, names, partitions, replication or self._replication, config)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _settings(replication: int) -> dict[str, str]:
    in_sync = max(1, replication - 1)
    return {
        "num.partitions": str(PARTITIONS),
        "default.replication.factor": str(replication),
        "min.insync.replicas": str(in_sync),
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": str(replication),
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": str(replication),
        "transaction.state.log.min.isr": str(in_sync),
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": str(replication),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        # A killed node's partitions move after this long; the default of 9 s only makes fault runs longer.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # Tests write records dated long ago, which the default of 7 days would delete under them.
        "log.retention.ms": "-1",
        # Sizes for hundreds of small topics in a small heap.
        "log.index.size.max.bytes": "1048576",
        "log.cleaner.dedupe.buffer.size": "4194304",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
    }
