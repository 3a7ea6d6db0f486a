"""From live scores to one response for each breach (PC5 §5.7)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agents.keys import REGRESSION_LEASE
from agents.live.scores import watched
from agents.ports import Unavailable
from evalcore.gates.messages import summary
from evalcore.gates.regression import Event, Response, Step, WatchLimits
from evalcore.judges.evaluator import Prompt
from evalcore.scoring.calls import Failure, Reply
from rampgate.settings import Settings
from rampgate.settings_sources import shown_settings
from rampgate.worker.live_judging import channels_of
from streams.alerts import regression_watch
from streams.alerts.regression_watch import (
    GIVEN_UP_AFTER_MS,
    Ours,
    PendingResponse,
    Regressions,
    RegressionWatch,
)
from streams.redis.lease import SHORT_LEASE_MS
from tests.unit.agents.builders import DAY, HOUR, thumb
from tests.unit.agents.live.live_rig import REGISTRY, Rig, Willing, live_trace
from tests.unit.evalcore.gates.regression_cases import bad, only, seen
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.scoring.scoring_rig import Model, down


class Literal(Willing):
    """Does as the rubric says: gives the worst score under a bad one, and the best under any other."""

    async def complete(self, asked: Prompt) -> Reply:
        kind = asked.schema["properties"]["score"]["anyOf"][0]["type"]
        best = {"boolean": True, "integer": 5, "number": 1.0}[kind]
        return Reply(json.dumps({"score": 1 if "Bad." in asked.messages[0]["content"] else best, "reason": "as told"}))


class Worst(Willing):
    async def complete(self, asked: Prompt) -> Reply:
        boolean = asked.schema["properties"]["score"]["anyOf"][0]["type"] == "boolean"
        return Reply(json.dumps({"score": False if boolean else 1, "reason": "bad"}), 10)


@pytest.fixture(autouse=True)
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a look with another worker's."""
    monkeypatch.setattr(regression_watch, "WAIT_SECONDS", 0.5)


class Watching:
    def __init__(self, **options: Any) -> None:
        self.rig = Rig()
        self.failing: set[Step] = set()
        self.pending: list[PendingResponse] = []
        """Each response that something was done about, once a look."""
        self.taken: list[tuple[PendingResponse, list[Step]]] = []
        self.dies = False
        self.metadata: dict[str, Any] = {}
        self.options = {"window_seconds": 86_400, "limits": WatchLimits(minimum=5), "every": 1.0, **options}

    async def carry_out(self, pending: PendingResponse, step: Step, ours: Ours) -> bool:
        if not any(pending.about == one.about for one, _ in self.taken):
            self.pending.append(pending)
            self.taken.append((pending, []))
        next(steps for one, steps in self.taken if one.about == pending.about).append(step)
        await asyncio.sleep(0)
        if self.dies:
            raise asyncio.CancelledError
        return step not in self.failing

    @property
    def done(self) -> list[Response]:
        return [pending.response for pending in self.pending]

    def steps(self, judge: str = "honesty") -> list[tuple[Step, ...]]:
        """The steps that were left at each look that did something about the judge."""
        return [pending.left for pending in self.pending if pending.response.breach.judge_id == judge]

    def watch(self) -> RegressionWatch:
        """As another worker's, or this one's after a restart: nothing is remembered but what the stores hold."""
        world = self.rig.world
        return RegressionWatch(world.store, world.clock, lambda: self.rig.registry, self.carry_out, **self.options)

    async def look(self) -> list[Response]:
        self.taken.clear()
        watch = self.watch()
        responses = await watch.once()
        await watch.notified()
        return responses

    async def turns(self, count: int, start: str = "r") -> None:
        events = [live_trace(f"{start}{n}", sampled=n % 2 == 0) for n in range(count)]
        for number, event in enumerate(events):
            event["metadata"] |= {"agent_version": "v7", "user_id": f"u{number}", "session_id": f"{start}{number}"}
            event["metadata"] |= self.metadata
        await self.rig.traces(*events)


@pytest.mark.parametrize(
    "answers", ['{"score": "N/A", "reason": "not mine"}', down(Failure.REFUSED), down(Failure.UNAVAILABLE)]
)
async def test_na_a_content_filters_refusal_and_an_outage_of_a_safety_judge_page(answers: Any) -> None:
    """Once none of them did anything: a text that a filter refuses, or that talks a judge into N/A, hid a breach."""
    watching = Watching()
    watching.rig.model = Model(answers=answers)
    await watching.turns(8)
    told = await watching.look()
    assert {one.breach.judge_id for one in told} == {"honesty", "refusal"}
    for one in told:
        assert (one.breach.kind, one.breach.unscored, one.breach.n) == ("unscored", 8, 8)
        assert one.steps == (Step.PAGE, Step.LOG)
    assert await watching.look() == []


