"""From live scores to one response for each breach (PC5 §5.7)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import DAY, HOUR, thumb
from registry_disk import built
from test_live_judging import REGISTRY, Rig, Willing, live_trace

from agents.live_scores import watched
from agents.ports import Unavailable
from evalcore.gates.regression import Response, Step
from evalcore.scoring import Reply
from evalcore.scoring.asking import Ask
from rampgate.regressions import channels_of
from rampgate.settings import Settings, shown_settings
from streams.regression_watch import RegressionWatch


class Redis:
    """As much of a client as the watch needs."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}

    async def get(self, name: str) -> bytes | None:
        return self.held.get(name)

    async def set(self, name: str, value: bytes, nx: bool = False, px: int | None = None) -> bool:
        if nx and name in self.held:
            return False
        self.held[name] = value
        return True

    async def delete(self, name: str) -> None:
        self.held.pop(name, None)


class Literal(Willing):
    """Does as the rubric says: gives the worst score under a bad one, and the best under any other."""

    async def complete(self, asked: Ask) -> Reply:
        kind = asked.schema["properties"]["score"]["anyOf"][0]["type"]
        best = {"boolean": True, "integer": 5, "number": 1.0}[kind]
        return Reply(json.dumps({"score": 1 if "Bad." in asked.messages[1]["content"] else best, "reason": "as told"}))


class Watching:
    def __init__(self, **options: Any) -> None:
        self.rig, self.redis = Rig(), Redis()
        self.failed: dict[Step, str] = {}
        self.done: list[Response] = []
        self.options = {"window_seconds": 86_400, "minimum": 5, "ramping": True, "every": 1.0, **options}

    async def carry_out(self, response: Response) -> dict[Step, str]:
        self.done.append(response)
        return self.failed

    async def look(self) -> list[Response]:
        world = self.rig.world
        watch = RegressionWatch(
            self.redis, "rg:", world.store, world.clock, lambda: self.rig.registry, self.carry_out, **self.options
        )
        return await watch.once()

    async def turns(self, count: int, start: str = "r") -> None:
        events = [live_trace(f"{start}{n}", sampled=n % 2 == 0) for n in range(count)]
        for event in events:
            event["metadata"]["agent_version"] = "v7"
        await self.rig.traces(*events)


async def test_a_breach_in_the_live_window_is_responded_to_once_and_not_per_trace() -> None:
    watching = Watching()
    await watching.turns(8)
    await watching.look()
    first = [(response.breach.judge_id, response.breach.agent_version) for response in watching.done]
    assert ("helpfulness", "v7") not in first, "of four sampled scores nothing follows"
    assert {version for _, version in first} == {"v7"}
    await watching.turns(8, "more")
    await watching.look()
    await watching.look()
    names = [response.breach.judge_id for response in watching.done]
    assert len(names) == len(set(names))
    assert "helpfulness" in names
    quality = next(response for response in watching.done if response.breach.judge_id == "helpfulness")
    assert (quality.breach.score, quality.breach.n) == (1.0, 8)


async def test_a_command_that_did_not_go_out_is_sent_again_at_the_next_look() -> None:
    watching = Watching()
    watching.failed = {Step.RAMP_DOWN: "Kafka"}
    await watching.turns(8)
    await watching.look()
    before = len(watching.done)
    await watching.look()
    assert len(watching.done) == 2 * before
    watching.failed = {}
    await watching.look()
    await watching.look()
    assert len(watching.done) == 3 * before


async def test_what_a_bad_rubric_said_counts_no_longer_once_the_rubric_is_rolled_back() -> None:
    """PC5 §5.7, step 5: live scores of two versions of a judge are never mixed."""
    watching = Watching(minimum=3)
    rig, bad = watching.rig, built({"rules/helpfulness.yaml": "{sampling_rate: 0.3, prompt: 'Bad. {{output}}'}"})
    rig.model = Literal()
    await watching.turns(8, "good")
    assert await watching.look() == []
    rig.registry = bad
    await watching.turns(8, "bad")
    (breach,) = await watching.look()
    assert (breach.breach.judge_id, breach.breach.score, breach.breach.n) == ("helpfulness", 1.0, 4)
    rig.registry = REGISTRY
    (end,) = await watching.look()
    assert (end.recovered, end.breach.key, end.breach.score, end.breach.n) == (True, breach.breach.key, 5.0, 4)


async def test_scores_leave_the_window_and_one_worker_looks_at_a_time() -> None:
    watching = Watching()
    await watching.turns(8)
    watching.redis.held["rg:regressions-watched"] = b"1"
    assert await watching.look() == []
    watching.redis.held.clear()
    watching.rig.world.wait(DAY + HOUR)
    assert await watching.look() == []


async def test_a_voted_down_trace_weighs_1_also_where_the_rate_had_chosen_it_before() -> None:
    watching = Watching()
    world = watching.rig.world
    await watching.turns(4)
    await watching.rig.thumbs(thumb("r0", at=world.clock.ms), thumb("r1", at=world.clock.ms))
    found = await watched(world.store, REGISTRY, world.clock.ms, DAY)
    (quality,) = (one for one in found if one.judge.id == "helpfulness")
    assert sorted(quality.answers.weights) == pytest.approx([1.0, 1.0, 1 / 0.3])
    safety = next(one for one in found if one.judge.id == "refusal")
    assert safety.answers.weights == (1.0,) * 4


async def test_a_state_that_is_out_of_reach_lets_go_of_the_lease() -> None:
    watching = Watching()

    async def away(*_: Any) -> Any:
        raise Unavailable("Redis")

    watching.rig.world.store.pools = away  # type: ignore[assignment,method-assign]
    with pytest.raises(Unavailable):
        await watching.look()
    assert watching.redis.held == {}


def test_whom_it_tells_is_set_by_files_and_no_secret_is_shown(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("https://hooks.example.com/services/hush\n")
    settings = Settings.model_validate(
        {
            "slack_webhook_file": secret, "pagerduty_key_file": secret, "grafana_token_file": secret,
            "grafana_url": "https://grafana.example.com/",
        }
    )  # fmt: skip
    channels = channels_of(settings)
    assert channels.slack is not None
    assert channels.grafana is not None
    assert channels.slack.url == channels.routing_key == secret.read_text().strip()
    assert channels.grafana.url == "https://grafana.example.com/api/annotations"
    assert "hush" not in f"{channels!r} {settings!r} {shown_settings(settings)}"
    bare = channels_of(Settings())
    assert bare.slack is bare.grafana is bare.routing_key is None
