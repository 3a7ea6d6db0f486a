"""Says what the reports of `check inversion`, `drift`, `agreement` and `cadence` have, from the documents of `--json`.

Pure. A report so can't tell other numbers than the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rampgate.report.model import Cell, Reason, Report, Section, Value

SHOWN = 20
"""Items of a quarantined category that a report lists, the most disagreed about first."""
Told = Mapping[str, Any]
UNDECIDED = Cell("nobody can tell", "warn")


def inversion_report(told: Told) -> Report:
    heads = ("n", "Pearson", "95 %", "Spearman", "Result")
    judged = ("Judge", *heads, "Detectable", "Why")
    dated = any("held_at" in one for one in told["judges"])

    def row(one: Told, *about: Value) -> list[Value]:
        numbers = (one["n"], one["pearson"], one["pearson_ci95"], one["spearman"])
        return [*about, *numbers, against_people(one)]

    judges = [
        [*row(one, one["judge_id"]), one["detectable"], one["reason"], *([_held(one)] if dated else [])]
        for one in told["judges"]
    ]
    composites = [[*row(one, one["composite"]), one["detectable"], one["reason"]] for one in told["composites"]]
    slices = [[*row(one, one["judge_id"], f"{one['field']}: {one['value']}"), one["holm_p"]] for one in told["slices"]]
    whole = [one["inverted"] for one in (*told["judges"], *told["composites"])]
    result, tone = _result(whole, True, "inverted")
    chance = sum(one["carries_signal"] is False for one in (*told["judges"], *told["composites"]))
    if chance:
        result, tone = f"{result}, {chance} no better than chance", "fail" if tone == "fail" else "warn"
    if overdue := told.get("overdue_count"):
        result, tone = f"{result}, {overdue} overdue", "fail" if tone == "fail" else "warn"
    return Report(
        f"Judges against people{_of(told)}",
        result,
        tone,
        [
            Section("Judges", (*judged, *(["Held on"] if dated else [])), judges),
            *_if_any(Section("Composites", ("Composite", *judged[1:]), composites)),
            *_if_any(Section("By slice, which decides nothing", ("Judge", "Slice", *heads, "Holm's p"), slices)),
        ],
    )


def against_people(told: Told) -> Cell:
    """What a report says of a judge's scores beside people's."""
    if told["inverted"] is False and told.get("carries_signal") is False:
        return Cell("not inverted, and no better than chance", "warn")
    return {True: Cell("inverted", "fail"), False: Cell("not inverted", "pass"), None: UNDECIDED}[told["inverted"]]


def drift_report(told: Told) -> Report:
    heads = ("Judge", "Result", "KL", "Limit", "Source", "Scores", "Scores then", "Ceiling", "Floor", "N/A", "Unscored")
    results = {True: Cell("holds", "pass"), False: Cell("drifted", "fail"), None: UNDECIDED}
    rows = [
        [
            one["judge_id"], results[one["passed"]], one["kl"], one["threshold"], one["threshold_source"],
            one["n"], one["baseline_n"], one["ceiling_fraction"], one["floor_fraction"], one["na_share"],
            one["unscored_share"],
        ]
        for one in told["judges"]
    ]  # fmt: skip
    notes = [
        f"{one['judge_id']}: {said}" for one in told["judges"] for said in (one["reason"], *one["warnings"]) if said
    ]
    if any(one["passed"] is False for one in told["judges"]):
        notes.append("A judge that has drifted stays in its gates: revise its prompt, or calibrate again.")
    whole = [one["passed"] for one in told["judges"]]
    return Report(
        f"Drift of judges{_of(told)}", *_result(whole, False, "drifted"), [Section("Judges", heads, rows, notes)]
    )


def agreement_report(told: Told) -> Report:
    heads = ("Category", "Result", "Alpha", "95 %", "Threshold", "Source", "Level", "Items", "Ratings", "Pairs alike")
    results = {True: Cell("quarantined", "fail"), False: Cell("clears", "pass")}
    rows = [
        [
            one["category"], results[one["quarantined"]], one["alpha"], one["alpha_ci95"], one["threshold"],
            str(one["baseline_source"]), str(one["level"]), one["n_items"], one["n_ratings"], one["pairwise_agreement"],
        ]
        for one in told["categories"]
    ]  # fmt: skip
    apart = [one for one in told["categories"] if one["quarantined"]]
    notes = [f"{one['category']}: {one['reason']}" for one in apart]
    whole = [not one["quarantined"] for one in told["categories"]]
    return Report(
        "Agreement of annotators",
        *_result(whole, False, "quarantined"),
        [Section("Categories", heads, rows, notes), *(part for one in apart for part in _talk_about(one))],
    )


def cadence_report(told: Told) -> Report:
    tones = {"overdue": Cell("overdue", "fail"), "due_soon": Cell("due soon", "warn"), "holds": Cell("holds", "pass")}
    rows = [
        [
            one["recalibration_due"], one["days_left"], tones[str(one["status"])], str(one["kind"]),
            one["vertical"] or "platform", one.get("judge_id") or one["category"], str(one["baseline_source"]),
        ]
        for one in told["due"]
    ]  # fmt: skip
    heads = ("Due", "Days left", "Status", "Of", "Vertical", "Judge or category", "Source")
    far = [
        [
            one["judge_id"], one["limit"], str(one["milestone"] or ""), one["spread"], one["share_of_scale"],
            ", ".join(f"{own['vertical'] or 'platform'} {own['value']:.4g}" for own in one["limits"]),
        ]
        for one in told["apart"] if one["diverges"]
    ]  # fmt: skip
    late, soon = told["overdue_count"], told["due_soon_count"]
    result = (
        f"{late} overdue" if late else f"{soon} due within {told['within_days']} days" if soon else "nothing is due"
    )
    apart = ("Judge", "Limit", "Milestone", "Spread", "Share of the scale", "Limits")
    return Report(
        f"Cadence of calibrations{_of(told)}",
        f"{result}, {len(far)} far apart" if far else result,
        "fail" if late else "warn" if soon or far else "pass",
        [Section("Limits", heads, rows), *_if_any(Section("Verticals that lie far apart", apart, far))],
        [
            Reason(
                "error", f"overdue for {-one['days_left']} days: calibrate again",
                about=f"{one['kind']} of {one.get('judge_id') or one['category']}", file=one["file"], line=one["line"],
            )
            for one in told["due"] if one["status"] == "overdue"
        ],
    )  # fmt: skip


def _of(told: Told) -> str:
    """Whose judges these are: a job's summary has the reports of several verticals."""
    return f" of {told['vertical']}" if told.get("vertical") else ""


