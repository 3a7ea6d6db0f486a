"""(c) The Faust agent as one first writes it: an event at a time."""

from __future__ import annotations

from typing import Any

import aiohttp
import faust
import redis.asyncio as aioredis

from benchmarks.contenders import job

app = faust.App(
    job.GROUP,
    broker=f"kafka://{job.KAFKA}",
    topic_disable_leader=True,
    consumer_auto_offset_reset="earliest",
)
topic = app.topic(job.TOPIC, value_type=None)
store: Any = aioredis.Redis.from_url(job.REDIS)


@app.agent(topic)
async def thumbs(stream: Any) -> None:
    async with aiohttp.ClientSession() as session:
        async for event in stream:
            key = "turn:" + event["response_id"]
            found = await store.hmget(key, "trace", "project")
            await store.hset(key, "thumbs", job.VALUES[event["value"]])
            for body in job.bodies([event], found):
                async with session.put(job.URL, data=body, headers=job.HEADERS) as answer:
                    answer.raise_for_status()


if __name__ == "__main__":
    app.main()
