"""The command line `rampgate` (contracts §5): one module for each group of commands; `main` is the entry point.

A command's module is imported when it is called, or its own `--help`.
"""

from __future__ import annotations

import gc
import sys
from typing import Any, Final

import typer

from rampgate.cli.lazy import Entry, LazyGroup
from rampgate.console import Failure, failure_text

TRY, RUN, ON_CALL = "To try it", "To run it", "On call"
PULL_REQUESTS, EVALS, VERTICALS = "For pull requests", "For the eval team", "For verticals' engineers"
COMMANDS: Final = {
    "demo": Entry("rampgate.cli.local", "Show a seeded day of traffic, with everything embedded.", TRY),
    "dev": Entry("rampgate.cli.local", "Run the whole stack on this machine.", TRY),
    "worker": Entry("rampgate.cli.processes", "Consume the topics, join, write scores, keep coverage.", RUN),
    "feed": Entry("rampgate.cli.processes", "Publish user signals from their store to their topic.", RUN),
    "sweep": Entry("rampgate.cli.processes", "Publish what the stream missed, from the table and Opik.", RUN),
    "settings": Entry("rampgate.cli.queries", "Show the settings in force here.", RUN),
    "refresh": Entry("rampgate.cli.queries", "Make a running worker read the registry's files again.", RUN),
    "coverage": Entry("rampgate.cli.queries", "Show the share of turns with a signal and a trace.", ON_CALL),
    "conservation": Entry("rampgate.cli.queries", "Show that every consumed record ended in one state.", ON_CALL),
    "turn": Entry("rampgate.cli.queries", "Show a turn with its signals, judge scores and its way.", ON_CALL),
    "dead-letters": Entry("rampgate.cli.dead_letters", "Records that could not be processed: list, replay.", ON_CALL),
    "resume": Entry("rampgate.cli.processes", "Let the bad records of a paused partition go.", ON_CALL),
    "skip": Entry("rampgate.cli.processes", "Leave records of a partition unread, for good.", ON_CALL),
    "triage": Entry("rampgate.cli.triage", "Quality regressions that wait for an owner.", ON_CALL),
    "traces": Entry("rampgate.cli.traces", "Live traces in Opik, without their texts.", ON_CALL),
    "gate": Entry("", "Gates from CI (PC5 §5.5).", PULL_REQUESTS),
    "gate plan": Entry("rampgate.gate.plan:gate_plan", "Show which gates a change triggers."),
    "gate proposal": Entry("rampgate.gate.proposal:gate_proposal", "Write the registry that judges a pull request."),
    "gate compare": Entry("rampgate.gate.compare:gate_compare", "Let two versions of the judges score alike outputs."),
    "gate run": Entry("rampgate.gate.run:gate_run", "Let the judges score what a candidate answers, and decide."),
    "suite": Entry("rampgate.cli.suite", "Runs of a suite of cases, and their comparison.", PULL_REQUESTS),
    "overrides": Entry("rampgate.cli.overrides", "Overrides of gates: who allowed what.", PULL_REQUESTS),
    "check": Entry("", "Checks of the judges themselves.", EVALS),
    "check canaries": Entry("rampgate.checks.canaries:canaries", "Which judges do planted instructions move?"),
    "check noise": Entry("rampgate.checks.noise:noise", "How much does each judge disagree with itself?"),
    "check drift": Entry("rampgate.checks.drift:drift", "Which judges' scores have moved since calibration?"),
    "check inversion": Entry("rampgate.inversion.command:inversion", "Which judges score against people?"),
    "check agreement": Entry("rampgate.checks.agreement:agreement", "How far do annotators agree?"),
    "check cadence": Entry("rampgate.limits.cadence:cadence", "Which limits have to be derived again, and when?"),
    "calibrate": Entry("", "Limits of judges from scores.", EVALS),
    "calibrate jade": Entry("rampgate.calibration.command:jade", "Floors by what people accept; a whole round."),
    "calibrate production": Entry("rampgate.calibration.command:production", "Floors by production's scores."),
    "calibrate seed": Entry("rampgate.calibration.command:seed", "A threshold for a judge's first 90 days."),
    "calibrate diff": Entry("rampgate.calibration.command:diff", "What changed between two rounds."),
    "optimize": Entry("rampgate.cli.optimize", "Propose prompts for categories below their threshold.", EVALS),
    "datasets": Entry("rampgate.cli.datasets", "The datasets that gates judge on (PC5 §5.6).", EVALS),
    "export": Entry("rampgate.cli.export", "Write the turns that match, a line of JSON each.", EVALS),
    "vertical": Entry("rampgate.cli.vertical", "Verticals whose turns this registry judges.", VERTICALS),
    "rules": Entry("rampgate.cli.rules", "Judges' rule files: validate, list, compare, sync.", VERTICALS),
    "manifest": Entry("rampgate.cli.manifest", "Which judges fire on which category, and their limits.", VERTICALS),
}
"""Every command, in the order of the help: its function, or the module of a group; what the help says; who needs it."""


def no_help() -> dict[str, Any]:
    """The default of --help for every command, nested as they are."""
    made: dict[str, Any] = {"help": False}
    for name in COMMANDS:
        inner = made
        for word in name.split():
            inner = inner.setdefault(word, {"help": False})
    return made


class Program(LazyGroup):
    entries = COMMANDS


app = typer.Typer(
    name="rampgate",
    cls=Program,
    help="Decides, with evidence, whether an LLM agent may take the next step of its rollout.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # the help is printed without rich, whose import takes longer than all of the rest
    pretty_exceptions_enable=False,
    # Without a default, typer reads an absent --help with pydantic, whose import takes longer than all the rest.
    context_settings={"default_map": no_help()},
)


@app.callback()
def rampgate() -> None:
    """Every command takes --help; those that answer take --json."""


def main() -> None:
    """Run a command: exit code 0 done or valid, 1 a check found something, 2 bad input or a part out of reach."""
    gc.set_threshold(50_000, 20, 50)  # imports make many objects and no garbage: they took a quarter as long again
    try:
        app(standalone_mode=True)
    except Failure as error:
        sys.stderr.write(failure_text(error))
        sys.exit(2)
