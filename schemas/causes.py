"""What each cause of a dead letter means and what to do: the one table that the commands and the documentation read."""

from __future__ import annotations

from typing import Final, NamedTuple

from schemas.outcomes import Cause


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
        "The record is larger than max_record_bytes. Only its head, its length and its sha256 were kept.",
        "Have the producer leave out input and output (they are read from Opik), or raise max_record_bytes and have it "
        "send the event again. It can't be replayed.",
    ),
    Cause.UNKNOWN_SCHEMA: Explanation(
        "Valid JSON, but none of the forms this topic takes.",
        "Look at the value: it was meant for another topic, or is in an envelope nobody told us of. Mend the producer.",
    ),
    Cause.MISSING_TRACE: Explanation(
        "A user signal whose turn had no trace in Opik, nor on the traces topic, within missing_trace_seconds.",
        "Find out why the trace is late or carries no metadata.response_id. If it still comes within the lookback "
        "window the signal is written without a replay; else replay once the trace is there.",
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
}


def markdown() -> str:
    """The table as the documentation has it; a test compares."""
    lines = ["| cause | what happened | what to do |", "| --- | --- | --- |"]
    lines += [f"| `{cause}` | {said.means} | {said.do} |" for cause, said in EXPLANATIONS.items()]
    return "\n".join(lines) + "\n"
