"""Checks the variables of a prompt and where each context reads them (PC5 §5.2, AC-9; PF-9 R-4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evalcore.judges.bindings import NAMES
from evalcore.lint.check import Find, Subject
from evalcore.lint.names import LEGACY, WAY, is_reserved
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding
from evalcore.yaml.loader import FieldPath, Parsed
from evalcore.yaml.suggestions import near_miss
from schemas.judges import RuleFile, judge_id

BINDINGS = Subject("Bindings", "PC5 §5.2, AC-9")
_USED = re.compile(r"\{\{\s*([A-Za-z_]\w*)[\w.]*\s*\}\}|(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")
_REFERENCE = "expected_"
"""How references begin. Only a dataset has them: live traces have no reference answer, and the prompt says what to do
without one."""
_TRACE = frozenset({
    "input", "output", "metadata", "usage", "tool_calls", "llm_calls", "handoffs", "name", "tags", "thread_id", "spans",
    "trace", "started_at", "ended_at", "start_time", "end_time", "feedback_scores", "proposal", "proposal_results",
    "proposal_phase", "proposal_steps", "proposal_missing",
})  # fmt: skip
ROOTS = {
    "offline": _TRACE | {"expected_output", "expected_proposal_status", "dataset_item", "reference"},
    "online": _TRACE | set(NAMES),
    "layout": _TRACE,
    "playground": _TRACE | {"expected_output"},
}
"""Names with which the paths of a context may begin, and those of a vertical's `trace`."""


def used(rule: RuleFile) -> set[str]:
    """Returns the variables of prompt and introduction, written as `{input}` or `{{input}}`."""
    return {double or single for double, single in _USED.findall(f"{rule.prompt}\n{rule.task_introduction}")}


def contexts(rule: RuleFile) -> dict[str, dict[str, str]]:
    """Returns each context's bindings: variable -> path."""
    variables = rule.variables
    return {"offline": variables.offline, "online": variables.online, "playground": variables.playground}


def _all_bound(files: RegistryFiles) -> Iterator[tuple[str, Parsed[Any], FieldPath, str, dict[str, str]]]:
    """Yields (judge or vertical, file, field, context, name -> path) of rules' bindings, of where their dimensions
    apply, and of verticals' layouts."""
    for judge, rule in files.rules.items():
        for context, binding in contexts(rule.model).items():
            yield judge, rule, ("variables", context), context, binding
        for name, dimension in (rule.model.dimensions or {}).items():
            if dimension.applies is not None:
                for context in ("offline", "online"):
                    yield judge, rule, ("dimensions", name), context, {"applies": dimension.applies}
    for vertical, registered in files.registrations.items():
        yield vertical, registered, ("trace",), "layout", registered.model.trace.model_dump(exclude_none=True)


@BINDINGS.error()
def variable_is_bound(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Every variable of a prompt is bound in each context. References such as expected_output may be left out of live
    ones."""
    for judge, rule in files.rules.items():
        for name in sorted(used(rule.model)):
            for context, bound in contexts(rule.model).items():
                if name in bound or (name.startswith(_REFERENCE) and context != "offline"):
                    continue
                message = f"the prompt of {judge} uses {{{name}}}, which is not bound {context}{near_miss(name, bound)}"
                fix = f"bind it under variables.{context}, or take it out of the prompt"
                yield find(rule, ("variables", context), message, fix)


@BINDINGS.error("PF-9 FR-13")
def component_exists(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """Every prompt component that a rule file names is there, or a change of it would start no check for drift."""
    if files.components is None:
        return
    for judge, rule in files.rules.items():
        for place, name in enumerate(rule.model.components):
            if judge_id(name) not in files.components:
                message = (
                    f"{judge} names prompt component {name!r}, which is not there{near_miss(name, files.components)}"
                )
                yield find(rule, ("components", place), message, "name one of prompts/components, or take it out")


@BINDINGS.warning()
def prompt_has_variables(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A prompt shows the judge something of the turn."""
    for judge, rule in files.rules.items():
        if not used(rule.model):
            bound = ", ".join(f"{{{{{name}}}}}" for name in rule.model.variables.offline)
            message = f"the prompt of {judge} uses none of its variables; the judge would not see the turn"
            yield find(rule, ("prompt",), message, f"place them where they belong: {bound}")


@BINDINGS.warning()
def variable_is_used(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A prompt that places some of its variables places all of them: what it leaves out the judge never sees."""
    for judge, rule in files.rules.items():
        placed = used(rule.model)
        for name in rule.model.variables.offline:
            if placed and name not in placed:
                message = f"the prompt of {judge} has no {{{{{name}}}}}; the judge would not see it"
                fix = f"place {{{{{name}}}}} in the prompt, or remove the variable from every context"
                yield find(rule, ("variables", "offline", name), message, fix)


@BINDINGS.warning()
def contexts_bind_alike(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """The three contexts bind the same names; references such as expected_output may be left out of live ones."""
    for rule in files.rules.values():
        bound = contexts(rule.model)
        names = {name for binding in bound.values() for name in binding} - used(rule.model)
        for name in sorted(name for name in names if not name.startswith(_REFERENCE)):
            without = [context for context, binding in bound.items() if name not in binding]
            if without:
                message = f"{name!r} is not bound {' and '.join(without)}, and elsewhere it is"
                fix = "bind it in every context, or in none when the prompt does not use it"
                yield find(rule, ("variables", without[0]), message, fix)


@BINDINGS.error("PF-9 R-4, AC-15")
def binding_of_user_signal(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """No variable reads or is named after a user signal: the prefix `user_signal_` is reserved, and a judge that saw
    the user's verdict could not be compared with it."""
    for _, file, field, _, binding in _all_bound(files):
        for name, path in binding.items():
            steps = [re.sub(r"\[.*", "", step) for step in path.split(".")]
            whole = steps[-1] in ("feedback_scores", "trace") or "feedback_scores[" in path
            legacy = "feedback_scores" in steps and steps[-1] in LEGACY
            if whole or legacy or any(map(is_reserved, (name, *steps))):
                message = f"{name}: {path} would read user signals, whose prefix user_signal_ PF-9 R-4 reserves"
                yield find(file, (*field, name), message, f"bind something of the turn; {WAY}")


@BINDINGS.error("contracts §3")
def output_is_the_agents(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """`output` is what the agent said: neither the expected output nor the input."""
    for whose, file, field, context, binding in _all_bound(files):
        asked, said = ("question", "answer") if context == "layout" else ("input", "output")
        path = binding.get(said)
        if path is None:
            continue
        if re.sub(r"\[.*", "", path.rsplit(".", 1)[-1]).startswith(_REFERENCE):
            message = f"{whose} would judge {path} as if an agent had said it"
            yield find(file, (*field, said), message, "bind the agent's output")
        elif path in (binding.get(asked), "question"):
            yield find(
                file, (*field, said), f"{asked} and {said} of {whose} both read {path}", "bind the agent's output"
            )


@BINDINGS.warning()
def binding_is_known(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    """A path begins with something that its context has: a dataset item, a trace, or Opik's playground."""
    items = set(files.manifest.model.schema_) if files.manifest else set()
    for _, file, field, context, binding in _all_bound(files):
        known = ROOTS[context] | (items if context == "offline" else set())
        for name, path in binding.items():
            root = re.split(r"[.\[]", path)[0]
            if root not in known:
                message = f"{context}, there is no {root!r} to read{near_miss(root, known)}"
                fix = "begin the path with a field of the item or trace, such as input, output or metadata"
                yield find(file, (*field, name), message, fix)
