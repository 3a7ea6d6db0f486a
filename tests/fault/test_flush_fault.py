"""Redis is emptied, replaced or set back at any time: the same scores and coverage at the end (promises 1 and 2)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import redis

from rampgate.local.services.proxy import TcpProxy
from rampgate.local.services.redis import RedisServer
from tests.fault.checking import check
from tests.fault.faulty_opik import FaultyOpik
from tests.fault.held import Held
from tests.fault.oracle import foretell
from tests.fault.rig import Rig, now_ms
from tests.fault.traffic import Mix, Traffic
from tests.fault.turn_events import change, encode
from tests.fault.turns import THUMBS, Message, Turn

Make = Callable[..., Rig]


@pytest.fixture
def rig(make_rig: Make, own_redis: RedisServer, faulty_opik: FaultyOpik) -> Rig:
    return make_rig(redis_server=own_redis, opik=faulty_opik, batch_records=100)


def run_up(rig: Rig, traffic: Traffic, part: float = 1.0) -> int:
    """A worker has consumed the first part of the traffic; returns how many records that is."""
    print(f"seed {traffic.seed}: {len(traffic.messages)} records")
    rig.opik.load(traffic)
    rig.worker()
    count = int(len(traffic.messages) * part)
    rig.send(traffic.messages[:count])
    rig.wait("the first part consumed", rig.drained)
    return count


def more_than_needed(rig: Rig, traffic: Traffic, before: dict[tuple[str, str], int]) -> int:
    """Score rows written since `before` for scores that stood in Opik already and were not to change."""
    return sum(n - before.get(key, 0) for key, n in rig.opik.writes().items() if n > before.get(key, 0))


def test_emptied_while_the_stream_is_quiet_nothing_is_written_twice(rig: Rig) -> None:
    """All is consumed and written; Redis is emptied; the worker notices by itself, rebuilds, and writes nothing."""
    traffic = Traffic(41, 1_500, now_ms())
    run_up(rig, traffic)
    check(rig, traffic)
    before = rig.opik.writes()
    rig.state.flushall()
    check(rig, traffic)
    again = more_than_needed(rig, traffic, before)
    print(f"{again} of {sum(before.values())} score rows written again after the flush")
    assert again == 0


def test_emptied_in_mid_stream_twice(rig: Rig) -> None:
    """Emptied under load, and again before the rebuild is over: scores and coverage are the oracle's."""
    traffic = Traffic(42, 3_000, now_ms())
    sent = run_up(rig, traffic, 0.4)
    before = rig.opik.writes()
    load = rig.sending(traffic.messages[sent:], per_second=1_500)
    rig.wait("under load", lambda: rig.finished() > sent + 200, 30, 0.01)
    rig.state.flushall()
    rig.wait("the rebuild has begun", lambda: bool(rig.watermarks()), 30, 0.01)
    rig.state.flushall()
    load.join(60)
    check(rig, traffic)
    needed = len(foretell(traffic).scores)
    again = more_than_needed(rig, traffic, before)
    print(f"{sum(before.values())} rows before the flush, {again} after it; Opik holds {needed} scores")


def test_a_worker_killed_in_the_middle_of_a_rebuild_leaves_its_place_to_the_next(rig: Rig) -> None:
    """Opik answers three searches and then asks for 45 seconds; the worker is killed there. The next one goes on behind
    these three, holds its batches back until all is adopted, and ends with the oracle's scores."""
    traffic = Traffic(51, 1_000, now_ms())
    run_up(rig, traffic)
    check(rig, traffic)
    (worker,) = rig.workers
    searches = {"path": "traces/search"}
    rig.opik.fault(match=searches, times=3)
    rig.opik.fault(match=searches, status=429, headers={"Retry-After": "45"})
    rig.state.flushall()

    def place() -> dict[str, Any]:
        held: Any = rig.state.get(rig.prefix + "adopted2")
        return dict(json.loads(held or b"{}").get("place", {}))

    rig.wait("three searches are adopted", lambda: place().get("share", 0.0) > 0.2, 30)
    reached = place()
    worker.kill()
    rig.state.delete(rig.prefix + "adopting")  # its lease runs out
    rig.opik.heal()
    successor = rig.worker()
    check(rig, traffic)
    (went_on,) = [json.loads(line) for line in successor.log().splitlines() if '"rebuild_goes_on"' in line]
    assert went_on["share"] == round(reached["share"], 3)


