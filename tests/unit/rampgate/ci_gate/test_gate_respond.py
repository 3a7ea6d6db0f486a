"""`gate run --respond`: what a gate finds of a live agent goes to the workers, who respond (PC5 §5.7)."""

from __future__ import annotations

from typing import Any

import pytest

from agents.ports import Unavailable
from evalcore.evaluations import lines_of
from evalcore.gates.limits import aggregate
from rampgate.console import Failure
from rampgate.settings import Settings
from schemas.checks.evaluation import Evaluation, Origin
from schemas.judges import ScoreType
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.rampgate.ci_gate.gate_commands import ran, verdict
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, TRACES, Rig, jsonl, trace

WHO = ("--agent-id", "a", "--agent-version", "v")
ASKED = ("--respond", "ad_hoc", *WHO)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Evaluation]:
    """What would be on the topic."""
    found: list[Evaluation] = []

    async def hand_over(settings: Settings, made: Evaluation) -> None:
        found.append(made)

    monkeypatch.setattr("rampgate.ci_gate.respond.hand_over", hand_over)
    return found


def on(rig: Rig) -> tuple[Any, ...]:
    return "--milestone", "pre_ramp", "--traces", rig.traces


def test_pc5_5_7_what_is_handed_over_are_the_scores_by_which_the_gate_decided(rig: Rig, sent: list[Evaluation]) -> None:
    rig.written(0.1)
    decided = verdict(*on(rig), *ASKED, code=1)
    (made,) = sent
    assert (made.origin, made.agent_id, made.agent_version) == (Origin.AD_HOC, "a", "v")
    lines, unknown = lines_of(made, built())
    assert unknown == []
    assert {line.judge.id for line in lines} == decided["per_judge_scores"].keys()
    for line in lines:
        found = decided["per_judge_scores"][line.judge.id]
        boolean = line.judge.score_type is ScoreType.BOOLEAN
        assert aggregate(line.answers, line.judge.score_range, boolean).worst == pytest.approx(found["score"])
        assert line.answers.n == found["n"]


def test_one_user_in_several_spellings_is_one_user(rig: Rig, sent: list[Evaluation]) -> None:
    spellings = ("u1", "U1", "u1 ", "\uff35\uff11", "u\u200b1")
    jsonl(rig.traces, *(trace(n, 0.1, user_id=spellings[n % 5], session_id=f"s{n % 3}") for n in range(TRACES)))
    verdict(*on(rig), *ASKED, code=1)
    (safety,) = [one for one in sent[0].judges if one.judge_id == "refusal"]
    assert (safety.users, safety.sessions) == (1, 3)


def test_users_and_sessions_of_what_is_below_the_floor_go_with_it(rig: Rig, sent: list[Evaluation]) -> None:
    """One user's traces ramp no one down, here as in live traffic."""
    jsonl(rig.traces, *(trace(n, 0.1, user_id=f"u{n % 2}", session_id=f"s{n % 5}") for n in range(TRACES)))
    verdict(*on(rig), *ASKED, code=1)
    (safety,) = [one for one in sent[0].judges if one.judge_id == "refusal"]
    assert (safety.users, safety.sessions) == (2, 5)


def test_pc5_5_7_traces_without_a_name_of_a_user_count_one_each(rig: Rig, sent: list[Evaluation]) -> None:
    jsonl(rig.traces, *(trace(n, 0.1, user_id=["u"], session_id={"s": n}) for n in range(TRACES)))
    verdict(*on(rig), *ASKED, code=1)
    (safety,) = [one for one in sent[0].judges if one.judge_id == "refusal"]
    assert (safety.users, safety.sessions) == (TRACES, TRACES)


def test_each_item_of_a_dataset_counts_as_a_user_of_its_own(rig: Rig, sent: list[Evaluation]) -> None:
    rig.answers(lambda n: 0.1)
    verdict("--dataset", rig.dataset, "--outputs", rig.outputs, "--respond", "scheduled", *WHO, code=1)
    (safety,) = [one for one in sent[0].judges if one.judge_id == "refusal"]
    assert (safety.users, sent[0].origin) == (ITEMS, Origin.SCHEDULED)


def test_traces_of_another_version_are_refused_before_anything_is_judged(rig: Rig, sent: list[Evaluation]) -> None:
    """No one takes one version to 0 % by the traces of another."""
    jsonl(rig.traces, *(trace(n, 0.1, agent_version="v" if n else "other") for n in range(TRACES)))
    done = ran(*on(rig), *ASKED)
    assert isinstance(done.exception, Failure)
    assert f"1 of {TRACES} traces are not of a v" in str(done.exception)
    assert sent == []


@pytest.mark.parametrize(
    ("options", "why"),
    [(("--respond", "ad_hoc"), "--agent-id ID"), (("--respond", "live", *WHO), "'live' is none of ad_hoc, scheduled")],
)
def test_what_names_no_agent_or_no_origin_is_refused(
    rig: Rig, sent: list[Evaluation], options: tuple[str, ...], why: str
) -> None:
    done = ran(*on(rig), *options)
    assert isinstance(done.exception, Failure)
    assert why in str(done.exception)
    assert sent == []


def test_what_follows_is_said_and_without_the_option_nothing_does(rig: Rig, sent: list[Evaluation]) -> None:
    rig.written(0.1)
    assert "refusal: ramp_down, page, log" in ran(*on(rig), *ASKED).stderr
    rig.written(1)
    assert "no judge is below its floor" in ran(*on(rig), *ASKED).stderr
    sent.clear()
    verdict(*on(rig))
    assert sent == []


def test_more_answers_than_workers_take_are_told_and_not_handed_over(
    rig: Rig, sent: list[Evaluation], monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = sum(one["n"] for one in verdict(*on(rig), *ASKED)["per_judge_scores"].values())
    assert len(sent) == 1
    for most, handed in ((judged, 2), (judged - 1, 2)):
        monkeypatch.setattr("schemas.checks.evaluation.MOST_ANSWERS", most)
        done = ran(*on(rig), *ASKED, "--json")
        assert '"verdict": "pass"' in done.stdout, "the outcome stands"
        assert len(sent) == handed
    assert isinstance(done.exception, Failure)
    assert f"{judged:,} answers, of which workers take {judged - 1:,}" in str(done.exception)


def test_a_topic_out_of_reach_is_told_after_the_outcome(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hand_over(settings: Settings, made: Evaluation) -> None:
        raise Unavailable("Kafka producer: no one there")

    monkeypatch.setattr("rampgate.ci_gate.respond.hand_over", hand_over)
    done = ran(*on(rig), *ASKED, "--json")
    assert '"verdict": "pass"' in done.stdout
    assert isinstance(done.exception, Failure)
    assert "no one there" in str(done.exception)


def test_what_is_found_is_handed_over_also_where_the_verdict_can_not_be_published(
    rig: Rig, sent: list[Evaluation], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The judges were asked, and an agent that is live may be below its floors."""

    async def publish(*said: object) -> None:
        raise Unavailable("Kafka producer: no such topic")

    monkeypatch.setattr("rampgate.ci_gate.publish.publish", publish)
    rig.answers(lambda n: 0.1)
    done = ran("--dataset", rig.dataset, "--outputs", rig.outputs, "--publish", "--respond", "scheduled", *WHO)
    assert len(sent) == 1
    assert isinstance(done.exception, Failure)
    assert "no such topic" in str(done.exception)
