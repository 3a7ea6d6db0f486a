"""Forms on the wire that have no model: what we write, and what producers may send besides.

They are published with the others (`schemas.publish.contracts`); a test compares them with what is really written.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from schemas.events import Time
from schemas.judges import Milestone
from schemas.outcomes import Cause
from schemas.verdicts import Verdict
from schemas.zoned_time import ZonedTime

Digits = Annotated[str, Field(pattern=r"^-?[0-9]+$")]

DeadLetterHeaders = TypedDict(
    "DeadLetterHeaders",
    {
        "rampgate.cause": Cause,
        "rampgate.detail": Annotated[str, Field(description="For a person; quotes no user's text.")],
        "rampgate.topic": str,
        "rampgate.partition": Digits,
        "rampgate.offset": Digits,
        "rampgate.timestamp": Annotated[Digits, Field(description="Of the record, in ms since 1970.")],
        "rampgate.attempts": Annotated[Digits, Field(description="How often the record has failed, with this time.")],
        "rampgate.failed-at": Annotated[Digits, Field(description="In ms since 1970.")],
        "rampgate.stage": Annotated[str, Field(description="Where it failed, such as thumbs.decode.")],
        "rampgate.replay-id": Annotated[
            str, Field(pattern=r"^[0-9a-f-]{36}$", description="Names the record over all its attempts.")
        ],
        "rampgate.mac": Annotated[
            str,
            Field(
                pattern=r"^[0-9a-f]{64}$",
                description="Seals replay id and attempts for this topic, key and value; without it they don't count.",
            ),
        ],
        "rampgate.original-length": NotRequired[
            Annotated[Digits, Field(description="Only where the value was cut to its head: its whole length in bytes.")]
        ],
        "rampgate.original-sha256": NotRequired[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]],
        "rampgate.key-length": NotRequired[Annotated[Digits, Field(description="Only where the key was cut.")]],
        "rampgate.headers-dropped": NotRequired[Digits],
        "rampgate.first-offset": NotRequired[
            Annotated[
                Digits, Field(description="Only where a batch can't be read: its first offset; offset: its last.")
            ]
        ],
    },
)
DeadLetterHeaders.__doc__ = (
    "Our headers of a dead letter, each UTF-8 text; the record's own headers are kept with them."
)


VerdictHeaders = TypedDict(
    "VerdictHeaders",
    {
        "rampgate.request-body": Annotated[
            str,
            Field(pattern=r"^[0-9a-f]{64}$", description="The sha256 of what the request says, whatever its spelling."),
        ]
    },
)
VerdictHeaders.__doc__ = "Tells a request that is sent again from another one under the same id."


class Verdicts(TypedDict):
    """The latest verdicts of what was asked for, newest first."""

    experiment_id: NotRequired[str]
    agent_id: NotRequired[str]
    agent_version: NotRequired[str]
    verdicts: list[Verdict]


class RampCommand(TypedDict):
    """After a safety judge's live scores fell below its floor, certainly and for several users: to the rollout
    controller (PC5 §5.7). Twice is once."""

    command: Literal["ramp_down"]
    to_percent: Literal[0]
    agent_id: str
    agent_version: str
    judge_id: str
    score: Annotated[float, Field(description="The weighted mean of the live window, on the judge's own scale.")]
    floor: float
    detected_at: Time
    n: Annotated[int, Field(description="Live scores that the mean is of.")]
    upper_bound: Annotated[
        float | None, Field(description="Of the mean's 95 % interval, what is unscored at its best.")
    ]
    users: Annotated[int, Field(description="Distinct users of the traces below the floor.")]
    sessions: Annotated[int, Field(description="Distinct sessions of the traces below the floor.")]


RampCommandHeaders = TypedDict(
    "RampCommandHeaders",
    {"rampgate.breach": Annotated[str, Field(description="The same for the same judge and agent version.")]},
)


class ScoreEvent(TypedDict):
    """What a judge says of one trace or item, for the store of traces (PC5 §9.4). A repeat has the same `event_id`;
    where a judge gave no score and does so later, both are sent."""

    event_id: str
    trace_id: Annotated[str | None, Field(description="Null where no trace was judged; `item_id` is there then.")]
    item_id: NotRequired[
        Annotated[str, Field(description="Of a gate: an item of a dataset, or the candidate's own answer.")]
    ]
    response_id: str | None
    agent_id: str | None
    agent_version: str | None
    vertical: str | None
    judge_id: str
    judge_version: str
    dimension: NotRequired[Annotated[str, Field(description="Only where the score is a dimension's.")]]
    score: Annotated[
        float | None, Field(description="On the judge's own scale, 1.0 and 0.0 for true and false; null without one.")
    ]
    unscored: NotRequired[Annotated[Literal[True], Field(description="The judge could not answer.")]]
    na: NotRequired[Annotated[Literal[True], Field(description="The judge's answer is that it does not apply.")]]
    source: Literal["live", "gate"]
    request_id: NotRequired[Annotated[str, Field(description="Of a gate: the request it decides.")]]
    milestone: NotRequired[Annotated[Milestone, Field(description="Of a gate: which one.")]]
    at: Annotated[Time, Field(description="When it was sent, a little after the judge answered.")]


class GateOverride(TypedDict):
    """An override that a merge brought, from CI (PC5 §5.5). A run that is repeated sends it again, with the same id."""

    event_id: str
    kind: Literal["gate_skip", "baseline_shift", "enforcement"]
    at: ZonedTime
    repository: str
    pull_request: str
    author: str
    head: Annotated[str, Field(description="The commit that was approved.")]
    approved_by: Annotated[str, Field(description="The reviewers of the merge, by commas.")]
    justification: str
    expires: Annotated[str, Field(description="The last day on which it holds.")]
    milestone: NotRequired[Annotated[str, Field(description="Of a gate_skip or an enforcement: the gate.")]]
    vertical: NotRequired[Annotated[str, Field(description="Of an enforcement: whose; without it all verticals'.")]]
    label: NotRequired[str]
    agent_id: NotRequired[
        Annotated[str, Field(description="With agent_version: of whose rollout's gate a gate_skip is.")]
    ]
    agent_version: NotRequired[str]
    judges: NotRequired[Annotated[list[str], Field(description="Of a baseline_shift or an enforcement: who warns.")]]


class QueryAudit(TypedDict):
    """One read with purpose=eval, on PS-5's topic."""

    at: Time
    caller: str
    purpose: Literal["eval"]
    query: dict[str, Any]
    vertical: str | None
    count: int
    response_ids_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Of the sorted ids, by line.")]


