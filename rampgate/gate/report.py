"""Says what the reports of `gate run`, `plan`, `proposal` and `compare` have. Pure.

A gate's report has a row and the distribution of scores of each judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rampgate.report.drawing import Spread
from rampgate.report.findings import reason_of
from rampgate.report.model import Cell, Reason, Report, Section, Value
from schemas.counting import counted
from schemas.dead_letters import clean
from schemas.judges import ScoreType
from schemas.verdicts import Code, JudgeScore, VerdictLevel

if TYPE_CHECKING:
    from evalcore.registry.registry import Judge
    from rampgate.ci_gate.run import GateAnswer, GateRun

THE_SUITE = "the suite"
OF_SUITE = {
    Code.SUITE_FAILED: VerdictLevel.FAIL, Code.SUITE_UNUSABLE: VerdictLevel.FAIL, Code.SUITE_WARNED: VerdictLevel.WARN,
}  # fmt: skip
UNDECIDED = (Code.JUDGE_UNAVAILABLE, Code.UNREADABLE_ITEM)
WIDEST = 40
"""An INTEGER scale of fewer values than this has a bin for each."""
LOWEST = 3
"""Lowest scores of a judge that a report lists."""
SHOWN = 5
"""Flips of a judge that a report lists, each way."""
_ORDER = tuple(VerdictLevel)
Told = Mapping[str, Any]
Spreads = Mapping[str, "tuple[Judge, Spread]"]


def gate_report(answer: GateAnswer) -> Report:
    outcome = answer.outcome
    verdict, words = outcome.verdict, levels(outcome)
    spreads = distributions(outcome)
    scores = verdict.per_judge_scores
    reasons = list(_reasons(outcome, words))
    shifts = ", ".join(sorted(outcome.wanted.accepted))
    lowest = [row for name in words for row in _lowest(outcome, name)]
    heads = ("Judge", "", "Score", "Threshold", "Floor", "Baseline", "Items", "Unscored", "Standing, due", "Spread")
    sure = ("Judge", "Kind", "95 %", "Not applicable", "Asked again", "Finds a fall of", "A clean one passes")
    return Report(
        f"gate {verdict.milestone}",
        _result(outcome, words, reasons),
        verdict.verdict,
        [
            Section(
                "", heads, [_row(name, word, scores[name], spreads) for name, word in words.items()],
                [f"Accepted as a baseline shift: {shifts}"] if shifts else [],
            ),
            Section(
                "How sure the scores are", sure,
                [_certainty(name, scores[name], spreads) for name in words], pages_only=True,
            ),
            *(
                Section(f"{name}: {judge.rule.description}", drawing=spread, pages_only=True)
                for name, (judge, spread) in spreads.items()
            ),
            Section("Lowest scores", ("Judge", "Item", "Score", "The judge says"), lowest, pages_only=True),
        ],
        reasons,
        [*words, *([THE_SUITE] if outcome.suite is not None else [])],
        _facts(outcome),
    )  # fmt: skip


def levels(outcome: GateRun) -> dict[str, VerdictLevel]:
    """The verdict that each judge alone would give, the worst first. It is never worse than the gate's own: a judge
    that could score nothing need not block where another one warns anyway."""
    verdict = outcome.verdict
    found = {
        name: min(one.verdict, verdict.verdict, key=_ORDER.index) for name, one in verdict.per_judge_scores.items()
    }
    return dict(sorted(found.items(), key=lambda one: (-_ORDER.index(one[1]), one[0])))


def _row(name: str, word: VerdictLevel, one: JudgeScore, spreads: Spreads) -> list[Value]:
    from evalcore.gates.limits import figure

    unsure = f", {one.compared}: {one.items_needed} items would" if one.items_needed is not None else ""
    return [
        name, Cell(word, word), "none" if one.score is None else figure(one.score), one.threshold, one.floor,
        "" if one.baseline is None else f"{figure(one.baseline)} ({one.baseline_runs}){unsure}", one.n, one.unscored,
        f"{one.standing or 'unknown'} {one.recalibration_due or ''}".strip(),
        spreads[name][1].words() if name in spreads else "",
    ]  # fmt: skip


def _certainty(name: str, one: JudgeScore, spreads: Spreads) -> list[Value]:
    """`Finds`: the smallest fall that this sample finds with 80 % power; how often a candidate without a fault passes
    is beside it. Both are empty where no noise was measured."""
    again = f"{one.asked_again}, {one.overturned} overturned" if one.asked_again else ""
    person = f"{one.adjudicated} adjudicated" if one.adjudicated else ""
    known = spreads.get(name)
    return [
        name, f"{known[0].classification}, {one.enforcement}s" if known else f"{one.enforcement}s", one.ci95,
        one.not_applicable, "; ".join(filter(None, (again, person))), one.detectable_drop,
        "" if one.clean_pass_probability is None else f"{one.clean_pass_probability:.2%}",
    ]  # fmt: skip


def _reasons(outcome: GateRun, words: Mapping[str, VerdictLevel]) -> Iterator[Reason]:
    """The verdict's reasons, each about a judge, the suite, or neither: such a message begins with the judge's name, or
    with its overdue seed."""
    verdict = outcome.verdict
    for one in verdict.reasons:
        about, message = "", one.message
        level = VerdictLevel.WARN if one.code is Code.GATE_SKIPPED else verdict.verdict
        if one.code in OF_SUITE:
            about, level = THE_SUITE, OF_SUITE[one.code]
        for judge, word in words.items():
            if message.startswith((f"{judge} ", f"the provisional seed of {judge} ")):
                about, level, message = judge, word, message.removeprefix(f"{judge} ")
        yield Reason(
            "error" if level is VerdictLevel.FAIL else "warning", message, one.code, about,
            undecided=level is VerdictLevel.FAIL and one.code in UNDECIDED,
        )  # fmt: skip


def _result(outcome: GateRun, words: Mapping[str, VerdictLevel], reasons: Sequence[Reason]) -> str:
    """The verdict, and what decided it: a judge that only warns is not named where something else blocks."""
    verdict = outcome.verdict.verdict
    if verdict is VerdictLevel.PASS:
        return str(verdict)
    whole = [why.code for why in reasons if not why.about and why.code != Code.GATE_SKIPPED]
    names = [*dict.fromkeys(whole), *(name for name, word in words.items() if word is verdict)]
    level = "error" if verdict is VerdictLevel.FAIL else "warning"
    names += ["its suite"] if any(why.about == THE_SUITE and why.level == level for why in reasons) else []
    return f"{verdict}: {', '.join(names)}" if names else str(verdict)


def _facts(outcome: GateRun) -> str:
    golden = outcome.golden
    took = f"{outcome.duration_seconds:.1f} s"
    asked = f"{counted(len(outcome.scored.assignments), 'score')} asked for, {took}"
    configuration = f"configuration {outcome.wanted.registry.config_hash}, decided {outcome.decided_at}"
    if outcome.sample is not None:
        without = f"; its filter fits no trace: {', '.join(outcome.without)}" if outcome.without else ""
        return f"{outcome.sample.size} traces of {clean(outcome.source, 300)}, {asked}{without}; {configuration}"
    if golden is None:
        return f"no item was judged; {took}; {configuration}"
    empty = clean(outcome.wanted.unrecorded, 300)
    unrecorded = f"; {empty} has no run of main, so nothing can have regressed: record one there" if empty else ""
    return (
        f"{counted(len(golden.items), 'item')} of {clean(golden.source, 300)}, {outcome.answered} answered by the "
        f"candidate, {asked}{unrecorded}; {configuration}"
    )


def distributions(outcome: GateRun) -> dict[str, tuple[Judge, Spread]]:
    """Each judge by its id, the worst first, with how its scores spread over its scale."""
    from evalcore.scoring.answers import Scored

    values: dict[str, list[float]] = {}
    judges: dict[str, Judge] = {}
    for (judge, _), found in zip(outcome.scored.assignments, outcome.scored.judgements, strict=True):
        judges[judge.id] = judge
        values.setdefault(judge.id, [])
        if isinstance(found.answer, Scored):
            values[judge.id].append(found.answer.value)
    order = [*(name for name in levels(outcome) if name in judges), *judges]
    scores = outcome.verdict.per_judge_scores
    return {name: (judges[name], _spread(judges[name], values[name], scores.get(name))) for name in order}


def _spread(judge: Judge, found: Sequence[float], score: JudgeScore | None) -> Spread:
    import numpy as np

    from evalcore.drift.scale import Scale, declared

    low, high = judge.score_range
    boolean = judge.score_type is ScoreType.BOOLEAN
    scale = declared(judge.score_type, judge.score_range) if high - low < WIDEST else Scale(low, high, whole=False)
    start, width = (low - 0.5, 1.0) if scale.whole else (low, (high - low) / scale.bins)
    edges = tuple(start + width * step for step in range(scale.bins + 1))
    whole = tuple(f"{low + step:g}" for step in range(scale.bins)) if scale.whole else ()
    marks: list[tuple[str, float]] = []
    if score is not None and not boolean:  # there limits are rates, not scores
        marks = [("threshold", score.threshold), ("floor", score.floor)]
        marks += [("mean", score.score)] if score.score is not None else []
    counts = scale.counts(np.array(found, dtype=np.float64)).tolist()
    labels = ("false", "true") if boolean else whole
    return Spread(f"Scores of {judge.id}", edges, [("items", counts)], labels, marks)


def _lowest(outcome: GateRun, judge: str) -> list[list[Value]]:
    """A judge's lowest scores, with its words."""
    from evalcore.scoring.answers import Scored

    found = [
        (given.answer.value, item.id, given.reason)
        for (by, item), given in zip(outcome.scored.assignments, outcome.scored.judgements, strict=True)
        if by.id == judge and isinstance(given.answer, Scored)
    ]
    return [[judge, item[:80], score, why[:300]] for score, item, why in sorted(found)[:LOWEST]]


