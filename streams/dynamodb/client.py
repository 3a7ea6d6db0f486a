"""Calls DynamoDB and its streams through boto3, whose calls block: each runs in a thread, never in the event loop.

The caller repeats what failed: boto3's own retries would hold a thread and hide throttling. A few exceptions of ours
say what went wrong, so that no other module has to know botocore's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from streams.dynamodb.shards import Shard
from streams.retry import reason_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

T = TypeVar("T")
VIEW = "NEW_AND_OLD_IMAGES"


class Busy(Exception):
    """DynamoDB throttles, is out of reach or has an error of its own: try again later."""


class Gone(Exception):
    """There is no such table, stream or shard."""


class Expired(Exception):
    """The iterator is older than 15 minutes; a new one for the same place works."""


class Trimmed(Exception):
    """The stream no longer has the record at this place."""


class Misconfigured(Exception):
    """Only a person can mend this; the message says how."""


@dataclass(frozen=True)
class Described:
    """A stream's shards. `ended`: it was switched off, so no shard gets records any more."""

    shards: list[Shard]
    ended: bool


class Dynamo:
    """One table and its streams; at most `threads` calls run at once."""

    def __init__(self, table: str, region: str, endpoint: str | None, threads: int = 16) -> None:
        self.table = table
        self._where = {"region_name": region, "endpoint_url": endpoint}
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="dynamodb")
        self._made: tuple[DynamoDBClient, DynamoDBStreamsClient] | None = None

    def _clients(self) -> tuple[DynamoDBClient, DynamoDBStreamsClient]:
        import boto3
        from botocore.config import Config

        config = Config(
            connect_timeout=5,
            read_timeout=15,
            retries={"total_max_attempts": 1},
            max_pool_connections=self._threads,
        )
        session = boto3.session.Session()
        return (
            session.client("dynamodb", config=config, **self._where),  # type: ignore[call-overload]  # ** hides types
            session.client("dynamodbstreams", config=config, **self._where),  # type: ignore[call-overload]  # the same
        )

    async def call(self, call: Callable[[DynamoDBClient, DynamoDBStreamsClient], T]) -> T:
        """Run a blocking call in a thread. Raises one of the exceptions above."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(self._run, call))

    def _run(self, call: Callable[[DynamoDBClient, DynamoDBStreamsClient], T]) -> T:
        from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError, SSLError

        try:
            if self._made is None:
                self._made = self._clients()
            return call(*self._made)
        except ClientError as error:
            raise _translated(error, self.table) from error
        except SSLError as error:
            raise Misconfigured(f"DynamoDB can't be asked: {reason_of(error)}") from error
        except (HTTPClientError, ConnectionError) as error:  # the latter where no connection comes about
            raise Busy(reason_of(error)) from error
        except (BotoCoreError, ValueError) as error:
            raise Misconfigured(f"DynamoDB can't be asked: {reason_of(error)}") from error

    async def latest_stream(self) -> str:
        """ARN of the table's stream. Raises Gone without a table, Misconfigured without a stream of the right view."""
        table = (await self.call(lambda db, _: db.describe_table(TableName=self.table)))["Table"]
        made: Any = table.get("StreamSpecification") or {}
        arn = table.get("LatestStreamArn")
        remedy = f"enable it on table {self.table} with view type {VIEW}"
        if not arn or not made.get("StreamEnabled"):
            raise Misconfigured(f"table {self.table} has no stream: {remedy}")
        if made.get("StreamViewType") != VIEW:
            raise Misconfigured(
                f"the stream of table {self.table} carries {made.get('StreamViewType')}; withdrawals and updates need "
                f"{VIEW}: disable the stream and {remedy}"
            )
        return arn

    async def items(self) -> int:
        """Number of items in the table, as DynamoDB counted them in the last six hours."""
        return (await self.call(lambda db, _: db.describe_table(TableName=self.table)))["Table"].get("ItemCount", 0)

    async def describe(self, arn: str) -> Described:
        """All shards of a stream."""
        shards: list[Shard] = []
        options: dict[str, Any] = {"StreamArn": arn}
        while True:
            answer = await self.call(lambda _, streams: streams.describe_stream(**options))
            described = answer["StreamDescription"]
            for shard in described.get("Shards", []):
                span = shard.get("SequenceNumberRange", {})
                closed = bool(span.get("EndingSequenceNumber"))
                first = span.get("StartingSequenceNumber", "0")
                shards.append(Shard(shard["ShardId"], shard.get("ParentShardId"), first, closed))
            last = described.get("LastEvaluatedShardId")
            if not last:
                return Described(shards, described.get("StreamStatus") in ("DISABLED", "DISABLING"))
            options["ExclusiveStartShardId"] = last

    async def iterator(self, arn: str, shard_id: str, after: str | None) -> str:
        """An iterator that starts after a sequence number, or at the oldest record. Raises Trimmed or Gone."""
        options: dict[str, Any] = {"StreamArn": arn, "ShardId": shard_id, "ShardIteratorType": "TRIM_HORIZON"}
        if after is not None:
            options |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
        answer = await self.call(lambda _, streams: streams.get_shard_iterator(**options))
        return answer["ShardIterator"]

    async def records(self, iterator: str) -> tuple[list[Any], str | None]:
        """A page (at most 1,000 records or 1 MB; it may be empty) and the next iterator, None at the shard's end.

        Raises Expired, Trimmed or Gone.
        """
        answer = await self.call(lambda _, streams: streams.get_records(ShardIterator=iterator))
        return list(answer["Records"]), answer.get("NextShardIterator")

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


_BUSY = {"ThrottlingException", "LimitExceededException", "ProvisionedThroughputExceededException", "Throttling"}
_BUSY |= {"RequestLimitExceeded", "InternalServerError", "InternalFailure", "ServiceUnavailable", "RequestTimeout"}


def _translated(error: Any, table: str) -> Exception:
    """The exception above that says what botocore's ClientError means for the caller."""
    answer = error.response.get("Error", {})
    code, text = answer.get("Code", ""), answer.get("Message", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code == "ResourceNotFoundException":
        return Gone(f"{error.operation_name}: {text}")
    if code == "ExpiredIteratorException":
        return Expired(text)
    if code == "TrimmedDataAccessException":
        return Trimmed(text)
    if code == "ValidationException" and error.operation_name == "GetRecords":
        return Expired(text)
    if code == "ValidationException" and error.operation_name == "GetShardIterator":
        return Trimmed(text)
    if code in _BUSY or status >= 500 or status == 429:
        return Busy(f"{error.operation_name}: {code}")
    return Misconfigured(f"DynamoDB refuses {error.operation_name} on table {table}: {code}: {text}")
