"""Gates on real parts: the rig with a judges' model that can be told to fail, and a plain reader of the verdicts."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import httpx
from confluent_kafka import Producer

from rampgate.local.services.http_services import LocalModel
from tests.fault.held import PARTITIONS
from tests.fault.rig import Rig
from tests.fault.turns import Message, Topic
from tests.stream.gates.ramp_rig import step, thumb, trace

TRACES = 104
"""Of a version: enough for pre_ramp."""
JUDGES = 4
"""ux_quality and three safety judges."""
CALLS = TRACES * JUDGES


class Model(LocalModel):
    """The stand-in, told what to do wrong."""

    def __init__(self) -> None:
        super().__init__()
        self._http = httpx.Client(base_url=self.url.removesuffix("/v1"), timeout=10)

    def tell(self, **behaviour: Any) -> None:
        self._http.put("/_behaviour", json=behaviour).raise_for_status()

    def calls(self) -> int:
        """Answered since its last start."""
        found: int = sum(self._http.get("/_requests").raise_for_status().json()["answers"].values())
        return found

    def _release(self) -> None:
        self._http.close()
        super()._release()


class GateRig:
    """One test's gates: its rig, its model, and what a subscriber sees."""

    def __init__(self, make: Callable[..., Rig], model: Model, **options: Any) -> None:
        self.model = model
        # Live judging would ask the model, too, and calls are counted here.
        self.rig = make(model_url=model.url, model_key="secret", live_judging="false", **options)
        self.rig.kafka.create_topics([self.rig.prefix + name for name in ("ramp-steps", "verdicts")], PARTITIONS)

    def joined(self, version: str = "v2") -> None:
        """A worker is running, and has consumed the version's traces and some thumbs."""
        events: list[tuple[Topic, dict[str, Any]]] = [
            ("traces", trace(f"{version}-{n}", version)) for n in range(TRACES)
        ]
        events += [("thumbs", thumb(f"{version}-{n}")) for n in range(20)]
        self.rig.send(Message(topic, e["response_id"].encode(), json.dumps(e).encode()) for topic, e in events)
        self.rig.wait("traces and thumbs are joined", self.rig.drained)

    def together(self, workers: int) -> None:
        """So many workers share the requests' partitions."""
        self.rig.wait(f"{workers} workers share the requests", lambda: self.rig.sharing("ramp-steps") == workers)

    def ask(self, *requests: dict[str, Any], partitions: Sequence[int] = (0,)) -> None:
        """As one producer sends them, each to all of these partitions."""
        producer = Producer({"bootstrap.servers": self.rig.kafka.bootstrap, "log_level": 0})
        for request in requests:
            for partition in partitions:
                producer.produce(f"{self.rig.prefix}ramp-steps", json.dumps(request), b"e-1", partition)
        assert producer.flush(30) == 0

    def began(self, calls: int = 60) -> None:
        self.rig.wait("the gate is under way", lambda: self.model.calls() >= calls, 60, 0.02)

    def verdicts(self) -> list[dict[str, Any]]:
        """All that a plain consumer reads."""
        return [json.loads(record.value or b"") for record in self.rig.records("verdicts")]

    def one_each(self, ids: Sequence[str], seconds: float = 90.0) -> dict[str, dict[str, Any]]:
        """Once every request is answered, acknowledged and counted, each has exactly one verdict, and each record that
        asked is in exactly one state: as many are done as there are verdicts."""

        def answered() -> bool:
            return {verdict["request_id"] for verdict in self.verdicts()} >= set(ids)

        self.rig.wait(f"verdicts of {len(ids)} requests", answered, seconds, 0.2)
        self.rig.wait("the requests are acknowledged", self.acknowledged, 60.0)
        self.rig.wait("the requests are counted", lambda: self._counted()["consumed"] >= sum(self._ends().values()))
        time.sleep(1.0)
        found = self.verdicts()
        assert Counter(verdict["request_id"] for verdict in found) == Counter(ids)
        counted = self._counted()
        assert counted.pop("consumed") == sum(self._ends().values()) == sum(counted.values()), counted
        assert counted["done"] == len(ids), counted
        return {verdict["request_id"]: verdict for verdict in found}

    def _counted(self) -> Counter[str]:
        return self.rig.conservation().get("ramp_step", Counter())

    def _ends(self) -> dict[int, int]:
        return {partition: end for (_, partition), end in self.rig.ends("ramp-steps").items()}

    def acknowledged(self) -> bool:
        """Every request on the topic."""
        committed = self.rig.committed()
        return all(committed.get(("ramp-steps", p)) == end for p, end in self._ends().items() if end)


__all__ = ["CALLS", "TRACES", "GateRig", "Model", "step"]
