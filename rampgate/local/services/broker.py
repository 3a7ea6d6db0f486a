"""librdkafka's mock broker in a process of its own: Kafka's protocol without Java, for the demo and quick tests.

It has groups, commits and idempotent producers; it forgets everything when it ends, has no CreateTopics (a topic is
made when a client asks about it), keeps about 5 MB a partition and takes another port at each start. It serves clients
on librdkafka, aiokafka and kafka-python 2; kafka-python 3 and Java's of Kafka 4 begin with requests it does not know.

    python -m rampgate.local.services.broker --port-file FILE
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from rampgate.local.services.process import ChildProcess, ServiceUnavailable
from rampgate.local.services.service import Service
from rampgate.local.services.topics import touch_topics

PARTITIONS = 4
"""Partitions of every topic of the mock, which takes no other number."""
PRODUCER = 0
"""librdkafka's `RD_KAFKA_PRODUCER`."""
FIRST_ASSIGNMENT_MS = 1
REMEDY = "install the wheel that carries it: pip install 'rampgate[local]'"


class MockBroker(Service):
    """Has KafkaCluster's methods where it can. A restart makes another, empty cluster on another port."""

    name: ClassVar[str] = "mock broker"

    @property
    def bootstrap(self) -> str:
        """The address, once it has started. Raises FileNotFoundError before."""
        return self._port_file.read_text()

    def create_topics(
        self,
        names: Iterable[str],
        partitions: int = PARTITIONS,
        replication: int | None = None,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create topics; blocks until they can be written. Raises ValueError for a number of partitions other than 4.

        `replication` and `config` have no effect; KafkaCluster has them too.
        """
        if partitions != PARTITIONS:
            raise ValueError(f"the mock broker gives every topic {PARTITIONS} partitions, not {partitions}")
        touch_topics(self.bootstrap, names)

    @property
    def _port_file(self) -> Path:
        return self.folder / "bootstrap"

    def _prepare(self, folder: Path) -> ChildProcess:
        if importlib.util.find_spec("confluent_kafka") is None:
            raise ServiceUnavailable(self.name, "confluent-kafka isn't installed", REMEDY)
        command = [sys.executable, "-m", "rampgate.local.services.broker", "--port-file", str(self._port_file)]
        return ChildProcess("mock-broker", command, folder, remedy=REMEDY)

    def start(self) -> None:
        if not self.pids:
            self._port_file.unlink(missing_ok=True)
        super().start()

    def _answers(self) -> bool:
        return self._port_file.exists()


def start_cluster() -> str:
    """Start a mock cluster of one broker that lives as long as this process; return its bootstrap address.

    Goes by librdkafka's C interface, because a setting can't name the pause before a new group's first assignment:
    three seconds, which everything that consumes would wait.
    """
    from confluent_kafka import cimpl

    library = ctypes.CDLL(cimpl.__file__)  # finds librdkafka's functions too, which the extension is linked with
    library.rd_kafka_conf_new.restype = library.rd_kafka_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    error = ctypes.create_string_buffer(512)
    configuration = ctypes.c_void_p(library.rd_kafka_conf_new())
    owner = library.rd_kafka_new(PRODUCER, configuration, error, ctypes.c_size_t(len(error)))
    if owner is None:
        raise ServiceUnavailable(MockBroker.name, error.value.decode(), REMEDY)
    cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(ctypes.c_void_p(owner), 1))
    library.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, FIRST_ASSIGNMENT_MS)
    return str(library.rd_kafka_mock_cluster_bootstraps(cluster).decode())


def main(arguments: list[str] | None = None) -> None:
    """Serve until TERM or Ctrl-C. Write the port file in one step."""
    parser = argparse.ArgumentParser(prog="python -m rampgate.local.services.broker", description=__doc__)
    parser.add_argument("--port-file", type=Path, required=True, help="takes the bootstrap address, host:port[,...]")
    options = parser.parse_args(arguments)

    address = start_cluster()
    whole = options.port_file.with_suffix(".part")
    whole.write_text(address)
    whole.replace(options.port_file)
    print(address, flush=True)

    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()


if __name__ == "__main__":
    main()
