"""Apache Kafka (KRaft), each node a broker and controller in one Java process: one for tests, three for fault runs."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from rampgate.local.services.jars import KAFKA, cache_folder, find_java, jar_folder
from rampgate.local.services.ports import accepts, release_port, reserve_port
from rampgate.local.services.process import ChildProcess, ServiceUnavailable
from rampgate.local.services.proxy import TcpProxy
from rampgate.local.services.service import Closing, PortService
from rampgate.local.services.topics import count_brokers, create_topics, open_groups

PARTITIONS = 4
_READY_SECONDS = 60.0
_FORMAT_SECONDS = 60.0
_CHECKPOINT = "bootstrap.checkpoint"
"""Kafka's file with the versions of its features; the same on every node."""
_CLUSTER_ID = "cmFtcGdhdGUtdGVzdHMtMQ"  # 16 bytes in unpadded base64, as Kafka wants it
# Warnings only: at INFO a node writes its whole configuration several times.
_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


class KafkaNode(PortService):
    """A node of a KafkaCluster, which knows when it is ready. Keeps its data over stop, kill and restart."""

    name: ClassVar[str] = "kafka"
    ready_seconds: ClassVar[float] = 60.0
    """Long enough to check all topics, which a node does after a kill before it listens."""

    def __init__(self, number: int, heap_megabytes: int, *, proxied: bool) -> None:
        super().__init__()
        self.number = number
        self.controller_port = reserve_port()
        self._heap = heap_megabytes
        self._quorum = ""
        self._config: Mapping[str, str] = {}
        self._behind_proxy = reserve_port() if proxied else None
        self.proxy = TcpProxy("127.0.0.1", self._behind_proxy) if self._behind_proxy else None
        """The proxy that clients of a `proxied` node connect to; else None."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def join(self, quorum: str, config: Mapping[str, str]) -> None:
        """Set all voters, and settings that override ours. The cluster calls this before the first start."""
        self._quorum, self._config = quorum, config

    def _prepare(self, folder: Path) -> ChildProcess:
        java, jars = find_java(), jar_folder(KAFKA)
        config = folder / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._properties(folder).items()))
        logging = folder / "log4j2.properties"
        logging.write_text(_LOGGING)
        machine = [str(java), f"-Xmx{self._heap}m", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
        machine += [f"-Dlog4j2.configurationFile={logging}", "-cp", f"{jars}{os.sep}*"]
        data = folder / "data"
        if not self._copy_storage(data):
            # The second compiler never pays for a run of a second.
            quick = [machine[0], "-XX:TieredStopAtLevel=1", *machine[1:]]
            self._format([*quick, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(config)], folder)
            keep_checkpoint(data / _CHECKPOINT)
        return ChildProcess(self.name, [*machine, "kafka.Kafka", str(config)], folder)

    def _copy_storage(self, data: Path) -> bool:
        """Make storage as Kafka's tool formats it, from the file that the tool once made; False without one. The tool
        is a Java process of its own, and takes as long as the start of the broker."""
        kept = kept_checkpoint()
        if not kept.exists():
            return False
        data.mkdir()
        shutil.copyfile(kept, data / _CHECKPOINT)
        directory = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        values = {"version": 1, "cluster.id": _CLUSTER_ID, "node.id": self.number, "directory.id": directory}
        (data / "meta.properties").write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return True

    def _format(self, command: list[str], folder: Path) -> None:
        remedy = "read the message above; if the cached jars are damaged, delete their folder"
        try:
            answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_FORMAT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ServiceUnavailable(self.name, f"formatting took over {_FORMAT_SECONDS:g} s", remedy) from error
        if answer.returncode != 0:
            said = (answer.stdout + answer.stderr)[-2000:]
            raise ServiceUnavailable(self.name, f"formatting its storage failed:\n{said}", remedy)

    def _properties(self, folder: Path) -> dict[str, str]:
        listeners = {"PLAINTEXT": self.port, "CONTROLLER": self.controller_port}
        advertised = {"PLAINTEXT": self.port}
        if self._behind_proxy and self.proxy:
            listeners["PROXIED"], advertised["PROXIED"] = self._behind_proxy, self.proxy.port
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.number),
            "controller.quorum.voters": self._quorum,
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
            "advertised.listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in advertised.items()),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in listeners),
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(folder / "data"),
            **self._config,
        }

    def _answers(self) -> bool:
        return accepts(self.port)

    def _release(self) -> None:
        if self.proxy is not None:
            self.proxy.close()
        for port in filter(None, (self.controller_port, self._behind_proxy)):
            release_port(port)
        super()._release()


class KafkaCluster(Closing):
    """A cluster on free ports of 127.0.0.1. It keeps its data over a restart, until close().

    Only `create_topics` makes topics, as in production. `config` adds or overrides broker settings. With `proxied`,
    each node has a `TcpProxy`, and clients of `proxied_bootstrap` always connect through it.
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
        """Start the nodes that don't run; blocks until all are in the cluster. Raises ServiceUnavailable."""
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
        """Stop all nodes at once: one by one, the last ones would wait for a quorum that is gone."""
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
        """Create topics; blocks until they can be written. Leaves existing ones unchanged. Raises KafkaError."""
        create_topics(self.bootstrap, names, partitions, replication or self._replication, config)


def kept_checkpoint() -> Path:
    """The cached checkpoint of this Kafka, which exists once its tool has made one."""
    return cache_folder() / "kafka-storage" / f"{KAFKA.folder_name}.checkpoint"


def keep_checkpoint(made: Path) -> None:
    """Keep it for later starts; without a cache that can be written each start formats its storage."""
    kept = kept_checkpoint()
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        whole = kept.with_suffix(f".{uuid.uuid4().hex}")
        shutil.copyfile(made, whole)
        whole.replace(kept)


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
        "broker.heartbeat.interval.ms": "1000",
        # An idle controller writes nothing; by default two records a second, a third of what an idle node computes.
        "metadata.max.idle.interval.ms": "0",
        # Tests write records dated long ago, which the default of 7 days would delete under them.
        "log.retention.ms": "-1",
        # Sizes for hundreds of small topics in a small heap.
        "log.index.size.max.bytes": "1048576",
        "log.cleaner.dedupe.buffer.size": "4194304",
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
    }
