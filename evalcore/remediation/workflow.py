"""Puts a workflow together: its Proposal, and what was read of the children that the Proposal names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from evalcore.remediation import summary
from evalcore.remediation.objects import UNREAD, Kinds, Missing, Object, Why, is_name, part
from evalcore.remediation.phase import Phase, decided
from schemas.terms import Step

__all__ = ["JUDGED", "STEPS", "Child", "Step", "Workflow", "children", "standing", "workflow_of"]

STEPS: Final = ("analysis", "execution", "verification", "escalation")
"""The steps whose results a Proposal names, in the order of a workflow."""
JUDGED: Final = STEPS[:3]
"""The steps that judges' dimensions are about."""
MOST_ATTEMPTS: Final = 20
"""The most results of a step that the operator keeps."""
SLACK: Final = timedelta(minutes=1)
"""How far the cluster's clock and the agent's may differ, and a trace may begin after its Proposal."""
_CUT_TO: Final = (16_384, 4_096, 1_024, 256)
_CUT: Final = "… [cut]"


@dataclass(frozen=True)
class Child:
    """A result that a Proposal names in `status.steps.<step>.results[]`."""

    step: str
    kind: str
    name: str

    @property
    def what(self) -> str:
        """Its name in `proposal_missing`."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True)
class Workflow:
    """A workflow as judges read it. `results`: step -> the complete statuses, in the list's order. `steps`: analysis,
    execution and verification. `summary`: Markdown. `ended_ms`: the transition that made it terminal, ms since 1970,
    None where it has not ended or does not say."""

    phase: Phase
    results: Mapping[str, Sequence[Mapping[str, Any]]]
    steps: Mapping[str, Step]
    missing: Sequence[Missing]
    summary: str
    request: str
    ended_ms: int | None

    @property
    def unread(self) -> Sequence[Missing]:
        """Returns what a later look may still read: the cluster could not be asked."""
        return [one for one in self.missing if one.why in UNREAD]

    def fields(self) -> dict[str, Any]:
        """Returns the fields of a trace's record that we add and seal: `proposal_results`, `proposal_phase`,
        `proposal_steps`, `proposal_missing` (contracts §1)."""
        return {
            "proposal_results": {step: list(statuses) for step, statuses in self.results.items()},
            "proposal_phase": str(self.phase),
            "proposal_steps": {step: str(known) for step, known in self.steps.items()},
            "proposal_missing": [{"what": one.what, "why": str(one.why)} for one in self.missing],
        }


def children(proposal: Object, kinds: Kinds) -> tuple[list[Child], list[Missing]]:
    """Returns the children that a Proposal names, each once, and those that are never asked for: whose names are no
    names of Kubernetes, that are named again, or that are more than the operator keeps (the last ones count)."""
    found: list[Child] = []
    missing: list[Missing] = []
    for step in STEPS:
        kind = getattr(kinds, step)
        entries = _entries(proposal, step)
        if len(entries) > MOST_ATTEMPTS:
            missing.append(Missing(f"{kind}/*", Why.TOO_LARGE))
        for entry in entries[-MOST_ATTEMPTS:]:
            name = entry.get("name") if isinstance(entry, Mapping) else None
            child = Child(step, kind, summary.line(name) if isinstance(name, str) else "?")
            if not is_name(name):
                missing.append(Missing(child.what, Why.BAD_NAME))
            elif any((one.kind, one.name) == (child.kind, child.name) for one in found):
                missing.append(Missing(child.what, Why.MALFORMED))
            else:
                found.append(child)
    return found, missing


def workflow_of(
    proposal: Object | Why, read: Mapping[Child, Object | Why], what: str, missing: Sequence[Missing] = ()
) -> Workflow:
    """Returns the workflow of a Proposal and of what was read of each child, in the order of `children`. Of a Proposal
    that could not be read (`what`: `Proposal/name`) everything is missing and nothing has ended; one that has not ended
    is `not_ended`. Results are cut at 256 KiB, which `proposal_missing` says. Never raises, whatever the statuses hold.
    """
    if isinstance(proposal, Why):
        lacking = (Missing(what, proposal), *missing)
        whole = Workflow(Phase.IN_PROGRESS, {}, dict.fromkeys(JUDGED, Step.UNREAD), lacking, "", "", None)
        return replace(whole, summary=summary.markdown("", [], {}, None, lacking))
    found: dict[Child, Object | Why] = {child: _status(of) for child, of in read.items()}
    fitted = _fitted({child: status for child, status in found.items() if not isinstance(status, Why)})
    lacking = (*missing, *(Missing(child.what, of) for child, of in found.items() if isinstance(of, Why)))
    lacking += tuple(Missing(child.what, Why.TOO_LARGE) for child, status in fitted.items() if status != found[child])
    spec, conditions = part(proposal, "spec"), part(proposal, "status").get("conditions")
    phase, ending = decided(conditions, spec or None)
    if not phase.terminal:
        lacking += (Missing(what, Why.NOT_ENDED),)
    attempts = {step: [fitted.get(child) for child in found if child.step == step] for step in STEPS}
    results = {step: [one for one in made if one is not None] for step, made in attempts.items()}
    request = spec["request"] if isinstance(spec.get("request"), str) else ""
    request = request[: _CUT_TO[0] * 2].encode(errors="replace").decode()
    selected = part(part(part(proposal, "status"), "steps"), "analysis").get("selectedOption")
    return Workflow(
        phase=phase,
        results={step: statuses for step, statuses in results.items() if statuses},
        steps={step: _known(bool(_entries(proposal, step)), results[step]) for step in JUDGED},
        missing=lacking,
        summary=summary.markdown(request, conditions, attempts, selected, lacking, phase),
        request=request,
        ended_ms=_time_ms(ending.get("lastTransitionTime")),
    )


def standing(proposal: Object, uid: str | None, began_ms: int, ended_ms: int) -> Why | None:
    """Returns why a Proposal is not that of a trace which began and ended then: another uid than first seen (None: not
    seen yet) or created more than a minute after the trace ended is REPLACED, created more than a minute before it
    began NOT_ALLOWED, and one that does not say when it was created MALFORMED; None where it is."""
    metadata = part(proposal, "metadata")
    created, slack = _time_ms(metadata.get("creationTimestamp")), int(SLACK.total_seconds() * 1_000)
    if uid is not None and metadata.get("uid") != uid:
        return Why.REPLACED
    if created is None:
        return Why.MALFORMED
    if created > ended_ms + slack:
        return Why.REPLACED
    return Why.NOT_ALLOWED if created < began_ms - slack else None


def _known(named: bool, statuses: Sequence[Mapping[str, Any]]) -> Step:
    """Returns what is known of a step: BROKE where its last attempt that was read has a `failureReason`, ABSENT where
    no attempt is named, UNREAD where attempts are named and none could be read."""
    if not statuses:
        return Step.UNREAD if named else Step.ABSENT
    reason = statuses[-1].get("failureReason")
    return Step.BROKE if isinstance(reason, str) and reason.strip() else Step.RAN


def _entries(proposal: Object, step: str) -> list[Any]:
    """Returns what a Proposal lists as a step's results; what is no list is one entry that names nothing."""
    found: Any = proposal
    for name in ("status", "steps", step, "results"):
        if not isinstance(found, Mapping):
            return [] if found is None else [found]
        found = found.get(name)
    return found if isinstance(found, list) else [] if found is None else [found]


