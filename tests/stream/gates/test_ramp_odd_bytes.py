"""Whatever bytes come as a ramp step, on a real Kafka: one verdict or one dead letter, and nobody else waits for it."""

from __future__ import annotations

import json
from typing import Any

from tests.stream.gates.ramp_rig import Rig, by_request, step


def between(request_id: Any, **changes: Any) -> bytes:
    """Without a deadline: these are made when the module is read, which may be long before they are sent."""
    return json.dumps(step(request_id, from_percent=5, to_percent=25, deadline_seconds=None) | changes).encode()


NOBODY = [
    None, b"", b"null", b"[]", b'"r"', b"{", b"\x00", b"\xff\xfe", b"[" * 100_000,
    between("half a pair \ud800"), between("x" * 10_000), between(""), between(None), between(True), between(7.5),
    between("r")[:-1] + b', "request_id": "s"}', between("latin").replace(b"assistant", b"\xe9"),
]  # fmt: skip
"""Whose sender nobody could answer."""

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
    "nobody's judges": between("nobody's judges", from_percent=0, eval_gates={"pre_ramp": ["x" * 500] * 100}),
}
PASSED = {"plain", "nul \x00 \x1b[31m", " ", "wide", "marked", "large"}


async def test_whatever_bytes_come_it_is_one_verdict_or_one_dead_letter(rig: Rig) -> None:
    """Two workers; each request comes twice, under different keys."""
    await rig.start()
    await rig.start()
    values = [*NOBODY, *ANSWERED.values(), *ANSWERED.values()]
    sent = [(rig.topic("ramp-steps"), b"k%d" % number, value, ()) for number, value in enumerate(values)]
    await rig.producer.send(sent)
    found = by_request(await rig.verdicts(len(ANSWERED)))
    assert set(found) == set(ANSWERED)
    assert {name for name, verdict in found.items() if verdict["verdict"] == "warn"} == PASSED
    for name, verdict in found.items():
        codes = {reason["code"] for reason in verdict["reasons"]}
        assert codes == ({"no_gate_at_step", "gate_missing"} if name in PASSED else {"invalid_request"}), (name, codes)
    balance = await rig.counted(len(values))
    assert (balance.done, balance.superseded, balance.dead_lettered) == (len(ANSWERED), len(ANSWERED), len(NOBODY))
    assert balance.difference == 0
    assert len(await rig.letters()) == len(NOBODY)
    assert not any(task.done() for _, _, task in rig.workers)
