"""`rampgate gate plan` and `gate run`: which gates a change triggers, and a gate from CI (PC5 §5.5, AC-3; contracts
§5)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rampgate.console import Failure, Format, print_json
from rampgate.options import ConfigsOption, FormatOption, JsonOption, KafkaOption, MetricsOption

if TYPE_CHECKING:
    from evalcore.gates.planning import Plan


group = typer.Typer(help="Gates from CI (PC5 §5.5).", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    group.command("run")(run_command)
    app.add_typer(group, name="gate")


@group.command("plan")
def plan_command(
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="more changed files")] = None,
    changed: Annotated[list[str] | None, typer.Option(help="a changed file, from the repository's root")] = None,
    base: Annotated[
        str | None, typer.Option(metavar="REF", help="the target branch: what changed since, by git")
    ] = None,
    head: Annotated[str, typer.Option(metavar="REF", help="with --base: the pull request's last commit")] = "HEAD",
    repository: Annotated[
        str | None, typer.Option(help="owner/name on GitHub, which says what its branch requires and who approved")
    ] = None,
    pull_request: Annotated[str, typer.Option(help="its number")] = "",
    audit: Annotated[
        Path | None, typer.Option(help="on the push of a merge: append its overrides to this JSON Lines file")
    ] = None,
    agent_id: Annotated[
        str | None, typer.Option(help="whose rollout's gate a skip is, as ramp steps name the agent")
    ] = None,
    agent_version: Annotated[str | None, typer.Option(help="and its version")] = None,
    configs: ConfigsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show which gates a change triggers, by the paths it touches, and which of them its overrides skip once merged.

    With --base the files are those that git finds changed, a renamed one under both its names, and the table of paths
    (configs/gate-paths.yaml) is that branch's.

    With --agent-id and --agent-version a skip that `overrides publish` sent is honoured by that version's rollout.

    A skip needs a label (eval-skip-pre-ramp, eval-skip-pre-full), a filled-in block eval-skip-justification and the
    reviewer's tick; an entry of enforcement-overrides.yaml needs the label eval-enforcement-override. All need a branch
    that requires a review, and hold once they are merged and published. Exit code 1 if an override does not hold.

    Example: rampgate gate plan --base origin/main
    """
    from dataclasses import asdict

    from evalcore.gates.overrides import accepted, excepted
    from evalcore.gates.planning import Renamed, plan
    from evalcore.registry import disk
    from rampgate.ci_gate.asked import registry_of
    from rampgate.ci_gate.changes import changes, exceptions_added, table_at
    from rampgate.overrides import append_merge, looked_up
    from rampgate.registry.rule_history import commit_of
    from rampgate.settings_sources import load_settings
    from schemas.dead_letters import clean

    if bool(agent_id) != bool(agent_version):
        raise Failure("an agent definition is both: --agent-id ID --agent-version VERSION")
    definition = {"agent_id": agent_id, "agent_version": agent_version} if agent_id else {}
    names: list[str | Renamed] = [*(changed or []), *(files or [])]
    if not names and base is None:
        raise Failure("say what changed: rampgate gate plan --base REF, or --changed FILE [FILE]...")
    names += changes(Path(), base, head) if base is not None else []
    settings = load_settings({"configs": configs})
    table = table_at(Path(), settings.configs, base)
    pull, today = looked_up(repository, pull_request), disk.today()
    made = plan(names, today=today, table=table.paths, pull=pull)
    added, wrong = excepted(exceptions_added(Path(), settings.configs, base, head), pull) if pull else ([], [])
    wrong += made.wrong
    if audit is not None:
        shift, refused = accepted(pull, registry_of(settings, None), today)
        wrong += refused
        skips, shifts = [asdict(skip) | definition for skip in made.skipped], [asdict(shift)] if shift else []
        overrides = {"gate_skip": skips, "baseline_shift": shifts, "enforcement": added}
        append_merge(audit, pull, commit_of(Path(), head), overrides)
    for one in wrong:
        sys.stderr.write(f"override refused: {clean(one, 500)}\n")
    print_json(_document(made, wrong, table.source)) if as_json else _show(made)
    raise typer.Exit(1 if wrong else 0)


