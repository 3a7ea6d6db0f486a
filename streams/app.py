"""The Faust app: one agent for each topic, which takes batches, tied to its pipeline and to the state."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, cast

import faust
import structlog
from faust.tables.manager import TableManager
from faust.types import TP

from agents.join.batches import Agent, FetchedBatch
from agents.join.step import Hold
from agents.join.step_data import Report
from agents.policy import Policy
from agents.ports import Ports, StateLost
from evalcore.stopping import heed_cancel
from schemas.settings import KafkaAccess
from schemas.topics import Topics
from streams.gates.ramp_requests import RampRequests
from streams.kafka.client import PARTITIONS_MS
from streams.kafka.inflation import FETCH_BYTES
from streams.kafka.offsets import KafkaOffsets
from streams.kafka.start_offsets import StartOffsets
from streams.kafka.transport import BatchConsumer, BatchTransport
from streams.pipeline import Pipeline, register

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Tuning:
    """How a worker consumes. Times in seconds."""

    group: str = "rampgate"
    batch_records: int = 2_000
    batches_in_flight: int = 16
    bad_records_in_a_row: int = 1_000
    session_timeout: float = 6.0
    commit_interval: float = 1.0
    group_instance_id: str | None = None
    fetch_bytes: int = FETCH_BYTES

    @property
    def records_in_flight(self) -> int:
        return self.batch_records * self.batches_in_flight


class NoTables(TableManager):
    """Starts at once: Faust waits a second for tables to register, and we have none."""

    async def on_start(self) -> None:
        await self._update_channels()
        await self.recovery.start()


class RampgateApp(faust.App):
    """Faust's app with our transport. The consumer asks it where each partition starts."""

    start_offsets: StartOffsets
    offsets: KafkaOffsets
    batch_records: int
    begun_to: Callable[[TP], int | None]

    def _new_transport(self) -> Any:
        return BatchTransport(self.conf.broker_consumer, self, loop=self.loop)

    async def start_of_partition(self, tp: TP, committed: int | None, settled: int | None) -> int:
        return await self.start_offsets.start(tp, committed, settled, self.offsets)


@dataclass
class Consumption:
    """The app and its pipelines. `failure` is set once, to the error that must stop the worker. Faust demands a
    `folder` and keeps nothing in it."""

    app: RampgateApp
    folder: tempfile.TemporaryDirectory[str]
    pipelines: dict[str, Pipeline] = field(default_factory=dict)
    gates: RampRequests | None = None
    failure: asyncio.Future[BaseException] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    _rewinding: set[TP] = field(default_factory=set)

    @property
    def consumer(self) -> BatchConsumer:
        return cast(BatchConsumer, self.app.consumer)

    async def stop(self, grace: float = 10.0) -> None:
        """Settle what is in flight within `grace` seconds, commit, and leave the group."""
        if self.gates is not None:
            await self.gates.stop(grace)
        await asyncio.gather(*(pipeline.stop(grace) for pipeline in self.pipelines.values()))
        # A worker that is not a member yet, or whose brokers are gone, has nothing to note. A call of the consumer's
        # thread, while that ends by a defect, comes back as cancelled.
        with suppress(Exception, asyncio.CancelledError):
            await asyncio.wait_for(self.consumer.leave_cleanly(self.consumer.assignment()), grace)
        heed_cancel()
        # What could be settled is settled. Faust would wait for the rest without end, as after a refused key.
        self.app.conf.stream_wait_empty = False
        try:
            await asyncio.wait_for(self.app.stop(), grace + 5.0)
        except TimeoutError:
            log.error("stop_hangs", seconds=grace + 5.0, consequence="what was not committed is read again")
        self.folder.cleanup()
        await self.app.offsets.close()

    def begun_to(self, tp: TP) -> int | None:
        """The offset beyond which no batch of the partition was begun that is not settled; None of a topic without a
        pipeline."""
        return next((one.begun_to(tp) for name, one in self.pipelines.items() if one.topics[name] == tp.topic), None)

    def fatal(self, error: BaseException) -> None:
        """Set `failure`, unless an earlier error has set it."""
        if not self.failure.done():
            self.failure.set_result(error)

    async def lost(self, lost: StateLost, batch: FetchedBatch) -> None:
        """Read the partition of a batch again that found no state."""
        tp = TP(batch.topic, batch.partition)
        if self.consumer.current(batch):
            await self.rewind(tp)

    async def rewind(self, tp: TP) -> None:
        """Read a partition again from where the state left off, unless that is under way."""
        if tp in self._rewinding:
            return
        self._rewinding.add(tp)
        try:
            await self.consumer.return_to_state(tp)
        except Exception as error:
            log.exception("rewind_failed", topic=tp.topic, partition=tp.partition)
            self.fatal(error)
        finally:
            self._rewinding.discard(tp)