def _held(one: Told) -> Cell | str:
    """The day on which a judge was last held against people."""
    day = str(one["held_at"] or "never")[:10]
    return Cell(f"{day}, overdue" if one["held_at"] else day, "warn") if one["overdue"] else day


def _talk_about(one: Told) -> list[Section]:
    """What annotators of a quarantined category go through before they score again."""
    name = one["category"]
    items = [[item["item_id"], item["disagreement"], item["pairwise_agreement"]] for item in one["items"][:SHOWN]]
    people = [[each["annotator"], each["n_ratings"], each["alpha_without"]] for each in one["annotators"]]
    codebook = [
        [" or ".join(map(_rating, entry["ratings"])), entry["n_items"], entry["disagreement"]]
        for entry in one["codebook"][:SHOWN]
    ]
    sections = (
        Section(f"{name}: items to talk about", ("Item", "Part of the disagreement", "Pairs alike"), items),
        Section(f"{name}: annotators", ("Annotator", "Ratings", "Alpha without"), people),
        Section(f"{name}: codebook entries to tighten", ("Ratings", "Items", "Part"), codebook),
    )
    return [section for section in sections if section.rows]


def _rating(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


def _result(found: Sequence[bool | None], bad: bool, word: str) -> tuple[str, str]:
    """The words and the tone of the whole."""
    many, unknown = sum(one is bad for one in found), sum(one is None for one in found)
    if many:
        return f"{many} {word}", "fail"
    if unknown:
        return f"nobody can tell of {unknown}", "warn"
    return (f"none {word}" if found else "nothing was checked"), "pass"


def _if_any(section: Section) -> list[Section]:
    return [section] if section.rows else []