def plan_report(told: Told) -> Report:
    files = [
        [f"{one['file']} (now {one['renamed_to']})" if one["renamed_to"] else one["file"],
         ", ".join(one["gates"]) or "none", one["rule"]]
        for one in told["files"]
    ]  # fmt: skip
    skips = [
        [skip["milestone"], "from the merge on" if skip["milestone"] in told["gates"] else skip["approved_by"],
         str(skip["expires"]), skip["justification"]]
        for skip in told["skipped"]
    ]  # fmt: skip
    return Report(
        "gates to run",
        ", ".join(told["gates"]) or "none",
        "fail" if told["refused"] else "pass",
        [
            Section("", ("File", "Gates", "Rule"), files),
            *([Section("Skipped", ("Gate", "Allowed", "Until", "Why"), skips)] if skips else []),
        ],
        [Reason("error", f"override refused: {why}") for why in told["refused"]],
    )


def proposal_report(told: Told) -> Report:
    rows = [[name, ", ".join(told[name]) or "none"] for name in ("taken", "new", "left")]
    wrong = [*map(reason_of, told["errors"])]
    result = counted(len(wrong), "error") if wrong else told["configs"]
    return Report("registry of the proposal", result, "fail" if wrong else "pass", [Section("", (), rows)], wrong)


