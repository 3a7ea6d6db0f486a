"""Says what a pull request's comment has: the report of the run, cut below what GitHub takes. Pure.

Answers and judges' words are a stranger's: the report's Markdown escapes them, so that they mention nobody, load
nothing and lead nowhere. They are cut before they are escaped, so that no escape is cut in two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from rampgate.report.page import Passage, Report, Section, Value, markdown
from rampgate.suite.pull_request.marks import Mark
from rampgate.suite.report.comparison import comparison_report
from rampgate.suite.report.outcome import dropped_words, stopped
from rampgate.suite.report.runs import name_of

LONGEST: Final = 65_000
"""GitHub takes 65,536; characters beyond the basic plane are counted as two, so that either way of counting fits."""
LENGTHS: Final = (1_900, 600, 150)
"""Characters of an answer, the first length that makes the comment fit; one line of a report has 2,000."""
ROWS: Final = 40


def comment_text(told: Mapping[str, Any], mark: Mark, longest: int = LONGEST) -> str:
    """The comment on a run, by its document: what it came to and why stand first. It says what it leaves out. Raises
    KeyError, TypeError and ValueError for a document that lacks something."""
    why = stopped(told)
    said = told["comparison"]["said"] if told["comparison"] is not None else "compared with nothing"
    words, tone = (why.words, "fail") if why is not None else (said, told["verdict"])
    sections = [*_sections(told)]
    shown = [one for one in sections if not one.folded and (one.rows or one.notes)]
    folded = sum(one.folded for one in sections)
    missing = [f"{folded:,} more cases that fell"] if folded else []
    title = name_of(told)
    for length in LENGTHS:
        text = _text(Report(title, words, tone, [_cut(one, length) for one in shown]), mark, missing)
        if _length(text) <= longest:
            return text
    while _length(text) > longest and shown:
        missing.append(_shortened(shown.pop().title, LENGTHS[-1]))
        text = _text(Report(title, words, tone, [_cut(one, LENGTHS[-1]) for one in shown]), mark, missing)
    return text


def _sections(told: Mapping[str, Any]) -> Iterator[Section]:
    if told["comparison"] is not None:
        yield from comparison_report(told["comparison"], "", None, told).sections
    else:
        if (why := stopped(told)) is not None:
            yield why.section()
        words = "There is no baseline yet: the run is held against nothing. `--label main` makes a run one."
        answers = f"{told['answers']['failed']:,} of {told['cases'] * told['samples']:,} answers failed"
        yield Section("Compared with nothing", notes=[words, answers, f"{told['unscored']:,} scores are missing"])
    yield Section("This run", notes=[*_about(told)])


def _about(told: Mapping[str, Any]) -> Iterator[str]:
    yield f"commit {told['commit']}, configuration {told['configuration'][:12]} of {told['agent']}"
    if dropped := dropped_words(told):
        yield dropped
    baseline = told["baseline"]
    if baseline is not None and baseline["label"]:
        commit = f"commit {baseline['commit'][:12]}, " if baseline["commit"] else ""
        yield f"baseline: the last run of {baseline['label']} that passed ({commit}{baseline['age']} ago)"


def _text(report: Report, mark: Mark, missing: Sequence[str]) -> str:
    about = Section("Left out here", notes=[*missing, "the report in the job's summary has all"])
    sections = [*report.sections, about] if missing else report.sections
    return f"{mark}\n{markdown(replace(report, sections=sections))}"


def _cut(section: Section, length: int) -> Section:
    more = len(section.rows) - ROWS
    notes = [*section.notes, *([f"{more:,} rows more are in the job's summary"] if more > 0 else [])]
    rows = [[_value(value, length) for value in row] for row in section.rows[:ROWS]]
    return replace(section, title=_shortened(section.title, length), rows=rows, notes=notes)


def _value(value: Value, length: int) -> Value:
    if isinstance(value, Passage):
        return Passage(_shortened(value.words, length))
    return _shortened(value, length) if isinstance(value, str) else value


def _shortened(words: str, length: int) -> str:
    """The text up to the end of a sentence, else of a word, and how much of it is left out."""
    if len(words) <= length:
        return words
    kept = words[:length]
    ends = [kept.rfind(end) + 1 for end in (". ", "! ", "? ", ".\n", "!\n", "?\n", "\n")]
    end = max(ends) if max(ends) > length // 2 else kept.rfind(" ")
    kept = kept[: end if end > length // 2 else length].rstrip()
    return f"{kept} … ({len(words) - len(kept):,} characters more)"


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
