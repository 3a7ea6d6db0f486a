"""Keeps a store's values as objects in S3, or in what speaks its language (`AWS_ENDPOINT_URL`).

The first value of a key stands by conditional writes: an object is put where there is none, and one without a valid
seal is replaced by its ETag, if no one did it before. A bucket forgets by its lifecycle rules.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from agents.ports import Unavailable
from rampgate.store.shelf import unusable
from streams.retry import reason_of

T = TypeVar("T")
THREADS: Final = 32
"""Calls under way: boto3's block."""
TRIES: Final = 3
CONTENDED: Final = 20
"""So often a put that meets another one looks again."""
MISSING: Final = frozenset({"NoSuchKey", "404"})
TAKEN: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "409"})
SERVER_FAULT: Final = 500


AWAY_SECONDS: Final = 15.0
"""So long an address that gave no answer is not asked: a run works without its store, instead of waiting at each
answer."""


class Reach:
    """One address; threads may share it. `shown` is the address without a password."""

    def __init__(self, shown: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.shown, self._clock = shown, clock
        self._away: tuple[float, str] | None = None

    def check(self) -> None:
        """Raises Unavailable for AWAY_SECONDS after a call without an answer."""
        away = self._away
        if away is not None and self._clock() < away[0]:
            raise Unavailable(away[1])

    def lost(self, why: object) -> Unavailable:
        """Note that there was no answer; returns what says so."""
        told = unusable(self.shown, why)
        self._away = self._clock() + AWAY_SECONDS, told
        return Unavailable(told)


class S3Shelf:
    """See `Shelf`. An object's key is the prefix, the kind, and the value's key, each behind a /.

    Raises Unavailable where the bucket can't be listed."""

    def __init__(self, bucket: str, prefix: str) -> None:
        self._bucket, self._prefix = bucket, f"{prefix}/" if prefix else ""
        self._reach = Reach(f"s3://{bucket}/{prefix}".rstrip("/"))
        self._pool = ThreadPoolExecutor(THREADS, "store")
        try:
            self._s3 = self._pool.submit(self._opened).result()
        except BaseException:
            self.close()
            raise

    @property
    def shown(self) -> str:
        return self._reach.shown

    def _opened(self) -> Any:
        import boto3
        from botocore.config import Config

        with self._told():
            config = Config(
                connect_timeout=5, read_timeout=30, max_pool_connections=THREADS,
                retries={"total_max_attempts": TRIES, "mode": "standard"},
                # Values are sealed, and not every store of this kind knows S3's newer checksums.
                request_checksum_calculation="when_required", response_checksum_validation="when_required",
            )  # fmt: skip
            client: Any = boto3.session.Session().client("s3", config=config)
            client.list_objects_v2(Bucket=self._bucket, Prefix=self._prefix, MaxKeys=1)
        return client

    async def read(self, names: Sequence[str]) -> list[bytes | None]:
        held = await asyncio.gather(*(self._do(partial(self._held, name)) for name in names))
        return [one[0] if one is not None else None for one in held]

    async def put(self, name: str, value: bytes, wrong: bytes | None) -> bytes | None:
        """All stays as long as the bucket keeps it."""
        return await self._do(partial(self._put, name, value, wrong))

    async def beginning(self, start: str) -> list[tuple[str, bytes]]:
        names = await self._do(partial(self._listed, start))
        values = await self.read(names)
        return [(name, value) for name, value in zip(names, values, strict=True) if value is not None]

    async def use(self, names: Sequence[str]) -> None:
        """A bucket goes by the day of writing."""

    async def forget(self, needed: Callable[[], Awaitable[Sequence[str] | None]]) -> None:
        """A bucket forgets by its lifecycle rules."""

    def close(self) -> None:
        self._pool.shutdown()

    def _put(self, name: str, value: bytes, wrong: bytes | None) -> bytes | None:
        from botocore.exceptions import ClientError

        where: dict[str, str] = {"IfNoneMatch": "*"}
        for _ in range(CONTENDED):
            try:
                self._s3.put_object(Bucket=self._bucket, Key=self._object(name), Body=value, **where)
                return None
            except ClientError as error:
                if _code(error) not in TAKEN | MISSING:
                    raise
            held = self._held(name)
            if held is not None and held[0] != wrong:
                return held[0]
            where = {"IfNoneMatch": "*"} if held is None else {"IfMatch": held[1]}
        raise Unavailable(unusable(self.shown, f"{name} is written by others all the time"))

    def _held(self, name: str) -> tuple[bytes, str] | None:
        """The object's bytes and its ETag."""
        from botocore.exceptions import ClientError

        try:
            found = self._s3.get_object(Bucket=self._bucket, Key=self._object(name))
            return found["Body"].read(), found["ETag"]
        except ClientError as error:
            if _code(error) in MISSING:
                return None
            raise

    def _listed(self, start: str) -> list[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._object(start))
        keys = [one["Key"].removeprefix(self._prefix) for page in pages for one in page.get("Contents", ())]
        return [key.replace("/", ":", 1) for key in keys]

    def _object(self, name: str) -> str:
        return self._prefix + name.replace(":", "/", 1)

    async def _do(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._done, work)

    def _done(self, work: Callable[[], T]) -> T:
        self._reach.check()
        with self._told():
            return work()

    @contextmanager
    def _told(self) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
        from botocore.exceptions import ConnectionError as AwsConnectionError

        try:
            yield
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) >= SERVER_FAULT:
                raise self._reach.lost(error) from error
            raise Unavailable(unusable(self.shown, error)) from error
        except (HTTPClientError, AwsConnectionError, OSError) as error:
            raise self._reach.lost(reason_of(error)) from error
        except (BotoCoreError, ValueError) as error:
            raise Unavailable(unusable(self.shown, reason_of(error))) from error


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
