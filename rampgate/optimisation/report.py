"""Tells what a run of the loop found: as a document, as Markdown, as an HTML page, and each draft as a file.

No text of an item is in any of them: of items there are ids and scores. All but `show` are pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from evalcore.optimisation.definition import as_yaml
from evalcore.optimisation.measuring import Change, Measured
from evalcore.optimisation.standing import CategoryStanding, Word
from rampgate.optimisation.loop import Proposal, Run, Work
from rampgate.report.escaped import in_markdown
from rampgate.report.style import POLICY, STYLE
from schemas.dead_letters import clean

LONGEST = 2_000
ORDER = (Word.OPTIMISE, Word.PEOPLE, Word.UNDECIDED, Word.FINE)
COLOURS = {"draft": "pass", "unmeasured": "warn", "unscored": "warn", "refused": "fail"}


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


def markdown(told: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    lines = [f"## Prompt forks for {in_markdown(_agent(told))}", "", f"{in_markdown(_facts(told))}", ""]
    if told["reason"]:
        lines += [f"**{in_markdown(told['reason'])}**", ""]
    lines += _table(("category", "", "judge", "score", "threshold", "floor", "why"), _standing_rows(told["categories"]))
    for one in told["proposals"]:
        lines += ["", f"### {in_markdown(one['candidate'])}: {one['outcome']}", "", in_markdown(one["why"]), ""]
        lines += [in_markdown(one["rationale"]), ""] if one["rationale"] else []
        lines += _table(CHANGES, _change_rows(one["measured"])) if one["measured"] else []
        if not one["diff"]:
            continue
        fence = "`" * max(3, _longest_run(one["diff"], "`") + 1)
        lines += ["", f"{fence}diff", one["diff"], fence]
    return "\n".join([*lines, ""])


def page(told: Mapping[str, Any]) -> str:
    """The report as an HTML page that loads nothing."""
    title = f"Prompt forks for {_agent(told)}"
    cards = "".join(_card(one) for one in told["proposals"])
    standing = _html_table(
        ("category", "", "judge", "score", "threshold", "floor", "why"), _standing_rows(told["categories"])
    )
    return "".join(
        (
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_text(title)}</title><style>{STYLE}{OWN_STYLE}</style></head><body><main>",
            f'<h1>{_text(title)}</h1><p class="dim">{_text(_facts(told))}</p>',
            f"<p>{_text(told['reason'])}</p>" if told["reason"] else "",
            standing,
            cards,
            "</main></body></html>\n",
        )
    )


CHANGES = ("category", "judge", "items", "before", "after", "change", "95 %", "p, adjusted", "")
OWN_STYLE = (
    ".card{margin:1rem 0}pre{overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.45 "
    "ui-monospace,monospace;margin:.5rem 0 0}.add{color:var(--pass)}.cut{color:var(--fail)}"
)


def show(told: Mapping[str, Any]) -> None:
    """Print the report on a terminal."""
    from rich.console import Console

    from rampgate.console import plain
    from rampgate.tables import make_table

    console = Console(highlight=False)
    table = make_table("Categories", "Category", "", "Judge", ">Score", ">Threshold", ">Floor", "Why")
    for row in _standing_rows(told["categories"]):
        table.add_row(*(plain(cell, 300) for cell in row))
    console.print(table)
    for one in told["proposals"]:
        console.print(f"{plain(one['candidate'])}: {one['outcome']}: {plain(one['why'], 500)}")
    if told["reason"]:
        console.print(plain(told["reason"], 500))
    cost = told["cost"]
    console.print(f"{cost['model_calls']} model calls, {cost['tokens']:,} tokens, {cost['candidate_calls']} answers")
    for name in told["drafts"]:
        console.print(f"waits for a review: {plain(told['holding'], 500)}/{plain(name)}.yaml")


def _card(one: Mapping[str, Any]) -> str:
    head = f'{_text(one["candidate"])} <span class="{COLOURS[one["outcome"]]}">{one["outcome"]}</span>'
    numbers = _html_table(CHANGES, _change_rows(one["measured"])) if one["measured"] else ""
    change = f"<details open><summary>the change</summary><pre>{_diff(one['diff'])}</pre></details>"
    return (
        f'<section class="card"><h2>{head}</h2><p>{_text(one["why"])}</p><p class="dim">{_text(one["rationale"])}</p>'
        f"{numbers}{change if one['diff'] else ''}</section>"
    )


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


def _agent(told: Mapping[str, Any]) -> str:
    name = told["agent_id"] or told["component"] or "the agent"
    version = f" {told['agent_version']}" if told["agent_version"] else ""
    return f"{name}{version} of {told['vertical']}"


def _facts(told: Mapping[str, Any]) -> str:
    held, cost = told["held_out"], told["cost"]
    dollars = "" if cost["dollars"] is None else f", ${cost['dollars']:,.4f}"
    return (
        f"{told['week']}; {held['shown']} failing items shown, {held['items']} held out; {cost['model_calls']} model "
        f"calls, {cost['tokens']:,} tokens{dollars}, {cost['candidate_calls']} answers of the candidate. Scores are "
        "shares of the judge's scale. Drafts wait for a person; nothing merges."
    )


def _standing_rows(categories: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Of a category that is not fine each judge that is not; what the loop works on comes first."""
    for one in sorted(categories, key=lambda one: ORDER.index(one["standing"])):
        odd = [judge for judge in one["judges"] if judge["standing"] != Word.FINE]
        if not odd:
            yield one["category"], one["standing"], "", "", "", "", one["reason"]
        for judge in odd:
            score = "none" if judge["score"] is None else f"{judge['score']:.3g}"
            limits = f"{judge['threshold']:g}", f"{judge['floor']:g}"
            yield one["category"], one["standing"], judge["judge_id"], score, *limits, judge["reason"]


def _change_rows(found: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """First what the fork is for, then each judge."""
    for one in (*found["categories"], *found["judges"]):
        ends = f"{one['ci95'][0]:+.3f} to {one['ci95'][1]:+.3f}" if one["ci95"] else "none"
        p = f"{one['p_adjusted']:.4f}" if "p_adjusted" in one else ""
        word = "improved" if one.get("improved") else "lowered" if one.get("lowered") else ""
        yield (
            one["category"] or "all", one.get("judge_id", "all it is for"), str(one["n"]), f"{one['before']:.3f}",
            f"{one['after']:.3f}", f"{one['delta']:+.3f}", ends, p, word,
        )  # fmt: skip


def _table(heads: Sequence[str], rows: Iterator[tuple[str, ...]]) -> list[str]:
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return [*lines, *(f"| {' | '.join(in_markdown(cell) for cell in row)} |" for row in rows)]


def _html_table(heads: Sequence[str], rows: Iterator[tuple[str, ...]]) -> str:
    head = "".join(f'<th class="left">{_text(name)}</th>' for name in heads)
    cells = ("".join(f'<td class="left">{_text(cell)}</td>' for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _diff(text: str) -> str:
    kinds = {"+": "add", "-": "cut"}
    return "\n".join(
        f'<span class="{kinds[line[0]]}">{escape(line)}</span>' if line[:1] in kinds else escape(line)
        for line in text.splitlines()
    )


def _text(raw: object) -> str:
    return escape(clean(str(raw), LONGEST))


def _longest_run(text: str, sign: str) -> int:
    longest = current = 0
    for one in text:
        current = current + 1 if one == sign else 0
        longest = max(longest, current)
    return longest
