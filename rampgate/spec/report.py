"""Makes the reports of a spec's run: as the document has it on a console, and for pages, JUnit and annotations
(AgentCI Step 3). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from evalcore.specs.results import FieldPath, QueryResult, Status
from rampgate.report.model import Cell, Reason, Report, Section, Value
from rampgate.spec.outcomes import Outcome, status_of, summary_of

PlaceOf = Callable[[str, FieldPath], tuple[str, int]]
"""The file, from the repository's root, and the line of an assertion, by the query's id and the field."""
SHORT: Final = 60
"""Characters of a query in an annotation."""
WIDE: Final = 60
TONES: Final = {
    Status.PASS: "pass",
    Status.WARN: "warn",
    Status.FAIL: "fail",
    Status.SKIP: "warn",
    Status.INFRA: "fail",
}
ICONS: Final = {Status.PASS: "✅", Status.WARN: "⚠️", Status.FAIL: "❌", Status.SKIP: "➖", Status.INFRA: "❓"}
SIGNS: Final = {"path": "📈", "cost": "💰"}


def result_line(outcomes: Sequence[Outcome]) -> str:
    found = summary_of(outcomes)
    words = f"{found['passed']}/{found['total']} passed, {found['warnings']} warnings, {found['failed']} failures"
    return f"{words}, {found['infra']} undecided [INFRA]" if found["infra"] else words


def console_report(outcomes: Sequence[Outcome], notes: Sequence[Reason] = ()) -> Report:
    """Returns what a terminal shows: each query with its layers, and the line `Results: …`."""
    sections = [Section("", text="\n".join(_console(one))) for one in outcomes]
    sections.append(Section("", text="\n".join(["", "=" * WIDE, *_reliable(outcomes)])))
    return Report("Results", result_line(outcomes), _tone(outcomes), sections, notes)


def page_report(agent: str, outcomes: Sequence[Outcome], place: PlaceOf, notes: Sequence[Reason] = ()) -> Report:
    """Returns the report for pages, JUnit, Markdown and annotations. `notes` are warnings about the spec itself."""
    heads = ("Query", "Correctness", "Path", "Cost", "Tool calls", "Tokens", "US dollars", "ms")
    rows = [_row(one.result) for one in outcomes]
    reasons = [why for one in outcomes for why in reasons_of(one.result, place)]
    tests = {test_of(one.result): _word(one) for one in outcomes}
    section = Section("Queries", heads, rows, _reliable(outcomes))
    return Report(f"Spec {agent}", result_line(outcomes), _tone(outcomes), [section], [*reasons, *notes], tests)


def reasons_of(result: QueryResult, place: PlaceOf) -> Iterator[Reason]:
    """Yields what is wrong with a query, each at its assertion, an error where it blocks or can't be decided. Its words
    begin with `[CORRECTNESS FAIL]`, `[PATH FAIL]`, `[PATH]`, `[COST]`, `[INFRA]`, and the query."""
    if result.infra:
        yield _reason(result, "INFRA", result.infra, place(result.id, ()), undecided=True)
    for name, layer in result.layers.items():
        labels = {Status.FAIL: f"{name.upper()} FAIL", Status.WARN: name.upper(), Status.INFRA: "INFRA"}
        for message in layer.messages:
            undecided = message.status is Status.INFRA
            if message.status in labels and not (undecided and result.infra):
                level = "warning" if message.status is Status.WARN else "error"
                where = place(result.id, message.field)
                yield _reason(result, labels[message.status], message.words, where, level, undecided=undecided)


def reasons_json(result: QueryResult, place: PlaceOf) -> list[dict[str, Any]]:
    """Returns what is wrong with a query as JSON, each with the place of its assertion."""
    found = reasons_of(result, place)
    return [{"level": one.level, "words": one.words, "file": one.file, "line": one.line} for one in found]


def test_of(result: QueryResult) -> str:
    """Returns what JUnit calls the query."""
    return f"{result.id}: {one_line(result.query, SHORT)}"


def one_line(text: str, most: int) -> str:
    return " ".join(text[:most].split())


def _reason(
    result: QueryResult, label: str, words: str, where: tuple[str, int], level: Any = "error", *, undecided: bool
) -> Reason:
    about = f"[{label}] {one_line(result.query, SHORT)}"
    return Reason(level, words, "", about, *where, undecided=undecided, test=test_of(result))


def _console(outcome: Outcome) -> Iterator[str]:
    one = outcome.result
    yield from ("", "=" * WIDE, f"Query: {one_line(one.query, 1_000)}")
    if outcome.answers > 1:
        yield f"{outcome.passes} of {outcome.answers} answers passed; the worst:"
    if one.infra:
        yield f"[INFRA] {one.infra}"
    for name, layer in one.layers.items():
        yield f"{SIGNS.get(name, ICONS[layer.status])} {name.capitalize()}: {layer.status.upper()}"
        for message in layer.messages:
            yield f"   {'[INFRA] ' if message.status is Status.INFRA else ''}{message.words}"


def _reliable(outcomes: Sequence[Outcome]) -> list[str]:
    """What repeats say: the chance that so many answers in a row pass."""
    lines = []
    for one in summary_of(outcomes).get("pass_hat", ()):
        ends = f", 95 % interval {one['ci95'][0]:.2f} to {one['ci95'][1]:.2f}" if one["ci95"] else ""
        lines.append(f"pass^{one['k']}: {one['pass']:.2f}{ends}")
    return lines


def _row(one: QueryResult) -> list[Value]:
    actual = one.cost.details.get("actual") or {}
    calls = (one.path.details.get("tool_calls") or {}).get("actual")
    layers = [Cell(str(layer.status), TONES[layer.status]) for layer in one.layers.values()]
    figures = [actual.get(name) for name in ("total_tokens", "cost_usd", "latency_ms")]
    return [one_line(one.query, 200), *layers, calls, *figures]


def _word(outcome: Outcome) -> str:
    repeats = f", {outcome.passes} of {outcome.answers} answers passed" if outcome.answers > 1 else ""
    return f"{status_of(outcome.result)}{repeats}"


def _tone(outcomes: Sequence[Outcome]) -> str:
    if not all(one.passed for one in outcomes):
        return "fail"
    return "warn" if any(one.result.warns for one in outcomes) else "pass"
