"""Checks the variables of a prompt and where each context reads them (PC5 §5.2, AC-9; PF-9 R-4)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evalcore.lint.check import Find, check
from evalcore.lint.names import LEGACY, WAY, is_reserved
from evalcore.registry.files import RegistryFiles
from evalcore.yaml.findings import Finding, Severity
from evalcore.yaml.suggestions import near_miss
from schemas.judges import RuleFile

CLAUSE = "PC5 §5.2, AC-9"
_USED = re.compile(r"\{\{\s*([A-Za-z_]\w*)[\w.]*\s*\}\}|(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")
_REFERENCE = "expected_"
"""What only a dataset knows; live traces have no reference answer, and the prompt says what to do without."""
_TRACE = frozenset(
    [
        "input",
        "output",
        "metadata",
        "usage",
        "tool_calls",
        "llm_calls",
        "handoffs",
        "name",
        "tags",
        "thread_id",
        "spans",
        "trace",
        "started_at",
        "ended_at",
        "start_time",
        "end_time",
        "feedback_scores",
    ]
)
ROOTS = {
    "offline": _TRACE | {"expected_output", "dataset_item", "reference"},
    "online": _TRACE,
    "playground": _TRACE | {"expected_output"},
}
"""What the paths of a context can begin with."""


def used(rule: RuleFile) -> set[str]:
    """The variables of prompt and introduction, as `{input}` or `{{input}}`."""
    found = _USED.findall(f"{rule.prompt}\n{rule.task_introduction}")
    return {double or single for double, single in found}


def contexts(rule: RuleFile) -> dict[str, dict[str, str]]:
    variables = rule.variables
    return {"offline": variables.offline, "online": variables.online, "playground": variables.playground}


@check(
    "variable-is-bound",
    CLAUSE,
    "Every variable of a prompt is bound in each context. References such as expected_output may be left out of live "
    "ones.",
)
def variable_is_bound(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for judge, rule in files.rules.items():
        for name in sorted(used(rule.model)):
            for context, bound in contexts(rule.model).items():
                if name in bound or (name.startswith(_REFERENCE) and context != "offline"):
                    continue
                message = f"the prompt of {judge} uses {{{name}}}, which is not bound {context}{near_miss(name, bound)}"
                fix = f"bind it under variables.{context}, or take it out of the prompt"
                yield find(rule, ("variables", context), message, fix)


@check(
    "prompt-has-variables",
    CLAUSE,
    "A prompt shows the judge something of the turn.",
    Severity.WARNING,
)
def prompt_has_variables(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for judge, rule in files.rules.items():
        if not used(rule.model):
            bound = ", ".join(f"{{{{{name}}}}}" for name in rule.model.variables.offline)
            message = f"the prompt of {judge} uses none of its variables; the judge would not see the turn"
            yield find(rule, ("prompt",), message, f"place them where they belong: {bound}")


@check(
    "variable-is-used",
    CLAUSE,
    "A prompt that places some of its variables places all of them: what it leaves out the judge never sees.",
    Severity.WARNING,
)
def variable_is_used(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for judge, rule in files.rules.items():
        placed = used(rule.model)
        for name in rule.model.variables.offline:
            if placed and name not in placed:
                message = f"the prompt of {judge} has no {{{{{name}}}}}; the judge would not see it"
                fix = f"place {{{{{name}}}}} in the prompt, or remove the variable from every context"
                yield find(rule, ("variables", "offline", name), message, fix)


@check(
    "contexts-bind-alike",
    CLAUSE,
    "The three contexts bind the same names; references such as expected_output may be left out of live ones.",
    Severity.WARNING,
)
def contexts_bind_alike(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for rule in files.rules.values():
        bound = contexts(rule.model)
        names = {name for binding in bound.values() for name in binding} - used(rule.model)
        for name in sorted(name for name in names if not name.startswith(_REFERENCE)):
            without = [context for context, binding in bound.items() if name not in binding]
            if without:
                message = f"{name!r} is not bound {' and '.join(without)}, and elsewhere it is"
                fix = "bind it in every context, or in none when the prompt does not use it"
                yield find(rule, ("variables", without[0]), message, fix)


@check(
    "binding-of-user-signal",
    "PF-9 R-4, AC-15",
    "No variable reads or is named after a user signal: the prefix `user_signal_` is reserved, and a judge that saw "
    "the user's verdict could not be compared with it.",
)
def binding_of_user_signal(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for rule in files.rules.values():
        for context, binding in contexts(rule.model).items():
            for name, path in binding.items():
                steps = [re.sub(r"\[.*", "", step) for step in path.split(".")]
                whole = steps[-1] in ("feedback_scores", "trace") or "feedback_scores[" in path
                legacy = "feedback_scores" in steps and steps[-1] in LEGACY
                if whole or legacy or any(map(is_reserved, (name, *steps))):
                    message = f"{name}: {path} would read user signals, whose prefix user_signal_ PF-9 R-4 reserves"
                    yield find(rule, ("variables", context, name), message, f"bind something of the turn; {WAY}")


@check(
    "output-is-the-agents",
    "contracts §3",
    "`output` is what the agent said: neither the expected output nor the input.",
)
def output_is_the_agents(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    for judge, rule in files.rules.items():
        for context, binding in contexts(rule.model).items():
            path = binding.get("output")
            if path is None:
                continue
            place = ("variables", context, "output")
            if re.sub(r"\[.*", "", path.rsplit(".", 1)[-1]).startswith(_REFERENCE):
                message = f"{judge} would judge {path} as if an agent had said it"
                yield find(rule, place, message, "bind the agent's output")
            elif path == binding.get("input"):
                yield find(rule, place, f"input and output of {judge} both read {path}", "bind the agent's output")


@check(
    "binding-is-known",
    CLAUSE,
    "A path begins with something that its context has: a dataset item, a trace, or Opik's playground.",
    Severity.WARNING,
)
def binding_is_known(files: RegistryFiles, find: Find) -> Iterator[Finding]:
    items = set(files.manifest.model.schema_) if files.manifest else set()
    for rule in files.rules.values():
        for context, binding in contexts(rule.model).items():
            known = ROOTS[context] | (items if context == "offline" else set())
            for name, path in binding.items():
                root = re.split(r"[.\[]", path)[0]
                if root not in known:
                    message = f"{context}, there is no {root!r} to read{near_miss(root, known)}"
                    fix = "begin the path with a field of the item or trace, such as input, output or metadata"
                    yield find(rule, ("variables", context, name), message, fix)


CHECKS = (
    variable_is_bound,
    prompt_has_variables,
    variable_is_used,
    contexts_bind_alike,
    binding_of_user_signal,
    output_is_the_agents,
    binding_is_known,
)
