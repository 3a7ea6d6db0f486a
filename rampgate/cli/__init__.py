"""The command line `rampgate` (contracts §5): one module for each group of commands; `main` is the entry point.

A command's module is imported when it is called, or its own `--help`. The help of the program and of its groups needs
the list below alone; typer, whose import takes longer than all the rest, is loaded with the first command.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from rampgate.cli.program import app

__all__ = ["COMMANDS", "GONE", "app", "help_text", "main"]


class Entry(NamedTuple):
    """A command, `module:function`, or a group of them, which has no module; what the help says of it, and who needs
    it."""

    module: str
    summary: str
    users: str = "Commands"


SUMMARY = "Decides, with evidence, whether an LLM agent may take the next step of its rollout."
TRY, RUN, ON_CALL = "To try it", "To run it", "On call"
PULL_REQUESTS, EVALS, VERTICALS = "For pull requests", "For the eval team", "For verticals' engineers"
COMMANDS: Final = {
    "demo": Entry("rampgate.cli.local:demo", "Show a seeded day of traffic, with everything embedded.", TRY),
    "dev": Entry("rampgate.cli.local:dev", "Run the whole stack on this machine.", TRY),
    "worker": Entry("rampgate.cli.processes:worker", "Consume the topics, join, write scores, keep coverage.", RUN),
    "feed": Entry("", "Publish user signals from their store to their topic.", RUN),
    "feed dynamodb": Entry("rampgate.cli.processes:dynamodb", "Publish the thumbs table's stream."),
    "sweep": Entry("rampgate.cli.processes:sweep", "Publish what the stream missed, from the table and Opik.", RUN),
    "settings": Entry("rampgate.commands.queries:settings", "Show the settings in force here.", RUN),
    "refresh": Entry("rampgate.commands.queries:refresh", "Make a running worker read the registry again.", RUN),
    "coverage": Entry("rampgate.commands.queries:coverage", "Show the share of turns with both halves.", ON_CALL),
    "conservation": Entry(
        "rampgate.commands.queries:conservation", "Show that every record ended in one state.", ON_CALL
    ),
    "turn": Entry("rampgate.commands.queries:turn", "Show a turn with its signals, judge scores and its way.", ON_CALL),
    "dead-letters": Entry("", "Records that could not be processed: list, replay.", ON_CALL),
    "dead-letters list": Entry("rampgate.commands.dead_letters:list_letters", "List what failed, and why."),
    "dead-letters show": Entry("rampgate.commands.dead_letters:show", "Show one dead letter whole."),
    "dead-letters replay": Entry("rampgate.commands.dead_letters:replay", "Send dead letters back, unchanged."),
    "resume": Entry("rampgate.commands.partitions:resume", "Let the bad records of a paused partition go.", ON_CALL),
    "skip": Entry("rampgate.commands.partitions:skip", "Leave records of a partition unread, for good.", ON_CALL),
    "triage": Entry("rampgate.commands.triage:triage", "Quality regressions that wait for an owner.", ON_CALL),
    "traces": Entry("rampgate.commands.traces:traces", "Live traces in Opik, without their texts.", ON_CALL),
    "gate": Entry("", "Gates from CI (PC5 §5.5).", PULL_REQUESTS),
    "gate plan": Entry("rampgate.gate.plan:gate_plan", "Show which gates a change triggers."),
    "gate proposal": Entry("rampgate.gate.proposal:gate_proposal", "Write the registry that judges a pull request."),
    "gate compare": Entry("rampgate.gate.compare:gate_compare", "Let two versions of the judges score alike outputs."),
    "gate run": Entry("rampgate.gate.run:gate_run", "Let the judges score what a candidate answers, and decide."),
    "suite": Entry("", "Runs of a suite of cases, and their comparison.", PULL_REQUESTS),
    "suite run": Entry("rampgate.suite.run_command:run", "Have the candidate answer, score, and compare."),
    "suite compare": Entry("rampgate.suite.compare_command:compare", "Compare two files of results."),
    "suite report": Entry("rampgate.suite.report_command:report", "Show the stored runs of a suite."),
    "suite check": Entry("rampgate.suite.check.command:check", "How often would an unchanged candidate be blocked?"),
    "suite blame": Entry("rampgate.suite.blame:blame", "Name the changed part that makes cases fall."),
    "spec": Entry("", "An agent's spec: golden queries in three layers.", PULL_REQUESTS),
    "spec init": Entry("rampgate.spec.init:init", "Write a first spec, and a workflow that tests it."),
    "spec validate": Entry("rampgate.spec.validate:validate", "Show every finding of a spec."),
    "spec test": Entry("rampgate.spec.test_command:spec_test", "Have the agent answer, and judge its answers."),
    "spec save": Entry("rampgate.spec.save:save", "Keep the last run's answers as a baseline."),
    "spec diff": Entry("rampgate.spec.diff:diff", "Compare two versions of the baselines."),
    "spec baselines": Entry("rampgate.spec.list:list_baselines", "List the versions of the baselines."),
    "spec export-metrics": Entry("rampgate.spec.export_metrics:export_metrics", "Write figures for Prometheus."),
    "remediation": Entry("", "Remediation workflows on a cluster.", PULL_REQUESTS),
    "remediation show": Entry("rampgate.remediation.command:show", "Show a workflow as judges read it."),
    "remediation run": Entry("rampgate.remediation.command:run", "Run a case's workflow, read it, and delete it."),
    "remediation clean": Entry("rampgate.remediation.command:clean", "Delete what a killed run left."),
    "overrides": Entry("", "Overrides of gates: who allowed what.", PULL_REQUESTS),
    "overrides report": Entry("rampgate.commands.overrides:report_quarter", "Show the overrides of a quarter."),
    "overrides publish": Entry("rampgate.commands.overrides:publish", "Send an audit's overrides to the log."),
    "check": Entry("", "Checks of the judges themselves.", EVALS),
    "check canaries": Entry("rampgate.checks.canaries:canaries", "Which judges do planted instructions move?"),
    "check noise": Entry("rampgate.checks.noise:noise", "How much does each judge disagree with itself?"),
    "check drift": Entry("rampgate.checks.drift:drift", "Which judges' scores have moved since calibration?"),
    "check inversion": Entry("rampgate.inversion.command:inversion", "Which judges score against people?"),
    "check agreement": Entry("rampgate.checks.agreement:agreement", "How far do annotators agree?"),
    "check trajectory": Entry("rampgate.checks.trajectory:trajectory", "Which tools were called, against a reference?"),
    "check cadence": Entry("rampgate.limits.cadence:cadence", "Which limits have to be derived again, and when?"),
    "calibrate": Entry("", "Limits of judges from scores.", EVALS),
    "calibrate jade": Entry("rampgate.calibration.command:jade", "Floors by what people accept; a whole round."),
    "calibrate production": Entry("rampgate.calibration.command:production", "Floors by production's scores."),
    "calibrate seed": Entry("rampgate.calibration.command:seed", "A threshold for a judge's first 90 days."),
    "optimize": Entry(
        "rampgate.commands.optimize:optimize", "Propose prompts for categories below their threshold.", EVALS
    ),
    "datasets": Entry("rampgate.commands.datasets:datasets", "The datasets that gates judge on (PC5 §5.6).", EVALS),
    "export": Entry("rampgate.commands.export:export", "Write the turns that match, a line of JSON each.", EVALS),
    "vertical": Entry("", "Verticals whose turns this registry judges.", VERTICALS),
    "vertical scaffold": Entry("rampgate.commands.vertical:scaffold", "Write the files a new vertical begins with."),
    "rules": Entry("", "Judges' rule files: validate, list, compare, sync.", VERTICALS),
    "rules validate": Entry("rampgate.commands.rules:validate", "Show every finding of the rule files."),
    "rules list": Entry("rampgate.commands.rules:list_judges", "List the judges with their limits and due days."),
    "rules diff": Entry("rampgate.commands.rules:diff", "Compare the judges with a version in git."),
    "rules sync": Entry("rampgate.commands.rule_sync:sync", "Write the judges to each vertical's Opik project."),
    "rules create": Entry("rampgate.commands.rule_sync:create", "Sync one rule without asking: PC5's own form."),
    "rules rollback": Entry("rampgate.commands.rule_rollback:rollback", "Bring a judge's files back from git."),
    "manifest": Entry("", "Which judges fire on which category, and their limits.", VERTICALS),
    "manifest validate": Entry("rampgate.commands.manifest:validate", "Show every finding of the manifest."),
    "manifest resolve": Entry("rampgate.commands.manifest:resolve", "Write the manifest that its sources declare."),
    "manifest show": Entry("rampgate.commands.manifest:show", "Show the manifest as the registry serves it."),
    "manifest sync": Entry("rampgate.commands.manifest:sync", "Bring a changed manifest to Opik."),
}
"""Every command, in the order of the help: its function, or the module of a group; what the help says; who needs it."""

GONE: Final = {
    "datasets list": "`rampgate datasets`",
    "datasets show": "`rampgate datasets NAME`",
    "rules delete": "`rampgate rules sync --delete NAME --audit FILE`",
    "calibrate diff": "the later round's report, which has what changed since the one before",
    "suite prune": "RAMPGATE_SUITE_KEEP_DAYS: a store in a file forgets by itself",
    "traces list": "`rampgate traces`",
    "traces show": "`rampgate traces TRACE_ID`",
    "triage list": "`rampgate triage`",
    "triage take": "`rampgate triage ITEM`",
    "triage close": "`rampgate triage ITEM --decision DECISION --note TEXT`",
}
"""Commands that there were, and what to use instead."""


def __getattr__(name: str) -> Any:
    """`app`, the program with all its commands, is built when it is asked for."""
    if name != "app":
        raise AttributeError(name)
    from rampgate.cli.program import app

    return app


def help_text(group: str = "") -> str:
    """The help of the program, or of a group: its commands, by who needs them."""
    before = f"{group} " if group else ""
    summary = COMMANDS[group].summary if group else SUMMARY
    version = [] if group else [("--version", "Print the version, and exit")]
    sections = {"Options": [*version, ("--help", "Show this message and exit")]}
    for name, entry in COMMANDS.items():
        word = name.removeprefix(before)
        if name.startswith(before) and " " not in word:
            sections.setdefault(entry.users, []).append((word, entry.summary))
    lines = [f"Usage: rampgate {before}[OPTIONS] COMMAND [ARGS]...", "", f"  {summary}"]
    for title, rows in sections.items():
        width = max(len(word) for word, _ in rows)
        lines += ["", f"{title}:", *(f"  {word:{width}}  {text}" for word, text in rows)]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run a command: exit code 0 done or valid, 1 a check found something, 2 bad input or a part out of reach."""
    gc.set_threshold(50_000, 20, 50)  # imports make many objects and no garbage: they took a quarter as long again
    *words, last = sys.argv[1:] or [""]
    group = " ".join(words)
    if last == "--help" and (not group or (group in COMMANDS and not COMMANDS[group].module)):
        sys.stdout.write(help_text(group))
        return
    from rampgate.cli.program import app
    from rampgate.console import Failure, failure_text

    try:
        app(standalone_mode=True)
    except Failure as error:
        sys.stderr.write(failure_text(error))
        sys.exit(2)
