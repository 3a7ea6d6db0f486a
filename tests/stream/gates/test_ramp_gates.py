"""Ramp-step requests in, verdicts out, on a real Kafka and Redis, whatever bytes come; each record ends in one state
(promises 2, 3); only the judges' model is scripted (PC5 AC-4)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from schemas.answers import Balance
from tests.stream.gates.ramp_rig import Rig, by_request, step, thumb, trace
from tests.waiting import come


async def test_pc5_ac4_each_request_gets_one_verdict_with_its_evidence(rig: Rig) -> None:
    await rig.start()
    await rig.send("traces", *(trace(f"r{n}") for n in range(260)))
    await rig.send("thumbs", *(thumb(f"r{n}") for n in range(30)))
    await rig.joined(trace=260, thumbs=30)
    rig.scoring.values = {"response_quality": 2.5}
    await rig.send(
        "ramp-steps",
        step("good"),
        step("bad", eval_gates={"pre_ramp": ["response-quality"]}),
        step("unknown-version", agent_version="v9"),
        step("between", agent_version="never-ramped", from_percent=5, to_percent=25),
        step("invalid", to_percent=101),
        step("late", deadline_seconds=0),
        step("good"),
        b"{",
        step("good", to_percent=7),
    )
    found = by_request(await rig.verdicts(6))
    assert {name: verdict["verdict"] for name, verdict in found.items()} == {
        "good": "warn", "bad": "fail", "unknown-version": "fail", "between": "warn", "invalid": "fail", "late": "fail",
    }  # fmt: skip
    good = found["good"]
    assert (good["milestone"], good["action"], good["sample"]["size"]) == ("pre_ramp", "proceed", 200)
    assert good["sample"]["composition"] == {"golden": 0, "production": 200, "adversarial": 0}
    assert good["evidence"]["coverage"] == 1.0
    assert set(good["per_judge_scores"]) >= {"ux_quality", "jailbreaking", "safety_restricted", "sensitive_topics"}
    assert (found["bad"]["halt_at_percent"], found["bad"]["failing_judges"]) == (0.0, ["response_quality"])
    codes = {name: {reason["code"] for reason in verdict["reasons"]} for name, verdict in found.items()}
    assert codes["unknown-version"] >= {"insufficient_sample"}
    assert (codes["good"], codes["between"]) == ({"gate_missing"}, {"no_gate_at_step", "gate_missing"})
    assert (codes["invalid"], codes["late"]) == ({"invalid_request"}, {"deadline_exceeded"})


async def test_a_restart_in_the_middle_of_a_gate_resumes_it_and_doubles_nothing(rig: Rig) -> None:
    rig.scoring.hold = asyncio.Event()
    await rig.start()
    await rig.send("ramp-steps", step("long"), step("short", from_percent=5, to_percent=25))
    await come(lambda: "long" in rig.scoring.began)
    assert set(by_request(await rig.verdicts(1))) == {"short"}
    await rig.stop()
    rig.scoring.hold.set()
    await rig.start()
    found = by_request(await rig.verdicts(2))
    assert set(found) == {"long", "short"}
    assert found["long"]["sample"]["size"] == 0


async def test_pc5_ac4_an_operator_is_told_of_each_failed_verdict_once_also_over_a_restart(rig: Rig) -> None:
    worker = await rig.start()
    between = step("between", from_percent=5, to_percent=25)
    await rig.send("ramp-steps", step("invalid", to_percent=101), between, step("late", deadline_seconds=0))
    await come(lambda: len(rig.told) == 2)
    await come(lambda: worker.operators.consumer and sum(worker.operators.consumer.done.values()) == 3)
    await rig.stop()
    await rig.start()
    await rig.send("ramp-steps", step("late", deadline_seconds=0), step("nobody", agent_version="v9"))
    await come(lambda: len(rig.told) == 3)
    await rig.verdicts(4)
    assert len(rig.told) == 3
    told = "\n".join(rig.told)
    for part in ("(invalid_request)", "(deadline_exceeded)", "(insufficient_sample)", "experiment e-1", "Halt at 0 %"):
        assert part in told, part
    assert all(told.count(f"request {name};") == 1 for name in ("invalid", "late", "nobody"))


def between(request_id: Any, **changes: Any) -> bytes:
    """Without a deadline: these are made when the module is read, which may be long before they are sent."""
    return json.dumps(step(request_id, from_percent=5, to_percent=25, deadline_seconds=None) | changes).encode()


UNANSWERABLE = [
    None, b"", b"null", b"[]", b'"r"', b"{", b"\x00", b"\xff\xfe", b"[" * 100_000,
    between("half a pair \ud800"), between("x" * 10_000), between(""), between(None), between(True), between(7.5),
    between("r")[:-1] + b', "request_id": "s"}', between("latin").replace(b"assistant", b"\xe9"),
]  # fmt: skip
"""Whose sender can't be answered."""