def _status(read: Object | Why) -> Object | Why:
    """Returns a child's status, which is not empty and can be written as JSON, or why there is none."""
    if isinstance(read, Why):
        return read
    status = part(read, "status")
    return status if status and _size(status) is not None else Why.MALFORMED


def _size(value: object) -> int | None:
    """Returns the bytes of a value as JSON; None where it can't be written so."""
    try:
        return len(orjson.dumps(value))
    except TypeError:
        return None


def _fitted(statuses: Mapping[Child, Object]) -> dict[Child, Object | None]:
    """Returns the statuses as they fit into 256 KiB of JSON: all as they are, or each cut to its share, by its longest
    texts first; None for one that has too many texts even so."""
    sizes = {child: _size(status) or 0 for child, status in statuses.items()}
    if sum(sizes.values()) <= summary.MOST_BYTES:
        return dict(statuses)
    share = summary.MOST_BYTES // len(statuses)
    return {
        child: status if sizes[child] <= share else next(_cuts(status, share), None)
        for child, status in statuses.items()
    }


def _cuts(status: Object, share: int) -> Iterator[Object]:
    for longest in _CUT_TO:
        shorter = _shorter(status, longest)
        if (_size(shorter) or 0) <= share:
            yield shorter


def _shorter(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= longest else value[:longest] + _CUT
    if isinstance(value, Mapping):
        return {name: _shorter(part, longest) for name, part in value.items()}
    return [_shorter(part, longest) for part in value] if isinstance(value, list) else value


def _time_ms(text: object) -> int | None:
    """Returns an RFC 3339 time in ms since 1970; None for what is none."""
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
        return int(at.astimezone(UTC).timestamp() * 1_000) if at is not None and at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None
