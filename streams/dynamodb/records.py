"""Turns a DynamoDB stream record as boto3 gives it into the JSON that AWS publishes (contracts §1)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

import orjson

from agents.dynamodb import scalar
from agents.policy import Attributes

_IDENTITY = {"PrincipalId": "principalId", "Type": "type"}


def message_of(
    record: Mapping[str, Any], arn: str, names: Attributes, limit: int
) -> tuple[bytes, bytes] | tuple[bytes, None]:
    """Key and value for the thumbs topic. The key is the response id, so that a turn's changes stay in order.

    A value over `limit` bytes keeps only the configured attributes; it is None where even that is too large.
    """
    change = dict(record["dynamodb"])
    at = change.get("ApproximateCreationDateTime")
    if isinstance(at, datetime):
        change["ApproximateCreationDateTime"] = seconds(at)
    whole: dict[str, Any] = {**record, "dynamodb": change, "eventSourceARN": arn}
    identity = record.get("userIdentity")
    if isinstance(identity, Mapping):
        whole["userIdentity"] = {_IDENTITY.get(name, name): value for name, value in identity.items()}
    key = key_of(change, names)
    value = dumps(whole)
    if len(value) > limit:
        keep = {*vars(names).values(), *change.get("Keys", {})}
        for side in ("NewImage", "OldImage"):
            if side in change:
                change[side] = {name: content for name, content in change[side].items() if name in keep}
        value = dumps(whole)
    return (key, value) if len(value) <= limit else (key, None)


def key_of(change: Mapping[str, Any], names: Attributes) -> bytes:
    """The response id of the newer image, else of the older one, else the item's key."""
    for side in ("NewImage", "OldImage"):
        found = scalar(change.get(side) or {}, names.response_id)
        if found:
            return found.encode()
    keys = change.get("Keys") or {}
    message_id = scalar(keys, names.message_id)
    return message_id.encode() if message_id else dumps(keys)


def created_ms(record: Mapping[str, Any]) -> int | None:
    """When the item changed (ms); None where the record does not say."""
    at = record["dynamodb"].get("ApproximateCreationDateTime")
    if isinstance(at, datetime):
        return round(at.timestamp() * 1000)
    return round(at * 1000) if isinstance(at, (int, float)) else None


def seconds(moment: datetime) -> int | float:
    """Unix time, as an integer where it has no fraction, as AWS writes it."""
    at = moment.timestamp()
    return int(at) if at.is_integer() else at


def dumps(value: Any) -> bytes:
    """JSON of what boto3 returns, the same bytes for the same value."""
    return orjson.dumps(
        value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
    )


def _plain(value: Any) -> Any:
    """A JSON form for types that JSON lacks: binary as base64, sets as arrays, exact numbers as text."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return seconds(value)
    if isinstance(getattr(value, "value", None), bytes):  # boto3's Binary
        return base64.b64encode(value.value).decode()
    raise TypeError(f"{type(value).__name__} has no JSON form")
