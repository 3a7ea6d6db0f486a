"""Plans what a sync changes in a vertical's Opik project, so that it holds its judges as the files say (PC5 FR-7, FR-9,
AC-8). Pure.

The files are the source of truth; Opik holds copies as automation rules. A rule in Opik is ours if it carries our
metadata. Opik has no field for floor, tolerance, classification and provenance, so they travel as JSON in a variable
that no prompt mentions: Opik keeps it, and the judge's model never sees it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from evalcore.framing import template
from evalcore.registry.registry import Judge
from schemas.judges import Filter, Operator, ScoreType
from schemas.verticals import TraceLayout

__all__ = [
    "LLM_JUDGE", "METADATA", "Inexpressible", "LeftAlone", "OpikRule", "OutputField", "Plan", "TraceFilter", "Update",
    "desired", "opik_filter", "plan",
]  # fmt: skip

METADATA = "rampgate_metadata"
"""The variable that carries what Opik has no field for."""
RULE_ID = "rule_id"
"""There: the rule's own id, which Opik gives. A copy that somebody makes in Opik carries that of another."""
LLM_JUDGE = "llm_as_judge"
_TYPES = {ScoreType.INTEGER: "INTEGER", ScoreType.FLOAT: "DOUBLE", ScoreType.BOOLEAN: "BOOLEAN"}
_TRACE_FIELDS = frozenset({"id", "name", "input", "output", "metadata", "tags", "thread_id", "start_time", "end_time"})
_METADATA_NAMES = {"sub_agent_id": "sub_agent"}
_AGENT = frozenset({"agent_id", "sub_agent_id", "sub_agent"})
_NEVER_TRUE = frozenset({Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.IN})
"""Operators that Opik stores and its rules don't evaluate: such a rule would never fire."""
LONGEST_NAME = 150
_OWN_TEMPERATURE = re.compile(r"(?:[\w.-]+/)*(?:gpt-5|o[1-9](?![a-z]))")
"""OpenAI's reasoning models, which refuse every temperature but 1: Opik sends them what the rule says."""
_MESSAGES = TraceLayout(
    question="input.messages[-1].content",
    answer="output.messages[-1].content[-1].text",
    context="input.context",
    tools="output.messages",
)
_RATE_DIGITS = 1e-5
"""Opik keeps a rule's rate in a column of single precision."""


class Inexpressible(ValueError):
    """Opik has no filter that says when the judge fires: an enabled copy would fire on traces it must not."""


@dataclass(frozen=True)
class TraceFilter:
    field: str
    operator: str
    key: str = ""
    value: str = ""


@dataclass(frozen=True)
class OutputField:
    name: str
    type: str
    description: str


@dataclass(frozen=True)
class OpikRule:
    """The part of an automation rule that a sync writes. `messages`: (role, content). `projects` are ids."""

    name: str
    model: str
    temperature: float
    sampling_rate: float
    enabled: bool
    messages: tuple[tuple[str, str], ...]
    variables: Mapping[str, str]
    output: tuple[OutputField, ...]
    filters: tuple[TraceFilter, ...] = ()
    id: str = ""
    kind: str = LLM_JUDGE
    projects: tuple[str, ...] = ()

    @property
    def metadata(self) -> dict[str, Any]:
        """Returns floor, tolerance, classification and provenance; empty where the rule is not ours."""
        try:
            found = json.loads(self.variables.get(METADATA, ""))
        except ValueError:
            return {}
        return found if isinstance(found, dict) and isinstance(found.get("judge_id"), str) else {}

    @property
    def copied(self) -> bool:
        """Whether somebody made it in Opik, of a rule that a sync made."""
        return bool(self.metadata.get(RULE_ID, self.id) != self.id)

    def with_id(self, rule_id: str) -> OpikRule:
        """Returns the rule as the one that Opik has under that id."""
        carried = json.dumps({**self.metadata, RULE_ID: rule_id}, sort_keys=True)
        return replace(self, id=rule_id, variables={**self.variables, METADATA: carried})

    def differences(self, other: OpikRule) -> tuple[str, ...]:
        """Returns the names of the fields that differ, besides ids and projects, which are Opik's own."""
        names = ("name", "model", "temperature", "enabled", "messages", "output", "filters")
        differing = [name for name in names if getattr(self, name) != getattr(other, name)]
        if abs(self.sampling_rate - other.sampling_rate) > _RATE_DIGITS * max(self.sampling_rate, other.sampling_rate):
            differing.append("sampling_rate")
        mine, theirs = dict(self.variables), dict(other.variables)
        mine.pop(METADATA, None), theirs.pop(METADATA, None)
        if mine != theirs:
            differing.append("variables")
        keys = self.metadata.keys() | other.metadata.keys()
        differing += sorted(key for key in keys if self.metadata.get(key) != other.metadata.get(key))
        return tuple(differing)


