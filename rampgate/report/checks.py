"""Says what the reports of `check inversion`, `drift`, `agreement`, `trajectory`, `cadence` have, from their documents.

Pure. A report so can't tell other numbers than the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rampgate.report.model import Cell, Reason, Report, Section, Value
from schemas.counting import counted

SHOWN = 20
"""Items of a quarantined category that a report lists, the most disagreed about first."""
Told = Mapping[str, Any]
UNDECIDED = Cell("unknown", "warn")


def inversion_report(told: Told) -> Report:
    if "rerolls" in told:
        return _users_report(told)
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


def _users_report(told: Told) -> Report:
    heads = ("Judge", "Vertical", "Users", "Effective n", "Pearson", "Holm's p", "Weeks", "Result", "Why")

    def rows(found: Sequence[Told]) -> list[list[Value]]:
        names = ("judge_id", "vertical", "n", "effective_n", "pearson", "adjusted_p", "weeks_in_a_row")
        return [[*(one[name] for name in names), against_people(one), one["reason"]] for one in found]

    whole = [one["inverted"] for one in told["judges"]]
    result = _result(whole, True, "inverted") if whole else ("no judge scored a turn that a user gave a thumb", "warn")
    return Report(
        f"Judges against thumbs, {told['week']}",
        *result,
        [
            *_if_any(Section("Against thumbs", heads, rows(told["judges"]))),
            *_if_any(Section("Against rerolls, which page no one", heads, rows(told["rerolls"]))),
        ],
    )


def canaries_report(told: Told) -> Report:
    results = {True: Cell("holds", "pass"), False: Cell("moved", "fail"), None: UNDECIDED}
    rows = [[one["judge_id"], results[one["passed"]], one["reason"]] for one in told["judges"]]
    skipped = [f"not asked, since they ask no model: {', '.join(told['skipped'])}"] if told["skipped"] else []
    return Report(
        f"Canaries, seed {told['seed']}",
        *_result([one["passed"] for one in told["judges"]], False, "moved"),
        [Section("Judges", ("Judge", "Result", "Why"), rows, skipped)],
        facts=f"{counted(told['items'], 'item')}, {told['model']}",
    )


def noise_report(told: Told) -> Report:
    names = ("items", "flip_rate", "flip_rate_ci95", "deviation", "false_alarm_rate", "false_alarm_ci95")
    heads = ("Judge", "Items", "Flips", "95 %", "Deviation", "False alarms", "95 %", "Why not")
    rows = [[one["judge_id"], *(one.get(name) for name in names), one["reason"]] for one in told["judges"]]
    missing = sum("flip_rate" not in one for one in told["judges"])
    return Report(
        "Noise of judges",
        f"unknown of {missing}" if missing else "measured",
        "warn" if missing else "pass",
        [Section(f"Noise over {told['asks']} answers an item", heads, rows)],
        facts=f"written: {told['written']}" if told["written"] else "",
    )


def against_people(told: Told) -> Cell:
    """What a report says of a judge's scores beside people's."""
    if told["inverted"] is False and told.get("carries_signal") is False:
        return Cell("not inverted, and no better than chance", "warn")
    return {True: Cell("inverted", "fail"), False: Cell("not inverted", "pass"), None: UNDECIDED}[told["inverted"]]


def _captured_report(told: Told) -> Report:
    heads = ("Judge", "Items", "Unscored", "Limit")
    rows = [[one["judge_id"], one["items"], one["unscored"], one["kl_limit"]] for one in told["judges"]]
    few = ["A limit takes two runs."] if any(one["kl_limit"] is None for one in told["judges"]) else []
    judges = Section("Judges", heads, rows, few)
    return Report("Baseline of judges", f"written: {told['written']}", "pass", [judges])


def drift_report(told: Told) -> Report:
    if "written" in told:
        return _captured_report(told)
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
    set_ = told.get("reference")
    return Report(
        "Agreement of annotators",
        *_result(whole, False, "quarantined"),
        [Section("Categories", heads, rows, notes), *(part for one in apart for part in _talk_about(one))],
        facts=f"{set_['entered']} ratings entered the reference set, now {set_['version']}" if set_ else "",
    )


def trajectory_report(told: Told) -> Report:
    modes, figures = ("strict", "unordered", "subset", "superset"), ("precision", "recall", "f1", "lcs", "edit")
    matched = {True: Cell("matches", "pass"), False: Cell("differs", "warn")}
    rows = [
        [str(one["case_id"]), *(matched[one[name]] for name in modes), *(one[name] for name in figures)]
        for one in told["cases"]
    ]
    notes = [
        f"{one['case_id']}, {mode}: {why}"
        for one in told["cases"]
        for mode, why in one["reasons"].items()
        if mode != "unordered"  # subset and superset say the same apart
    ]
    heads = ("Case", "Strict", "Unordered", "Subset", "Superset", "Precision", "Recall", "F1", "LCS", "Edit")
    alike = sum(one["strict"] for one in told["cases"])
    result = f"{alike} of {counted(len(told['cases']), 'case')} called what the reference has, in its order"
    return Report("Paths against references", result, "pass", [Section("Cases", heads, rows, notes)])


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
    """The day on which a judge was last compared with people."""
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
        return f"unknown of {unknown}", "warn"
    return (f"none {word}" if found else "nothing was checked"), "pass"


def _if_any(section: Section) -> list[Section]:
    return [section] if section.rows else []