def _document(made: Plan, wrong: list[str], table: str) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "gates": list(made.gates),
        "files": [asdict(one) for one in made.files],
        "table": table,
        "skipped": [asdict(skip) for skip in made.skipped],
        "refused": wrong,
    }


def _show(made: Plan) -> None:
    from rich.console import Console

    from rampgate.tables import make_table
    from schemas.dead_letters import clean

    table = make_table(None, "File", "Gates", "Rule")
    for one in made.files:
        name = f"{one.file} (now {one.renamed_to})" if one.renamed_to else one.file
        table.add_row(clean(name, 500), ", ".join(one.gates) or "none", one.rule)
    console = Console(highlight=False, markup=False)
    console.print(table)
    for skip in made.skipped:
        when = "from the merge on" if skip.milestone in made.gates else skip.approved_by
        console.print(f"{skip.milestone} is skipped until {skip.expires}: {skip.justification} ({when})")
    console.print(f"gates to run: {', '.join(made.gates) or 'none'}")


@group.command("proposal")
def proposal_command(
    revision: Annotated[str, typer.Argument(metavar="REF", help="the pull request's last commit, in this repository")],
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="an empty folder, or one that is not there yet")],
    configs: ConfigsOption = None,
    format: FormatOption = Format.TEXT,
    as_json: JsonOption = False,
) -> None:
    """Write the registry by which a pull request is judged: the files that are checked out, with its prompts.

    Of a central rule file it takes prompt, introduction, description, bindings, model and temperature. Limits,
    manifest, verticals' files, overrides and canaries stay as they are here. The commit is read from git and nothing of
    it is run. Exit code 1 if a proposed rule file has an error.

    Example: rampgate gate proposal FETCH_HEAD --to /tmp/proposal
    """
    from rampgate.cli.jobs.gates.gate_proposal import write_proposal
    from rampgate.report.findings import reason_of
    from rampgate.report.github import workflow_commands
    from rampgate.report.model import Report
    from rampgate.settings_sources import load_settings

    made, document = write_proposal(load_settings({"configs": configs}).configs, revision, to)
    report = Report("Proposal", "", "pass", reasons=[*map(reason_of, document["errors"])])
    sys.stderr.write("".join(f"{line}\n" for line in workflow_commands(report)))
    if as_json or format is Format.JSON:
        print_json(document)
    else:
        sys.stdout.write(
            "".join(f"{name}: {', '.join(document[name]) or 'none'}\n" for name in ("taken", "new", "left"))
        )
    raise typer.Exit(1 if made.findings else 0)


