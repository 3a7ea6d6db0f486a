"""Compares two versions of an agent's baselines: `rampgate spec diff` (AgentCI Step 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Option

from rampgate.command import Context, Shown, command
from rampgate.console import print_json
from rampgate.spec.chosen import AgentOption, ConfigOption, QueryOption

if TYPE_CHECKING:
    from rampgate.report.model import Reason, Report
    from rampgate.spec.comparison import Change, QueryDiff
    from rampgate.spec.report import PlaceOf
    from schemas.spec_baselines import KeptQuery

WIDE: Final = 62
"""Columns between the sides of the box."""
ICONS: Final = {"pass": "✅", "skip": "➖", "fail": "❌", "unknown": "❓"}


class Format(StrEnum):
    """What stdout has. `github` is the console's, with annotations on stderr."""

    CONSOLE = "console"
    JSON = "json"
    GITHUB = "github"


class Compared(Shown):
    """The document of a comparison, and for its reports what differs in each query."""

    def __init__(
        self, fields: Mapping[str, Any], form: Format, diffs: Sequence[QueryDiff], place: PlaceOf, notes: Sequence[str]
    ) -> None:
        super().__init__(fields, 1 if any(one.regressed for one in diffs) else 0)
        self.form, self.diffs, self.place, self.notes = form, diffs, place, notes

    def page(self) -> Report:
        from rampgate.report.model import Reason, Report, Section, Value

        sections = []
        for one in self.diffs:
            rows: list[list[Value]] = [["Correctness", " → ".join(one.verdicts).upper()]]
            rows += [[change.words, change.text()] for change in (*one.path.values(), *one.cost.values())]
            sections.append(Section(one.query[:200], ("", f"{self['baseline']} → {self['compare']}"), rows))
        reasons = [why for one in self.diffs for why in self._reasons(one)]
        reasons += [Reason("warning", note) for note in self.notes]
        tone = "fail" if self.exit_code else "warn" if reasons else "pass"
        title = f"Diff of {self['agent']}, {self['baseline']} → {self['compare']}"
        return Report(title, self._result(), tone, sections, reasons)

    def show(self) -> None:
        if self.form is Format.JSON:
            print_json(self)
            return
        from rampgate.report.console import show
        from rampgate.report.model import Report, Section

        title = f"Spec diff: {self['agent']} ({self['baseline']} → {self['compare']})"
        texts = ["\n".join(boxed(title, [*_lines(one)])) for one in self.diffs]
        show(Report("Diff", self._result(), self.page().tone, [Section("", text=text, notes=()) for text in texts]
                    + [Section("Notes", notes=self.notes)]))  # fmt: skip

    def _result(self) -> str:
        changed = sum(bool(one.types) for one in self.diffs)
        worse = sum(one.regressed for one in self.diffs)
        return f"{changed} of {len(self.diffs)} queries changed, {worse} no longer correct"

    def _reasons(self, one: QueryDiff) -> Iterator[Reason]:
        """What got worse, and where the agent hands over to another."""
        from rampgate.report.model import Reason
        from rampgate.spec.comparison import DiffType
        from rampgate.spec.report import SHORT, one_line

        about, where = one_line(one.query, SHORT), self.place(one.id, ())
        if one.regressed:
            words = f"{' → '.join(one.verdicts)} from {self['baseline']} to {self['compare']}"
            yield Reason("error", words, "", f"[CORRECTNESS FAIL] {about}", *where)
        for layer, changes in (("PATH", one.path), ("COST", one.cost)):
            for change in changes.values():
                if change.worse:
                    yield Reason("warning", f"{change.words}: {change.text()}", "", f"[{layer}] {about}", *where)
        if DiffType.ROUTING_CHANGED in one.types:
            yield Reason("warning", "it is handed over to another agent", "", f"[PATH] {about}", *where)


@command(Compared.page)
def diff(
    context: Context,
    baseline: Annotated[str, Option(help="the version compared with")],
    compare: Annotated[str, Option(help="the version that is compared")],
    config: ConfigOption = None,
    agent: AgentOption = None,
    query: QueryOption = None,
    format: Annotated[Format, Option(help="what stdout has; `github`: also annotations on stderr")] = Format.CONSOLE,
) -> Compared:
    """Compare two versions of the agent's baselines: correctness, path and cost. No agent and no model is asked.

    Verdicts are those that were kept. Exit code 1 where a correct answer is no longer correct.

    Example: rampgate spec diff --baseline v1-broken --compare v2-fixed
    """
    from rampgate.report.files import GITHUB, write_all
    from rampgate.spec.baselines import trajectories
    from rampgate.spec.chosen import baselines_of, chosen, loaded_spec
    from rampgate.spec.comparison import query_diff
    from rampgate.spec.test_command import on_github, placing

    loaded = loaded_spec(config, agent)
    versions = baselines_of(loaded)
    first, second = versions.named(baseline), versions.named(compare)
    diffs, notes = [], []
    for one in chosen(loaded.spec, query or (), ()):
        name = str(one.id)
        before, after = first.queries.get(name), second.queries.get(name)
        if before is None or after is None:
            if before is not after:
                notes.append(f"{name}: is in {baseline if before else compare} alone, so it is not compared")
            continue
        pinned = one.baseline or loaded.spec.baseline
        version = versions.read(pinned) if pinned is not None else None
        kept = version.queries.get(name) if version is not None else None
        expected = one.path.expected_tools if one.path is not None else None
        reference = trajectories(kept)[0] if kept is not None else None
        diffs.append(query_diff(name, one.query, _side(before), _side(after), expected, reference))
    if first.metadata.spec_hash != second.metadata.spec_hash:
        notes.append("the versions were judged by different specs: their verdicts may differ for that reason alone")
    fields = {
        "agent": loaded.spec.agent,
        "baseline": baseline,
        "compare": compare,
        "queries": [one.told() for one in diffs],
        "notes": notes,
    }
    made = Compared(fields, format, diffs, placing(loaded), notes)
    if (format is Format.GITHUB or on_github()) and GITHUB not in context.reports:
        write_all([GITHUB], made.page(), fields)
    return made


def _side(kept: KeptQuery) -> Any:
    from rampgate.spec.baselines import trajectories
    from rampgate.spec.comparison import Side

    return Side(kept.correctness, trajectories(kept))


def _lines(one: QueryDiff) -> Iterator[str]:
    """The three tiers, as the document has them."""
    before, after = one.verdicts
    word = "Unchanged" if before == after else "Changed"
    yield f"Query: {' '.join(one.query.split())}"
    yield ""
    yield f"{ICONS[after]} Correctness: {word} ({before.upper()} → {after.upper()})"
    for title, changes in (("📈 Path:", one.path), ("💰 Cost:", one.cost)):
        yield ""
        yield title
        yield from (_line(change) for change in changes.values())
    if one.types:
        yield ""
        yield ", ".join(kind.name for kind in one.types)


def _line(change: Change) -> str:
    return f"   {change.words + ':':<18} {change.text()}"


def boxed(title: str, lines: Sequence[str]) -> Iterator[str]:
    """Yields the lines in a box, each as wide as a terminal shows it."""
    from rich.cells import cell_len, set_cell_size

    def row(line: str) -> str:
        line = line if cell_len(line) <= WIDE - 4 else f"{set_cell_size(line, WIDE - 5)}…"
        return f"║  {line}{' ' * (WIDE - 2 - cell_len(line))}║"

    bar = "═" * WIDE
    yield from (f"╔{bar}╗", row(title), f"╠{bar}╣", *map(row, ["", *lines, ""]), f"╚{bar}╝")
