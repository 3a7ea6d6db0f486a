"""What earlier verdicts say to a gate: rolling baselines, the history of an agent definition (PC5 §5.2, §5.5 "Per-
Agent-Definition lifecycle threads"; contracts §3). The memory of verdicts is shared out: who floods it makes it
forget of its own alone."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalcore.gates.history import NO_VERDICT, Asked, FairMemory, History, Line, digest, runs_of, shares
from evalcore.gates.limits import PastRun

LINE = Line("ux_quality", "v1", "pre_ramp", "receipts-agent", "receipts", "", "version")


def score(value: float | None = 0.8, version: str = "v1", n: int = 100, unscored: int = 0) -> dict[str, Any]:
    return {"score": value, "judge_version": version, "n": n, "unscored": unscored}


def gate(milestone: str = "pre_ramp", word: str = "pass", **more: Any) -> dict[str, Any]:
    return {"milestone": milestone, "verdict": word, "per_judge_scores": {"ux_quality": score()}, **more}


def verdict(number: int, value: float | None = 0.8, **changes: Any) -> dict[str, Any]:
    """Decided in the second `number`; `value` is what ux_quality came to at its one gate."""
    return {
        "request_id": f"r{number}",
        "verdict_id": f"verdict {number}",
        "experiment_id": "e-1",
        "agent_id": "receipts-agent",
        "agent_version": "abc",
        "vertical": "receipts",
        "from_percent": 0.0,
        "to_percent": 5.0,
        "gates": [gate(per_judge_scores={"ux_quality": score(value)})],
        "sample": {"scope": "version"},
        "evidence": {"decided_at": f"2026-11-21T12:00:{number:02}.000+00:00"},
        **changes,
    }


def history(*verdicts: dict[str, Any]) -> History:
    found = History()
    for one in verdicts:
        found.add(one)
    return found


def baseline(*verdicts: dict[str, Any], line: Line = LINE, besides: str = "r99") -> list[float]:
    return scores(history(*verdicts), line, besides)


def scores(of: History, line: Line = LINE, besides: str = "") -> list[float]:
    return [run.score for run in of.baseline(line, besides)]


def test_the_baseline_is_of_the_last_three_gates_oldest_first() -> None:
    four = [verdict(n, n / 10) for n in (1, 2, 3, 4)]
    assert baseline(*four) == [0.2, 0.3, 0.4]
    assert baseline(*four[:2]) == [0.1, 0.2], "fewer is reported"
    assert baseline() == []


def test_what_is_last_says_the_moment_of_deciding_and_not_the_order_of_reading() -> None:
    """After a restart the topic's partitions are read in any order."""
    assert baseline(*(verdict(n, n / 10) for n in (4, 1, 3, 2))) == [0.2, 0.3, 0.4]


@pytest.mark.parametrize(
    "other",
    [
        {"agent_id": "other-agent"},
        {"vertical": "shopping"},
        {"vertical": None},
        {"gates": [gate("pre_full")]},
        {"gates": [gate(per_judge_scores={"ux_quality": score(version="v2")})]},
        {"gates": [gate(per_judge_scores={"response_quality": score()})]},
        {"gates": [gate(per_judge_scores={"ux_quality.tone": score()})]},
        {"gates": [gate(sample={"scope": "version", "dataset_version": "golden v7"})]},
        {"gates": [gate(sample={"scope": "agent", "dataset_version": ""})]},
        {"gates": [gate(word="fail")]},
        {"gates": [gate(per_judge_scores={"ux_quality": score(n=0, value=None)})]},
        {"gates": [gate(per_judge_scores={"ux_quality": score(unscored=1)})]},
        {"gates": [], "sample": None},
        {"gates": [], "agent_id": None, "sample": None},
    ],
    ids=[
        "another agent's", "another vertical's", "no vertical's", "another milestone's", "another version of the judge",
        "another judge's", "one dimension's", "with a dataset", "of another scope", "of a gate that failed",
        "with nothing scored", "with something unscored", "no gate fired", "nothing could be read",
    ],
)  # fmt: skip
def test_only_what_can_be_compared_is_a_baseline(other: dict[str, Any]) -> None:
    """contracts §3: per judge version, dataset version and milestone; and one agent's, one vertical's, of one scope."""
    assert baseline(verdict(1, 0.7), verdict(2, **other)) == [0.7]


@pytest.mark.parametrize("also", [{"agent_version": "def"}, {"experiment_id": "e-2"}, {"gates": [gate(word="warn")]}])
def test_a_baseline_spans_an_agents_versions_and_experiments_and_a_warning_is_no_failure(also: dict[str, Any]) -> None:
    """PC5 §5.2: a regression is one against what went before, which is an earlier version."""
    assert baseline(verdict(1, 0.7), verdict(2, **also)) == [0.7, 0.8]


