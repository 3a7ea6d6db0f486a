"""Tells a comparison to CI: as JUnit XML, a test for each slice, and as GitHub's annotations. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from evalcore.suite.gates import SuiteCode
from rampgate.report.github import annotation, limited_annotations
from rampgate.report.junit import Tested, junit
from rampgate.suite.report.comparison import Told, blocking
from rampgate.suite.report.outcome import NOT_YET, beyond_smoke, stopped

WHOLE = "all cases"
SAFETY = "safety: no case fails that never did"
OF_SAFETY = (SuiteCode.SAFETY_REGRESSED, SuiteCode.SAFETY_CASES_REMOVED)
SHOWN = 5
"""Cases that fell which a failed test names."""
LONGEST = 400


def comparison_junit(told: Told, name: str, run: Told) -> bytes:
    """A slice that blocks is a failed test of its name; one whose missing scores decide is an error, and so is a run
    that is incomplete."""
    words = {WHOLE: told["headline"]["said"], **{one["slice"]: one["said"] for one in told["slices"]}}
    groups: dict[str, list[Told]] = {SAFETY: [], **{place: [] for place in words}}
    for one in told["reasons"]:
        groups.setdefault(_place(one), []).append(one)
    stop = blocking(told)
    tests = [_tested(place, found, stop, told, words.get(place, "")) for place, found in groups.items()]
    why = stopped(run)
    return junit(name, "suite", [why.tested(), *tests] if why is not None else tests)


def commands(told: Told, name: str, run: Told) -> list[str]:
    """GitHub workflow commands: an error for each reason that blocks, warnings, and the result. What is not yet
    confirmed is no error yet."""
    title, why = {"title": name}, stopped(run)
    waits = why is not None and why.code == NOT_YET
    stop = [] if waits else blocking(told)
    by_level: dict[str, list[str]] = {"error": [], "warning": []}
    for one in told["reasons"]:
        level = "error" if one in stop else "warning"
        by_level[level].append(annotation(level, title, f"{one['code']}: {one['message']}"))
    if why is not None:
        level = "warning" if waits else "error"
        by_level[level].insert(0, annotation(level, title, f"{why.code}: {why.message}"))
    if more := beyond_smoke(run):
        by_level["warning"].append(annotation("warning", title, more))
    result = f"{told['said'] if why is None else why.words}: {told['cases']['compared']:,} cases compared"
    return [*limited_annotations(by_level, title), annotation("notice", title, result)]


def _place(reason: Told) -> str:
    if reason["slice"] is not None:
        return str(reason["slice"])
    return SAFETY if reason["code"] in OF_SAFETY else WHOLE


def _tested(place: str, found: Sequence[Told], stop: Sequence[Told], told: Told, word: str) -> Tested:
    blocks = [one for one in found if one in stop]
    text = "\n".join(f"{one['code']}: {one['message']}" for one in found)
    if not blocks:
        return Tested(place, text=text, word=word)
    unknown = all(one["code"] == SuiteCode.JUDGE_UNAVAILABLE for one in blocks)
    named = {case for one in blocks for case in one["cases"]}
    fell = [one for one in told["flipped"] if place == WHOLE or one["case_id"] in named or place in one["slices"]]
    text += "".join(f"\n{line}" for one in fell[:SHOWN] for line in _fell(one))
    return Tested(place, "error" if unknown else "failure", blocks[0]["code"], blocks[0]["message"], text, word)


def _fell(one: Told) -> list[str]:
    lines = [f"{one['case_id']}: {one['baseline']:.3g} → {one['candidate']:.3g}"]
    for side in ("baseline", "candidate"):
        sample = one[f"{side}_sample"]
        said = " ".join((sample["error"] or sample["output"] or "").split())[:LONGEST]
        lines.append(f"  {side}: {said}" + (f" (judge: {sample['reason'][:LONGEST]})" if sample["reason"] else ""))
    return lines


def commands_without_baseline(run: Told, name: str) -> list[str]:
    """The same of a run that is held against nothing: an error where it does not pass."""
    why = stopped(run)
    return [annotation("error", {"title": name}, f"{why.code}: {why.message}")] if why is not None else []
