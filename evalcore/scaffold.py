"""The files a new vertical begins with (PF-9 FR-8, §5.5, §5.10; PC5 §5.6): valid as they are, meant to be filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from evalcore.linting.cadence import LONGEST
from evalcore.scalars import scalar
from evalcore.starting import Start
from evalcore.tree import EXTENSION, SELECTION, VERTICALS
from evalcore.views import Judge
from schemas.judges import BaselineSource, Milestone, Score

PLAN: Final = "calibration-plan.md"
_SCHEMA: Final = "# yaml-language-server: $schema="
_PLAIN: Final = re.compile(r"[A-Za-z][\w./-]*", re.ASCII)


def files(start: Start, judges: Sequence[Judge], others: Sequence[Judge], today: date) -> dict[str, str]:
    """Text by name, as `Tree` names files: relative to the registry's folder. `judges` are the quality judges the
    vertical starts with, as the platform sees them; `others` those it could add. No selection where every category is
    another's: those keep the judges they have."""
    due = today + timedelta(days=LONGEST[BaselineSource.PROVISIONAL_SEED])
    folder = f"{VERTICALS}/{start.name}/eval"
    found = {f"verticals/{start.name}.yaml": _vertical(start), f"{folder}/{EXTENSION}": _extension(start)}
    if start.own:
        found[f"{folder}/{SELECTION}"] = _selection(start, judges, others)
    found[f"{folder}/{PLAN}"] = _plan(start, judges, due)
    for judge in judges:
        found[f"rules/{start.name}/{judge.id}.yaml"] = _rule(start, judge, today, due)
    return found


def _vertical(start: Start) -> str:
    return f"""\
{_SCHEMA}../../docs/schemas/vertical.json
# Whose Opik project the turns of {start.name} live in. The vertical creates the project and owns it (PC5 FR-7).
name: {start.name}
project: {_text(start.project)}
workspace: {_text(start.workspace)}
# api_key_file: a file with the project's own key, where it has one (default: RAMPGATE_OPIK_API_KEY_FILE)
# live_judge: opik, where Opik's own rules judge the live turns (default: rampgate)
reroll_window_seconds: 300
"""


def _extension(start: Start) -> str:
    parent = f"\n    inherits_from: {start.parent}" if start.parent is not None else ""
    own = "".join(f"  {name}:\n    description: What the user does here, in a line{parent}\n" for name in start.own)
    reused = "".join(f"  {name}: {{}}  # is there already; reused with the judges it has\n" for name in start.reused)
    agents = ", ".join(map(_text, start.sub_agents))
    archetypes = f"archetypes:\n  {start.archetype}: [{agents}]\n" if start.archetype is not None else ""
    return f"""\
{_SCHEMA}../../../../docs/schemas/manifest-extension.json
# The categories of {start.name}: the kinds of turn that are judged apart. Rename the first one and add yours; after
# each change run `rampgate manifest resolve`.
#
# - A new category has a description. Its judges stand in {SELECTION}; where none stand there, those of
#   the category it inherits from hold.
# - A category that exists is reused by its name alone (`greeting: {{}}`), with the judges it has. To change those,
#   propose it where the category is declared; all who use it review that (PF-9 Decisions 17 and 18).
# - `archetypes` lets sub-agents join a group that shares judges; rule files name such groups in `applies_to`.
vertical: {start.name}
categories:
{own}{reused}{archetypes}"""


def _selection(start: Start, judges: Sequence[Judge], others: Sequence[Judge]) -> str:
    listed = ", ".join(judge.id for judge in judges)
    categories = "".join(f"  {name}:\n    quality_judges: [{listed}]\n" for name in start.own)
    more = "".join(f"#   {judge.id}: {_line(judge.rule.description)}\n" for judge in others)
    return f"""\
{_SCHEMA}../../../../docs/schemas/judge-selection.json
# The quality judges of {start.name}, by category. Safety judges are inherited: they run on every category, and listing
# one here is an error (PF-9 FR-2). Other quality judges of the registry:
{more or "#   none"}# One that is missing is proposed for the central registry, for everybody (PF-9 §5.2).
vertical: {start.name}
categories:
{categories}""".replace("#   none#", "#   none\n#")


def _rule(start: Start, judge: Judge, today: date, due: date) -> str:
    low, high = judge.score_range
    if len(start.sub_agents) == 1:
        fires = f"  operator: equals\n  value: {_text(start.sub_agents[0])}\n"
    else:
        fires = f"  operator: in\n  value: [{', '.join(map(_text, start.sub_agents))}]\n"
    return f"""\
{_SCHEMA}../../../docs/schemas/vertical-rule-file.json
# What {start.name} sets for {judge.id}; rubric and classification are the central file's (PF-9 §5.2). Provenance,
# threshold and filter stand here, and a floor, a tolerance or an enforcement where they are stricter.
classification: {judge.classification}
baseline_source: provisional_seed
calibration_ref: {_text(start.ticket)}
recalibration_due: {due}  # {(due - today).days} days from the seed, the most there may be
calibration:
  seeded_on: {today}
# The platform's own, on the judge's scale of {low:g} to {high:g}. After a bootstrap run write its mean - 2 sigma where
# that is higher: a vertical may ask for more, never for less.
{_threshold(judge)}filter:
  field: sub_agent_id
{fires}"""


def _threshold(judge: Judge) -> str:
    asked = judge.thresholds
    if len({repr(value) for value in asked.values()}) == 1:
        return f"threshold: {_number(judge.default_threshold)}\n"
    return "threshold:\n" + "".join(f"  {milestone}: {_number(asked[milestone])}\n" for milestone in Milestone)


def _plan(start: Start, judges: Sequence[Judge], due: date) -> str:
    rows = "".join(f"| `{judge.id}` | {_seed(judge)} | {due} |\n" for judge in judges)
    return f"""\
# Calibration plan: {start.name}

{start.name} has no production traces yet, so each of its quality judges starts from a seed, the platform's own
threshold (PF-9 §5.3). Safety judges and their baseline are the platform's.

| judge | seed, on the judge's scale | due |
| --- | --- | --- |
{rows}
Fill in before the first ramp: who runs the bootstrap sample, and on which turns. Its mean - 2 sigma replaces a seed
where it is higher (`rampgate calibrate seed`), and its reference replaces `{start.ticket}`.

## JADE Round 1

1. **When:** as soon as 200 production traces of {start.name} are stored, stratified by category; at the latest on
   {due}, when the seeds end. From then on validation warns before a merge and blocks a ramp.
2. **Who:** at least two annotators score the same traces against each judge's rubric. Krippendorff's alpha per category
   decides whether the round may enter the reference set (PF-9 FR-14).
3. **What comes out:** the floor is the 5th percentile of the scores of traces that people found acceptable. Inverted
   judges go back for a new prompt and keep their seed until then.
4. **What changes in the repository:** `configs/rules/{start.name}/*.yaml` cite ticket, report, traces, agreement
   and what was found inverted, with the next due date within 180 days.
"""


def _seed(judge: Judge) -> str:
    asked = judge.thresholds
    if len({repr(value) for value in asked.values()}) == 1:
        return _number(judge.default_threshold)
    return ", ".join(f"{_number(asked[milestone])} at `{milestone}`" for milestone in Milestone)


def _number(value: Score) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _text(text: str) -> str:
    """As YAML: bare where that can only be read as this text, else in quotes."""
    return text if _PLAIN.fullmatch(text) and scalar(text) == text else json.dumps(text, ensure_ascii=False)


def _line(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= 90 else line[:89] + "…"
