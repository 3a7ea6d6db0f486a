"""A trace that names a workflow is published once more when that has ended, with what the cluster says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.completing import LARGEST, End
from agents.join.versions import Came, standings
from agents.ports import Unavailable
from agents.traces import decode
from evalcore.judges.bindings import resolve
from evalcore.remediation.objects import Why
from evalcore.remediation.sealing import ADDED, FIELDS, SEAL, TRACES, Form, Seals, TraceForms
from schemas.outcomes import Cause, Kind
from schemas.verticals import TraceLayout
from tests.unit.agents.builders import MINUTE, NOW, SECOND, Rec, encode
from tests.unit.agents.completing.completing_rig import (
    FORMS,
    KEY,
    NAMESPACE,
    SEALS,
    TEXTS,
    VERTICAL,
    Rig,
    analysis,
    named,
    proposal,
)

WAIT = 20 * MINUTE
ENDED = ("Analyzed=True", "Executed=True", "Verified=True")


def came(rig: Rig, rid: str = "r") -> list[int]:
    return [one.came for one in standings(rig.world.turn(rid))]


async def test_a_trace_is_completed_once_its_workflow_has_ended() -> None:
    rig = Rig(proposal("r", *ENDED), analysis())
    bare = named()
    await rig.come(bare)
    assert came(rig) == [Came.RUNNING]

    (made,) = await rig.look(10 * MINUTE)

    assert {name: made[name] for name in bare if name not in ("ended_at", "output")} == {
        name: bare[name] for name in bare if name not in ("ended_at", "output")
    }
    assert made["proposal_phase"] == "Completed"
    assert made["proposal_results"] == {"analysis": [analysis()["status"]]}
    assert made["proposal_steps"] == {"analysis": "ran", "execution": "absent", "verification": "absent"}
    assert made["proposal_missing"] == []
    assert made["ended_at"] == "2027-01-15T08:05:00.000+00:00", "the end of the workflow"
    assert FORMS.open(made).form is Form.COMPLETED
    assert rig.waiting == []
    assert len(rig.observed) == 1
    await rig.join()
    assert came(rig) == [Came.POOLED]


async def test_the_summary_is_the_output_and_the_agent_s_own_answer_is_quoted_last() -> None:
    rig = Rig(proposal("r", *ENDED), analysis())
    await rig.come(named())

    (made,) = await rig.look(10 * MINUTE)

    text = rig.text(made)
    assert "the limit is too low" in text
    assert text.rstrip().endswith("all is well")
    assert not [line for line in text.splitlines() if line.startswith("# Checks")], "only we write headings"
    assert made["input"] == TEXTS["input"]


async def test_the_request_is_the_input_where_that_is_missing() -> None:
    rig = Rig(proposal("r", *ENDED))
    await rig.come({name: value for name, value in named().items() if name != "input"})

    (made,) = await rig.look(10 * MINUTE)

    assert made["input"] == {"messages": [{"role": "user", "content": "the shop runs out of memory"}]}


@pytest.mark.parametrize(
    ("layout", "output"),
    [
        (TraceLayout(), TEXTS["output"]),
        (TraceLayout(answer="output.reply.text"), {"reply": {"text": "all is well"}}),
        (TraceLayout(answer="output"), "all is well"),
    ],
)
async def test_judges_read_the_summary_as_the_answer_however_the_vertical_lays_traces_out(
    layout: TraceLayout, output: Any
) -> None:
    rig = Rig(proposal("r", *ENDED), analysis())
    rig.world.policy = replace(rig.world.policy, layouts={VERTICAL: layout})
    rig.new_process()
    await rig.come(named() | {"output": output})

    (made,) = await rig.look(10 * MINUTE)

    answer = resolve("answer", made, layout)
    assert "the limit is too low" in answer
    assert answer.rstrip().endswith("all is well")
    await rig.join()
    assert came(rig) == [Came.POOLED]


async def test_a_trace_waits_while_its_workflow_runs_or_is_not_seen_and_costs_no_request() -> None:
    rig = Rig(proposal("runs", "Analyzed=True"))
    await rig.come(named("runs"), named("unseen"))

    for _ in range(10):
        assert await rig.look(MINUTE) == []
    assert len(rig.waiting) == 2
    assert rig.cluster.asked == []
    assert rig.figures.differences() == {}


async def test_after_the_wait_it_is_completed_with_what_there_is() -> None:
    rig = Rig(proposal("runs", "Analyzed=True"), analysis("runs"))
    await rig.come(named("runs"), named("unseen"))

    made = {event["response_id"]: event for event in await rig.look(WAIT)}

    assert made["runs"]["proposal_phase"] == "InProgress"
    assert made["runs"]["proposal_missing"] == [{"what": "Proposal/runs", "why": "not_ended"}]
    assert made["unseen"]["proposal_missing"] == [{"what": "Proposal/unseen", "why": "not_found"}]
    assert set(made["unseen"]["proposal_steps"].values()) == {"unread"}
    assert rig.waiting == []


async def test_a_record_that_was_held_back_does_not_shorten_the_wait() -> None:
    """An agent that publishes late, or dates its record back, does not have a workflow judged before its end."""
    rig = Rig(proposal("runs", "Analyzed=True"))
    event = named("runs", NOW)
    old = Rec(encode(event), rig.world.topics["traces"], 0, 0, NOW - WAIT, b"key")
    rig.waiting.append(old)

    assert await rig.look(MINUTE) == []
    assert rig.waiting == [old]


async def test_an_unknown_end_comes_before_a_known_one() -> None:
    """A second completion that finds less, as after the Proposal was deleted, does not take the place of the first."""
    rig = Rig(proposal("r", *ENDED))
    await rig.come(named())
    (good,) = await rig.look(10 * MINUTE)
    await rig.cluster.delete("Proposal", NAMESPACE, "r")
    again = Rig(*rig.cluster.objects.values())
    await again.come(named())
    (worse,) = await again.look(WAIT)

    assert worse["proposal_missing"] == [{"what": "Proposal/r", "why": "not_found"}]
    assert NOW < orjson_ms(worse) < orjson_ms(good)


def orjson_ms(event: dict[str, Any]) -> int:
    (facts,) = decode([Rec(encode(event))], NOW + 30 * MINUTE, Rig().world.policy).items
    return facts.ended


@pytest.mark.parametrize(("ended", "expected"), [(NOW - MINUTE, NOW + 1), (NOW + 40 * MINUTE, NOW + 11 * MINUTE)])
async def test_the_end_is_after_the_bare_record_s_and_never_past_now(ended: int, expected: int) -> None:
    rig = Rig(proposal("r", *ENDED, ended=ended))
    await rig.come(named())

    (made,) = await rig.look(10 * MINUTE)

    assert orjson_ms(made) == expected
    assert rig.world.clock.ms == NOW + 11 * MINUTE


async def test_a_trace_whose_end_lies_ahead_waits_for_it() -> None:
    rig = Rig(proposal("r", *ENDED))
    await rig.come(named(at=NOW + 20 * MINUTE))

    assert await rig.look(18 * MINUTE) == []
    (made,) = await rig.look(2 * MINUTE)
    assert orjson_ms(made) == NOW + 20 * MINUTE + 1 <= rig.world.clock.ms


@pytest.mark.parametrize(
    ("asked", "what", "why"),
    [
        ({"namespace": NAMESPACE, "name": "../secrets"}, "Proposal/../secrets", "bad_name"),
        ({"namespace": "shop/../kube-system", "name": "r"}, "Proposal/r", "bad_name"),
        ({"namespace": ["shop"], "name": "r"}, "Proposal/r", "bad_name"),
        ({"name": "r"}, "Proposal/r", "bad_name"),
        ("r", "Proposal/?", "bad_name"),
        ({"namespace": "kube-system", "name": "r"}, "Proposal/r", "not_allowed"),
    ],
)
async def test_names_are_checked_before_anything_is_asked(asked: Any, what: str, why: str) -> None:
    rig = Rig(proposal("r", *ENDED))
    await rig.come(named(proposal=asked))

    (made,) = await rig.look()

    assert [one["why"] for one in made["proposal_missing"]] == [why]
    assert rig.cluster.asked == []
    assert set(made["proposal_steps"].values()) == {"unread"}
    assert made["proposal_missing"][0]["what"].startswith("Proposal/")


@pytest.mark.parametrize(
    ("created", "why"), [(NOW + 2 * MINUTE, "replaced"), (NOW - 3 * MINUTE, "not_allowed"), (NOW, None)]
)
async def test_a_proposal_of_another_time_is_not_that_of_the_trace(created: int, why: str | None) -> None:
    rig = Rig(proposal("r", *ENDED, at=created))
    await rig.come(named())

    (made,) = await rig.look(10 * MINUTE)

    assert [one["why"] for one in made["proposal_missing"] if one["what"] == "Proposal/r"] == ([why] if why else [])


@pytest.mark.parametrize("away", [Why.FORBIDDEN, Why.UNREACHABLE, Why.TIMED_OUT])
async def test_where_the_api_can_t_be_read_the_trace_becomes_a_dead_letter_that_a_replay_mends(away: Why) -> None:
    rig = Rig(proposal("r", *ENDED), analysis())
    rig.cluster.away = away
    (bare,) = await rig.come(named())
    assert await rig.look(10 * MINUTE) == []
    assert rig.waiting == [bare]

    assert await rig.look(10 * MINUTE) == []

    (letter,) = rig.world.letters.letters
    assert (letter.cause, letter.record.value) == (Cause.CLUSTER_UNAVAILABLE, bare.value)
    assert str(away) in letter.detail
    assert came(rig) == [Came.RUNNING], "for gates it has not ended"
    rig.cluster.away = None
    rig.world.wait(MINUTE)
    await rig.come(bare.value)
    (made,) = await rig.look()
    assert made["proposal_phase"] == "Completed"
    await rig.join()
    assert came(rig) == [Came.POOLED]
    assert rig.figures.differences() == {}


async def test_a_reader_that_is_killed_after_it_has_published_completes_none_twice() -> None:
    rig = Rig(proposal("r", *ENDED))
    sent = await rig.come(named())
    await rig.look(10 * MINUTE)
    await rig.join()
    await rig.cluster.delete("Proposal", NAMESPACE, "r")

    rig.new_process()
    rig.waiting = list(sent)

    assert await rig.look(WAIT) == []
    assert rig.waiting == []
    assert rig.figures.ended_as(End.COMPLETED_BEFORE) == 1


async def test_a_bare_record_that_ended_after_the_completed_one_is_completed_again() -> None:
    rig = Rig(proposal("r", *ENDED))
    await rig.come(named())
    await rig.look(10 * MINUTE)
    await rig.join()

    await rig.come(named(at=NOW + 6 * MINUTE))

    (again,) = await rig.look()
    assert orjson_ms(again) == NOW + 6 * MINUTE + 1


async def test_a_chunk_that_is_handed_in_again_publishes_nothing_again() -> None:
    """As where Opik was away for one of its traces; the join may not have come so far."""
    rig = Rig(proposal("a", *ENDED), proposal("b", *ENDED))
    sent = await rig.come(named("a"), named("b"))
    get = rig.opik.get

    async def away(trace_id: str) -> Any:
        if trace_id == named("b")["trace_id"]:
            raise Unavailable("Opik")
        return await get(trace_id)

    rig.opik.get = away  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await rig.look(10 * MINUTE)
    rig.opik.get = get  # type: ignore[method-assign]
    assert [event["response_id"] for event in await rig.look()] == ["b"]
    assert [event["response_id"] for event in rig.published] == ["a", "b"]
    assert sent[0].partition == 0
    assert rig.figures.differences() == {}


async def test_of_records_of_one_trace_the_one_that_ended_last_is_completed() -> None:
    rig = Rig(proposal("r", *ENDED))
    await rig.come(named(), named(at=NOW + SECOND), named(at=NOW - SECOND))

    (made,) = await rig.look(10 * MINUTE)

    assert orjson_ms(made) == NOW + 5 * MINUTE
    assert rig.figures.ended_as(End.SUPERSEDED) == 2


async def test_a_trace_s_start_and_traces_without_a_workflow_are_passed_over() -> None:
    rig = Rig(proposal("r", *ENDED))
    plain = {name: value for name, value in named("plain").items() if name != "proposal"}
    elsewhere = named("other")
    elsewhere["metadata"]["vertical"] = "receipts"
    await rig.come({**named(), "ended_at": None}, plain, elsewhere, b"no JSON", None)

    assert await rig.look(WAIT) == []
    assert rig.waiting == []
    assert not rig.figures.fell_due
    assert [came(rig, rid) for rid in ("r", "plain", "other")] == [[Came.RUNNING], [Came.POOLED], [Came.POOLED]]


async def test_what_we_completed_is_passed_over_and_what_another_key_sealed_is_completed_again() -> None:
    rig = Rig(proposal("r", *ENDED))
    await rig.come(named())
    (made,) = await rig.look(10 * MINUTE)
    rig.waiting = list(rig.world.logs[Kind.TRACE, 0])
    rig.new_process()
    assert await rig.look() == []

    other = Rig(proposal("r", *ENDED), forms=TraceForms(Seals.of(TRACES, "n" * 20), FORMS.namespaces))
    other.world.wait(10 * MINUTE)
    await other.come(made)
    assert came(other) == [Came.RUNNING]
    (again,) = await other.look()
    assert Seals.of(TRACES, "n" * 20).hold(again)

    both = Rig(proposal("r", *ENDED), forms=TraceForms(Seals.of(TRACES, "n" * 20, KEY), FORMS.namespaces))
    both.world.wait(10 * MINUTE)
    await both.come(made)
    assert await both.look() == []
    assert came(both) == [Came.POOLED]


async def test_forged_fields_are_dropped_and_counted() -> None:
    rig = Rig(proposal("r", "Analyzed=True", "Executed=False"))
    forged = named() | {"proposal_phase": "Completed", "proposal_steps": {"execution": "ran"}, SEAL: "0" * 64}
    rig.waiting += rig.world.send(Kind.TRACE, forged)
    report = await rig.world.run(Kind.TRACE)

    assert report.forged == {VERTICAL: 1}
    (made,) = await rig.look(10 * MINUTE)
    assert made["proposal_phase"] == "Failed"


async def test_a_record_is_cut_to_a_million_bytes_results_first_and_says_so() -> None:
    long = analysis()
    long["status"]["raw"] = "z" * 10_000
    rig = Rig(proposal("r", *ENDED), long)
    await rig.come(named(tool_calls=[{"name": "x", "result": "y" * (LARGEST - 8_000)}]))

    (made,) = await rig.look(10 * MINUTE)

    assert made["proposal_results"] == {}
    assert made["proposal_missing"] == [{"what": "Proposal/r", "why": "too_large"}]
    assert len(orjson.dumps(made)) <= LARGEST
    assert SEALS.hold(made)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 6_000), st.text(max_size=4_000))
async def test_a_cut_record_fits_whatever_it_says(spare: int, answer: str) -> None:
    rig = Rig(proposal("r", *ENDED), analysis())
    most = 12_000
    rig.world.policy = replace(rig.world.policy, max_record_bytes=most)
    rig.new_process()
    event = named(tool_calls=[{"name": "x", "result": "y" * spare}]) | {"output": answer + "é\n" * 500}
    await rig.come(event)

    published = await rig.look(10 * MINUTE)

    for made in published:
        assert len(orjson.dumps(made)) <= most
        assert SEALS.hold(made)
    assert len(published) + len(rig.world.letters.letters) == 1


async def test_one_that_has_no_room_for_its_workflow_becomes_a_dead_letter_and_stops_no_other() -> None:
    rig = Rig(proposal("full", *ENDED), proposal("deep", *ENDED), proposal("r", *ENDED))
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    whole = named("full", tool_calls=[{"name": "x", "result": ""}])
    whole["tool_calls"][0]["result"] = "y" * (LARGEST - len(encode(whole) or b""))
    await rig.come(whole, named("deep", tool_calls=deep), named("r"))

    (made,) = await rig.look(10 * MINUTE)

    assert made["response_id"] == "r"
    assert sorted(rig.world.causes()) == ["malformed", "too_large"]
    assert rig.waiting == []


async def test_a_defect_costs_its_own_record_a_dead_letter_and_no_other() -> None:
    rig = Rig(proposal("a", *ENDED), proposal("b", *ENDED))
    await rig.come(named("a"), named("b"))
    update = rig.completing.observe

    def broken(workflow: Any) -> None:
        if not rig.observed:
            rig.observed.append(workflow)
            raise RuntimeError("a defect")
        update(workflow)

    rig.completing.observe = broken
    assert len(await rig.look(10 * MINUTE)) == 2
    assert rig.world.causes() == ["internal_error"]


async def test_opik_gets_output_and_metadata_by_one_update_with_writing_on() -> None:
    for write in (True, False):
        rig = Rig(proposal("r", *ENDED), analysis())
        rig.world.policy = replace(rig.world.policy, write=write)
        rig.new_process()
        event = named()
        rig.opik.traces[event["trace_id"]] = {"output": "as it was", "metadata": {"response_id": "r"}}
        await rig.come(event)

        (made,) = await rig.look(10 * MINUTE)

        assert rig.opik.updates == int(write)
        if write:
            there = rig.opik.traces[event["trace_id"]]
            assert there["output"] == made["output"]
            assert there["metadata"] == {
                "response_id": "r",
                "proposal_phase": "Completed",
                "proposal_steps": made["proposal_steps"],
                "proposal_missing": [],
            }


async def test_texts_that_the_record_leaves_to_opik_are_taken_from_there() -> None:
    rig = Rig(proposal("r", *ENDED), analysis())
    rig.world.policy = replace(rig.world.policy, write=False)
    rig.new_process()
    event = {name: value for name, value in named().items() if name not in TEXTS}
    rig.opik.traces[event["trace_id"]] = dict(TEXTS)
    await rig.come(event)

    (made,) = await rig.look(10 * MINUTE)

    assert made["input"] == TEXTS["input"]
    assert rig.text(made).rstrip().endswith("all is well")


async def test_an_emptied_redis_is_rebuilt_to_the_same() -> None:
    rig = Rig(proposal("r", *ENDED), proposal("runs"))
    await rig.come(named(), named("runs"))
    await rig.look(10 * MINUTE)
    await rig.join()
    before = [came(rig, rid) for rid in ("r", "runs")]

    rig.world.lose_state()
    await rig.join()

    assert [came(rig, rid) for rid in ("r", "runs")] == before == [[Came.POOLED], [Came.RUNNING]]


async def test_none_of_ten_thousand_other_traces_waits_for_one() -> None:
    """The join takes them with the one that waits; the reader passes them over."""
    rig = Rig(proposal("runs"))
    plain = [
        {name: value for name, value in named(f"p{number}").items() if name != "proposal"} for number in range(10_000)
    ]
    (one, *_) = await rig.come(named("runs"), *plain)

    assert await rig.look() == []
    assert rig.waiting == [one]
    assert {came(rig, f"p{number}")[0] for number in range(10_000)} == {Came.POOLED}


def test_the_fields_that_we_add_are_those_that_are_sealed() -> None:
    assert frozenset({*FIELDS, SEAL}) == ADDED
