"""Makes thumbs of DynamoDB stream records, bare or in the envelopes they travel in (contracts §1)."""

from __future__ import annotations

from typing import Any

from agents.codec import Dropped, SignalEvent, quoted, sequence_of, time_ms
from agents.policy import Policy
from schemas.events import Image, StreamRecord
from schemas.outcomes import FilterReason

VALUES = {"up": 1, "down": -1, None: 0}
TTL_PRINCIPAL = "dynamodb.amazonaws.com"
MAX_NESTED = 10_000
MAX_DEPTH = 8


def of_change(index: int, record: StreamRecord, now: int, policy: Policy) -> SignalEvent | Dropped:
    """Make a thumb of one stream record. INSERT and MODIFY set it, REMOVE withdraws it, REMOVE by time-to-live does
    neither."""
    change, names = record["dynamodb"], policy.attributes
    removed = record["eventName"] == "REMOVE"
    image = change.get("OldImage") if removed else change.get("NewImage")
    at = change.get("ApproximateCreationDateTime")
    field = "dynamodb.ApproximateCreationDateTime"
    if at is None and image:
        at, field = created(image, names.created_at), f"dynamodb image: attribute {names.created_at}"
    time = time_ms(at, field, now, policy)
    identity = record.get("userIdentity") or {}
    if removed and TTL_PRINCIPAL in (identity.get("principalId"), identity.get("PrincipalId")):
        return Dropped(index, FilterReason.TTL_EXPIRY, time)
    if not image:
        side = "OldImage" if removed else "NewImage"
        raise ValueError(f"dynamodb.{side}: missing; set the stream's view type to NEW_AND_OLD_IMAGES")
    response_id = scalar(image, names.response_id)
    if not response_id or len(response_id) > 512:
        raise ValueError(f"dynamodb image: attribute {names.response_id} is missing or no usable string")
    return SignalEvent(
        index,
        response_id,
        0 if removed else thumb_value(image, names.thumbs),
        time,
        sequence_of(change["SequenceNumber"], "dynamodb.SequenceNumber"),
        vertical=scalar(image, names.vertical) or "",
    )


def unwrap(event: Any, depth: int = MAX_DEPTH) -> list[dict[str, Any]]:
    """Return the stream records in a bare, Lambda, EventBridge Pipes or Debezium message; [] for any other."""
    if not depth:
        return []
    if isinstance(event, list):
        found = [change for item in event[:MAX_NESTED] for change in unwrap(item, depth - 1)]
        return found if len(found) == len(event) else []
    if not isinstance(event, dict):
        return []
    if "dynamodb" in event:
        return [event]
    for name in ("Records", "records", "detail", "payload"):
        if isinstance(event.get(name), (dict, list)):
            return unwrap(event[name], depth - 1)
    if "op" in event and ("after" in event or "before" in event):
        return [from_debezium(event)]
    return []


def from_debezium(event: dict[str, Any]) -> dict[str, Any]:
    """Convert Debezium's before/after/op to a stream record. The schema reports wrong parts."""
    given = event.get("source")
    source: dict[str, Any] = given if isinstance(given, dict) else {}
    sequence = source.get("sequence") or source.get("sequenceNumber") or event.get("sequence")
    moment = source.get("ts_ms") or event.get("ts_ms")
    change: dict[str, Any] = {
        "Keys": {},
        "NewImage": typed(event.get("after")),
        "OldImage": typed(event.get("before")),
        "SequenceNumber": str(sequence) if sequence is not None else str(moment),
        "ApproximateCreationDateTime": moment / 1000 if isinstance(moment, (int, float)) else moment,
    }
    name = {"c": "INSERT", "r": "INSERT", "u": "MODIFY", "d": "REMOVE"}.get(str(event["op"]), str(event["op"]))
    return {"eventID": str(source.get("eventID") or sequence or moment), "eventName": name, "dynamodb": change}


def typed(image: Any) -> Any:
    """Return the image with typed attributes; a plain value gets its type."""
    if not isinstance(image, dict):
        return image
    return {
        name: value
        if isinstance(value, dict)
        else {"NULL": True}
        if value is None
        else {"N": str(value)}
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        else {"S": str(value)}
        for name, value in image.items()
    }


def attribute_of(image: Image, name: str) -> dict[str, Any] | None:
    value = image.get(name)
    if value is None or isinstance(value, dict):
        return value
    raise ValueError(f"dynamodb.NewImage.{name}: not a typed attribute value such as {{'S': 'text'}}")


def scalar(image: Image, name: str) -> str | None:
    """Return a string or number attribute as text; None where it is absent or NULL."""
    value = attribute_of(image, name)
    if not value:
        return None
    text = value.get("S", value.get("N"))
    return text if isinstance(text, str) else None


def created(image: Image, name: str) -> str | float | None:
    """Return a time attribute: ISO text, or a number of seconds."""
    text = scalar(image, name)
    if text is None or "S" in image[name]:
        return text
    try:
        return float(text)
    except ValueError:
        return text


def thumb_value(image: Image, name: str) -> int:
    """Return 1, -1 or 0. A NULL or absent attribute is a withdrawal: the user took the thumb back."""
    attribute = attribute_of(image, name)
    if attribute is None or attribute.get("NULL"):
        return 0
    text = scalar(image, name)
    if text in ("up", "down"):
        return VALUES[text]
    if text in ("1", "-1", "0") and "N" in attribute:
        return int(text)
    raise ValueError(f"dynamodb.NewImage.{name}: {quoted(text)} is not up, down, 1 or -1")
