"""`rampgate skip`: a group is moved forward on purpose; what is left unread is counted and audited."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from tests.fault.rig import Rig
from tests.fault.worker_process import environment
from tests.stream.commands import Ran, in_process_of_its_own
from tests.stream.plain_events import thumb, trace_event

TURNS = 12


class Skipping:
    """Turns whose traces are joined, thumbs that go to one partition, and the command."""

    def __init__(self, rig: Rig, audit: Path) -> None:
        self.rig, self.audit, self.now = rig, audit, datetime.now(UTC)
        self.place = f"{rig.prefix}thumbs/0"
        self.names = [f"{rig.prefix}{number}" for number in range(TURNS)]
        self._producer = Producer({"bootstrap.servers": rig.kafka.bootstrap, "log_level": 0})
        self.traces = [trace_event(name, "receipts", self.now) for name in self.names]
        for name, event in zip(self.names, self.traces, strict=True):
            self._producer.produce(rig.prefix + "traces", json.dumps(event), name)
        assert self._producer.flush(20) == 0

    def thumbs(self, turns: range) -> None:
        for turn in turns:
            value = json.dumps(thumb(self.names[turn], self.now))
            self._producer.produce(self.rig.prefix + "thumbs", value, self.names[turn], partition=0)
        assert self._producer.flush(20) == 0

    def skip(self, *options: str, place: str = "") -> Ran:
        asked = ("skip", place or self.place, "--reason", "a load test", "--audit", str(self.audit), *options, "--json")
        return in_process_of_its_own(environment(self.rig._settings), *asked)

    def audited(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()] if self.audit.exists() else []

    def scored(self) -> set[int]:
        ids = [event["trace_id"] for event in self.traces]
        return {ids.index(trace) for trace, name in self.rig.opik.writes() if trace in ids and name.endswith("thumbs")}


def test_what_is_skipped_is_never_read_and_is_a_counted_and_audited_gap(rig: Rig, tmp_path: Path) -> None:
    """Offsets 0 to 3 are settled, 4 to 8 are skipped, 9 to 11 are read by the next worker."""
    skipping = Skipping(rig, tmp_path / "audit.jsonl")
    worker = rig.worker()
    skipping.thumbs(range(4))
    rig.wait("the first thumbs", lambda: skipping.scored() == set(range(4)) and rig.drained())
    refused = skipping.skip("--to", "9")
    assert (refused.code, "stop them first" in refused.err) == (2, True)
    assert worker.terminate() == 0
    skipping.thumbs(range(4, TURNS))

    for options, why in (
        (("--to", "4"), "nothing to skip"),
        (("--to", "13"), "nothing to skip"),
    ):
        refused = skipping.skip(*options)
        assert (refused.code, why in refused.err) == (2, True)
    refused = skipping.skip(place=f"{rig.prefix}ramp-steps/0")
    assert (refused.code, "no partition" in refused.err) == (2, True)
    assert skipping.skip("--to", "9", "--dry-run").json["offsets"] == 5
    assert skipping.audited() == []
    assert rig.watermarks()["thumbs", 0] == 4

    done = skipping.skip("--to", "9")
    assert (done.code, done.json["since"], done.json["until"]) == (0, 4, 9), done.err
    (line,) = skipping.audited()
    assert (line["kind"], line["since"], line["until"], line["reason"]) == ("skip", 4, 9, "a load test")
    assert rig.committed()["thumbs", 0] == 9

    worker = rig.worker()
    rig.wait("the rest", rig.drained)
    assert skipping.scored() == {*range(4), *range(9, TURNS)}
    assert dict(rig.conservation()["thumbs"]) == {"consumed": TURNS, "done": 7, "gap": 5, "gaps": 1}
    assert worker.terminate() == 0
