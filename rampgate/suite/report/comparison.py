"""Says what the report of a comparison has, from the document of `--json`: first why it is blocked, with the cases that
fell, both outputs side by side. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalcore.suite.gates import BLOCKING, SuiteCode
from evalcore.suite.words import Word
from rampgate.report.drawing import Estimate, Intervals, Spread
from rampgate.report.model import Cell, Link, Passage, Reason, Report, Section, Value
from rampgate.suite.report.canary import canary_section
from rampgate.suite.report.outcome import NOT_YET, RUN, asked_section, stopped, warnings
from schemas.counting import counted

OPEN = 3
"""Cases that fell which a report shows before the numbers; a page has the others folded below them."""
SHOWN = 5
"""Cases that fell which a failed test of JUnit names."""
LONGEST = 400
WHOLE = "all cases"
SAFETY = "safety: no case fails that never did"
OF_SAFETY = (SuiteCode.SAFETY_REGRESSED, SuiteCode.SAFETY_CASES_REMOVED)
Told = Mapping[str, Any]
UNCOMPARED = (
    ("removed", "of the baseline are not among the candidate's"),
    ("changed", "ask something else than the baseline's"),
    ("not_applicable", "have the score on one side at most"),
    ("lost", "have lost the score in each sample"),
    ("other_cluster", "name another cluster than the baseline's"),
    ("unequal_samples", "have more samples on one side"),
    ("unscored", "have a sample that no one could score"),
    ("failed", "have a sample for which the agent failed"),
)
NAMED = 20


def comparison_report(
    told: Told, name: str, traces: Mapping[str, str] | None = None, whole: Told | None = None
) -> Report:
    """`name` is the suite's, or the files'; `traces` are the texts of stored traces by their hash; `whole` is the
    document of the run, where it is of one: it has what was asked, what judges say of pairs, and the canary plan of one
    that passed."""
    held, run = traces or {}, whole or {}
    plan = run.get("canary_plan")
    fell, why = [*_fell(told, held)], stopped(run)
    words = {WHOLE: told["headline"]["said"], **{one["slice"]: one["said"] for one in told["slices"]}}
    return Report(
        name,
        why.words if why is not None else told["said"],
        "fail" if why is not None else told["verdict"],
        [
            *fell[:OPEN],
            _slices(told),
            *_pairs(run.get("pairwise") or {}),
            *_spread(told),
            *_power(told),
            _cost(told),
            *_not_compared(told),
            *((canary_section(plan),) if plan else ()),
            *((asked_section(run),) if run else ()),
            *fell[OPEN:],
            *(
                Section(f"Trace {one[:12]}", text=text, anchor=anchor_of(one)[1:], pages_only=True)
                for one, text in held.items()
            ),
        ],
        [
            *((why.reason,) if why is not None else ()),
            *_reasons(told, waits=why is not None and why.code == NOT_YET),
            *warnings(run),
        ],
        {**({RUN: ""} if why is not None else {}), SAFETY: "", **words},
        f"{told['cases']['compared']:,} cases compared, {len(fell):,} of them fell",
    )


def anchor_of(trace: str) -> str:
    """Where the page has a stored trace."""
    return f"#trace-{trace}"


def _reasons(told: Told, *, waits: bool) -> Iterator[Reason]:
    """A slice that blocks fails its test; one whose missing scores decide could not be tested. What `waits` to be
    confirmed is no error yet."""
    for one in told["reasons"]:
        blocks = one["code"] in BLOCKING and not waits
        test = one["slice"] or (SAFETY if one["code"] in OF_SAFETY else WHOLE)
        yield Reason(
            "error" if blocks else "warning", one["message"], one["code"],
            undecided=one["code"] == SuiteCode.JUDGE_UNAVAILABLE, test=test,
            detail=_fallen(told, test, one["cases"]) if blocks else "",
        )  # fmt: skip


def _fallen(told: Told, test: str, cases: Sequence[str]) -> str:
    """The first cases that fell of a failed test, with both outputs."""
    fell = [
        one for one in told["flipped"] if test == WHOLE or one["case_id"] in cases or test in one["slices"]
    ]  # fmt: skip
    lines = []
    for one in fell[:SHOWN]:
        lines.append(f"{one['case_id']}: {one['baseline']:.3g} → {one['candidate']:.3g}")
        for side in ("baseline", "candidate"):
            sample = one[f"{side}_sample"]
            judge = f" (judge: {sample['reason'][:LONGEST]})" if sample["reason"] else ""
            lines.append(f"  {side}: {' '.join(_said(sample).split())[:LONGEST]}{judge}")
    return "\n".join(lines)


def _figure(score: float | None) -> str:
    return "no one could score it" if score is None else f"{score:.3g}"


def _fell(told: Told, held: Mapping[str, str]) -> Iterator[Section]:
    for number, one in enumerate(told["flipped"]):
        both: list[Told] = [one["baseline_sample"], one["candidate_sample"]]
        rows: list[list[Value]] = [
            ["Answer", *(Passage(_said(sample)) for sample in both)],
            ["Score", *(_figure(sample["score"]) for sample in both)],
        ]
        if any(sample["reason"] for sample in both):
            rows.append(["The judge says", *(Passage(sample["reason"] or "") for sample in both)])
        if any(sample["trace"] for sample in both):
            rows.append(["Trace", *(_trace(sample["trace"], held) for sample in both)])
        slices = ", ".join(one["slices"]) or "no slice"
        title = f"{one['case_id']} ({slices}): {one['baseline']:.3g} → {one['candidate']:.3g}"
        folded = number >= OPEN
        yield Section(
            title, ("", "Baseline", "Candidate"), rows, folded=folded, side_by_side=True, pages_only=folded
        )  # fmt: skip


def _said(sample: Told) -> str:
    return f"failed: {sample['error']}" if sample["error"] else sample["output"] or "(no output in the file)"


def _trace(trace: str | None, held: Mapping[str, str]) -> Value:
    if trace is None or trace.startswith(("http:", "https:")):
        return Link(trace or "", trace or "")
    return Link(f"trace {trace[:12]}", anchor_of(trace)) if trace in held else f"stored as {trace}"


def _slices(told: Told) -> Section:
    heads = ("", "Result", "Cases", "Baseline", "Candidate", "Delta", "95 %", "Notes")
    whole = told["headline"]
    named = [(WHOLE, whole), *((one["slice"], one) for one in told["slices"])]
    rows = [
        [
            name, _result(one), one["n"], one["baseline"], one["candidate"], one["delta"], one["ci95"], _notes(one),
        ]
        for name, one in named
    ]  # fmt: skip
    drawn = [
        Estimate(name, one["delta"], tuple(one["ci95"]) if one["ci95"] else None, _result(one).tone)
        for name, one in named
        if one["delta"] is not None
    ]
    again = told["confirmation"]
    notes = [f"asked again: {one['message']}" for one in again["found"]]
    notes += [f"not asked again: {again['why_not']}"] if again["why_not"] else []
    return Section(
        f"{told['score']} by slice, candidate less baseline", heads, rows, notes,
        drawing=Intervals("Differences with their 95 % intervals", drawn),
    )  # fmt: skip


def _result(one: Told) -> Cell:
    return Cell(one["said"], {Word.WORSE: "fail", Word.HOLDS: "pass"}.get(one["word"], "warn"))


def _notes(one: Told) -> str:
    words = [word for word in ("significant", "small", "skewed") if one[word]]
    if (wins := one["win_rate"]) is not None:
        words.append(f"wins {wins['rate']:.0%}")
    return ", ".join(words)


def _pairs(told: Told) -> Iterator[Section]:
    """Which side's answers judges prefer, and how far that hangs on which one they read first."""
    heads = ("Judge", "Wins", "Ties", "Losses", "Unanswered", "Orders disagree", "Calls")
    rows: list[list[Value]] = [
        [
            judge, one["wins"], one["ties"], one["losses"], one["unanswered"],
            f"{one['position_bias']:.0%}" if one["position_bias"] is not None else "", one["calls"],
        ]
        for judge, one in told.items()
    ]  # fmt: skip
    if rows:
        yield Section("Candidate's answers beside the baseline's, each pair in both orders", heads, rows)


