"""(e) The limit: aiokafka's `getmany` and nothing else. No validation, no check of what the state held, no dead
letters; a thumb that comes twice or late is written as it comes."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any

import aiohttp
import orjson
import redis.asyncio as aioredis
import uvloop
from aiokafka import AIOKafkaConsumer

from benchmarks.contenders import job


class Loop:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._redis: Any = aioredis.Redis.from_url(job.REDIS)
        self._script = self._redis.register_script(job.SCRIPT)
        self._calls = asyncio.Semaphore(job.CALLS_IN_FLIGHT)
        self._batches = asyncio.Semaphore(job.CALLS_IN_FLIGHT)
        self._tasks: set[asyncio.Task[None]] = set()
        self._commits: list[asyncio.Task[None]] = []
        self._stopping = False

    async def run(self) -> None:
        consumer = AIOKafkaConsumer(
            job.TOPIC,
            bootstrap_servers=job.KAFKA,
            group_id=job.GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=4_194_304,
        )
        await consumer.start()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop)
        committed = time.monotonic()
        while not self._stopping:
            for records in (await consumer.getmany(timeout_ms=100, max_records=2_000)).values():
                for start in range(0, len(records), job.BATCH):
                    await self._batches.acquire()
                    task = asyncio.create_task(self._handle(records[start : start + job.BATCH]))
                    self._tasks.add(task)
                    task.add_done_callback(self._ended)
            if time.monotonic() - committed > 1.0:
                committed = time.monotonic()
                positions = {tp: await consumer.position(tp) for tp in consumer.assignment()}
                self._commits.append(asyncio.create_task(self._commit(consumer, positions, list(self._tasks))))
                del self._commits[:-2]
        await asyncio.gather(*self._tasks, *self._commits)
        await consumer.commit()
        await consumer.stop()

    async def _commit(self, consumer: Any, positions: dict[Any, int], before: list[asyncio.Task[None]]) -> None:
        await asyncio.gather(*before)
        await consumer.commit(positions)

    def _stop(self) -> None:
        self._stopping = True

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._batches.release()
        task.result()

    async def _handle(self, records: list[Any]) -> None:
        events = [orjson.loads(record.value) for record in records]
        found = await self._script(args=[job.script_argument(events)])
        await asyncio.gather(*map(self._put, job.bodies(events, found)))

    async def _put(self, body: bytes) -> None:
        async with self._calls, self._session.put(job.URL, data=body, headers=job.HEADERS) as answer:
            answer.raise_for_status()


async def main() -> None:
    async with aiohttp.ClientSession() as session:
        await Loop(session).run()


if __name__ == "__main__":
    uvloop.install()
    asyncio.run(main())