@dataclass(frozen=True)
class Update:
    """A rule to write over an existing one, whose id it has; `changes` names what differs."""

    rule: OpikRule
    changes: tuple[str, ...]


@dataclass(frozen=True)
class LeftAlone:
    """A rule that a sync does not touch, or keeps disabled. `failing`: the judge that has a rule too many, or none."""

    name: str
    reason: str
    failing: str = ""


@dataclass(frozen=True)
class Plan:
    create: tuple[OpikRule, ...] = ()
    update: tuple[Update, ...] = ()
    unchanged: tuple[str, ...] = ()
    left_alone: tuple[LeftAlone, ...] = field(default=())
    delete: tuple[OpikRule, ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.create or self.update or self.delete)


def desired(judge: Judge, vertical: str, live: bool) -> OpikRule:
    """Returns the rule of a judge in Opik; disabled where Opik's filters can't say when it fires."""
    rule = judge.rule
    filters, unsaid = fires_on(judge)
    online = {name: _written(path, judge, vertical) for name, path in rule.variables.online.items()}
    names = tuple({**rule.variables.offline, **online, **rule.variables.playground})
    low, high = judge.score_range
    scale = "true or false" if judge.score_type is ScoreType.BOOLEAN else f"from {low:g} to {high:g}"
    return OpikRule(
        name=rule.name,
        model=rule.model,
        temperature=1.0 if _OWN_TEMPERATURE.match(rule.model) else float(rule.temperature),
        sampling_rate=float(rule.sampling_rate),
        enabled=live and rule.enabled and not unsaid,
        messages=template(rule.task_introduction, rule.prompt, names, tuple(online), judge.version),
        variables={**online, METADATA: json.dumps(carried(judge, vertical), sort_keys=True)},
        output=(OutputField(judge.score_name, _TYPES[judge.score_type], f"{rule.description} ({scale})"),),
        filters=filters,
    )


def fires_on(judge: Judge) -> tuple[tuple[TraceFilter, ...], str]:
    """Returns Opik's filters for a judge, and why they don't say all; "" where they do. They have no or, so that they
    can't say which sub-agents a judge is for, unless its own filter names one."""
    try:
        filters = (opik_filter(judge.filter),) if judge.filter is not None else ()
    except Inexpressible as error:
        return (), str(error)
    if judge.rule.score_of is not None:
        return filters, f"its score is made of its {judge.rule.score_of}, which Opik's rules can't do"
    if judge.sub_agents and not judge.safety and not _of_one_agent(judge.filter):
        return filters, f"it is for {', '.join(judge.rule.applies_to)} (applies_to), which Opik's filters can't say"
    return filters, ""


def _written(path: str, judge: Judge, vertical: str) -> str:
    """Returns a binding for Opik, whose rules look in one place: where the vertical says, else in messages."""
    if path not in TraceLayout.model_fields:
        return path
    found: str = getattr(judge.layouts.get(vertical, _MESSAGES), path) or getattr(_MESSAGES, path)
    return found


def carried(judge: Judge, vertical: str) -> dict[str, Any]:
    """Returns what Opik has no field for, as JSON."""
    calibration = judge.calibration.model_dump(mode="json", exclude_none=True) if judge.calibration else None
    return {
        "judge_id": judge.id,
        "vertical": vertical,
        "version": judge.version,
        "classification": judge.classification.value,
        "floor": judge.floor,
        "tolerance": judge.tolerance,
        "thresholds": {milestone.value: value for milestone, value in judge.thresholds.items()},
        "default_threshold": judge.default_threshold,
        "enforcement": {milestone.value: value.value for milestone, value in judge.enforcement.items()},
        "baseline_source": judge.baseline_source.value,
        "calibration_ref": judge.calibration_ref,
        "calibration": calibration,
        "recalibration_due": str(judge.recalibration_due),
        **({"floor_provenance": judge.floor_provenance} if judge.floor_provenance is not None else {}),
    }


def _of_one_agent(wanted: Filter | None) -> bool:
    return wanted is not None and wanted.operator is Operator.EQUALS and wanted.compared in _AGENT


