"""What falls due to live judging is judged, waits, is a dead letter or is passed over for a reason: the sum adds up for
each agent version, rated or not, and shows what is forgotten or done twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from agents.live import balance as live_balance
from agents.live.balance import Balance, End, Whose
from agents.live.judging import LiveJudging, Todo
from agents.own_calls import OWN_AGENT, SIGNATURE, own_key, signature
from agents.traces import trace_bytes
from rampgate.worker.live_judging import LiveFigures
from schemas.outcomes import Cause, Kind
from streams.metrics import Metrics
from tests.unit.agents.builders import MINUTE, NOW, SECOND, Rec, thumb
from tests.unit.agents.live.live_rig import MemoryFigures, Rig, bare, in_opik, live_trace, running_in_opik, started

KEY = own_key("the installation's seal key")
RATED, NOT_RATED = Whose("assistant", "v1", "yes"), Whose("assistant", "v1", "no")


def of_version(event: dict[str, Any], version: str = "v1") -> dict[str, Any]:
    return {**event, "metadata": {**event["metadata"], "agent_version": version}}


async def day(rig: Rig) -> None:
    """Traces that end in every way."""
    rig.left = frozenset({"left"})
    down = of_version(live_trace("down", sampled=False))
    fine, waits = of_version(live_trace("fine")), of_version(live_trace("waits"))
    running, own = of_version(live_trace("running")), live_trace("own")
    made = signature(KEY, trace_bytes(own["trace_id"]))
    own["metadata"] |= {"agent_id": OWN_AGENT, SIGNATURE: made}
    left, old = of_version(live_trace("left", vertical="left")), of_version(live_trace("old"))
    old["trace_id"] = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
    rig.in_opik[running["trace_id"]] = running_in_opik(running)
    await rig.come(Kind.TRACE, started(running), started(down), own, left, old, fine, fine, bare(waits))
    await rig.come(Kind.THUMBS, thumb("down"), thumb("running"), thumb("fine"), thumb("nowhere"), thumb("left"))
    await rig.come(Kind.TRACE, down)
    await rig.settle()
    await rig.come(Kind.THUMBS, thumb("fine", None, at=NOW + SECOND), thumb("down", at=NOW + SECOND))
    await rig.come(Kind.TRACE, fine)
    await rig.settle()


async def test_what_was_due_is_judged_or_waits_or_is_a_dead_letter_or_passed_over_for_each_version() -> None:
    rig = Rig(own_key=KEY)
    await day(rig)
    figures = rig.figures
    assert figures.differences() == {}
    assert figures.waits[NOT_RATED] == 1, "for its texts"
    assert figures.waits[RATED] == 1, "for its end"
    for end in (End.NOT_UUID7, End.LEFT_TO_OPIK, End.SUPERSEDED, End.JUDGED_BEFORE, End.OWN_TRAFFIC, End.NOT_ENDED):
        assert figures.ended_as(end), end
    assert figures.ended_as(End.JUDGED) == 2
    await rig.age(20 * MINUTE)
    assert +figures.waits == {}
    assert figures.ended_as(End.DEAD_LETTERED) == 2
    assert figures.ends[RATED, End.DEAD_LETTERED] == figures.ends[NOT_RATED, End.DEAD_LETTERED] == 1
    assert figures.ended_as(End.NO_TRACE) == 1
    assert figures.differences() == {}


async def test_rated_traces_that_judging_forgets_show_as_a_difference_of_their_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A planted fault: what was due is counted apart from the loop that judges."""
    judge = LiveJudging._judge

    async def forgetful(self: LiveJudging, todo: Sequence[Todo]) -> Any:
        return await judge(self, [one for one in todo if not one.mark.voted_down])

    monkeypatch.setattr(LiveJudging, "_judge", forgetful)
    rig = Rig()
    for name in "abc":
        await rig.come(Kind.TRACE, of_version(live_trace(name)))
    await rig.come(Kind.THUMBS, thumb("a"))
    await rig.settle()
    assert rig.figures.differences()[RATED] == 1
    assert NOT_RATED not in rig.figures.differences()


