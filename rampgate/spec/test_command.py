"""Tests an agent by its spec: `rampgate spec test` (AgentCI Step 3, Step 6)."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from rampgate.command import Context, Shown, command, log_errors
from rampgate.console import Failure, print_json
from rampgate.options import StoreOption
from rampgate.spec.chosen import AgentOption, ConfigOption, QueryOption

if TYPE_CHECKING:
    from evalcore.specs.results import FieldPath
    from rampgate.report.model import Reason, Report
    from rampgate.spec.outcomes import Outcome
    from rampgate.spec.report import PlaceOf
    from rampgate.suite.spec_files import LoadedSpec


class Format(StrEnum):
    """What stdout has. `github` is the console's, with annotations on stderr."""

    CONSOLE = "console"
    GITHUB = "github"
    JSON = "json"
    JUNIT = "junit"
    PROMETHEUS = "prometheus"
    HTML = "html"


class Tested(Shown):
    """The document of a run, `{summary, results}`; and for its reports the outcomes, and where assertions stand."""

    def __init__(
        self, fields: Mapping[str, Any], form: Format, outcomes: Sequence[Outcome], place: PlaceOf,
        notes: Sequence[Reason], code: int,
    ) -> None:  # fmt: skip
        super().__init__(fields, code)
        self.form, self.outcomes, self.place, self.notes = form, outcomes, place, notes

    def page(self) -> Report:
        from rampgate.spec.report import page_report

        return page_report(self["agent"], self.outcomes, self.place, self.notes)

    def show(self) -> None:
        if self.form is Format.JSON:
            print_json(self)
        elif self.form is Format.JUNIT:
            from rampgate.report.junit import junit

            sys.stdout.write(junit(self.page()).decode())
        elif self.form is Format.HTML:
            from rampgate.report.html import html

            sys.stdout.write(html(self.page()))
        elif self.form is Format.PROMETHEUS:
            from rampgate.spec.exposition import exposition

            sys.stdout.write(exposition(self["agent"], [one.result for one in self.outcomes]))
        else:
            from rampgate.report.console import show
            from rampgate.spec.report import console_report

            show(console_report(self.outcomes, self.notes))


@command(Tested.page)
def spec_test(
    context: Context,
    config: ConfigOption = None,
    agent: AgentOption = None,
    query: QueryOption = None,
    tags: Annotated[
        list[str] | None, Option(help="only queries with one of these tags; by commas, or repeated")
    ] = None,
    baseline: Annotated[
        str | None, Option(help="version that answers are compared with; default: those that the spec pins")
    ] = None,
    workers: Annotated[
        int | None, Option(min=1, max=64, help="queries asked at once; default: the candidate's at_once, else 4")
    ] = None,
    repeat: Annotated[int, Option(min=1, max=50, help="answers to each query, all of which have to pass")] = 1,
    sample_ensemble: Annotated[
        float | None, Option(min=0, max=1, help="share of the queries that several models judge")
    ] = None,
    base: Annotated[
        str | None, Option(metavar="REF", help="name each assertion that asks for less than in this commit or branch")
    ] = None,
    strict: Annotated[bool, Option("--strict", help="exit with 1 for warnings, too")] = False,
    score: Annotated[
        Path | None, Option(metavar="FILE", help="judge the answers that `suite run --generate FILE` wrote")
    ] = None,
    proposed: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="the spec's folder as a pull request proposes it: the candidate's alone"),
    ] = None,
    store: StoreOption = None,
    format: Annotated[Format, Option(help="what stdout has; `github`: also annotations on stderr")] = Format.CONSOLE,
) -> Tested:
    """Have the agent answer the spec's queries, and judge each answer by its correctness, its path and its cost.

    Exit code 1 where a query fails, by a wrong answer or a forbidden tool; else 2 where one can't be decided ([INFRA]),
    and for a bad spec. Path and cost beyond their limits warn. Annotations appear by themselves on GitHub Actions.
    With --proposed queries and what they assert stay those of the spec; what the proposal asserts less of warns.

    Example: rampgate spec test --config agentci_spec.yaml --tags smoke --format github
    """
    from rampgate.report.files import GITHUB, write_all
    from rampgate.report.findings import reason_of
    from rampgate.report.model import Reason
    from rampgate.spec.chosen import asking, baselines_of, chosen, less_asserted, loaded_spec, opened_spec
    from rampgate.spec.outcomes import exit_code, result_json, summary_of
    from rampgate.spec.report import SHORT, one_line, reasons_json
    from rampgate.spec.run import SpecRun
    from rampgate.suite.run import Running

    if context.as_json and format not in (Format.CONSOLE, Format.GITHUB, Format.JSON):
        raise Failure(f"--json and --format {format} both name what stdout has: give one of them")
    began = context.time
    log_errors()
    loaded = loaded_spec(config, agent, sample_ensemble, proposed)
    opened = opened_spec(loaded, context.settings, store)
    queries = chosen(loaded.spec, query or (), tags or ())
    opened = replace(opened, suite=asking(opened.suite, queries, repeat, workers))
    whole = len(queries) == len(loaded.spec.queries)
    less, theirs = less_asserted(loaded, base)
    with closing(opened.place.opened()) as kept:
        out = opened.results_file(smoke=not whole)
        running = Running(loaded.path, opened, kept, out, False, None, "", None, began)
        outcomes = SpecRun(loaded, running, queries, baselines_of(loaded), baseline).outcomes(score)
    for failure in kept.failures[:1]:
        sys.stderr.write(f"{failure}; the run is not kept, and `spec save` can't read it\n")
    place, looser = placing(loaded), placing(theirs)
    found = (reason_of(vars(one)) for one in loaded.warnings)
    notes = [replace(one, file=from_root(Path(one.file))) for one in found]
    notes += [
        Reason("warning", f"{one.told()['field']}: {one.words}".removeprefix(": "), "",
               f"[LOOSENED] {one_line(one.query, SHORT)}", *looser(one.id, one.field))
        for one in less
    ]  # fmt: skip
    fields = {
        "summary": summary_of(outcomes),
        "results": [result_json(one) | {"reasons": reasons_json(one.result, place)} for one in outcomes],
        "agent": loaded.spec.agent,
        "spec": loaded.hash,
        "results_file": str(out),
        "notes": [one.sentence for one in notes],
    }
    if base is not None or proposed is not None:
        fields["loosened"] = [one.told() for one in less]
    code = exit_code(outcomes, strict=strict, noted=bool(notes))
    made = Tested(fields, format, outcomes, place, notes, code)
    if (format is Format.GITHUB or on_github()) and GITHUB not in context.reports:
        write_all([GITHUB], made.page(), fields)
    return made


def on_github() -> bool:
    """Says whether this is a job of GitHub Actions, where annotations appear by themselves."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def placing(spec: LoadedSpec) -> PlaceOf:
    """Returns what says where an assertion stands, its file named from the repository's root."""
    shown = cache(from_root)

    def place(name: str, field: FieldPath) -> tuple[str, int]:
        file, line = spec.place(name, field)
        return shown(Path(file)), line

    return place


def from_root(path: Path) -> str:
    """Returns the path from the root of its repository on, as annotations name files; as it is where it is in none."""
    whole = path.parent.resolve() / path.name
    root = next((folder for folder in whole.parents if (folder / ".git").exists()), None)
    return whole.relative_to(root).as_posix() if root is not None else str(path)