def consume(
    access: KafkaAccess,
    tuning: Tuning,
    topics: Topics,
    agents: Mapping[str, Agent],
    ports: Ports,
    policy: Policy,
    start_offsets: StartOffsets,
    *,
    observe: Callable[[Report], None],
    hold: Hold,
    now: Callable[[], int] | None = None,
    gates: Callable[[Consumption], RampRequests] | None = None,
) -> Consumption:
    """An app that consumes each topic with its agent; it is not started yet. `hold` and `now` as in `Pipeline`."""
    folder = tempfile.TemporaryDirectory(prefix="rampgate-faust-")
    app = RampgateApp(
        tuning.group,
        broker=[f"kafka://{broker}" for broker in access.brokers],
        broker_credentials=credentials(access),
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
        TableManager=NoTables,
        store="memory://",
        datadir=folder.name,
        web_enabled=False,
        autodiscover=False,
        stream_wait_empty=True,
        stream_buffer_maxsize=4,
        stream_recovery_delay=0.0,
        broker_max_poll_records=tuning.batch_records,
        broker_session_timeout=tuning.session_timeout,
        broker_heartbeat_interval=max(tuning.session_timeout / 6, 0.5),
        broker_rebalance_timeout=30.0,
        broker_commit_interval=tuning.commit_interval,
        broker_check_crcs=True,
        consumer_auto_offset_reset="none",  # `StartOffsets` says where to read on, and counts what is passed over
        consumer_max_fetch_size=tuning.fetch_bytes,
        consumer_metadata_max_age_ms=PARTITIONS_MS,
        worker_redirect_stdouts=False,
    )
    # Faust's default is "", which Kafka takes for a static id: all workers would be one member and fence one another.
    app.conf.consumer_group_instance_id = cast(str, tuning.group_instance_id or None)
    app.start_offsets, app.batch_records = start_offsets, tuning.batch_records
    app.offsets = KafkaOffsets(access)
    consumption = Consumption(app, folder)
    app.begun_to = consumption.begun_to
    for name, agent in agents.items():
        pipeline = Pipeline(
            agent,
            ports,
            policy,
            topics,
            in_flight=tuning.batches_in_flight,
            bad_in_a_row=tuning.bad_records_in_a_row,
            consumer=partial(attrgetter("consumer"), app),
            observe=observe,
            lost=consumption.lost,
            fatal=consumption.fatal,
            hold=hold,
            quarantine=start_offsets.quarantine,
            now=now,
        )
        consumption.pipelines[name] = pipeline
        register(app, topics[name], name, pipeline.submit)
    if gates is not None:
        consumption.gates = gates(consumption)
        register(app, topics["ramp-steps"], "ramps", consumption.gates.submit)
    app.finalize()
    return consumption


def credentials(access: KafkaAccess) -> Any:
    """Faust's credentials, None for plain text."""
    if access.protocol == "PLAINTEXT":
        return None
    import ssl

    context = ssl.create_default_context(cafile=access.ca_file) if access.protocol.endswith("SSL") else None
    if access.protocol == "SSL":
        return faust.SSLCredentials(context)
    return faust.SASLCredentials(
        username=access.user, password=access.password, ssl_context=context, mechanism=access.mechanism or "PLAIN"
    )
