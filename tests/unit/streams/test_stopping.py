"""A loop that is told to stop stops, also when the client it was in swallowed that."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from agents.ports import Unavailable
from evalcore.gates.regression import WatchLimits
from evalcore.stopping import heed_cancel
from rampgate.worker.feed import FeedHealth
from schemas.dead_letters import MadeRecord, Record
from schemas.settings import KafkaAccess
from streams.alerts.regression_watch import RegressionWatch
from streams.dynamodb.feed import Feed
from streams.dynamodb.shard_reader import ShardReader
from streams.gates import verdict_log
from streams.gates.verdict_log import VerdictLog
from streams.kafka import delayed_consumer, transport
from streams.kafka.client import Producer
from streams.kafka.delayed_consumer import DelayedConsumer, _Place
from streams.kafka.transport import BatchConsumerThread
from streams.retry import Retry, WallClock
from tests.memory_ports import ManualClock, MemoryStore

ACCESS = KafkaAccess(("127.0.0.1:1",))


async def swallowing_client() -> None:
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        raise OSError("connection lost") from None


async def test_a_swallowed_cancellation_ends_the_loop_all_the_same() -> None:
    async def loop() -> None:
        while True:
            try:
                await swallowing_client()
            except OSError:
                heed_cancel()
                await asyncio.sleep(60)

    task = asyncio.create_task(loop())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 20)


async def test_nothing_happens_to_a_task_that_nobody_stopped() -> None:
    heed_cancel()


class DeafConsumer:
    """A consumer of an empty topic that does not notice the first time that its task is cancelled."""

    def __init__(self) -> None:
        self.asked, self.deaf, self._client = asyncio.Event(), True, self

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def subscribe(self, topics: object, listener: object) -> None: ...

    def assign(self, partitions: object) -> None: ...

    def seek(self, partition: object, offset: int) -> None: ...

    def assignment(self) -> set[object]:
        return set()

    async def position(self, partition: object) -> int:
        return 0

    async def beginning_offsets(self, partitions: list[object]) -> dict[object, int]:
        return dict.fromkeys(partitions, 0)

    async def _wait_on_metadata(self, topic: str) -> set[int]:
        return {0}

    async def getmany(self, **options: int) -> dict[object, list[object]]:
        self.asked.set()
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            if not self.deaf:
                raise
            self.deaf = False
        return {}


async def ends(stop: Coroutine[Any, Any, object]) -> bool:
    """Tells whether it ends soon; if not, it is broken off."""
    task = asyncio.ensure_future(stop)
    done, _ = await asyncio.wait({task}, timeout=2.0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return bool(done)


async def test_the_verdicts_reader_ends_though_its_client_lost_the_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumer = DeafConsumer()
    monkeypatch.setattr(verdict_log, "make_consumer", lambda *_, **__: consumer)
    log = VerdictLog(ACCESS, Producer(ACCESS), "verdicts", MemoryStore(ManualClock()))
    log._fenced = None
    await log.start()
    await consumer.asked.wait()
    assert await ends(log.close())
    assert not consumer.deaf


async def test_a_delayed_consumer_ends_though_its_client_lost_the_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumer = DeafConsumer()
    monkeypatch.setattr(delayed_consumer, "make_consumer", lambda *_, **__: consumer)
    task = asyncio.create_task(DelayedConsumer("news", ACCESS, "group", {}, WallClock(), 0.0).run())
    await consumer.asked.wait()
    task.cancel()
    assert await ends(asyncio.wait({task}))
    assert task.cancelled()
    assert not consumer.deaf


async def test_work_on_a_partition_ends_though_a_client_lost_the_cancellation() -> None:
    """What is left of its records may have to wait for longer than the group's session."""
    asked = asyncio.Event()

    async def deaf(records: Sequence[Record]) -> list[Record]:
        asked.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return []

    clock = WallClock()
    delayed = DelayedConsumer("news", ACCESS, "group", {"topic": deaf}, clock, 30.0)
    times = 0, clock.now_ms()
    records = [MadeRecord("topic", b"", offset=number, timestamp=at) for number, at in enumerate(times)]
    task = asyncio.create_task(delayed._bring(TopicPartition("topic", 0), _Place(0, 0), records))
    await asked.wait()
    task.cancel()
    assert await ends(asyncio.wait({task}))
    assert task.cancelled()


