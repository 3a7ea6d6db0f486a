"""A record that ends the process of whoever decodes it is found and dead-lettered; everything else is settled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rampgate.local.services.redis import RedisServer
from tests.fault.deadly_worker import DEADLY, EXIT
from tests.fault.faulty_opik import FaultyOpik
from tests.fault.oracle import foretell
from tests.fault.rig import Rig, now_ms
from tests.fault.traffic import Mix, Traffic
from tests.fault.turns import Message
from tests.fault.worker_process import environment
from tests.fork_server import Forked


@pytest.fixture
def rig(make_rig: Callable[..., Rig], own_redis: RedisServer, faulty_opik: FaultyOpik) -> Rig:
    return make_rig(redis_server=own_redis, opik=faulty_opik, batch_records=20)


class Supervised:
    """Two workers; one that ends is started again, as a supervisor does."""

    def __init__(self, rig: Rig) -> None:
        self._environment = environment(rig._settings)
        self._log = (rig.folder / "supervised.log").open("ab")
        self.codes: list[int] = []
        self.running = [self._start() for _ in range(2)]

    def _start(self) -> Forked:
        return Forked(["worker"], self._environment, self._log, self._log, module="tests.fault.deadly_worker")

    def look(self) -> None:
        for number, process in enumerate(self.running):
            code = process.poll()
            if code is not None:
                self.codes.append(code)
                self.running[number] = self._start()

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.wait()
        self._log.close()


@pytest.mark.timeout(600)
def test_a_record_that_ends_the_process_is_dead_lettered_and_all_others_are_settled(rig: Rig) -> None:
    """The record lies among others, under two workers that are started again whenever they die. What came
    before is committed, so each begins to read in front of it, at the same offset, whatever it has settled since."""
    traffic = Traffic(61, 300, now_ms(), Mix(no_trace=0.0, opik_only=0.0, judged_opik=0.0, garbage=0.0))
    rig.opik.load(traffic)
    messages = list(traffic.messages)
    half = len(messages) // 2
    later = [place for place in range(half, len(messages)) if messages[place].topic == "thumbs"]
    place = later[len(later) // 2]
    messages.insert(place, Message("thumbs", messages[place].key, DEADLY))
    supervised = Supervised(rig)

    def drained() -> bool:
        supervised.look()
        return rig.drained()

    try:
        rig.send(messages[:half])
        rig.wait("the first half is committed", drained, 400, 0.2)
        rig.send(messages[half:])
        rig.wait("everything settled, whoever died meanwhile", drained, 400, 0.2)
        wanted = foretell(traffic).scores
        rig.wait("every score in Opik", lambda: rig.opik.scores({turn.project for turn in traffic.turns}) == wanted, 60)
    finally:
        supervised.close()
    (letter,) = rig.dead_letters()
    assert (letter["cause"], letter["value"], letter["topic"]) == ("worker_died", DEADLY, "thumbs")
    assert set(supervised.codes) == {EXIT}
    conservation = rig.conservation()["thumbs"]
    assert conservation["consumed"] == sum(n for name, n in conservation.items() if name != "consumed")
