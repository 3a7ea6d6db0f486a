"""Makes the files that a new vertical begins with (PF-9 FR-8, §5.5, §5.10; PC5 §5.6).

From a name, sub-agents, categories and judges, chosen by the caller or from the registry, it writes files that are
valid as they are and that the vertical fills in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from evalcore.judges.bindings import NAMES, PLAIN, unreadable
from evalcore.lint.categories import known as known_categories
from evalcore.lint.provenance import LONGEST
from evalcore.registry.files import AGREEMENT, EXTENSION, SELECTION, VERTICALS, RegistryFiles
from evalcore.registry.judge import Judge
from evalcore.validation import ALONE
from evalcore.yaml.editing import as_text
from evalcore.yaml.suggestions import near_miss
from schemas.checks.agreement import SEED_THRESHOLD
from schemas.judges import BaselineSource, Classification, Milestone, Score, judge_id
from schemas.manifests import CATEGORY
from schemas.verticals import RESERVED

NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)
TAKEN: Final = RESERVED | {ALONE}
"""The same of files outside a registry."""
_READ_AS_ELSE: Final = frozenset(
    {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "con", "prn", "aux", "nul"}
)
STARTERS: Final = ("response_quality", "tool_compliance", "ux_quality", "fetch_legal")
"""The quality judges of PF-9's worked example; a vertical starts with those that the registry has."""
PARENT: Final = "general_qa"
ARCHETYPE: Final = "conversation"


class Refused(ValueError):
    """The request can't be scaffolded; the message says why and what to do."""


@dataclass(frozen=True)
class Wanted:
    """The caller's request; what is empty or None is chosen from the registry."""

    name: str
    sub_agents: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    ticket: str | None = None


@dataclass(frozen=True)
class Start:
    """The request with all choices made. `own` categories are new, `reused` ones exist; `parent` is None where there is
    none."""

    name: str
    project: str
    sub_agents: tuple[str, ...]
    archetype: str | None
    own: tuple[str, ...]
    reused: tuple[str, ...]
    parent: str | None
    judges: tuple[str, ...]
    ticket: str


def start(wanted: Wanted, files: RegistryFiles) -> Start:
    """Completes the request from the registry. Raises Refused. A vertical that has some files already keeps the
    categories and judges that they name."""
    require_name(wanted.name, files)
    if wanted.ticket is not None:
        _require_text("--ticket", wanted.ticket)
    for agent in wanted.sub_agents:
        _require_text("--sub-agent", agent)
    archetype = _archetype(files)
    own, reused = _categories(wanted, files)
    return Start(
        name=wanted.name,
        project=f"{wanted.name}-eval",
        sub_agents=tuple(dict.fromkeys(wanted.sub_agents)) or (wanted.name,),
        archetype=archetype,
        own=own,
        reused=reused,
        parent=PARENT if PARENT in known_categories(files) else None,
        judges=_judges(wanted, files, archetype),
        ticket=wanted.ticket or f"PLT-XXXX-{wanted.name}-bootstrap",
    )


def unread(start: Start, sample: Mapping[int, Mapping[str, Any]], files: RegistryFiles) -> dict[str, dict[int, str]]:
    """Returns for each name that the vertical's judges read why it can't be read, by the line of the sample's trace."""
    judges = [rule.model for name, rule in files.rules.items() if rule.model.safety or name in start.judges]
    names = [name for name in NAMES if any(name in rule.variables.online.values() for rule in judges)]
    found: dict[str, dict[int, str]] = {}
    for line, trace in sample.items():
        for name, why in unreadable(trace, files.layouts.get(start.name, PLAIN), names).items():
            found.setdefault(name, {})[line] = why
    return found


def verticals(files: RegistryFiles) -> set[str]:
    """Returns every vertical that has a file, readable or not."""
    broken = {
        key.partition("/")[0]
        for kind, key in files.unread
        if kind in ("vertical", "extension", "selection", "vertical_rule")
    }
    overlaid = {vertical for vertical, _ in files.vertical_rules}
    return {*files.verticals, *files.extensions, *files.selections, *overlaid, *broken}


