"""From the thumbs table to the official SDK, through feed and worker as processes; and the counts balance."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.stream.feed.feed_rig import PROJECT, FeedRig

THUMBS, REROLL = "user_signal_thumbs", "user_signal_reroll"
TURNS = 60


def test_thumbs_become_scores_that_the_sdk_reads_back(
    feed_rig: FeedRig, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    monkeypatch.setenv("OPIK_SENTRY_ENABLE", "false")
    monkeypatch.setenv("OPIK_ANALYTICS_ENABLE", "false")
    import opik

    names = [f"t{number}" for number in range(TURNS)]
    ids = feed_rig.traces(*names)
    worker, feed = feed_rig.worker(), feed_rig.feed()
    sdk = opik.Opik(host=feed_rig.opik.url, project_name=PROJECT)
    try:
        for name in names:
            feed_rig.put_item(name, "up")
        for name in names[::2]:
            feed_rig.put_item(name, "down")
        for name in names[::5]:
            feed_rig.delete_item(name)
        feed_rig.put_item("nobody's turn", "up")
        expected = {
            name: {} if number % 5 == 0 else {THUMBS: 1.0 if number % 2 else -1.0, REROLL: 0.0}
            for number, name in enumerate(names)
        }

        def held() -> dict[str, dict[str, float]]:
            found = sdk.search_traces(project_name=PROJECT, max_results=10_000)
            scores = {str(t.id): {s.name: s.value for s in t.feedback_scores or []} for t in found}
            return {name: scores[trace] for name, trace in ids.items()}

        feed_rig.wait("the scores in the SDK's eyes", lambda: held() == expected, 60)
        sent = TURNS + TURNS // 2 + TURNS // 5 + 1
        feed_rig.wait("every record settled", feed_rig.drained, 30)
        feed_rig.wait("the one without a trace to be given up", lambda: len(feed_rig.dead_letters()) == 1, 30)
        fields = dict(feed_rig.conservation()["thumbs"])
        assert fields.pop("consumed") == sent == sum(fields.values())
        assert fields["dead_lettered:missing_trace"] == 1
        ran = feed_rig.run("conservation", "--json")
        assert ran.code == 0, ran.err
        assert ran.json["balanced"]
        assert ran.json["signals"]["thumbs"]["consumed"] == sent

        record_property("seconds_from_item_to_score", latency(feed_rig))
    finally:
        sdk.end()
    assert feed_rig.end(feed) == 0
    assert worker.terminate() == 0


def latency(rig: FeedRig) -> list[float]:
    """From the item's write to the score in Opik, ten times; told, not judged: the machine is shared."""
    ids = rig.traces(*(f"l{number}" for number in range(10)))
    rig.trace_events(ids)
    rig.wait("the traces to be known", rig.drained, 30)
    took = []
    for name, trace in ids.items():
        began = time.monotonic()
        rig.put_item(name, "down")
        while not rig.writes_of({name: trace}) and time.monotonic() - began < 20:
            time.sleep(0.01)
        took.append(round(time.monotonic() - began, 3))
    print(f"seconds from item to score: {sorted(took)}")
    return sorted(took)