def opik_filter(wanted: Filter) -> TraceFilter:
    """Returns Opik's filter. A field that traces do not have is a metadata key (PF-9 §5.10). Raises Inexpressible."""
    if wanted.operator is Operator.MATCHES:
        raise Inexpressible("its filter matches a pattern, and Opik's filters know no patterns")
    if wanted.operator in _NEVER_TRUE:
        raise Inexpressible(
            f"its filter says {wanted.operator}, which Opik's rules don't evaluate: it would never fire"
        )
    key = wanted.key or ""
    name = wanted.field
    if name not in _TRACE_FIELDS:
        first = _METADATA_NAMES.get(name, name)
        name, key = "metadata", f"{first}.{key}" if key else first
    elif name == "metadata":
        key = _METADATA_NAMES.get(key, key)
    values = wanted.value if isinstance(wanted.value, list) else [wanted.value]
    return TraceFilter(name, wanted.operator.value, key, ",".join(map(_text, values)))


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value)


def plan(
    judges: Iterable[Judge],
    vertical: str,
    live: bool,
    there: Iterable[OpikRule],
    project: str,
    only: Collection[str] | None = None,
    delete: Collection[str] = (),
) -> Plan:
    """Plans a sync of a vertical's judges with its Opik project.

    `judges` are as the vertical sees them; `there` are all rules of its project, whose id is `project`. `live`: Opik is
    the vertical's one live judge; else synced rules are disabled there. `only`: ids of the judges to sync. `delete`:
    ids of judges that are no longer in the registry, all of whose copies are deleted. A sync deletes no other rule, and
    touches none that is not ours or that other projects share.
    """
    ours: dict[str, OpikRule] = {}
    left: list[LeftAlone] = []
    doomed: list[OpikRule] = []
    standing = sorted(there, key=lambda rule: rule.id)
    for rule in standing:
        judge_id = rule.metadata.get("judge_id")
        if only is not None and judge_id not in only:
            continue
        if judge_id is None:
            left.append(LeftAlone(rule.name, "not made by a sync"))
        elif rule.copied:
            left.append(LeftAlone(rule.name, f"a copy of {judge_id}'s rule that no sync made"))
        elif rule.metadata.get("vertical") != vertical:
            left.append(LeftAlone(rule.name, f"belongs to vertical {rule.metadata.get('vertical')}"))
        elif set(rule.projects) - {project}:
            left.append(LeftAlone(rule.name, "other projects share it"))
        elif judge_id in delete:
            doomed.append(rule)
        elif judge_id in ours:
            left.append(LeftAlone(rule.name, f"a second copy of {judge_id}; delete it in Opik", judge_id))
        else:
            ours[judge_id] = rule
    create, update, unchanged = [], [], []
    for judge in sorted(judges, key=lambda judge: judge.id):
        if only is not None and judge.id not in only:
            continue
        here = ours.pop(judge.id, None)
        if judge.spec is not None:
            left.append(LeftAlone(judge.rule.name, "it judges by a spec, which Opik can't", judge.id))
            continue
        wanted = desired(judge, vertical, live)
        if len(wanted.name) > LONGEST_NAME:
            why = f"its name has {len(wanted.name)} characters, and Opik takes {LONGEST_NAME}; shorten it"
            left.append(LeftAlone(wanted.name, why, judge.id))
            continue
        if live and judge.rule.enabled and not wanted.enabled:
            left.append(LeftAlone(wanted.name, f"{fires_on(judge)[1]}: its copy stays disabled"))
        if here is None:
            create.append(wanted)
            continue
        wanted = _under_the_name_it_got(wanted, here, standing).with_id(here.id)
        if changes := wanted.differences(here):
            update.append(Update(wanted, changes))
        else:
            unchanged.append(judge.id)
    left += [LeftAlone(rule.name, f"judge {judge_id} is no longer in the registry") for judge_id, rule in ours.items()]
    return Plan(tuple(create), tuple(update), tuple(unchanged), tuple(left), tuple(doomed))


def _under_the_name_it_got(wanted: OpikRule, here: OpikRule, standing: Iterable[OpikRule]) -> OpikRule:
    """Returns the rule under the name that Opik gave it: `Response Quality-1` where another rule of the project has the
    plain name. Asking for the plain one again would be a change each time."""
    numbered = re.fullmatch(re.escape(wanted.name[: LONGEST_NAME - 12]) + r".*-\d+", here.name, re.DOTALL)
    taken = any(rule.id != here.id and rule.name.lower() == wanted.name.lower() for rule in standing)
    return replace(wanted, name=here.name) if numbered and taken else wanted
