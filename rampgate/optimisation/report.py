"""Says what a run of the loop found: as a document, as a report, and each draft as a file.

No text of an item is in any of them: of items there are ids and scores. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalcore.optimisation.definition import as_yaml
from evalcore.optimisation.measuring import Change, Measured
from evalcore.optimisation.standing import CategoryStanding, Word
from rampgate.optimisation.loop import Proposal, Run, Work
from rampgate.report.model import Cell, Report, Section, Value
from schemas.counting import counted

Told = Mapping[str, Any]
ORDER = (Word.OPTIMISE, Word.PEOPLE, Word.UNDECIDED, Word.FINE)


def document(work: Work, run: Run, week: str, folder: str) -> dict[str, Any]:
    """The document of `--json`."""
    return {
        "vertical": work.vertical,
        "agent_id": work.agent.agent_id,
        "agent_version": work.agent.agent_version,
        "component": work.agent.component.id.name if work.agent.component is not None else None,
        "week": week,
        "holding": folder,
        "config_hash": work.registry.config_hash,
        "categories": [_category(one) for one in run.categories],
        "held_out": {"items": len(run.split.held_out), "shown": len(run.shown), "twins": len(run.split.twins)},
        "proposals": [_proposal(one, work.agent.prompt) for one in run.proposals],
        "drafts": [one.candidate for one in run.proposals if one.kept],
        "cost": {
            "model_calls": run.spend.calls,
            "tokens": run.spend.tokens,
            "dollars": round(run.spend.dollars, 6) if run.spend.priced else None,
            "candidate_calls": run.candidate_calls,
        },
        "reason": run.reason,
    }


def draft(work: Work, one: Proposal, week: str) -> dict[str, str]:
    """The files of what waits for PC-6's review, by name: an entry, and where the agent is a prompt component, that
    component."""
    whole = work.agent.forked(one.variant.prompt, one.candidate[-12:])
    entry: dict[str, Any] = {
        "status": one.outcome.value,
        "candidate": one.candidate,
        "vertical": work.vertical,
        "agent_id": work.agent.agent_id,
        "agent_version": work.agent.agent_version,
        "changes": ["prompt"],
        "why": one.why,
        "rationale": one.variant.rationale,
        "improves": [_of_category(name, change) for name, change in one.measured.categories.items()]
        if one.measured is not None
        else None,
        "reviewed": "by a person, in PC-6's experiment-gated rollout; nothing merges by itself (PF-9 FR-9)",
    }
    if work.agent.component is not None:
        name = f"{one.candidate}.xml"
        return {name: whole, f"{one.candidate}.yaml": as_yaml({**entry, "component": name})}
    definition = {**work.agent.others, "prompt": one.variant.prompt}
    return {f"{one.candidate}.yaml": as_yaml({**entry, "agent_definition": definition})}


def optimise_report(told: Told) -> Report:
    """What was proposed, and where the categories stand."""
    cost, held = told["cost"], told["held_out"]
    dollars = "" if cost["dollars"] is None else f", ${cost['dollars']:,.4f}"
    drafts = [f"waits for a review: {told['holding']}/{name}.yaml" for name in told["drafts"]]
    heads = ("Category", "", "Judge", "Score", "Threshold", "Floor", "Why")
    result = counted(len(drafts), "draft")
    return Report(
        f"Prompt forks for {_agent(told)}",
        f"{result}; {told['reason']}" if told["reason"] else result,
        "pass" if drafts or not told["proposals"] else "warn",
        [
            Section("Categories", heads, list(_standing_rows(told["categories"])), drafts),
            *(
                Section(
                    f"{one['candidate']}: {one['outcome']}", CHANGES,
                    list(_change_rows(one["measured"])) if one["measured"] else [],
                    [said for said in (one["why"], one["rationale"]) if said], text=one["diff"],
                )
                for one in told["proposals"]
            ),
        ],
        facts=f"{told['week']}; {held['shown']} failing items shown, {held['items']} held out; {cost['model_calls']} "
        f"model calls, {cost['tokens']:,} tokens{dollars}, {cost['candidate_calls']} answers of the candidate. Scores "
        "are shares of the judge's scale. Drafts wait for a person; nothing merges.",
    )  # fmt: skip


CHANGES = ("Category", "Judge", "Items", "Before", "After", "Change", "95 %", "p, adjusted", "")


def _category(one: CategoryStanding) -> dict[str, Any]:
    judges = [
        {
            "judge_id": judge.judge.id, "score": judge.score, "threshold": judge.threshold, "floor": judge.judge.floor,
            "n": judge.n, "unscored": judge.unscored, "standing": judge.word.value, "reason": judge.why,
        }
        for judge in one.judges
    ]  # fmt: skip
    return {
        "category": one.category, "standing": one.word.value, "reason": one.why, "items": one.items, "judges": judges
    }  # fmt: skip


def _proposal(one: Proposal, current: str) -> dict[str, Any]:
    return {
        "candidate": one.candidate,
        "prompt_hash": one.hash,
        "outcome": one.outcome.value,
        "kept": one.kept,
        "why": one.why,
        "rationale": one.variant.rationale,
        "measured": _measured(one.measured),
        "diff": one.diff(current) if one.admitted else "",
    }


def _measured(found: Measured | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "categories": [_of_category(name, one) for name, one in found.categories.items()],
        "judges": [
            {"category": name or None, "judge_id": judge, **_change(one), "lowered": one.lowered}
            for (name, judge), one in sorted(found.judges.items())
        ],
        "objections": [*found.objections, *found.silent],
        "missing_scores": found.missing,
    }


def _of_category(name: str, one: Change) -> dict[str, Any]:
    p, improved = {"p": round(one.p, 6), "p_adjusted": round(one.p_adjusted, 6)}, {"improved": one.improved}
    return {"category": name, **_change(one), **p, **improved}


def _change(one: Change) -> dict[str, Any]:
    ends = [round(end, 6) for end in one.ci95] if one.ci95 is not None else None
    told = {
        name: round(value, 6) for name, value in (("before", one.before), ("after", one.after), ("delta", one.delta))
    }
    return {"n": one.n, **told, "ci95": ends}


def _agent(told: Told) -> str:
    name = told["agent_id"] or told["component"] or "the agent"
    version = f" {told['agent_version']}" if told["agent_version"] else ""
    return f"{name}{version} of {told['vertical']}"


def _standing_rows(categories: Sequence[Told]) -> Iterator[list[Value]]:
    """Of a category that is not fine each judge that is not; what the loop works on comes first."""
    for one in sorted(categories, key=lambda one: ORDER.index(one["standing"])):
        odd = [judge for judge in one["judges"] if judge["standing"] != Word.FINE]
        if not odd:
            yield [one["category"], one["standing"], "", None, None, None, one["reason"]]
        for judge in odd:
            limits = judge["score"], judge["threshold"], judge["floor"]
            yield [one["category"], one["standing"], judge["judge_id"], *limits, judge["reason"]]


def _change_rows(found: Told) -> Iterator[list[Value]]:
    """First what the fork is for, then each judge."""
    for one in (*found["categories"], *found["judges"]):
        word = (
            Cell("improved", "pass") if one.get("improved") else Cell("lowered", "fail") if one.get("lowered") else ""
        )
        yield [
            one["category"] or "all", one.get("judge_id", "all it is for"), one["n"], one["before"], one["after"],
            one["delta"], one["ci95"], one.get("p_adjusted"), word,
        ]  # fmt: skip