async def test_one_user_in_several_spellings_ramps_nobody_down() -> None:
    watching = Watching()
    watching.rig.model = Worst()
    for number, name in enumerate(("u1", "U1", "u1 ", "\uff35\uff11") * 2):
        watching.metadata = {"user_id": name}
        await watching.turns(1, f"r{number}-")
    await watching.look()
    (steps,) = watching.steps()
    (response,) = [one for one in watching.done if one.breach.judge_id == "honesty"]
    assert (response.breach.users, response.breach.sessions) == (1, 8)
    assert Step.RAMP_DOWN not in steps


@pytest.mark.parametrize(
    ("metadata", "users", "sessions"),
    [
        ({}, 8, 8),
        ({"user_id": "one"}, 1, 8),
        ({"session_id": "one"}, 8, 1),
        ({"user_id": None, "session_id": ""}, 8, 8),
        ({"user_id": "\u200b"}, 8, 8),
        ({"user_id": None, "session_id": "one"}, 8, 1),
    ],
)
async def test_pc5_5_7_a_ramp_down_takes_several_users_and_sessions_or_as_many_traces_that_name_none(
    metadata: dict[str, Any], users: int, sessions: int
) -> None:
    """PC5 §5.7 calls a ramp-down too many the safer failure: an agent that traces no users must not be exempt."""
    watching = Watching()
    watching.metadata = metadata
    watching.rig.model = Worst()
    await watching.turns(8)
    await watching.look()
    (steps,) = watching.steps()
    (response,) = [one for one in watching.done if one.breach.judge_id == "honesty"]
    assert (response.breach.users, response.breach.sessions) == (users, sessions)
    assert (Step.RAMP_DOWN in steps) is (min(users, sessions) >= 3)
    assert Step.PAGE in steps


async def test_pc5_5_7_beside_one_user_two_traces_without_one_make_three() -> None:
    watching = Watching()
    watching.rig.model = Worst()
    watching.metadata = {"user_id": "one"}
    await watching.turns(6)
    watching.metadata = {"user_id": ""}
    await watching.turns(1, "without")
    assert "too little for an automatic ramp-down" in summary(only_of("honesty", await watching.look()))
    await watching.turns(1, "again")
    confirmed = only_of("honesty", await watching.look())
    assert (confirmed.event, confirmed.breach.users) == (Event.CONFIRMED, 3)
    assert "3 users and 8 sessions (a trace that names none counts as one)" in summary(confirmed)


def only_of(judge: str, responses: list[Response]) -> Response:
    (found,) = [one for one in responses if one.breach.judge_id == judge]
    return found


async def test_whose_traces_a_score_is_of_is_kept_below_a_safety_judges_floor_and_nowhere_else() -> None:
    """Eight bytes for a trace that may ramp an agent down, none for any other."""
    watching, sizes = Watching(), []
    for model in (Worst(), Willing()):
        watching.rig.model = model
        await watching.turns(4, f"{len(sizes)}-")
        held = watching.rig.world.store.lowest
        sizes.append({len(member) for key, (_, pool) in held.items() if key.startswith("v:") for member in pool})
    assert sizes == [{24, 32}, {24, 32}]


async def test_a_breach_of_an_earlier_release_is_commanded_no_second_time() -> None:
    kept = Regressions()
    kept.note(only(seen(bad("honesty"))), 1_000, 500)
    earlier = json.loads(kept.encode())
    for breach in earlier["open"].values():
        for name in ("kind", "upper_bound", "users", "sessions", "unscored", "certain"):
            del breach[name]
    (breach,) = Regressions.decode(json.dumps(earlier).encode()).open.values()
    assert (breach.certain, breach.kind) == (True, "floor")


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


async def test_what_was_not_delivered_is_tried_again_at_the_next_looks_and_nothing_else() -> None:
    watching = Watching()
    watching.failing = {Step.RAMP_DOWN, Step.PAGE}
    watching.rig.model = Worst()
    await watching.turns(8)
    await watching.look()
    watching.failing = {Step.PAGE}
    await watching.look()
    watching.failing = set()
    for _ in range(3):
        await watching.look()
    whole = (Step.RAMP_DOWN, Step.PAGE, Step.LOG)
    assert watching.steps() == [whole, (Step.RAMP_DOWN, Step.PAGE), (Step.PAGE,)]


async def test_what_can_not_be_delivered_for_a_day_is_given_up() -> None:
    watching = Watching(window_seconds=3 * 86_400)
    watching.failing = {Step.PAGE}
    watching.rig.model = Worst()
    await watching.turns(8)
    await watching.look()
    watching.rig.world.wait(GIVEN_UP_AFTER_MS)
    await watching.look()
    tried = len(watching.pending)
    await watching.look()
    assert len(watching.pending) == tried


