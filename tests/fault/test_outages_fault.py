"""Parts that fail, stall and refuse: slower, and at the end all is as if nothing had happened."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from rampgate.local.services.kafka import KafkaCluster
from rampgate.local.services.proxy import TcpProxy
from rampgate.local.services.redis import RedisServer
from tests.fault.checking import check
from tests.fault.rig import Rig, now_ms
from tests.fault.traffic import Mix, Traffic
from tests.fault.turns import Message
from tests.fault.worker_process import environment
from tests.fork_server import ran

Make = Callable[..., Rig]


def under_load(rig: Rig, traffic: Traffic, part: float = 0.3) -> None:
    """A worker has consumed the first part; the rest is on its way."""
    print(f"seed {traffic.seed}: {len(traffic.messages)} records")
    rig.opik.load(traffic)
    rig.worker()
    first = int(len(traffic.messages) * part)
    rig.send(traffic.messages[:first])
    rig.wait("the first part consumed", rig.drained)
    rig.sending(traffic.messages[first:], per_second=1_000)
    rig.wait("under load", lambda: rig.finished() > first, 30, 0.01)


def all_sent(rig: Rig, traffic: Traffic) -> None:
    rig.hurry()
    rig.wait("all sent", lambda: len(rig.sent) == len(traffic.messages))


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "fault",
    [
        "503",
        pytest.param("slow", marks=SLOW),
        pytest.param("429", marks=SLOW),
        pytest.param("drop_after_write", marks=SLOW),
    ],
)
def test_opik_fails_for_a_while(make_rig: Make, fault: str) -> None:
    """A storm of 503, answers after 2 s, 429 with RateLimit-Reset, answers lost after the write: no dead letter, no
    wrong score."""
    rules = {
        "503": {"status": 503, "times": 15},
        "slow": {"delay_seconds": 2.0, "times": 12},
        "429": {"status": 429, "headers": {"RateLimit-Reset": "1"}, "times": 12},
        "drop_after_write": {"after_write": True, "drop": True, "times": 15},
    }
    traffic = Traffic(81, 700, now_ms())
    rig = make_rig()
    print(f"seed {traffic.seed}: {len(traffic.messages)} records, {fault}")
    rig.opik.load(traffic)
    rig.opik.fault(match={"path": "feedback-scores"}, **rules[fault])
    rig.worker()
    rig.send(traffic.messages)
    check(rig, traffic)
    assert rig.workers[0].running


def test_an_unauthorized_worker_stops_and_acknowledges_nothing(make_rig: Make) -> None:
    """Opik answers 401: exit code 2, nothing committed that was not written; with the key mended all goes on."""
    # Nothing to look up: what the first worker has claimed for that is claimed again only after a minute.
    traffic = Traffic(82, 400, now_ms(), Mix(no_trace=0.0, opik_only=0.0, judged_opik=0.0))
    rig = make_rig()
    rig.opik.load(traffic)
    rig.opik.fault(match={"path": "feedback-scores"}, status=401)
    worker = rig.worker()
    rig.send(traffic.messages)
    assert worker.wait(150) == 2
    assert worker.logged("worker_must_stop")
    assert not rig.dead_letters() or all(x["cause"] != "opik_rejected" for x in rig.dead_letters())
    rig.opik.heal()
    rig.worker()
    check(rig, traffic)


@pytest.mark.parametrize(
    "fault", ["down", *(pytest.param(x, marks=SLOW) for x in ("paused", "full", "stalled", "password"))]
)
def test_redis_fails_for_a_while(make_rig: Make, own_redis: RedisServer, fault: str) -> None:
    """Refused connections, CLIENT PAUSE, no memory left, a stopped process, a password that changed: nothing is
    acknowledged meanwhile, and all goes on by itself."""
    traffic = Traffic(83, 900, now_ms())
    with TcpProxy("127.0.0.1", own_redis.port) as proxy:
        rig = make_rig(redis_server=own_redis, redis_url=f"redis://{proxy.address}/0")
        under_load(rig, traffic)
        if fault == "down":
            proxy.refuse()
        elif fault == "paused":
            rig.state.execute_command("CLIENT", "PAUSE", 5_000, "WRITE")
        elif fault == "full":
            rig.state.config_set("maxmemory", "1mb")
        elif fault == "stalled":
            proxy.blackhole()
        else:
            rig.state.config_set("requirepass", "changed")
            proxy.cut()
        before = time.monotonic()
        rig.hurry()
        rig.wait("five seconds have passed", lambda: time.monotonic() - before > 5.0)
        assert rig.workers[0].running, rig.workers[0].log()[-2000:]
        if fault in ("down", "stalled"):
            proxy.heal()
        elif fault == "full":
            rig.state.config_set("maxmemory", "0")
        elif fault == "password":
            rig.state.config_set("requirepass", "")
        all_sent(rig, traffic)
        check(rig, traffic)
        assert rig.workers[0].running


@SLOW
def test_a_worker_starts_while_redis_is_down(make_rig: Make, own_redis: RedisServer) -> None:
    """It waits for its state, and works when it is there."""
    traffic = Traffic(84, 300, now_ms())
    with TcpProxy("127.0.0.1", own_redis.port) as proxy:
        rig = make_rig(redis_server=own_redis, redis_url=f"redis://{proxy.address}/0")
        rig.opik.load(traffic)
        proxy.refuse()
        worker = rig.worker()
        rig.send(traffic.messages)
        began = time.monotonic()
        rig.wait("it has tried for a while", lambda: time.monotonic() - began > 8 or not worker.running)
        assert worker.running, worker.log()[-3000:]
        proxy.heal()
        check(rig, traffic)


def test_a_run_of_poison_pauses_its_partition_and_an_operator_resumes_it(make_rig: Make) -> None:
    """Too many undecodable records in a row: a clear message, no offset committed past them, and all else goes on."""
    traffic = Traffic(85, 300, now_ms())
    rig = make_rig(bad_records_in_a_row=150, batch_records=100)
    rig.opik.load(traffic)
    worker = rig.worker()
    rig.send(traffic.messages)
    rig.wait("the good ones consumed", rig.drained)
    good = rig.committed()
    rig.send([Message("thumbs", b"poison", b"{poison %d" % n) for n in range(1_000)])
    rig.wait("the partition pauses", lambda: worker.logged("partition_paused"))
    (place,) = [place for place, end in rig.ends().items() if end - good.get(place, 0) >= 1_000]
    later = Traffic(285, 300, now_ms())
    rig.opik.load(later)
    rig.send(later.messages)
    ends = rig.ends()

    def others_go_on() -> bool:
        return all(rig.watermarks().get(one, 0) == end for one, end in ends.items() if one != place)

    rig.wait("all other partitions are read to their end", others_go_on)
    assert rig.committed().get(place, 0) < good.get(place, 0) + 150
    assert worker.running
    worker.kill()
    again = rig.worker()
    rig.wait("a supervisor's restart does not get past it either", lambda: again.logged("partition_paused"))
    assert rig.committed().get(place, 0) < good.get(place, 0) + 150
    done = ran("resume", f"{rig.prefix}{place[0]}/{place[1]}", environment=environment(rig._settings))
    assert done.returncode == 0, done.stderr
    rig.wait("the resumed partition is read to its end", rig.drained)
    assert again.running
    poison = [letter for letter in rig.dead_letters() if (letter["value"] or b"").startswith(b"{poison")]
    assert len(poison) == 1_000


@pytest.fixture(scope="module")
def own_kafka() -> Iterator[KafkaCluster]:
    """A broker that these tests may stop."""
    with KafkaCluster(proxied=True) as cluster:
        yield cluster


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["stopped", "restarted", "cut"])
def test_the_broker_fails_for_a_while(make_rig: Make, own_kafka: KafkaCluster, fault: str) -> None:
    """SIGSTOP for 8 s, a restart, all connections cut: the worker (or its successor) goes on where it was."""
    traffic = Traffic(86, 900, now_ms())
    rig = make_rig(kafka=own_kafka, bootstrap=own_kafka.proxied_bootstrap)
    under_load(rig, traffic)
    rig.hurry()
    if fault == "stopped":
        own_kafka.pause()
        began = time.monotonic()
        rig.wait("eight seconds have passed", lambda: time.monotonic() - began > 8)
        own_kafka.resume()
    elif fault == "restarted":
        own_kafka.restart()
    else:
        for node in own_kafka.nodes:
            assert node.proxy is not None
            node.proxy.cut()
    all_sent(rig, traffic)
    began = time.monotonic()
    rig.wait("drained, or the worker has ended", lambda: rig.drained() or not rig.workers[0].running, 90)
    if not rig.workers[0].running:
        print(f"the worker ended with {rig.workers[0].process.poll()}; a supervisor starts it again")
        rig.worker()
    check(rig, traffic)
    assert rig.workers[0].running, f"it did not survive: {rig.workers[0].log()[-1500:]}"


@pytest.mark.slow
def test_a_worker_started_before_its_broker_waits_and_then_works(make_rig: Make, own_kafka: KafkaCluster) -> None:
    """Refused at start: it says that it waits, and begins by itself."""
    traffic = Traffic(87, 300, now_ms())
    rig = make_rig(kafka=own_kafka, bootstrap=own_kafka.proxied_bootstrap)
    rig.opik.load(traffic)
    (node,) = own_kafka.nodes
    assert node.proxy is not None
    node.proxy.refuse()
    worker = rig.worker()
    rig.wait("it says so", lambda: worker.logged("waiting_for_topics"))
    rig.send(traffic.messages)
    node.proxy.heal()
    check(rig, traffic)


@pytest.mark.slow
def test_a_dead_letter_that_cannot_be_sent_holds_its_batch(make_rig: Make, kafka: KafkaCluster) -> None:
    """The dead-letter topic refuses (records over its limit): the batch is not acknowledged until it takes them."""
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    def limit(value: str) -> None:
        entry = ConfigEntry("max.message.bytes", value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, rig.prefix + "dead-letters", incremental_configs=[entry])
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(10)

    traffic = Traffic(88, 400, now_ms())
    rig = make_rig()
    rig.opik.load(traffic)
    limit("50")
    worker = rig.worker()
    rig.send(traffic.messages)
    rig.wait("the worker says that it waits", lambda: worker.logged("Kafka producer"))
    assert rig.dead_letters() == []
    assert not rig.drained()
    assert worker.running
    limit("1048576")
    check(rig, traffic)