@pytest.mark.parametrize("error", [OSError, Unavailable])
async def test_what_is_stopped_is_not_tried_again_though_the_call_made_an_error_of_it(
    error: Callable[[str], Exception],
) -> None:
    tried = 0

    async def call() -> None:
        nonlocal tried
        tried += 1
        if tried > 1:
            return
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise error("connection lost") from None

    task = asyncio.create_task(Retry(first=0.0, longest=0.0).call(call, (OSError, Unavailable)))
    await asyncio.sleep(0)
    task.cancel()
    assert await ends(asyncio.wait({task}))
    assert (task.cancelled(), tried) == (True, 1)


async def test_a_try_that_took_too_long_ends_with_its_time_and_not_as_one_that_was_stopped() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await Retry(first=0.0, longest=0.0, tries=3).call(swallowing_client, OSError)
    heed_cancel()


class Deaf:
    """A client that makes an error of the first cancellation that comes while it is asked, and then goes on failing."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def __call__(self, *_: object) -> Any:
        if self.asked.is_set():
            raise Unavailable("connection lost")
        self.asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise Unavailable("connection lost") from None

    @property
    def everything(self) -> Any:
        """An object all of whose methods are this client."""
        return type("Everything", (), {"__getattr__": lambda _, name: self})()


def watch_of_regressions(client: Deaf) -> Coroutine[Any, Any, object]:
    store = MemoryStore(ManualClock())
    watch = RegressionWatch(
        store, ManualClock(), lambda: None, client, window_seconds=1.0, limits=WatchLimits(), every=0.0
    )
    look: Any = client
    vars(watch)["once"] = look
    return watch.run()


def beat_of_the_feed(client: Deaf) -> Coroutine[Any, Any, object]:
    feed: Any = SimpleNamespace(ledger=SimpleNamespace(lease_ms=0), readers={"shard": client.everything}, _tasks={})
    return Feed._beat(feed)


def reader_of_a_shard(client: Deaf) -> Coroutine[Any, Any, object]:
    lease = SimpleNamespace(valid=True, shard_id="shard", place=SimpleNamespace(end=False))
    reader: Any = SimpleNamespace(
        stopping=asyncio.Event(), polls=asyncio.Semaphore(), clock=ManualClock(), _failures=0, lease=lease
    )
    reader._step = client
    return ShardReader.run(reader)


def feeds_look_for_its_stream(client: Deaf) -> Coroutine[Any, Any, object]:
    feed: Any = SimpleNamespace(_stopping=asyncio.Event(), _wake=asyncio.Event(), _next_stream=client)
    return Feed._locate(feed)


def health_of_the_feed(client: Deaf) -> Coroutine[Any, Any, object]:
    feed: Any = SimpleNamespace(ledger=client.everything)
    return FeedHealth(feed, parts=feed).run()


@pytest.mark.parametrize(
    "loop",
    [watch_of_regressions, beat_of_the_feed, reader_of_a_shard, feeds_look_for_its_stream, health_of_the_feed],
)
async def test_a_loop_of_a_worker_or_a_feed_ends_though_its_client_lost_the_cancellation(
    loop: Callable[[Deaf], Coroutine[Any, Any, object]],
) -> None:
    client = Deaf()
    task = asyncio.ensure_future(loop(client))
    await client.asked.wait()
    task.cancel()
    assert await ends(asyncio.wait({task}))
    assert task.cancelled()


def test_a_consumers_thread_that_hangs_holds_up_neither_a_stop_nor_the_end_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its client waits for brokers that don't answer."""
    monkeypatch.setattr(transport, "THREAD_SECONDS", 0.01)
    go_on = threading.Event()
    thread = BatchConsumerThread.Worker(SimpleNamespace(_start_thread=go_on.wait))
    thread.start()
    thread.stop()
    assert thread.is_alive()
    assert thread.daemon, "else Python waits for it at its end"
    go_on.set()
    thread.join(20)
    thread.stop()
    assert not thread.is_alive()