def test_new_turns_are_scored_while_opik_holds_a_rebuild_up(rig: Rig) -> None:
    """Opik answers no search, so a rebuild can't come to its end. Turns that begin after the loss are scored
    nevertheless, older ones are not written again, and all is as the oracle has it once Opik answers."""
    traffic = Traffic(53, 500, now_ms(), Mix(no_trace=0.0, opik_only=0.0, judged_opik=0.0))
    # Their traces begin half an hour from now at the earliest, by their ids: long after the loss is noticed.
    later = Traffic(54, 500, now_ms() + 9_000_000, traffic.mix)
    rig.opik.load(later)
    run_up(rig, traffic)
    check(rig, traffic)
    before = rig.opik.writes()
    rig.opik.fault(match={"path": "traces/search"}, status=429, headers={"Retry-After": "2"})
    rig.state.flushall()
    rig.wait("the rebuild has begun", lambda: rig.state.exists(rig.prefix + "adopted2") == 1, 30)
    rig.wait("all is read again meanwhile", rig.drained)
    rig.send(later.messages)
    rig.wait("all consumed", rig.drained, 90)
    wanted = foretell(later).scores.keys()
    rig.wait("the new turns are scored", lambda: wanted <= rig.opik.writes().keys(), 60)
    assert rig.state.get(rig.prefix + "adopted2") != b"1"
    rig.opik.heal()
    traffic.turns += later.turns
    traffic.garbage += later.garbage
    traffic.filtered += later.filtered
    rig.wait("the rebuild is over", lambda: rig.state.get(rig.prefix + "adopted2") == b"1", 90)
    check(rig, traffic)
    assert {key: n for key, n in rig.opik.writes().items() if key in before} == before


@pytest.mark.parametrize("kill", [False, True], ids=["both stay", "one is killed"])
def test_two_workers_rebuild_and_publish_no_overruled_thumb(rig: Rig, kill: bool) -> None:
    """Each reads some partitions again; what one has read already may be overruled by what the other has not. Nothing
    is written that Opik did not hold before, not even for a moment, and once nothing is in flight nothing at all."""
    traffic = Traffic(56, 800, now_ms(), Mix(no_trace=0.0, opik_only=0.0, judged_opik=0.0, thumbs=0.9, rerolls=0.3))
    rig.worker()
    run_up(rig, traffic)
    check(rig, traffic)
    before = rig.opik.writes()
    first, _ = rig.workers
    slow = {"path": "traces/search"}
    rig.opik.fault(match=slow, delay_seconds=1.0)
    rig.state.flushall()
    if kill:
        rig.wait("the rebuild has begun", lambda: rig.state.exists(rig.prefix + "adopted2") == 1, 30)
        first.kill()
        rig.state.delete(rig.prefix + "adopting")  # its lease runs out
    rig.wait("the rebuild is over", lambda: rig.state.get(rig.prefix + "adopted2") == b"1", 90)
    check(rig, traffic)
    if not kill:
        assert rig.opik.writes() == before


@pytest.mark.slow
def test_emptied_while_the_worker_is_stopped(rig: Rig) -> None:
    """The state is gone and more records have come when the worker starts: nothing settled before is written again."""
    traffic = Traffic(43, 1_500, now_ms())
    sent = run_up(rig, traffic, 0.6)
    (worker,) = rig.workers
    assert worker.terminate() == 0
    rig.state.flushall()
    rig.send(traffic.messages[sent:])
    rig.worker()
    check(rig, traffic)


@pytest.mark.slow
def test_the_server_is_killed_and_comes_back_empty(rig: Rig, own_redis: RedisServer) -> None:
    """Valkey dies under load and is away for a while; its successor knows nothing."""
    traffic = Traffic(44, 2_000, now_ms())
    sent = run_up(rig, traffic, 0.3)
    load = rig.sending(traffic.messages[sent:], per_second=1_500)
    own_redis.kill()
    rig.wait(
        "the worker feels it",
        lambda: any(w.logged(event) for w in rig.workers for event in ('"waiting"', "maintenance_waiting")),
    )
    own_redis.start()
    load.join(60)
    check(rig, traffic)
    assert all(worker.running for worker in rig.workers)


@pytest.mark.slow
def test_an_older_copy_of_the_state_is_put_back(rig: Rig) -> None:
    """Everything Redis holds is set back to an earlier moment, while the worker is away and while it runs."""
    traffic = Traffic(45, 2_000, now_ms())
    sent = run_up(rig, traffic, 0.4)
    (worker,) = rig.workers
    worker.pause()  # a snapshot is of one moment
    older = copy_of(rig.state)
    worker.resume()
    rig.send(traffic.messages[sent : sent * 2])
    rig.wait("the second part consumed", rig.drained)
    put_back(rig.state, older)  # under a running, quiet worker
    rig.send(traffic.messages[sent * 2 :])
    check(rig, traffic)
    assert worker.terminate() == 0
    put_back(rig.state, older)
    rig.worker()
    check(rig, traffic)