ANSWERED = {
    "plain": between("plain"),
    "nul \x00 \x1b[31m": between("nul \x00 \x1b[31m"),
    "7": between(7),
    " ": between(" "),
    "wide": between("wide").decode().encode("utf-16"),
    "marked": b"\xef\xbb\xbf" + between("marked"),
    "large": between("large", other="x" * 900_000),
    "nan": between("nan", to_percent=float("nan")),
    "infinite": between("infinite").replace(b'"to_percent": 25', b'"to_percent": 1' + b"0" * 5000),
    "pair": between("pair", experiment_id="half a pair \ud800", agent_id="\udfff"),
    "twice": between("twice")[:-1] + b', "from_percent": 6}',
    "much": between("much", ramp_steps=["x"] * 1000, eval_gates={"pre_ramp": [0] * 100}),
    "null gates": between("null gates", eval_gates=None),
    "unknown judges": between("unknown judges", from_percent=0, eval_gates={"pre_ramp": ["x" * 500] * 100}),
}
PASSED = {"plain", "nul \x00 \x1b[31m", " ", "wide", "marked", "large"}


async def test_whatever_bytes_come_it_is_one_verdict_or_one_dead_letter(rig: Rig) -> None:
    """Two workers; each request comes twice, under different keys."""
    await rig.start()
    await rig.start()
    values = [*UNANSWERABLE, *ANSWERED.values(), *ANSWERED.values()]
    sent = [(rig.topic("ramp-steps"), b"k%d" % number, value, ()) for number, value in enumerate(values)]
    await rig.producer.send(sent)
    found = by_request(await rig.verdicts(len(ANSWERED)))
    assert set(found) == set(ANSWERED)
    assert {name for name, verdict in found.items() if verdict["verdict"] == "warn"} == PASSED
    for name, verdict in found.items():
        codes = {reason["code"] for reason in verdict["reasons"]}
        assert codes == ({"no_gate_at_step", "gate_missing"} if name in PASSED else {"invalid_request"}), (name, codes)
    balance = await rig.counted(len(values))
    assert (balance.done, balance.superseded, balance.dead_lettered) == (
        len(ANSWERED),
        len(ANSWERED),
        len(UNANSWERABLE),
    )
    assert balance.difference == 0
    assert len(await rig.letters()) == len(UNANSWERABLE)
    assert not any(task.done() for _, _, task in rig.workers)


def states(balance: Balance) -> tuple[int, ...]:
    assert balance.difference == 0
    assert (balance.parked, balance.filtered) == (0, 0)
    return balance.consumed, balance.done, balance.superseded, balance.dead_lettered


async def test_each_record_is_counted_once_through_restarts_and_a_flush(rig: Rig) -> None:
    """Good, invalid, repeated, conflicting and malformed ones, and a gate that is under way all the while."""
    rig.scoring.hold = asyncio.Event()
    await rig.start()
    good, between = step("good"), step("between", from_percent=5, to_percent=25)
    await rig.send("ramp-steps", step("long"), good, between, good, step("invalid", to_percent=101), b"{", b"null")
    await rig.send("ramp-steps", step("good", to_percent=7), between)
    assert states(await rig.counted(8)) == (8, 3, 2, 3)
    assert (await rig.balance()).reasons["dead_lettered"] == {"conflicting_duplicate": 1, "malformed": 2}
    await rig.stop()
    worker = await rig.start()
    await come(lambda: rig.scoring.began.count("long") == 2)
    assert states(await rig.counted(8)) == (8, 3, 2, 3), "what is read again is not counted again"
    assert len(await rig.letters()) == 3, "nor is a letter sent again"
    await worker.parts.store.redis.flushdb()
    assert states(await rig.counted(8)) == (8, 3, 2, 3), "after a flush they are counted again, each as it was"
    rig.scoring.hold.set()
    assert states(await rig.counted(9)) == (9, 4, 2, 3)
    assert set(by_request(await rig.verdicts(4))) == {"long", "good", "between", "invalid"}
