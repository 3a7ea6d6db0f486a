"""A worker soon out of patience, letters that it leaves, and what `rampgate dead-letters list` says of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.redis import RedisServer
from tests.fault.faulty_opik import FaultyOpik
from tests.fault.ledger.kafka_log import Record
from tests.stream.dead_letters.letter_rig import LetterRig, new_trace_id, reroll, thumb, trace

THUMBS, REROLL = "user_signal_thumbs", "user_signal_reroll"


@contextmanager
def impatient(kafka: KafkaCluster, redis_server: RedisServer, opik: FaultyOpik, folder: Path) -> Iterator[LetterRig]:
    """One worker, which gives up on a trace after 1 s and on Opik after 0.3 s."""
    with LetterRig(kafka, redis_server, opik, folder, missing_trace_seconds=1, opik_retry_seconds=0.3) as made:
        made.in_opik(new_trace_id(), "elsewhere")  # a worker asks for the list of projects once a minute
        made.worker()
        yield made


def refused_turns(rig: LetterRig, name: str, count: int) -> tuple[dict[str, str], list[Record]]:
    """Turns whose thumbs and rerolls Opik was not there to take: response id -> trace id, and their records."""
    turns = {f"{name}-{n}": new_trace_id() for n in range(count)}
    for rid, trace_id in turns.items():
        rig.in_opik(trace_id, rid)
        rig.put("traces", trace(rid, trace_id), key=rid.encode())
    rig.opik.fault(match={"method": "PUT", "path": "feedback-scores"}, status=503)
    sent = [rig.put("thumbs", thumb(rid), key=rid.encode(), partition=n % 4) for n, rid in enumerate(turns)]
    sent += [rig.put("rerolls", reroll(rid), key=rid.encode(), headers=[("h", b"1")]) for rid in list(turns)[::2]]
    rig.letters_of(*sent)
    wait_settled(rig)  # a letter is sent before its step is recorded; a step that is repeated may yet succeed
    rig.opik.heal()
    return turns, sent


def listed(rig: LetterRig, *arguments: str) -> Any:
    ran = rig.command("list", "--json", *arguments)
    assert ran.code == 0, ran.err
    return ran.json


def wait_settled(rig: LetterRig) -> None:
    rig.wait("everything consumed", rig.drained, 30)
