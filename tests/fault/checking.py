"""What must hold of a run once its traffic was consumed, as the oracle has it."""

from __future__ import annotations

from collections import Counter

from tests.fault.oracle import Expected, foretell
from tests.fault.rig import Rig
from tests.fault.traffic import Traffic

CLASSES = ("both_present", "missing_trace", "missing_signal")


def settled(rig: Rig, expected: Expected) -> bool:
    """Drained, nothing parked, and Opik as the oracle has it: then nothing more is going to happen."""
    if not rig.drained():
        return False
    parked = sum(n for fields in rig.conservation().values() for f, n in fields.items() if f.startswith("parked"))
    return parked == 0 and rig.coverage() == expected.coverage


def check(rig: Rig, traffic: Traffic, seconds: float = 60.0) -> None:
    """All that must hold once `traffic` was consumed, whatever went wrong on the way (L1, L2, L4, L5)."""
    expected = foretell(traffic, rig.sent)
    projects = sorted({turn.project for turn in traffic.turns})
    assert sum(rig.ends().values()) == len(rig.sent), "the topics do not hold what was sent"
    rig.wait("every record consumed and committed", rig.drained, seconds)
    try:
        rig.wait("coverage as the oracle has it, nothing parked", lambda: settled(rig, expected), seconds)
    except AssertionError as error:
        differs = {k: (rig.coverage()[k], expected.coverage[k]) for k in rig.coverage() | expected.coverage}
        differs = {k: pair for k, pair in differs.items() if pair[0] != pair[1]}
        raise AssertionError(
            f"seed {traffic.seed}: coverage (ours, oracle) differs: {differs}; {rig.conservation()}\n{error}"
        ) from None
    _check_scores(rig, expected, projects, {turn.trace_id: turn.response_id for turn in traffic.turns})
    _check_conservation(rig, expected)
    _check_letters(rig, expected)


def _check_scores(rig: Rig, expected: Expected, projects: list[str], turns: dict[str, str]) -> None:
    """`turns`: trace id -> response id."""
    held: dict[tuple[str, str], float] = {}

    def same() -> bool:
        nonlocal held
        held = rig.opik.scores(projects)
        return held == expected.scores

    try:
        rig.wait("Opik's scores as the oracle has them", same, 60.0, 0.5)
    except AssertionError as error:
        wrong = {k: (held.get(k), expected.scores.get(k)) for k in held.keys() | expected.scores.keys()}
        wrong = {k: pair for k, pair in wrong.items() if pair[0] != pair[1]}
        # What the state says tells a signal that was lost from a score that was overwritten.
        stored = {trace_id: rig.turn(turns[trace_id]) for trace_id, _ in list(wrong)[:5] if trace_id in turns}
        raise AssertionError(
            f"{len(wrong)} scores (Opik, oracle) differ: {dict(list(wrong.items())[:5])}; the state: {stored}\n{error}"
        ) from None


def _check_conservation(rig: Rig, expected: Expected) -> None:
    for kind, fields in rig.conservation().items():
        consumed = fields.pop("consumed")
        fields.pop("unreadable", None)  # beside the states
        assert consumed == expected.consumed[kind], f"{kind}: consumed {consumed}, sent {expected.consumed[kind]}"
        assert consumed == sum(fields.values()), f"{kind}: {consumed} consumed, but {dict(fields)}"
        filtered = sum(n for name, n in fields.items() if name.startswith("filtered"))
        assert filtered == expected.filtered[kind], f"{kind}: filtered {dict(fields)}"
    keys: Counter[str] = Counter()
    for (_, name), n in rig.hashes("e2:*").items():
        keys[name.rpartition("|")[0]] += n
    hours = Counter({name: n for (_, name), n in rig.hashes("c2:*").items()})
    assert keys == hours, "coverage at the edges differs from coverage per hour"


def _check_letters(rig: Rig, expected: Expected) -> None:
    letters = rig.dead_letters()
    undecodable = Counter(
        (letter["topic"], letter["key"], letter["value"])
        for letter in letters
        if letter["cause"] in ("malformed", "too_large", "unknown_schema")
    )
    assert undecodable == expected.garbage, (
        f"undecodable records: {len(expected.garbage - undecodable)} letters missing, "
        f"{len(undecodable - expected.garbage)} too many"
    )
    missing = {letter["key"].decode() for letter in letters if letter["cause"] == "missing_trace"}
    assert expected.missing <= missing, f"no missing_trace letter for {sorted(expected.missing - missing)[:5]}"
    undecoded = ("malformed", "too_large", "unknown_schema", "missing_trace")
    other = [(x["cause"], x["detail"]) for x in letters if x["cause"] not in undecoded]
    assert not other, f"{len(other)} dead letters of other causes, such as {other[0]}"
    counted = {
        kind: sum(n for name, n in fields.items() if name.startswith("dead_lettered:missing_trace"))
        for kind, fields in rig.conservation().items()
    }
    assert sum(counted.values()) >= len(expected.missing), f"dead letters counted: {counted}"