def test_a_run_has_its_items_and_its_error_and_a_verdict_of_before_has_no_error() -> None:
    with_error = [gate(per_judge_scores={"ux_quality": {**score(), "error": 0.02}})]
    found = history(verdict(1), verdict(2, gates=with_error)).baseline(LINE, "")
    assert found == [PastRun(0.8, 100), PastRun(0.8, 100, 0.02)]


def test_a_gate_of_the_same_request_is_never_its_own_baseline() -> None:
    found = history(*(verdict(n, n / 10) for n in (1, 2, 3, 4)))
    assert scores(found, besides="r4") == [0.1, 0.2, 0.3]


def test_both_gates_of_a_jump_count_each_at_its_own_milestone_also_where_the_other_failed() -> None:
    both = [gate(), gate("pre_full", "fail")]
    assert baseline(verdict(1, gates=both)) == [0.8]
    assert baseline(verdict(1, gates=both), line=LINE._replace(milestone="pre_full")) == []


def test_a_baseline_with_a_dataset_is_of_that_version_of_it() -> None:
    line = LINE._replace(dataset_version="golden v7")
    assert baseline(
        verdict(1), verdict(2, gates=[gate(sample={"scope": "version", "dataset_version": "golden v7"})]), line=line
    ) == [0.8]


def test_what_is_dropped_is_forgotten_and_nothing_else() -> None:
    all_of_it = [verdict(n, n / 10) for n in (1, 2, 3)]
    found = history(*all_of_it)
    found.drop(all_of_it[2])
    assert found.about({"agent_id": "receipts-agent"}, 9) == ["r2", "r1"]
    for one in all_of_it[:2]:
        found.drop(one)
    assert found.about({"agent_id": "receipts-agent"}, 9) == []
    assert found.previous(STEP, "") is None
    assert scores(found) == [0.1, 0.2, 0.3], "each line keeps its own last runs"


def test_a_line_keeps_its_last_runs_and_one_more_for_the_request_that_asks() -> None:
    found = history(*(verdict(n, n / 100) for n in range(50)))
    assert scores(found, besides="r49") == [0.46, 0.47, 0.48]
    assert sum(map(len, found._runs.values())) == 4


def test_of_more_lines_than_are_kept_the_one_without_a_gate_for_longest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalcore.gates.history.LINES", 2)
    found = history(*(verdict(n, agent_id=f"agent {n}") for n in (2, 1, 3)))
    assert [scores(found, LINE._replace(agent_id=f"agent {n}")) for n in (1, 2, 3)] == [[], [0.8], [0.8]]


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"request_id": "r1"},
        {**verdict(1), "request_id": 7},
        {**verdict(1), "request_id": ["r"]},
        {**verdict(1), "experiment_id": ["e"]},
        {**verdict(1), "evidence": None},
        {**verdict(1), "gates": [{}]},
        {**verdict(1), "gates": ["x"]},
        {**verdict(1), "gates": [gate(milestone=["pre_ramp"], per_judge_scores={})]},
        {**verdict(1), "gates": [gate(per_judge_scores={"ux_quality": score("high")})]},
        ["request_id"],
        "x",
        None,
    ],
)
def test_of_a_record_that_is_no_verdict_nothing_is_kept(record: Any) -> None:
    found = History()
    with pytest.raises(NO_VERDICT):
        found.add(record)
    memories = (found._entries, found._runs, found._passed._values, found._failed._values)
    assert memories == ({}, {}, {}, {})


STEP = {name: verdict(0)[name] for name in ("experiment_id", "agent_id", "agent_version", "from_percent", "to_percent")}


@pytest.mark.parametrize(
    ("changes", "previous"),
    [
        ({}, "verdict 2"),
        ({"agent_version": "def"}, None),
        ({"agent_id": "other"}, None),
        ({"experiment_id": "e-2"}, None),
        ({"to_percent": 10.0}, None),
        ({"from_percent": 2.0}, None),
        ({"from_percent": 5.0, "to_percent": 100.0}, None),
        ({"from_percent": 0, "to_percent": 5, "vertical": None}, "verdict 2"),
    ],
)
def test_pc5_5_5_the_previous_verdict_is_of_the_same_step_of_the_same_definition(
    changes: dict[str, Any], previous: str | None
) -> None:
    """PC5 §5.5: a new agent definition begins without any gate's state; so does another experiment, or another step."""
    found = history(verdict(2), verdict(1), verdict(3, from_percent=None, to_percent=None, gates=[], sample=None))
    assert found.previous({**STEP, **changes}, "r9") == previous