def require_name(name: str, files: RegistryFiles) -> None:
    """Raises Refused for what can't name a vertical: as a folder, in a metric's label, beside the others."""
    if NAME.fullmatch(name) is None:
        tidied = re.sub(r"[^a-z0-9_-]+", "_", name.strip().lower()).strip("_-")
        hint = f"; {tidied!r} could" if NAME.fullmatch(tidied) and tidied not in TAKEN else ""
        raise Refused(
            f"NAME: {name[:80]!r} can't name a vertical{hint}. Lower-case letters, digits, _ and -, at most 63, "
            "a letter first"
        )
    if name in TAKEN or name in _READ_AS_ELSE:
        raise Refused(f"NAME: {name!r} is reserved; choose another name")
    for other in sorted(verticals(files) - {name}):
        if judge_id(other) == judge_id(name):
            raise Refused(f"NAME: vertical {other!r} is there; {name!r} would look like the same one")


def _categories(wanted: Wanted, files: RegistryFiles) -> tuple[tuple[str, ...], tuple[str, ...]]:
    selection, extension = files.selections.get(wanted.name), files.extensions.get(wanted.name)
    manifest = files.manifest.model.categories if files.manifest is not None else {}
    others = known_categories(files) - {name for name, one in manifest.items() if one.vertical == wanted.name}
    if extension is not None:
        named = extension.model.categories
        new = [name for name in wanted.categories if name not in named]
        if new:
            raise Refused(f"--category: {extension.document.file} is there already; write {', '.join(new)} into it")
        reused = {
            name for name, one in named.items() if name in others and (one.inherits_from, one.judges) == (None, None)
        }
        return tuple(name for name in named if name not in reused), tuple(sorted(reused))
    if selection is not None:
        return tuple(selection.model.categories), ()
    asked = tuple(dict.fromkeys(wanted.categories))
    for name in asked:
        alike = [other for other in others if judge_id(other) == judge_id(name) and other != name]
        if CATEGORY.fullmatch(name) is None or alike:
            hint = f"; there is {alike[0]!r}" if alike else "; lower-case letters, digits and _, a letter first"
            raise Refused(f"--category: {name[:80]!r} can't name a category{hint}")
    if not asked:
        asked = (f"{judge_id(wanted.name)[:50]}_general",)
    return tuple(name for name in asked if name not in others), tuple(name for name in asked if name in others)


def _archetype(files: RegistryFiles) -> str | None:
    source = files.base or files.manifest
    return ARCHETYPE if source is not None and ARCHETYPE in source.model.archetypes else None


def _judges(wanted: Wanted, files: RegistryFiles, archetype: str | None) -> tuple[str, ...]:
    selection = files.selections.get(wanted.name)
    quality = {name for name, rule in files.rules.items() if rule.model.classification is Classification.QUALITY}
    asked = [judge_id(name) for name in wanted.judges]
    for name in asked:
        if name in files.rules and name not in quality:
            raise Refused(f"--judge: {name} is a safety judge; every vertical inherits it and none sets it (PF-9 FR-2)")
        if name not in quality:
            raise Refused(f"--judge: the registry has no judge {name[:80]!r}{near_miss(name, quality)}")
    if selection is not None:
        listed = [judge_id(name) for picked in selection.model.categories.values() for name in picked.quality_judges]
        asked += [name for name in listed if name in quality]
    if not asked:
        asked = [name for name in STARTERS if name in quality and _scores(files, name, archetype)]
    if not asked:
        asked = sorted(name for name in quality if _scores(files, name, archetype))[:4]
    return tuple(dict.fromkeys(asked))


def _scores(files: RegistryFiles, name: str, archetype: str | None) -> bool:
    """Tells whether the judge is for the archetype's sub-agents and enabled."""
    rule = files.rules[name].model
    return rule.enabled and (not rule.applies_to or archetype in rule.applies_to)


def _require_text(flag: str, text: str) -> None:
    if not text.strip() or text != text.strip() or not text.isprintable() or len(text) > 200:
        raise Refused(f"{flag}: one line of 1 to 200 printable characters, without blanks around it")


