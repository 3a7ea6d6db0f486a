"""Events as they come over the wire (contracts §1). Known fields are checked, unknown ones tolerated.

TypedDicts, not models: a batch of a thousand is validated by one call and stays plain dicts.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

import msgspec
from annotated_types import Len
from pydantic import Strict, TypeAdapter
from typing_extensions import TypedDict

Text = Annotated[str, Len(1, 512)]
Short = Annotated[str, Len(0, 512)]
Number = Annotated[float, Strict()]
Time = Annotated[str, Len(1, 64)] | Number
"""ISO 8601 text (no zone means UTC), or seconds since 1970 as a number."""


class PlainThumb(TypedDict):
    """A thumb in the plain form. `observed_at` marks a reading of the table (a sweep), not a change. `vertical`: what
    the turn counts under while it has no trace."""

    event_id: Text
    response_id: Text
    user_id: NotRequired[str | None]
    value: Literal["up", "down"] | None
    occurred_at: Time
    sequence: NotRequired[Annotated[int, Strict()] | Text | None]
    observed_at: NotRequired[Time | None]
    vertical: NotRequired[str | None]


class ExactThumb(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A plain thumb with the commonest fields and nothing else, for a quick first look; `PlainThumb` is the schema. No
    unknown fields, since msgspec passes over them without a look at their encoding."""

    event_id: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
    response_id: Annotated[str, msgspec.Meta(min_length=1, max_length=512)]
    value: Literal["up", "down"] | None
    occurred_at: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    user_id: str | None = None
    sequence: Annotated[str, msgspec.Meta(min_length=1, max_length=512)] | None = None
    vertical: str | None = None


Image = dict[str, Any]
"""An item's typed attributes, such as `{"Thumbs": {"S": "up"}}`; what is used of them is checked where it is read."""


class StreamChange(TypedDict):
    Keys: Image
    NewImage: NotRequired[Image | None]
    OldImage: NotRequired[Image | None]
    SequenceNumber: Text
    ApproximateCreationDateTime: NotRequired[Time | None]


class StreamRecord(TypedDict):
    """A DynamoDB stream record as AWS publishes it."""

    eventID: Text
    eventName: Literal["INSERT", "MODIFY", "REMOVE"]
    dynamodb: StreamChange
    userIdentity: NotRequired[dict[str, Any] | None]


class RerollEvent(TypedDict):
    """`response_id` is the turn rerolled away from."""

    event_id: Text
    response_id: Text
    new_response_id: Text
    session_id: NotRequired[str | None]
    user_id: NotRequired[str | None]
    input_hash: NotRequired[str | None]
    elapsed_seconds: Number
    occurred_at: Time
    vertical: NotRequired[str | None]


class TraceMetadata(TypedDict):
    user_id: NotRequired[str | None]
    session_id: NotRequired[Short | None]
    environment: NotRequired[str | None]
    agent_id: NotRequired[str | None]
    agent_version: NotRequired[str | None]
    vertical: NotRequired[str | None]
    sub_agent: NotRequired[str | None]
    prompt_version: NotRequired[str | None]
    category: NotRequired[str | None]
    rampgate_signature: NotRequired[Any]


class TraceScore(TypedDict):
    name: str
    value: NotRequired[Any]
    source: NotRequired[str | None]


class TraceEvent(TypedDict):
    """A completed trace, with or without its `input` and `output`."""

    event_id: Text
    trace_id: Text
    response_id: Text
    project_name: Text
    started_at: Time
    ended_at: Time | None
    input: NotRequired[Any]
    output: NotRequired[Any]
    metadata: TraceMetadata
    feedback_scores: NotRequired[list[TraceScore] | None]


PLAIN_THUMBS = TypeAdapter(list[PlainThumb])
STREAM_RECORDS = TypeAdapter(list[StreamRecord])
REROLLS = TypeAdapter(list[RerollEvent])
TRACES = TypeAdapter(list[TraceEvent])