def compare_report(told: Told) -> Report:
    heads = ("Judge", "Items", "Old mean", "New mean", "To pass", "To fail", "One-sided")
    judges = [
        [
            one["judge"], one["n"], one["old_mean"], one["new_mean"], len(one["to_pass"]), len(one["to_fail"]),
            one["missing"],
        ]
        for one in told["judges"]
    ]  # fmt: skip
    flips = [
        [one["judge"], flip["item"], word, flip["old"], flip["new"]]
        for one in told["judges"]
        for word, way in (("passes now", "to_pass"), ("fails now", "to_fail"))
        for flip in one[way][:SHOWN]
    ]
    ramps = [
        [
            one["agent_id"], one["agent_version"], one["milestone"], one["decided"], one["old"], one["new"],
            "the same traces" if one["same_sample"] else f"{one['traces']} traces at hand",
            Cell("otherwise", "fail") if one["otherwise"] else "alike",
        ]
        for one in told["ramps"]
    ]  # fmt: skip
    decided = told["verdict"]
    differs = bool(told["otherwise"]) or decided["old"] != decided["new"]
    past = ("Agent", "Version", "Gate", "Then", "Old", "New", "On", "")
    return Report(
        "the gate",
        f"{decided['old']} by the old version, {decided['new']} by the new"
        + (f"; {counted(told['otherwise'], 'past ramp')} otherwise" if told["otherwise"] else ""),
        "fail" if differs else "pass",
        [
            Section("Judges that differ", heads, judges, [] if judges else ["no judge of these outputs differs"]),
            *([Section("Items that flip", ("Judge", "Item", "", "Old", "New"), flips)] if flips else []),
            *([Section("Past ramps", past, ramps)] if ramps else []),
        ],
    )