PLAN: Final = "calibration-plan.md"
_SCHEMA: Final = "# yaml-language-server: $schema="


def scaffolded_files(start: Start, judges: Sequence[Judge], others: Sequence[Judge], today: date) -> dict[str, str]:
    """Text by name, as `Tree` names files: relative to the registry's folder. `judges` are the quality judges the
    vertical starts with, as the platform sees them; `others` those it could add. No selection where every category is
    another's: those keep the judges they have."""
    due = today + timedelta(days=LONGEST[BaselineSource.PROVISIONAL_SEED])
    folder = f"{VERTICALS}/{start.name}/eval"
    found = {f"verticals/{start.name}.yaml": _vertical(start), f"{folder}/{EXTENSION}": _extension(start)}
    if start.own:
        found[f"{folder}/{SELECTION}"] = _selection(start, judges, others)
        found[f"{folder}/{AGREEMENT}"] = _agreement(start, today, due)
    found[f"{folder}/{PLAN}"] = _plan(start, judges, due)
    for judge in judges:
        found[f"rules/{start.name}/{judge.id}.yaml"] = _rule(start, judge, today, due)
    return found


def _vertical(start: Start) -> str:
    return f"""\
{_SCHEMA}../../docs/schemas/vertical.json
# Whose Opik project the turns of {start.name} live in. The vertical creates the project and owns it (PC5 FR-7).
name: {start.name}
project: {as_text(start.project)}
workspace: default
# api_key_file: a file with the project's own key, where it has one (default: RAMPGATE_OPIK_API_KEY_FILE)
# live_judge: opik, where Opik's own rules judge the live turns (default: rampgate)
reroll_window_seconds: 300
# Where its traces hold what judges read, where that is not plain text, `{{content}}` or the last of messages:
# trace: {{question: input.query, answer: output.reply.text}}
"""


def _extension(start: Start) -> str:
    parent = f"\n    inherits_from: {start.parent}" if start.parent is not None else ""
    own = "".join(f"  {name}:\n    description: What the user does here, in a line{parent}\n" for name in start.own)
    reused = "".join(f"  {name}: {{}}  # is there already; reused with the judges it has\n" for name in start.reused)
    agents = ", ".join(map(as_text, start.sub_agents))
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
# - `dataset` is the golden set in the vertical's own Opik project, on which gates then judge it; until there is one
#   they use the platform's. All its items are of categories of the manifest, and each one declared here has items:
#   dataset: {{name: {start.name}-eval, version: 1, items: 60}}
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


def _agreement(start: Start, today: date, due: date) -> str:
    seed = f"baseline_source: provisional_seed, set_on: {today}, recalibration_due: {due}"
    rows = "".join(f"  {name}: {{level: ordinal, threshold: {SEED_THRESHOLD}, {seed}}}\n" for name in start.own)
    return f"""\
{_SCHEMA}../../../../docs/schemas/agreement.json
# How far annotators of {start.name} have to agree before a round enters its reference set (PF-9 FR-14). Seeds of
# Krippendorff's floor for tentative conclusions: for the first round alone, from which the next threshold is derived.
vertical: {start.name}
categories:
{rows}"""


def _rule(start: Start, judge: Judge, today: date, due: date) -> str:
    low, high = judge.score_range
    if len(start.sub_agents) == 1:
        fires = f"  operator: equals\n  value: {as_text(start.sub_agents[0])}\n"
    else:
        fires = f"  operator: in\n  value: [{', '.join(map(as_text, start.sub_agents))}]\n"
    return f"""\
{_SCHEMA}../../../docs/schemas/vertical-rule-file.json
# What {start.name} sets for {judge.id}; rubric and classification are the central file's (PF-9 §5.2). Provenance,
# threshold and filter stand here, and a floor, a tolerance or an enforcement where they are stricter.
classification: {judge.classification}
baseline_source: provisional_seed
calibration_ref: {as_text(start.ticket)}
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


def _line(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= 90 else line[:89] + "…"