def test_the_previous_verdict_is_never_the_requests_own_and_may_be_a_refusal() -> None:
    """A deadline that had passed, a judge that does not exist: verdicts about the step, too."""
    found = history(verdict(1), verdict(2, gates=[], sample=None))
    assert found.previous(STEP, "r2") == "verdict 1"
    assert found.previous(STEP, "r3") == "verdict 2"
    assert History().previous(STEP, "r3") is None


def test_of_verdicts_of_one_moment_the_one_that_came_last_is_the_latest() -> None:
    same = verdict(1)["evidence"]
    found = history(*(verdict(n, evidence=same) for n in (1, 3, 2)))
    assert found.previous(STEP, "") == "verdict 2"
    assert found.about({"experiment_id": "e-1"}, 9) == ["r2", "r3", "r1"]


def test_pc5_5_5_each_definitions_history_is_kept_apart_and_stays_readable() -> None:
    old = [verdict(n, agent_version="old") for n in (1, 2)]
    new = [verdict(n, agent_version="new") for n in (3, 5)]
    found = history(*old, *new, verdict(4, agent_id="other", agent_version="new", experiment_id="e-2"))
    assert found.about({"agent_version": "old"}, 9) == ["r2", "r1"]
    assert found.about({"agent_id": "receipts-agent", "agent_version": "new"}, 9) == ["r5", "r3"]
    assert found.about({"agent_version": "new"}, 2) == ["r5", "r4"]
    assert found.about({"experiment_id": "e-2", "agent_id": "receipts-agent"}, 9) == []
    assert found.about({"experiment_id": "nobody's"}, 9) == []


def test_a_published_verdict_has_what_a_baseline_asks_for() -> None:
    """The names above are those of the record (`schemas.verdicts`)."""
    from schemas.publish.examples import FAILED

    passed = {**FAILED, "gates": [{**one, "verdict": "pass"} for one in FAILED["gates"]]}
    ((line, run),) = [found for found in runs_of(passed) if found[0].judge == "ux_quality"]
    assert (line.agent_id, line.milestone, line.scope) == (FAILED["agent_id"], "pre_ramp", "version")
    assert (run.request_id, run.past.score) == (FAILED["request_id"], 0.68)


def of(agent: str, experiment: str) -> dict[str, str]:
    return {"agent_id": agent, "vertical": "v", "experiment_id": experiment}


def test_a_flood_of_one_agent_displaces_nothing_of_another() -> None:
    memory = FairMemory[str](100)
    for number in range(30):
        memory.put(f"quiet {number}", "kept", of("quiet", "e"))
    for number in range(20_001):
        memory.put(f"flood {number}", "flood", of("loud", f"e-{number}"))
    assert all(memory.get(f"quiet {number}") for number in range(30))
    assert all(memory.get(f"flood {number}") for number in range(20_001 - 50, 20_001)), "the last of its own"


def test_a_flood_of_one_experiment_displaces_nothing_of_the_same_agents_others() -> None:
    memory = FairMemory[str](100)
    for number in range(30):
        memory.put(f"quiet {number}", "kept", of("agent", "e"))
    for number in range(20_001):
        memory.put(f"flood {number}", "flood", of("agent", "loud"))
    assert all(memory.get(f"quiet {number}") for number in range(30))


def test_what_is_forgotten_is_told_once_and_is_the_oldest_of_its_asker() -> None:
    memory = FairMemory[int](40)
    forgotten = list(chain.from_iterable(memory.put(n, n, of("a", f"e{n % 2}")) for n in range(1_000)))
    left = [n for n in range(1_000) if memory.get(n) is not None]
    assert forgotten == list(range(1_000 - len(left)))
    assert left == list(range(1_000 - len(left), 1_000))
    assert 40 <= len(left) <= 42


@given(st.dictionaries(st.integers(), st.integers(0, 50), max_size=12), st.integers(0, 200))
def test_shares_fill_the_room_and_nobody_gets_less_so_that_another_gets_more(wanted: dict[int, int], room: int) -> None:
    given_ = shares(wanted, room)
    assert sum(given_.values()) == min(room, sum(wanted.values()))
    assert all(given_[name] <= most for name, most in wanted.items())
    short = [given_[name] for name, most in wanted.items() if given_[name] < most]
    assert all(given_[name] <= least + 1 for name in wanted for least in short)


def test_a_digest_takes_any_text() -> None:
    assert Asked.of("body", "place") == Asked.of("body", "place") != Asked.of("body", "another place")
    assert len(digest("\ud800", 12)) == 12
