"""Layer 2: how an agent came to its answer (AgentCI 2.0, Step 2). What is exceeded warns; a forbidden tool fails. Pure.

`docs/metrics_reference.md` has the formulas. Where the answer has no `tool_calls`, or no `handoffs`, what reads them is
not decided; without a baseline, what needs one warns.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from evalcore.specs.results import Findings, LayerResult, Status
from evalcore.trajectory.expected import shortfall
from evalcore.trajectory.matching import matches
from evalcore.trajectory.metrics import (
    cycles,
    loops,
    repeated_calls,
    sequence_edit,
    sequence_lcs,
    tool_f1,
    tool_precision,
    tool_recall,
)
from evalcore.trajectory.record import Trajectory, plain_name
from schemas.specs import MatchMode, PathLimits

LAYER: Final = "path"
WELL: Final = "Path OK"
OF_HANDOFFS: Final = ("expected_handoff", "expected_handoffs_available", "max_handoff_count")
"""Checks that read handoffs; all others read the calls of tools."""
DIGITS: Final = 3


def judge_path(
    made: Trajectory,
    limits: PathLimits | None,
    baseline: Trajectory | None = None,
    blocking: Collection[str] = (),
) -> LayerResult:
    """Returns what the path's assertions find; SKIP without any. `baseline` is the trajectory that the query is
    compared with; `blocking` are the checks that fail where others warn."""
    asked = asserted(limits)
    if limits is None or not asked:
        return LayerResult(Status.SKIP)
    found = Findings(LAYER, blocking)
    of_tools = [name for name in asked if name not in OF_HANDOFFS]
    of_handoffs = [name for name in asked if name in OF_HANDOFFS]
    tools, handoffs = made.tools, made.handoffs
    unread = [name for names, known in ((of_tools, tools), (of_handoffs, handoffs)) if known is None for name in names]
    found.unknown(_unread(made, tools is None), unread, undecided=True)
    if of_tools and tools is not None:
        _calls(found, made, tools, limits)
        _expected(found, tools, limits)
        _compared(found, tools, limits, baseline)
        _with_arguments(found, made, limits)
    if of_handoffs and handoffs is not None:
        _handoffs(found, handoffs, limits)
    return found.layer_result(WELL)


def asserted(limits: PathLimits | None) -> list[str]:
    """Returns the names of the checks that are asserted: an empty list asserts nothing, but for `expected_tools`, which
    then says that no tool may be called."""
    stated = {name: getattr(limits, name) for name in PathLimits.model_fields} if limits is not None else {}
    return [name for name, value in stated.items() if value is not None and (value != () or name == "expected_tools")]


def _unread(made: Trajectory, no_tools: bool) -> str:
    name = "tool_calls" if no_tools else "handoffs"
    return made.unreadable.get(name) or f"the answer has no `{name}`"


def _calls(found: Findings, made: Trajectory, tools: Sequence[str], limits: PathLimits) -> None:
    """How many calls there are, of which tools, and how many again."""
    found.details["tool_calls"] = _bounded(len(tools), limits.max_tool_calls)
    if limits.max_tool_calls is not None and len(tools) > limits.max_tool_calls:
        found.wrong("max_tool_calls", f"Tool calls: {len(tools)} > max {limits.max_tool_calls}")
    if limits.forbidden_tools:
        used = [tool for tool in dict.fromkeys(limits.forbidden_tools) if made.called(tool)]
        found.details["forbidden_tools"] = {"violations": used}
        if used:
            found.wrong("forbidden_tools", f"Forbidden tools used: {', '.join(used)}", fails=True)
    repeats, again = loops(tools), repeated_calls(made.tool_calls or ())
    found.details["loops_detected"] = repeats
    if longer := cycles(tools):
        found.details["cycles"] = [{"tools": list(one.tools), "repeats": one.repeats} for one in longer]
    if again:
        found.details["repeated_calls"] = again
    if limits.max_loops is not None and repeats > limits.max_loops:
        found.wrong("max_loops", f"Loops detected: {repeats} > max {limits.max_loops}")


def _expected(found: Findings, tools: Sequence[str], limits: PathLimits) -> None:
    """How many of the tools used are expected, and the other way round."""
    expected = limits.expected_tools
    minima = {"min_tool_recall": limits.min_tool_recall, "min_tool_precision": limits.min_tool_precision}
    if not expected:
        found.unknown("no tools are expected", [name for name, least in minima.items() if least is not None])
        if expected is not None and tools:
            found.wrong("expected_tools", f"No tool may be called, got {', '.join(dict.fromkeys(tools))}")
        return
    figures = {"tool_recall": tool_recall(tools, expected), "tool_precision": tool_precision(tools, expected)}
    found.details |= {name: round(value, DIGITS) for name, value in figures.items()}
    found.details["tool_f1"] = round(tool_f1(tools, expected), DIGITS)
    for name, value in figures.items():
        least = minima[f"min_{name}"]
        if least is not None and value < least:
            found.wrong(f"min_{name}", f"{name.replace('_', ' ').capitalize()}: {value:.2f} < min {least}")


def _compared(found: Findings, tools: Sequence[str], limits: PathLimits, baseline: Trajectory | None) -> None:
    """How the calls stand beside the baseline's, or those expected."""
    expected, written = limits.expected_tools, limits.match_mode
    bounded = limits.min_tool_recall is not None or limits.min_tool_precision is not None
    mode = written or (MatchMode.SUBSET if expected and not bounded else None)
    asserting = "match_mode" if written is not None else "expected_tools"
    reference = baseline.tools if baseline is not None else None
    missing = "the baseline has no `tool_calls`" if baseline is not None else "there is no baseline"
    needing = ["min_sequence_similarity"] if limits.min_sequence_similarity is not None else []
    if reference is not None:
        alike = sequence_lcs(tools, reference)
        found.details["sequence_similarity"] = round(alike, DIGITS)
        found.details["sequence_edit"] = round(sequence_edit(tools, reference), DIGITS)
        if needing and alike < (least := limits.min_sequence_similarity or 0):
            found.wrong(needing[0], f"Sequence similarity: {alike:.2f} < min {least}")
    if mode is not None and (baseline is not None or expected is None) and reference is None:
        needing.append(asserting)
    if reference is None:
        found.unknown(missing, needing)
    references = [reference] if reference is not None else []
    # What the author lists is asserted, too, unless the mode is written for the baseline.
    references += [list(expected)] if expected and (baseline is None or written is None) else []
    if mode is None or not references:
        return
    reasons = [why for one in references if (why := matches(mode, tools, one)) is not None]
    found.details["match_mode"] = {"mode": mode.value, "matched": not reasons, "reason": "; ".join(reasons)}
    if reasons:
        found.wrong(asserting, f"Match mode '{mode.value}' failed: {'; '.join(dict.fromkeys(reasons))}")