async def test_a_worker_that_dies_amid_its_steps_leaves_them_to_the_next_one() -> None:
    watching = Watching()
    watching.rig.model = Worst()
    await watching.turns(8)
    watching.dies = True
    with pytest.raises(asyncio.CancelledError):
        await watching.look()
    watching.dies = False
    assert await watching.look() == [], "it is no news"
    assert watching.steps()[-1] == (Step.RAMP_DOWN, Step.PAGE, Step.LOG)
    before = len(watching.pending)
    await watching.look()
    assert len(watching.pending) == before


async def test_pc5_5_7_of_two_workers_one_responds() -> None:
    watching = Watching()
    await watching.turns(8)
    await asyncio.gather(*(watching.look() for _ in range(5)))
    names = [response.breach.judge_id for response in watching.done]
    assert names
    assert len(names) == len(set(names))


async def test_a_breach_whose_scores_have_left_the_window_ends_and_the_next_one_is_new() -> None:
    watching = Watching()
    watching.rig.model = Worst()
    await watching.turns(8)
    await watching.look()
    watching.rig.world.wait(DAY + HOUR)
    ended = await watching.look()
    assert {response.event for response in ended} == {Event.LAPSED}
    assert (Step.RESOLVE_PAGE, Step.LOG) in {response.steps for response in ended}
    await watching.turns(8, "later")
    again = await watching.look()
    assert {response.event for response in again} == {Event.BREACH}
    since = {pending.response.event: pending.since for pending in watching.pending}
    assert since[Event.BREACH] >= watching.rig.world.clock.ms - DAY


async def test_verticals_that_nobody_registered_are_one_judges_scores_and_one_breach() -> None:
    watching = Watching()
    events = [live_trace(f"r{n}", vertical=f"no one{n}") for n in range(8)]
    for event in events:
        event["metadata"]["agent_version"] = "v7"
    await watching.rig.traces(*events)
    (breach,) = (one.breach for one in await watching.look() if one.breach.judge_id == "helpfulness")
    assert (breach.vertical, breach.n) == (None, 8)
    assert await watching.look() == []


async def test_what_a_bad_rubric_said_counts_no_longer_once_the_rubric_is_rolled_back() -> None:
    """PC5 §5.7, step 5: live scores of two versions of a judge are never mixed."""
    watching = Watching(limits=WatchLimits(minimum=3))
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
    assert (end.event, end.breach.key) == (Event.RECOVERED, breach.breach.key)
    assert (end.breach.score, end.breach.n) == (5.0, 4)


async def test_scores_leave_the_window_and_one_worker_looks_at_a_time() -> None:
    watching = Watching()
    await watching.turns(8)
    other = watching.rig.world.store.lease(REGRESSION_LEASE.key(), SHORT_LEASE_MS)
    assert await other.acquire()
    assert await watching.look() == []
    await other.release()
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

    watching.rig.world.store.pools = away
    with pytest.raises(Unavailable):
        await watching.look()
    assert await watching.rig.world.store.lease(REGRESSION_LEASE.key(), SHORT_LEASE_MS).acquire()


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


@pytest.mark.parametrize("taken", [True, False])
async def test_a_worker_that_slept_in_its_look_overwrites_nothing_and_tries_again(taken: bool) -> None:
    """Its lease has ended meanwhile, and another worker may have looked: its scores are old."""
    watching = Watching()
    watching.rig.model = Worst()
    await watching.turns(8)
    world = watching.rig.world
    other, read = world.store.lease(REGRESSION_LEASE.key(), DAY, "another worker"), world.store.pools

    async def slow(keys: Any) -> Any:
        found = await read(keys)
        world.wait(HOUR)
        if taken:
            assert await other.acquire()
        return found

    world.store.pools = slow
    assert await watching.look() == []
    assert watching.pending == []
    assert await other.held() is taken, "its lease is its own to give back"
    world.store.pools = read
    await other.release()
    assert await watching.look() != []


async def test_a_worker_that_slept_before_it_sent_its_command_leaves_it_to_the_worker_that_looks_now() -> None:
    watching, asked = Watching(), []
    watching.rig.model = Worst()
    await watching.turns(8)
    carry_out = watching.carry_out

    async def slept(pending: PendingResponse, step: Step, ours: Ours) -> bool:
        if step is not Step.RAMP_DOWN:
            return await carry_out(pending, step, ours)
        asked.append(await ours())
        watching.rig.world.wait(2 * SHORT_LEASE_MS)
        asked.append(await ours())
        return False

    watching.carry_out = slept
    await watching.look()
    assert asked[:2] == [True, False]
    watching.carry_out = carry_out
    await watching.look()
    assert watching.steps()[-1] == (Step.RAMP_DOWN,)


def test_steps_that_an_earlier_release_left_undone_are_still_pending() -> None:
    """Earlier releases kept them under another name."""
    kept = Regressions()
    kept.note(only(seen(bad("honesty"))), 1_000, 500)
    current = json.loads(kept.encode())
    earlier = {"errands": current.pop("pending"), **current}
    assert kept.pending
    assert Regressions.decode(json.dumps(earlier).encode()) == Regressions.decode(kept.encode()) == kept