@group.command("compare")
def compare_command(
    old: Annotated[str, typer.Option(metavar="REF", help="the earlier version of the registry, in git")],
    new: Annotated[
        str | None, typer.Option(metavar="REF", help="the later one; without it the files as they are")
    ] = None,
    dataset: Annotated[Path | None, typer.Option(help="items, JSON Lines, with --outputs")] = None,
    outputs: Annotated[Path | None, typer.Option(help="answers to them, JSON Lines: {id, output}")] = None,
    traces: Annotated[Path | None, typer.Option(help="instead, traces, JSON Lines")] = None,
    verdicts: Annotated[
        str | None,
        typer.Option(help="with --traces: past verdicts, JSON Lines as on their topic, or `topic`"),
    ] = None,
    vertical: Annotated[str | None, typer.Option(help="use this vertical's limits")] = None,
    kafka: KafkaOption = None,
    configs: ConfigsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let two versions of the judges score the same outputs, and show what flips.

    With --verdicts each gate of the past is decided by both versions, on the traces of its agent's version. Exit code 1
    if the gate, or a past one, is decided otherwise by the new version.

    Example: rampgate gate compare --old main --dataset golden.jsonl --outputs outputs.jsonl
    """
    options = dict(locals())
    from rampgate.cli.jobs.gates.gate_compare import Asked, compare

    raise typer.Exit(compare(Asked(**options)))


def run_command(
    milestone: Annotated[str, typer.Option(help="which gate: pre_merge, pre_ramp, pre_full")] = "pre_merge",
    dataset: Annotated[
        Path | None, typer.Option(help="items, JSON Lines; without it the manifest's dataset, from Opik")
    ] = None,
    dataset_name: Annotated[
        str | None, typer.Option(help="the file's name in Opik, compared with the manifest's")
    ] = None,
    dataset_version: Annotated[int | None, typer.Option(help="the file's version there, compared likewise")] = None,
    candidate: Annotated[str | None, typer.Option(help="URL that takes POST {input, metadata} -> {output}")] = None,
    candidate_calls: Annotated[int, typer.Option(min=1, help="calls to the candidate at once")] = 8,
    candidate_seconds: Annotated[float, typer.Option(min=0.1, help="seconds for one call")] = 60.0,
    candidate_tries: Annotated[int, typer.Option(min=1, help="most calls for one item")] = 3,
    outputs: Annotated[Path | None, typer.Option(help="the candidate's outputs, JSON Lines: {id, output}")] = None,
    traces: Annotated[
        Path | None, typer.Option(help="at pre_ramp and pre_full: the sample, JSON Lines, as on the topic or from Opik")
    ] = None,
    judges: Annotated[
        str | None, typer.Option(help="with --traces: a,b, as an experiment lists them; else those of their categories")
    ] = None,
    coverage: Annotated[
        float | None, typer.Option(min=0, max=1, help="with --traces: the join's rate, compared with the floor")
    ] = None,
    standing: Annotated[
        str | None,
        typer.Option(help="what checks found of judges, so that a suspended one decides nothing: a file, or `topic`"),
    ] = None,
    skips: Annotated[
        bool, typer.Option("--skips", help="with --traces: honour the override on the topic that skips this gate")
    ] = False,
    baselines: Annotated[Path | None, typer.Option(help="the runs on main, a JSON file")] = None,
    record: Annotated[bool, typer.Option("--record", help="add this run to --baselines; on main only")] = False,
    commit: Annotated[str, typer.Option(help="the commit that --record notes, and of which --suite must be")] = "",
    suite: Annotated[
        Path | None,
        typer.Option(help="at pre_merge: the document of `suite run --json` on --commit; the worse of both decides"),
    ] = None,
    repository: Annotated[
        str | None, typer.Option(help="owner/name on GitHub, which says who approves; no shift is accepted without")
    ] = None,
    pull_request: Annotated[str, typer.Option(help="its number")] = "",
    vertical: Annotated[str | None, typer.Option(help="use this vertical's limits; without it the platform's")] = None,
    publish: Annotated[
        bool, typer.Option("--publish", help="at pre_merge: to the verdicts' topic, for the version's first step")
    ] = False,
    agent_id: Annotated[str | None, typer.Option(help="the agent, as its ramp steps name it")] = None,
    agent_version: Annotated[str | None, typer.Option(help="its version; else --commit")] = None,
    respond: Annotated[
        str | None,
        typer.Option(
            metavar="ad_hoc|scheduled", help="of an agent that is live: floor breaches page, ramp down, are triaged"
        ),
    ] = None,
    kafka: KafkaOption = None,
    within: Annotated[float | None, typer.Option(min=1, help="most seconds for judges after the last answer")] = None,
    junit: Annotated[Path | None, typer.Option(help="write a JUnit report to this file")] = None,
    markdown: Annotated[Path | None, typer.Option(help="append a Markdown report, as to $GITHUB_STEP_SUMMARY")] = None,
    html: Annotated[Path | None, typer.Option(help="write an HTML page with the scores' distributions")] = None,
    scores: Annotated[
        Path | None, typer.Option(help="write each score, JSON Lines {judge_id, item_id, score, …}, as checks read it")
    ] = None,
    metrics_file: MetricsOption = None,
    configs: ConfigsOption = None,
    format: FormatOption = Format.TEXT,
    as_json: JsonOption = False,
) -> None:
    """Let the judges score a candidate's outputs to the manifest's dataset, or traces, and decide.

    Each judge scores the items of its categories; global and safety judges score all. On traces, filters and sampling
    rates select what a judge scores. A quality judge below its threshold warns before a merge; a safety judge blocks.
    Exit code 0 pass or warn, 1 fail, 2 bad input.

    Example: rampgate gate run --milestone pre_merge --candidate http://127.0.0.1:8000/answer --format github
    """
    options = dict(locals())
    from rampgate.cli.jobs.gates.gate_run import Options, decide

    raise typer.Exit(decide(Options(**options)))
