"""`rampgate traces`: labels and scores of live traces, and no one's words (PC5 §2)."""

from __future__ import annotations

from typing import Any

from tests.contract.opik.scripted_opik import ScriptedOpik, trace_id_at
from tests.contract.opik.sync_rig import Rig
from tests.contract.opik.traces_rig import MINUTE, iso, now

SECRET = "my card is 4111"


async def added(opik: ScriptedOpik, turn: str, ago: int, project: str = "receipts-eval", **metadata: Any) -> str:
    """The id of a new trace that began so many minutes ago, and holds a user's words wherever words may stand."""
    at = now() - ago * MINUTE
    labels = {"response_id": turn, "agent_id": "scanner", "agent_version": "v1", "vertical": "receipts"}
    texts = {"input": {"q": SECRET}, "output": {"a": SECRET}}
    trace = {"id": trace_id_at(at), "project_name": project, "name": SECRET, "start_time": iso(at), **texts}
    frames = [{"said": SECRET}]
    await opik.add_traces(trace | {"end_time": iso(at + 1), "metadata": {"frames": frames, **labels, **metadata}})
    return str(trace["id"])


async def turns(rig: Rig, *flags: str) -> list[str]:
    ran = await rig.run("traces", "--json", *flags)
    assert ran.code == 0, ran.err
    return [one["response_id"] for one in ran.json["traces"]]


async def test_the_newest_of_all_verticals_come_first_and_each_flag_narrows_them(rig: Rig) -> None:
    await added(rig.opik, "oldest", 9)
    await added(rig.opik, "other-version", 7, agent_version="v2")
    await added(rig.opik, "other-agent", 5, agent_id="greeter")
    await added(rig.opik, "rewards", 3, "consumer-agent", vertical="rewards_assistant")
    await added(rig.opik, "newest", 1)
    everything = ["newest", "rewards", "other-agent", "other-version", "oldest"]
    assert await turns(rig) == everything
    assert await turns(rig, "--limit", "2") == everything[:2]
    assert await turns(rig, "--version", "v2") == ["other-version"]
    assert await turns(rig, "--agent", "greeter") == ["other-agent"]
    assert await turns(rig, "--vertical", "rewards_assistant") == ["rewards"]
    assert await turns(rig, "--agent", "nobody") == []
    assert "none matches" in (await rig.run("traces", "--agent", "nobody")).out


async def test_a_trace_is_shown_with_its_scores_by_kind_and_without_anybodys_words(rig: Rig) -> None:
    trace_id = await added(rig.opik, "turn-\x1b[31m1", 1, vertical="receipts", category="c" * 5_000)
    await rig.opik.add_score(trace_id, "user_signal_thumbs", -1, "receipts-eval")
    await rig.opik.add_score(trace_id, "helpfulness", 4, "receipts-eval")
    await rig.opik.add_score(trace_id, "reviewed", 1, "receipts-eval", source="ui")
    because = {"id": trace_id, "name": "tone", "value": 2, "reason": SECRET, "source": "sdk"}
    scores = {"scores": [because | {"project_name": "receipts-eval"}]}
    await rig.opik.call("PUT", "/v1/private/traces/feedback-scores", scores)

    ran = await rig.run("traces", trace_id.upper(), "--json")
    assert ran.code == 0, ran.err
    shown = ran.json["trace"]
    assert (shown["agent_id"], shown["agent_version"], shown["vertical"]) == ("scanner", "v1", "receipts")
    assert shown["feedback_scores"] == {"user_signal_thumbs": -1}
    assert shown["judge_scores"] == [{"judge_id": "helpfulness", "score": 4}, {"judge_id": "tone", "score": 2}]
    assert shown["other_scores"] == {"reviewed": 1}
    assert shown["response_id"] == "turn- [31m1"
    assert len(shown["category"]) == 200

    text = await rig.run("traces", trace_id)
    listed = await rig.run("traces")
    assert "helpfulness" in text.out
    assert trace_id in listed.out
    for output in (ran.out, text.out, listed.out, (await rig.run("traces", "--json")).out):
        assert SECRET not in output
        assert "\x1b" not in output
    wrote = ("POST /v1/private/traces/batch", "PUT /v1/private/traces/feedback-scores")
    changing = [name for name in await rig.opik.requests() if name.startswith(("PUT", "PATCH", "DELETE"))]
    assert set(changing) <= set(wrote), "the commands only read"


async def test_an_id_without_a_trace_ends_with_1_and_what_to_do_and_no_id_ends_with_2(rig: Rig) -> None:
    unknown = trace_id_at(now())
    ran = await rig.run("traces", unknown, "--json")
    assert (ran.code, ran.json["trace_id"], ran.json["trace"]) == (1, unknown, None)
    assert "rampgate traces" in ran.json["error"]
    ran = await rig.run("traces", unknown)
    assert (ran.code, "rampgate traces" in ran.out) == (1, True)
    ran = await rig.run("traces", "resp_abc")
    assert (ran.code, "rampgate turn" in ran.err) == (2, True)


async def test_an_opik_out_of_reach_and_a_vertical_that_nobody_registered_end_with_2(rig: Rig) -> None:
    away = {"RAMPGATE_OPIK": "http://127.0.0.1:9"}
    ran = await rig.run("traces", "--json", **away)
    assert (ran.code, ran.json["traces"], sorted(ran.json["errors"])) == (2, [], ["consumer-agent", "receipts-eval"])
    ran = await rig.run("traces", trace_id_at(now()), **away)
    assert (ran.code, ran.err.startswith("rampgate: Opik")) == (2, True)
    for words in ((), (trace_id_at(now()),)):
        ran = await rig.run("traces", *words, "--vertical", "reciepts")
        assert (ran.code, "receipts" in ran.err) == (2, True)


async def test_a_project_that_can_not_be_read_hides_no_other(rig: Rig) -> None:
    await added(rig.opik, "there", 1)
    file = rig.configs / "verticals" / "rewards_assistant.yaml"
    file.write_text(file.read_text() + f"\napi_key_file: {rig.configs / 'no-such-key'}\n")
    ran = await rig.run("traces", "--json")
    assert (ran.code, [one["response_id"] for one in ran.json["traces"]]) == (2, ["there"])
    assert "api_key_file" in ran.json["errors"]["consumer-agent"]