def _with_arguments(found: Findings, made: Trajectory, limits: PathLimits) -> None:
    """Whether the calls that are expected with their arguments are among those made."""
    if limits.expected_calls is None:
        return
    lacking = shortfall(limits.expected_calls, made.tool_calls or ())
    reasons = [] if lacking is None else list(lacking.reasons)
    found.details["expected_calls"] = {"matched": not reasons, "reasons": reasons}
    if lacking is not None and lacking.unknown:
        found.unknown("; ".join(reasons), ["expected_calls"])
    elif reasons:
        found.wrong("expected_calls", f"Expected calls: {'; '.join(reasons)}")


def _handoffs(found: Findings, handoffs: Sequence[str], limits: PathLimits) -> None:
    """To which agents work was handed over."""
    wanted = limits.expected_handoff
    targets = [] if wanted is None else [wanted] if isinstance(wanted, str) else list(wanted)
    met = {plain_name(one) for one in handoffs}
    details: dict[str, Any] = {"actual": list(handoffs)}
    if targets:
        details["expected"] = wanted if isinstance(wanted, str) else targets
        if met.isdisjoint(map(plain_name, targets)):
            named = " or ".join(f"'{one}'" for one in targets)
            found.wrong("expected_handoff", f"Expected handoff to {named}, got {list(handoffs)}")
    if limits.max_handoff_count is not None:
        details["max"] = limits.max_handoff_count
        if len(handoffs) > limits.max_handoff_count:
            found.wrong("max_handoff_count", f"Handoffs: {len(handoffs)} > max {limits.max_handoff_count}")
    if limits.expected_handoffs_available:
        available = {plain_name(one) for one in limits.expected_handoffs_available}
        strange = [one for one in handoffs if plain_name(one) not in available]
        details["unavailable"] = strange
        if strange:
            found.wrong(
                "expected_handoffs_available", f"Handoffs to agents that may not take over: {', '.join(strange)}"
            )
    found.details["handoffs"] = details


def _bounded(actual: int, most: int | None) -> dict[str, int]:
    return {"actual": actual} if most is None else {"actual": actual, "max": most}
