"""(d) quixstreams with a custom `BatchingSink`, as its page "Creating a Custom Sink" and the page's "Performance
Considerations" say: `write(batch)` in chunks, batch size by `commit_every`. Runs in a venv of its own.

Kinder to it than that page: the chunks of a batch are written by eight threads, Redis gets one script call a chunk, and
`commit_every` is 50,000, the fastest of 1,000 (the page's example), 4,000, 10,000, 20,000 and 50,000.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import redis
import urllib3
from quixstreams import Application  # type: ignore[import-not-found]  # lives in its own environment
from quixstreams.sinks.base import BatchingSink, SinkBatch  # type: ignore[import-not-found]

from benchmarks.contenders import job


class OpikSink(BatchingSink):  # type: ignore[misc]
    def setup(self) -> None:
        self._store: Any = redis.Redis.from_url(job.REDIS)
        self._script = self._store.register_script(job.SCRIPT)
        self._http = urllib3.PoolManager(maxsize=job.CALLS_IN_FLIGHT)
        self._pool = ThreadPoolExecutor(job.CALLS_IN_FLIGHT)

    def write(self, batch: SinkBatch) -> None:
        calls = []
        for chunk in batch.iter_chunks(job.BATCH):
            events = [item.value for item in chunk]
            found = self._script(args=[job.script_argument(events)])
            calls += [self._pool.submit(self._put, body) for body in job.bodies(events, found)]
        for call in calls:
            call.result()

    def _put(self, body: bytes) -> None:
        answer = self._http.request("PUT", job.URL, body=body, headers=job.HEADERS)
        if answer.status >= 300:
            raise RuntimeError(f"Opik answers {answer.status}")


def main() -> None:
    app = Application(
        broker_address=job.KAFKA,
        consumer_group=job.GROUP,
        auto_offset_reset="earliest",
        auto_create_topics=False,
        commit_interval=1.0,
        commit_every=int(os.environ.get("BENCH_COMMIT_EVERY", "50000")),
        loglevel="WARNING",
    )
    app.dataframe(app.topic(job.TOPIC, value_deserializer="json")).sink(OpikSink())
    app.run()


if __name__ == "__main__":
    main()
