"""The sweep on DynamoDB Local, Kafka, Valkey and a local Opik: alone, beside the stream, twice, cut short."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

from tests.root import ROOT
from tests.stream.feed.feed_rig import FeedRig

THUMBS, REROLL = "user_signal_thumbs", "user_signal_reroll"


def test_alone_it_writes_scores_and_a_second_one_changes_nothing(feed_rig: FeedRig, tmp_path: Path) -> None:
    ids = feed_rig.traces("a", "b", "c", "none")
    feed_rig.put_item("a", "down")
    feed_rig.put_item("b", "up")
    feed_rig.put_item("c", None)
    feed_rig.put_item("no trace", "up")
    feed_rig.put_item("old", "up", CreatedAt={"S": "2020-01-01T00:00:00Z"})
    feed_rig.put_item("bad", "sideways")
    planned = feed_rig.sweep("--dry-run")
    assert (planned["published"], planned["scores_written"]) == (3, 0), json.dumps(planned)
    assert feed_rig.published() == []
    textfile = tmp_path / "sweep.prom"
    first = feed_rig.sweep("--metrics-file", str(textfile))
    assert {name: first[name] for name in ("scanned", "published", "unchanged", "older", "bad", "waiting")} == {
        "scanned": 6, "published": 3, "unchanged": 1, "older": 1, "bad": 1, "waiting": 1,
    }  # fmt: skip
    assert feed_rig.score_of(ids["a"]) == {THUMBS: -1.0, REROLL: 0.0}
    assert feed_rig.score_of(ids["b"]) == {THUMBS: 1.0, REROLL: 0.0}
    assert feed_rig.score_of(ids["c"]) == feed_rig.score_of(ids["none"]) == {}
    assert 'rampgate_sweep_items_total{outcome="published"} 3.0' in textfile.read_text()
    assert "rampgate_sweep_finished_timestamp_seconds 1" in textfile.read_text()
    writes = feed_rig.writes_of(ids)
    second = feed_rig.sweep()
    assert (second["published"], second["unchanged"], second["scores_written"]) == (0, 4, 0)
    assert feed_rig.writes_of(ids) == writes
    assert len(feed_rig.published()) == 3

    # A worker that comes later takes the sweep's records as what they are, and writes nothing again.
    worker = feed_rig.worker()
    feed_rig.wait("the worker to settle them", feed_rig.drained, 60)
    assert feed_rig.conservation()["thumbs"]["consumed"] == 3
    assert feed_rig.conservation()["thumbs"]["done"] == 2
    assert feed_rig.writes_of(ids) == writes
    assert worker.terminate() == 0


def test_beside_feed_and_worker_it_changes_nothing_and_repairs_what_the_stream_lost(feed_rig: FeedRig) -> None:
    ids = feed_rig.traces("a", "b", "lost")
    worker, feed = feed_rig.worker(), feed_rig.feed()
    feed_rig.put_item("a", "down")
    feed_rig.put_item("b", "up")
    feed_rig.wait("their scores", lambda: len(feed_rig.writes_of(ids)) == 4, 60)
    assert feed_rig.end(feed) == 0
    writes = feed_rig.writes_of(ids)
    swept = feed_rig.sweep()
    assert (swept["published"], swept["unchanged"]) == (0, 2)
    assert feed_rig.writes_of(ids) == writes

    feed_rig.put_item("lost", "down")  # no feed runs: this stands for a gap
    both = feed_rig.sweep()
    assert both["published"] == 1
    feed_rig.wait("its score", lambda: feed_rig.score_of(ids["lost"]) == {THUMBS: -1.0, REROLL: 0.0}, 30)
    feed = feed_rig.feed()
    feed_rig.wait("the feed to bring it too", lambda: len(feed_rig.published()) == 4, 30)
    feed_rig.wait("the worker to settle it", feed_rig.drained, 30)
    assert feed_rig.score_of(ids["lost"]) == {THUMBS: -1.0, REROLL: 0.0}
    fields = dict(feed_rig.conservation()["thumbs"])
    assert fields.pop("consumed") == sum(fields.values()) == 4
    assert feed_rig.end(feed) == 0
    assert worker.terminate() == 0


def test_rerolls_are_derived_from_the_traces_once(feed_rig: FeedRig) -> None:
    """PF-9 §5.4: the same input again within 300 s of the previous answer; the earlier turn gets the score."""
    ids = feed_rig.traces("one", "two", session="s", said={"text": "hello"}, gap=120.0)
    ids |= feed_rig.traces("slow", "later", session="t", said={"text": "hello"}, gap=400.0)
    feed_rig.put_item("slow", "up")
    first = feed_rig.sweep()
    assert (first["rerolls_found"], first["rerolls_published"]) == (1, 1)
    assert feed_rig.score_of(ids["one"]) == {REROLL: 1.0}
    assert feed_rig.score_of(ids["two"]) == {}
    assert feed_rig.score_of(ids["slow"]) == {THUMBS: 1.0, REROLL: 0.0}
    writes = feed_rig.writes_of(ids)
    second = feed_rig.sweep()
    assert (second["rerolls_found"], second["rerolls_published"], second["scores_written"]) == (1, 0, 0)
    assert feed_rig.writes_of(ids) == writes


def test_switched_off_it_withholds_and_the_next_one_writes(feed_rig: FeedRig) -> None:
    """PF-9 §10.3."""
    ids = feed_rig.traces("a")
    feed_rig.put_item("a", "down")
    off = feed_rig.sweep("--no-write")
    assert (off["published"], off["scores_written"], off["writing"], off["waiting"]) == (1, 0, False, 1)
    assert feed_rig.score_of(ids["a"]) == {}
    on = feed_rig.sweep("--write")
    assert (on["published"], on["scores_written"], on["waiting"]) == (0, 2, 0)
    assert feed_rig.score_of(ids["a"]) == {THUMBS: -1.0, REROLL: 0.0}


def test_one_cut_short_goes_on_where_it_was_and_restart_begins_anew(feed_rig: FeedRig) -> None:
    for number in range(30):
        feed_rig.put_item(f"i{number}")
    name = f"{feed_rig.prefix}sweep:{feed_rig.table}:1d"
    since = round((time.time() - 3600) * 1000)
    page = feed_rig.db.scan(TableName=feed_rig.table, Limit=10)
    place = {"since": since, "segments": 1, "segment:0": json.dumps(page["LastEvaluatedKey"])}
    feed_rig.state.hset(name, mapping=place)
    rest = feed_rig.sweep("--dry-run")
    assert not rest["resumed"], "a dry run looks at the whole table and leaves the place alone"
    rest = feed_rig.sweep()
    assert (rest["resumed"], rest["since_ms"], rest["scanned"]) == (True, since, 20)
    assert not feed_rig.state.exists(name)
    feed_rig.state.hset(name, mapping=place)
    anew = feed_rig.sweep("--restart")
    assert (anew["resumed"], anew["scanned"]) == (False, 30)


def test_what_is_out_of_reach_is_named_with_exit_code_2(feed_rig: FeedRig) -> None:
    for settings, word in (({"dynamodb_endpoint": "http://127.0.0.1:9"}, "9"), ({"thumbs_table": "nowhere"}, "table")):
        ran = feed_rig.run("sweep", "--since", "1h", "--no-rerolls", **settings)
        assert ran.code == 2
        assert word in ran.err
        assert "Traceback" not in ran.err
    ran = feed_rig.run("sweep", "--since", "yesterday")
    assert ran.code == 2
    assert "--since" in ran.err


def test_pf9_fr6_alone_it_joins_the_rerolls_that_the_middleware_put_on_their_topic(feed_rig: FeedRig) -> None:
    """V1: each run sweeps the table's thumbs and the middleware's rerolls into Opik; no worker has read the topic."""
    ids = feed_rig.traces("said twice", "said again", session="s", said={"text": "hello"}, gap=120.0)
    ids |= feed_rig.traces("by event", "by both")
    feed_rig.put_item("by both", "down")
    feed_rig.rerolls("by event", "by both", "said twice", "no trace", "slow", "bad")
    planned = feed_rig.sweep("--dry-run")
    assert (planned["rerolls_new"], planned["bad"], planned["scores_written"]) == (4, 1, 0), json.dumps(planned)
    assert feed_rig.writes_of(ids) == {}
    first = feed_rig.sweep()
    assert first["rerolls_new"] == 4
    assert feed_rig.score_of(ids["by event"]) == {REROLL: 1.0}
    assert feed_rig.score_of(ids["by both"]) == {THUMBS: -1.0, REROLL: 1.0}
    assert feed_rig.score_of(ids["said twice"]) == {REROLL: 1.0}
    assert first["waiting"] == 1, "the one without a trace"
    writes = feed_rig.writes_of(ids)
    second = feed_rig.sweep()
    assert (second["rerolls_new"], second["published"], second["scores_written"]) == (0, 0, 0)
    assert feed_rig.writes_of(ids) == writes
    keys = Counter((one.key or b"").decode().removeprefix(feed_rig.prefix) for one in feed_rig.records("rerolls"))
    assert keys["said twice"] == keys["by both"] == 1, "what stands on the topic is not published again"

    # A worker that comes later counts the records, and writes nothing again.
    worker = feed_rig.worker()
    feed_rig.wait("the worker to settle them", feed_rig.drained, 60)
    fields = dict(feed_rig.conservation()["reroll"])
    assert fields.pop("consumed") == sum(fields.values()) == keys.total()
    assert feed_rig.writes_of(ids) == writes
    assert worker.terminate() == 0


def test_pf9_fr11_its_metrics_have_the_coverage_by_vertical_and_the_registrys_names(
    feed_rig: FeedRig, tmp_path: Path
) -> None:
    ids = feed_rig.traces("a", "unseen", sub_agent="receipts", category="general_qa")
    ids |= feed_rig.traces("stranger", sub_agent="made-up", category="made-up")
    for name in ("a", "stranger"):
        feed_rig.put_item(name, "down")
    feed_rig.put_item("lost", "up", Vertical={"S": "receipts"})
    textfile = tmp_path / "sweep.prom"
    feed_rig.sweep("--no-rerolls", "--metrics-file", str(textfile), configs=ROOT / "configs")
    told = textfile.read_text()
    for name, value in (("both_present_count", 2), ("missing_trace_count", 1), ("missing_signal_count", 0)):
        assert f'eval_correlation_coverage_{name}{{vertical="receipts"}} {value:.1f}' in told
    assert 'eval_correlation_coverage_rate_ratio{vertical="receipts"} 0.66' in told
    written = (
        'eval_correlation_records_written_total{{category="{}",signal="thumbs",sub_agent="{}",vertical="receipts"}} 1'
    )
    assert written.format("general_qa", "receipts") in told
    assert written.format("other", "other") in told