def _power(told: Told) -> Iterator[Section]:
    """How small a drop is found: what this comparison can't have seen."""
    named = [(WHOLE, told["headline"]), *((one["slice"], one) for one in told["slices"])]
    found = [(name, one["power"]) for name, one in named if one["power"] is not None]
    if found:
        drop = found[0][1]["drop"]
        heads = ("", "Found 8 times in 10", f"A drop of {drop:.3g} is found", "Cases for that", "Samples for that")
        rows: list[list[Value]] = [
            [
                name, one["confirmed_smallest_drop"], f"{one['confirmed_found']:.0%}",
                one["cases_needed"] or _enough(one), _samples_needed(one),
            ]
            for name, one in found
        ]  # fmt: skip
        yield Section("How small a drop is found", heads, rows)


def _enough(one: Told) -> str:
    return "there are enough" if one["confirmed_smallest_drop"] <= one["drop"] else "more cases alone never suffice"


def _samples_needed(one: Told) -> Value:
    if one["samples_never_suffice"]:
        return "more samples alone never suffice"
    needed: int | None = one["samples_needed"]
    return needed or "there are enough"


def _spread(told: Told) -> Iterator[Section]:
    sides = [(name, told["sides"][name]["counts"]) for name in ("baseline", "candidate")]
    bins = len(sides[0][1])
    low, high = told["scale"]
    edges = [low + (high - low) * number / bins for number in range(bins + 1)]
    rows = [
        [f"{edges[number]:g} to {edges[number + 1]:g}", *(counts[number] for _, counts in sides)]
        for number in range(bins)
        if any(counts[number] for _, counts in sides)
    ]
    drawing = Spread("Cases by their mean score", edges, sides)
    yield Section(
        "How cases score", ("Mean of a case", "Baseline", "Candidate"), rows, drawing=drawing, pages_only=True
    )


def _cost(told: Told) -> Section:
    heads = ("", "Answers", "Failed", "Cost in USD", "Latency p50 in ms", "Latency p95 in ms")
    return Section("Cost and latency", heads, [[name, *_facts(told["sides"][name])] for name in told["sides"]])


def _facts(side: Told) -> list[Value]:
    return [side[name] for name in ("samples", "failed", "cost_usd", "latency_p50_ms", "latency_p95_ms")]


def _not_compared(told: Told) -> Iterator[Section]:
    notes = [
        f"{counted(len(found), 'case')} {words}: {_named(found)}"
        for name, words in UNCOMPARED
        if (found := told["cases"][name])
    ]
    if notes:
        yield Section("Cases to look at", notes=notes)


def _named(cases: Sequence[str]) -> str:
    rest = f" and {len(cases) - NAMED:,} more" if len(cases) > NAMED else ""
    return ", ".join(cases[:NAMED]) + rest
