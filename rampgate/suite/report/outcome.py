"""Says why a run of a suite does not pass where neither its comparison nor its means tell: for pages, comments, JUnit,
annotations, terminals and the gate's verdict alike; and what it asked. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from rampgate.report.model import Reason, Section, Value
from schemas.counting import counted

HEADS: Final = ("", "Asked", "Kept before", "Missing")
RUN: Final = "the run"
"""The test of a run that does not pass."""
NOT_YET: Final = "not_yet_confirmed"
"""What fell is answered again, and another run decides."""
NO_BASELINE: Final = (
    "the store has no run of main that passed: is it the one that main's runs are kept in? Run main (--label main), "
    "name a file of results (--baseline), or give --first-run where main does not have this suite yet"
)


def beyond_smoke(run: Mapping[str, Any]) -> str:
    """A warning that the cases of safety are more than the smoke set is to have; empty where they are not."""
    more = run.get("beyond_smoke")
    return f"the smoke set has {run['cases']:,} cases, all of safety, {more:,} more than its size" if more else ""


class Stopped(NamedTuple):
    """`code` is for machines, `words` for a headline, `detail` says more where there is more to say."""

    code: str
    words: str
    detail: str = ""

    @property
    def message(self) -> str:
        return f"{self.words}: {self.detail}" if self.detail else self.words

    @property
    def reason(self) -> Reason:
        """An error of the run: the agent fails it, or it has found nothing. What is not yet confirmed is none yet."""
        level: Literal["error", "warning"] = "warning" if self.code == NOT_YET else "error"
        return Reason(level, self.message, self.code, undecided=self.code != "agent_failed", test=RUN)


def warnings(run: Mapping[str, Any]) -> list[Reason]:
    """What is to be looked at beside the comparison."""
    return [Reason("warning", words) for words in (dropped_words(run), beyond_smoke(run)) if words]


def dropped_words(run: Mapping[str, Any]) -> str:
    """Says which parts of main's candidate this one's suite file does not name; empty where it has all."""
    dropped = run.get("dropped_parts")
    return f"parts that main has and this candidate's suite file lacks: {', '.join(dropped)}" if dropped else ""


def stopped(run: Mapping[str, Any]) -> Stopped | None:
    """Why the run, by its document, does not pass, beside what its comparison says; None where there is no such
    reason."""
    if (left := run.get("left")) is not None:
        kinds = [counted(left[f"{kind}s"], kind) for kind in ("answer", "score", "pair") if left.get(f"{kind}s")]
        rest = f"{left['why']}; {' and '.join(kinds)} are left, and the next run resumes with them"
        return Stopped("incomplete", "incomplete, which is no pass", rest)
    if (again := run.get("again")) is not None:
        many = f"{again['cases']:,} cases {again['samples']} times each"
        return Stopped(NOT_YET, "not yet confirmed", f"both sides answer {many} again, and these answers decide")
    if run.get("verdict") == "unscored":
        return Stopped("judge_unavailable", "the score that decides is missing somewhere")
    if run.get("verdict") == "no_baseline":
        return Stopped("no_baseline", "no baseline, which is no pass", NO_BASELINE)
    if run.get("verdict") == "fail" and run.get("comparison") is None:
        return Stopped("agent_failed", "the agent failed every time, so that the run is no one's baseline")
    return None


def asked_section(told: Mapping[str, Any]) -> Section:
    """How much a run asked of the candidate and of judges, of how much it knew the answer, and what it is compared
    with."""
    rows: list[list[Value]] = [
        answers_of(told),
        ["judges", told["judge_calls"], told["judge_answers"]["kept"], told["unscored"]],
    ]
    return Section(cases_of(told), HEADS, rows, list(_notes(told)))


def _notes(told: Mapping[str, Any]) -> Iterator[str]:
    if told["unnamed_code"]:
        named = f"{told['unnamed_code']} is in no part of the candidate"
        yield f"no answer is kept: {named}; name it, as in `code: {{files: ['*.py']}}`"
    for judge, cut in told["judged_cut"].items():
        yield f"{judge} was shown a part alone of {counted(cut, 'answer')}: they are too long"
    if told["cost_usd"] is not None or told["tokens"]:
        yield cost_of(told["cost_usd"], told["tokens"])
    yield f"results: {told['results']}"
    baseline = told["baseline"]
    if baseline is None:
        yield "no baseline yet: the run is compared with nothing; `--label main` makes it one"
    elif baseline["label"]:
        at = ", ".join(filter(None, (baseline["commit"][:12], f"{baseline['age']} ago")))
        yield f"baseline: {baseline['label']}'s run ({at})"
    if baseline is not None and baseline["judged_again"]:
        yield f"baseline: {baseline['judged_again']:,} answers judged again, by the judges of now"


def cases_of(told: Mapping[str, Any]) -> str:
    return f"{counted(told['cases'], 'case')} × {counted(told['samples'], 'sample')}"


def answers_of(told: Mapping[str, Any]) -> list[Value]:
    answers = told["answers"]
    return ["answers", answers["asked"], answers["kept"], answers["failed"]]


def cost_of(dollars: float | None, tokens: int | None) -> str:
    known = [f"${dollars:,.4f}" if dollars is not None else "", f"{tokens:,} tokens" if tokens else ""]
    return ", ".join(filter(None, known)) or "nothing"