async def test_a_trace_that_ends_twice_shows_as_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Balance.ended

    def twice(self: Balance, due: Any, end: End) -> None:
        ended(self, due, end)
        if end is End.JUDGED:
            ended(self, due, end)

    monkeypatch.setattr(Balance, "ended", twice)
    rig = Rig()
    await rig.come(Kind.TRACE, of_version(live_trace()))
    await rig.settle()
    assert rig.figures.differences() == {NOT_RATED: -1}


async def test_a_record_that_a_defect_of_ours_fails_on_is_a_dead_letter_and_not_a_log_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()

    async def broken(*_: Any) -> Any:
        raise KeyError("a defect")

    monkeypatch.setattr(rig.world.ports.scores, "write", broken)
    await rig.come(Kind.TRACE, of_version(live_trace("a")), of_version(live_trace("b")))
    rig.world.wait(MINUTE)
    judging, sent = rig.judging(), rig.parked[Kind.TRACE]
    with pytest.raises(KeyError):
        await judging.traces(sent)
    for record in sent:
        assert await judging.traces([record]) == []
    assert rig.world.causes() == [Cause.INTERNAL_ERROR] * 2
    assert rig.figures.ends[NOT_RATED, End.DEAD_LETTERED] == 2
    assert rig.figures.differences() == {}


async def test_what_waits_in_a_partition_that_is_given_back_is_handed_over_and_due_again_elsewhere() -> None:
    rig = Rig()
    event = of_version(live_trace())
    await rig.come(Kind.TRACE, bare(event))
    await rig.settle()
    rig.balance.all_end(End.HANDED_OVER)
    assert (rig.figures.ends[NOT_RATED, End.HANDED_OVER], rig.figures.waits[NOT_RATED]) == (1, 0)
    rig.in_opik[event["trace_id"]] = in_opik(event)
    await rig.settle()
    assert rig.figures.fell_due[NOT_RATED] == 2
    assert rig.figures.differences() == {}


def test_made_up_agent_versions_have_one_figure_together_and_displace_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_balance, "MOST", 3)
    figures = MemoryFigures()
    balance = Balance(figures)
    for number in range(50):
        for version in ("v1", f"made up {number}"):
            balance.came(Rec(b"", offset=number), version, "assistant", version, False)
    named = {whose.agent_version for whose in figures.fell_due}
    assert named == {"v1", "made up 0", "other"}
    assert figures.fell_due[NOT_RATED] == 50
    assert figures.fell_due.total() == 100
    balance.came(Rec(b""), "r", 7, None, False)
    assert figures.fell_due[Whose("unknown", "unknown", "no")] == 1


def test_the_page_of_metrics_shows_the_counts_whatever_a_version_is_called() -> None:
    metrics = Metrics(CollectorRegistry())
    balance = Balance(LiveFigures(metrics))
    due = balance.came(Rec(b""), "r", "assistant", "v\ud83d\n" + "1" * 900, True)
    page = metrics.exposition().decode()
    (version,) = {line.split('agent_version="')[1].split('"')[0] for line in page.splitlines() if "_due_total{" in line}
    assert len(version) <= 512
    where = f'{{agent_id="assistant",agent_version="{version}",rated="yes"}}'
    assert f"rampgate_live_due_total{where} 1.0" in page
    assert f"rampgate_live_waiting_records{where} 1.0" in page
    balance.ended(due, End.JUDGED)
    page = metrics.exposition().decode()
    assert f"rampgate_live_waiting_records{where} 0.0" in page
    ended = f'rampgate_live_ended_total{{agent_id="assistant",agent_version="{version}",end="%s",rated="yes"}} %s'
    assert ended % ("judged", "1.0") in page
    assert ended % ("dead_lettered", "0.0") in page, "so that the first one shows as an increase"
