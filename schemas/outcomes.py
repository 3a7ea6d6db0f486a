"""Closed lists: the five counted states, their reasons, and the causes of a dead letter (contracts §1, §2).

The table of causes says what each means and what to do; commands and documentation read it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """What a consumed record is about; the label `signal` of metrics and conservation."""

    THUMBS = "thumbs"
    REROLL = "reroll"
    TRACE = "trace"
    RAMP_STEP = "ramp_step"


class State(StrEnum):
    """The state in which every consumed record ends."""

    DONE = "done"
    SUPERSEDED = "superseded"
    DEAD_LETTERED = "dead_lettered"
    PARKED = "parked"
    FILTERED = "filtered"


class FilterReason(StrEnum):
    TTL_EXPIRY = "ttl_expiry"
    OUT_OF_WINDOW = "out_of_window"
    NOT_SAMPLED = "not_sampled"
    OWN_TRAFFIC = "own_traffic"


class ParkReason(StrEnum):
    NO_TRACE = "no_trace"
    WITHHELD = "withheld"


class Cause(StrEnum):
    """Header `rampgate.cause` of a dead letter."""

    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    UNKNOWN_SCHEMA = "unknown_schema"
    MISSING_TRACE = "missing_trace"
    OPIK_REJECTED = "opik_rejected"
    OPIK_UNAVAILABLE = "opik_unavailable"
    JUDGE_UNAVAILABLE = "judge_unavailable"
    STATE_UNAVAILABLE = "state_unavailable"
    GATE_ERROR = "gate_error"
    CONFLICTING_DUPLICATE = "conflicting_duplicate"
    INTERNAL_ERROR = "internal_error"
    UNREADABLE = "unreadable"
    WORKER_DIED = "worker_died"
    CLUSTER_UNAVAILABLE = "cluster_unavailable"  # a new one comes last: turns in Redis keep a cause as its number


class Explanation(NamedTuple):
    """`means`: what happened, in plain words. `do`: what helps, before or instead of a replay."""

    means: str
    do: str


EXPLANATIONS: Final[dict[Cause, Explanation]] = {
    Cause.MALFORMED: Explanation(
        "The bytes are no event of this topic: not JSON, or a field is missing or wrong; the detail names it.",
        "Mend the producer and have it send the event again; a replay fails unless a newer worker can read it.",
    ),
    Cause.TOO_LARGE: Explanation(
        "The record is larger than max_record_bytes, and only its head, its length and its sha256 were kept; or its "
        "batch would inflate beyond the bound, and the letter has the batch as it lay in Kafka.",
        "Have the producer leave out input and output (they are read from Opik), or raise max_record_bytes and have it "
        "send the event again. It can't be replayed.",
    ),
    Cause.UNKNOWN_SCHEMA: Explanation(
        "Valid JSON, but none of the forms this topic takes.",
        "Look at the value: it was meant for another topic, or is in an unknown envelope. Mend the producer.",
    ),
    Cause.MISSING_TRACE: Explanation(
        "A user signal whose turn had no trace in Opik, nor on the traces topic, within missing_trace_seconds. At "
        "stage live.judging: a trace, or one that was voted down, that had not ended by then, or had no texts.",
        "Find out why the trace is late or carries no metadata.response_id. If it still comes within the lookback "
        "window the signal is written without a replay; else replay once the trace is there. Live judging judges a "
        "trace whose end comes later by itself; else replay once Opik has it whole.",
    ),
    Cause.OPIK_REJECTED: Explanation(
        "Opik refused the score (a 4xx answer); the detail has its words.",
        "Mend what Opik objects to (often the trace id or the project), then replay.",
    ),
    Cause.OPIK_UNAVAILABLE: Explanation(
        "Opik gave no usable answer for opik_retry_seconds: down, too slow, or out of its rate limit.",
        "Replay once Opik answers again; choose a --rate below its limit.",
    ),
    Cause.JUDGE_UNAVAILABLE: Explanation(
        "A judge's model gave no usable answer in time.",
        "Replay once the model answers again.",
    ),
    Cause.STATE_UNAVAILABLE: Explanation(
        "The join state in Redis could not be read or written.",
        "Bring Redis back, then replay.",
    ),
    Cause.GATE_ERROR: Explanation(
        "A gate could not be evaluated; its verdict was fail.",
        "The detail and the verdict's reasons say why. Mend that; PC6 then asks with a new request.",
    ),
    Cause.CONFLICTING_DUPLICATE: Explanation(
        "A ramp request whose request_id was seen before with another body. The first verdict stands.",
        "Have the sender use a new request_id for a new request. A replay conflicts again.",
    ),
    Cause.INTERNAL_ERROR: Explanation(
        "Our own code failed on this record. The worker's log has the error at the time of failing.",
        "Report it with the output of `rampgate dead-letters show`; replay with the release that mends it.",
    ),
    Cause.UNREADABLE: Explanation(
        "Kafka has bytes that are no record: a header's name is not UTF-8, the batch is corrupt, or its compression is "
        "broken. The detail says which; of a batch, first-offset and offset are its first and last.",
        "Mend the producer, or the broker's disk, and have the events sent again. A record by itself can be replayed; "
        "the names of its headers are then spelled with \\x escapes.",
    ),
    Cause.WORKER_DIED: Explanation(
        "Three workers died, each while it handled this record and nothing else.",
        "Report it with the output of `rampgate dead-letters show`; replay with the release that mends it.",
    ),
    Cause.CLUSTER_UNAVAILABLE: Explanation(
        "The trace names a workflow, and for enrichment_wait_seconds the cluster's API could not be read: out of "
        "reach, too slow, or it refuses us; the detail names what was asked for. For judges and gates the trace has "
        "not ended.",
        "Bring the API back, or grant the worker's role; then replay: the trace is completed and judged.",
    ),
}


def markdown() -> str:
    """Returns the table of the documentation; a test compares them."""
    lines = ["| cause | what happened | what to do |", "| --- | --- | --- |"]
    lines += [f"| `{cause}` | {said.means} | {said.do} |" for cause, said in EXPLANATIONS.items()]
    return "\n".join(lines) + "\n"
