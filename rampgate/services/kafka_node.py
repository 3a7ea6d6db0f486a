"""One node of Apache Kafka: broker and controller in one Java process."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from rampgate.services.jars import KAFKA, jar_folder
from rampgate.services.java import find_java
from rampgate.services.ports import accepts, release_port, reserve_port
from rampgate.services.process import ChildProcess, bound_to_us
from rampgate.services.proxy import TcpProxy
from rampgate.services.service import Service
from rampgate.services.unavailable import ServiceUnavailable

_FORMAT_SECONDS = 60.0
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


class KafkaNode(Service):
    """Keeps its data over stop, kill and restart. Belongs to a KafkaCluster, which says when it is ready."""

    name: ClassVar[str] = "kafka"
    ready_seconds: ClassVar[float] = 60.0
    """After a kill it looks through all its topics before it listens."""

    def __init__(self, number: int, heap_megabytes: int, *, proxied: bool) -> None:
        super().__init__()
        self.number = number
        self.port = reserve_port()
        self.controller_port = reserve_port()
        self._heap = heap_megabytes
        self._quorum = ""
        self._config: Mapping[str, str] = {}
        self._behind_proxy = reserve_port() if proxied else None
        self.proxy = TcpProxy("127.0.0.1", self._behind_proxy) if self._behind_proxy else None
        """Where a `proxied` node's clients connect; None without."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def join(self, quorum: str, config: Mapping[str, str]) -> None:
        """Told by the cluster before the first start: all voters, and settings that win over ours."""
        self._quorum, self._config = quorum, config

    def _prepare(self, folder: Path) -> ChildProcess:
        java, jars = find_java(), jar_folder(KAFKA)
        config = folder / "server.properties"
        config.write_text("".join(f"{key}={value}\n" for key, value in self._properties(folder).items()))
        logging = folder / "log4j2.properties"
        logging.write_text(_LOGGING)
        machine = [str(java), f"-Xmx{self._heap}m", "-XX:+UseSerialGC", "-XX:-UsePerfData"]
        machine += [f"-Dlog4j2.configurationFile={logging}", "-cp", f"{jars}{os.sep}*"]
        # The second compiler never pays for a run of a second.
        quick = [machine[0], "-XX:TieredStopAtLevel=1", *machine[1:]]
        self._format([*quick, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(config)], folder)
        return ChildProcess(self.name, [*machine, "kafka.Kafka", str(config)], folder)

    def _format(self, command: list[str], folder: Path) -> None:
        remedy = "read the message above; if the cached jars are damaged, delete their folder"
        try:
            answer = subprocess.run(
                bound_to_us(command), cwd=folder, capture_output=True, text=True, timeout=_FORMAT_SECONDS
            )
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
        for port in (self.port, self.controller_port, self._behind_proxy):
            if port is not None:
                release_port(port)
