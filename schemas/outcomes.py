"""The five counted states, their reasons, and the causes of a dead letter (contracts §1, §2). Closed lists."""

from enum import StrEnum


class Kind(StrEnum):
    """What a consumed record is about; the label `signal` of metrics and conservation."""

    THUMBS = "thumbs"
    REROLL = "reroll"
    TRACE = "trace"
    RAMP_STEP = "ramp_step"


class State(StrEnum):
    """Where every consumed record ends."""

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