class Usage(TypedDict):
    input_tokens: NotRequired[int | None]
    output_tokens: NotRequired[int | None]
    total_tokens: NotRequired[int | None]
    cost_usd: NotRequired[float | None]


class ToolCall(TypedDict):
    name: str
    arguments: NotRequired[Any]
    result: NotRequired[Any]
    error: NotRequired[str | None]
    started_at: NotRequired[Time | None]
    ended_at: NotRequired[Time | None]


class LlmCall(TypedDict):
    model: str
    input_tokens: NotRequired[int | None]
    output_tokens: NotRequired[int | None]
    cost_usd: NotRequired[float | None]
    latency_ms: NotRequired[float | None]


class Proposal(TypedDict):
    namespace: str
    name: str


class ProposalMissing(TypedDict):
    what: Annotated[str, Field(description="`Kind/name`.")]
    why: Literal[
        "not_found", "forbidden", "unreachable", "timed_out", "too_large", "malformed", "bad_name", "not_allowed",
        "replaced", "not_ended",
    ]  # fmt: skip


class TraceDetails(TypedDict):
    """What a trace event may carry besides what the join reads. The fields after `proposal` are ours: where a vertical
    names `proposal_namespaces` we publish a trace with `proposal` once more when its workflow has ended. Without our
    seal they are dropped."""

    usage: NotRequired[Usage | None]
    tool_calls: NotRequired[list[ToolCall] | None]
    llm_calls: NotRequired[list[LlmCall] | None]
    handoffs: NotRequired[list[str] | None]
    proposal: NotRequired[Proposal | None]
    proposal_results: NotRequired[
        Annotated[dict[str, list[dict[str, Any]]], Field(description="Step -> the statuses of its results, in order.")]
    ]
    proposal_phase: NotRequired[Literal["Denied", "Escalated", "Failed", "Completed", "InProgress"]]
    proposal_steps: NotRequired[
        Annotated[
            dict[Literal["analysis", "execution", "verification"], Literal["ran", "broke", "absent", "unread"]],
            Field(description="What is known of each step; unread: attempts are named, and none could be read."),
        ]
    ]
    proposal_missing: NotRequired[list[ProposalMissing]]
    proposal_seal: NotRequired[
        Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="Over all other fields of the record.")]
    ]


class MetadataDetails(TypedDict):
    """What its metadata may carry besides."""

    experiment_id: NotRequired[str | None]
    arm: NotRequired[str | None]
