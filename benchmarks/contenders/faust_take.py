"""(b) The best Faust agent that Faust's documentation leads to: `take`, then one call for each batch and part.

`concurrency` 1: two and four were slower."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import aiohttp
import faust
import orjson
import redis.asyncio as aioredis

from benchmarks.contenders import job

app = faust.App(
    job.GROUP,
    broker=f"kafka://{job.KAFKA}",
    topic_disable_leader=True,
    consumer_auto_offset_reset="earliest",
    broker_commit_interval=1.0,
)
topic = app.topic(job.TOPIC, value_serializer="raw")
store: Any = aioredis.Redis.from_url(job.REDIS)
script = store.register_script(job.SCRIPT)
sessions: list[aiohttp.ClientSession] = []


async def put(body: bytes) -> None:
    if not sessions:
        sessions.append(aiohttp.ClientSession())
    async with sessions[0].put(job.URL, data=body, headers=job.HEADERS) as answer:
        answer.raise_for_status()


@app.agent(topic, concurrency=int(os.environ.get("BENCH_CONCURRENCY", "1")))
async def thumbs(stream: Any) -> None:
    async for values in stream.take(job.BATCH, within=0.05):
        events = [orjson.loads(value) for value in values]
        found = await script(args=[job.script_argument(events)])
        await asyncio.gather(*map(put, job.bodies(events, found)))


if __name__ == "__main__":
    app.main()