def test_an_older_snapshot_comes_back_and_no_record_comes_any_more(rig: Rig, own_redis: RedisServer) -> None:
    """Valkey ends and starts with an older RDB, as after a failover. The worker notices by itself, reads on from where
    that snapshot ends, and state and Opik are as before within seconds."""
    # Nothing to look up: what was claimed for that as the snapshot was taken is claimed again only after a minute.
    traffic = Traffic(48, 1_500, now_ms(), Mix(no_trace=0.0, opik_only=0.0, judged_opik=0.0))
    sent = run_up(rig, traffic, 0.4)
    rig.state.save()
    snapshot = own_redis.folder / "dump.rdb"
    older = snapshot.read_bytes()
    rig.send(traffic.messages[sent:])
    rig.wait("all consumed", rig.drained)
    own_redis.kill()
    snapshot.write_bytes(older)
    own_redis.start()
    check(rig, traffic, seconds=30.0)
    (worker,) = rig.workers
    assert worker.logged("state_behind")


def test_a_failover_to_a_replica_that_lags_under_load(
    make_rig: Make, own_redis: RedisServer, faulty_opik: FaultyOpik
) -> None:
    """The replica is promoted without the master's latest writes; the master becomes its replica and keeps the worker's
    connections. The worker leaves it, notices what the new master lacks, and ends as if nothing had been."""
    traffic = Traffic(49, 2_000, now_ms())
    with RedisServer() as replica, TcpProxy("127.0.0.1", own_redis.port) as proxy:
        rig = make_rig(
            redis_server=replica, redis_url=f"redis://{proxy.address}/0", opik=faulty_opik, batch_records=100
        )
        rig.state.replicaof("127.0.0.1", str(own_redis.port))
        rig.wait("the replica is in step", lambda: rig.state.info("replication")["master_link_status"] == "up")
        sent = run_up(rig, traffic, 0.3)
        load = rig.sending(traffic.messages[sent:], per_second=1_500)
        rig.wait("under load", lambda: rig.finished() > sent, 30, 0.01)
        rig.state.replicaof("NO", "ONE")
        promoted_with = rig.finished()
        with redis.Redis.from_url(own_redis.url) as master:
            late = Held(rig.kafka, master, rig.prefix)
            rig.wait("the master has what the replica lacks", lambda: late.finished() > promoted_with + 100, 30, 0.01)
            master.replicaof("127.0.0.1", str(replica.port))
        proxy.lead_to("127.0.0.1", replica.port)
        load.join(60)
        check(rig, traffic)
        assert rig.workers[0].running


def copy_of(state: redis.Redis) -> dict[bytes, tuple[int, bytes]]:
    found: dict[bytes, tuple[int, bytes]] = {}
    for key in state.scan_iter(count=1000):
        blob: Any = state.dump(key)
        ttl: Any = state.pttl(key)
        if blob is not None:
            found[key] = (max(ttl, 0), blob)
    return found


def put_back(state: redis.Redis, copy: dict[bytes, tuple[int, bytes]]) -> None:
    """In one step, as a server that comes back with an old snapshot would."""
    pipe = state.pipeline(transaction=True)
    pipe.flushall()
    for key, (ttl, blob) in copy.items():
        pipe.restore(key, ttl, blob)
    pipe.execute()


@pytest.mark.slow
def test_a_flip_that_an_older_copy_does_not_know_of_is_not_taken_for_written(rig: Rig) -> None:
    """Up (written), copy, down (written), the copy is put back, up again: the copy says that Opik holds up. It does
    not, and up has to be written again, however many records lie between."""
    traffic = Traffic(46, 1, now_ms(), Mix(no_trace=0, opik_only=0, thumbs=0, rerolls=0, derived=0, garbage=0))
    (turn,) = traffic.turns
    rig.opik.load(traffic)
    worker = rig.worker(batch_records=1, batches_in_flight=1)
    up, down, last = (thumb(turn, number, value) for number, value in ((1, 1), (2, -1), (3, 1)))
    other = [thumb(turn, number, 1, f"other-{number}") for number in range(4, 16)]
    rig.send([message for message in traffic.messages if message.topic == "traces"])
    rig.wait("the trace consumed", rig.drained)
    for message, value in ((up, 1.0), (down, -1.0)):
        rig.send([message])
        rig.wait("written", lambda value=value: rig.opik.scores([turn.project])[turn.trace_id, THUMBS] == value)
        if message is up:
            worker.pause()
            older = copy_of(rig.state)
            worker.resume()
    rig.send(other)
    rig.wait("all consumed", rig.drained)
    assert worker.terminate() == 0
    put_back(rig.state, older)
    rig.send([last])
    rig.worker(batch_records=1, batches_in_flight=1)
    rig.wait("all consumed again", rig.drained)
    rig.wait("up stands in Opik", lambda: rig.opik.scores([turn.project])[turn.trace_id, THUMBS] == 1.0, 30)


def thumb(turn: Turn, number: int, value: int, response_id: str = "") -> Message:
    """All of one key, so that they lie in one partition."""
    record = change(response_id or turn.response_id, number, turn.ended + number, value, 0)
    return Message("thumbs", turn.response_id.encode(), encode(record))
