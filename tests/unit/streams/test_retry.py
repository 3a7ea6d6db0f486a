"""What is tried again, after which pauses, and when it ends: on a clock that only sleeping moves."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from agents.ports import Unavailable
from streams.maintenance import compare
from streams.metrics import Metrics
from streams.retry import Retry, TryAgain, WallClock


class Calls:
    """A call that raises these errors in turn and then returns, with its pauses and what was noticed."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors, self.time = list(errors), 0.0
        self.tried = 0
        self.pauses: list[float] = []
        self.noticed: list[tuple[str, int]] = []

    async def call(self) -> str:
        self.tried += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    async def run(self, retry: Retry) -> str:
        return await retry.call(
            self.call,
            (TryAgain, OSError),
            noticed=lambda error, failures, pause: self.noticed.append((str(error), failures)),
            sleep=self.sleep,
            clock=lambda: self.time,
        )


def test_pauses_double_up_to_the_longest_and_are_spread_by_a_quarter() -> None:
    retry = Retry(first=0.2, longest=5.0)
    for failures, seconds in ((1, 0.2), (2, 0.4), (5, 3.2), (6, 5.0), (7, 5.0), (10_000, 5.0)):
        drawn = [retry.pause(failures) for _ in range(200)]
        assert 0.75 * seconds <= min(drawn) < seconds < max(drawn) <= 1.25 * seconds


def test_a_hint_is_waited_out_up_to_its_bound_and_never_shortens_a_pause() -> None:
    retry = Retry(first=1.0, longest=2.0, longest_hint=30.0)
    assert retry.pause(1, 7.0) == 7.0
    assert retry.pause(1, 1_000.0) == 30.0
    assert retry.pause(1, 0.001) >= 0.75


async def test_only_the_errors_that_are_named_are_tried_again() -> None:
    calls = Calls(TryAgain("busy"), OSError("gone"), KeyError("a bug"))
    with pytest.raises(KeyError):
        await calls.run(Retry())
    assert (calls.tried, calls.noticed) == (3, [("busy", 1), ("gone", 2)])


@pytest.mark.parametrize("tries", [1, 2, 4])
async def test_the_last_error_comes_out_after_so_many_tries(tries: int) -> None:
    calls = Calls(*[TryAgain(f"no. {number}") for number in range(1, 9)])
    with pytest.raises(TryAgain, match=f"no. {tries}"):
        await calls.run(Retry(tries=tries))
    assert (calls.tried, len(calls.pauses)) == (tries, tries - 1)


async def test_no_try_begins_after_its_time_unless_the_server_asked_for_it() -> None:
    calls = Calls(*[TryAgain("busy") for _ in range(99)])
    with pytest.raises(TryAgain):
        await calls.run(Retry(first=1.0, longest=1.0, seconds=5.0))
    assert calls.time <= 5.0
    assert calls.tried >= 4
    hinted = Calls(TryAgain("busy", 50.0))
    assert await hinted.run(Retry(seconds=5.0)) == "answer"
    assert hinted.pauses == [50.0]
    twice = Calls(TryAgain("busy", 50.0), TryAgain("busy", 50.0))
    with pytest.raises(TryAgain):
        await twice.run(Retry(seconds=5.0))


async def test_without_a_bound_it_goes_on_until_it_is_cancelled() -> None:
    calls = Calls(*[TryAgain("busy") for _ in range(500)])
    assert await calls.run(Retry()) == "answer"
    assert calls.tried == 501
    with pytest.raises(asyncio.CancelledError):
        await Calls(asyncio.CancelledError()).run(Retry())
    task = asyncio.create_task(Retry(first=60.0, longest=60.0).call(Calls(TryAgain("busy")).call, TryAgain))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# The worker's clock.


class Times:
    """Stands for the module `time`: `wall` in ms, `steady` in seconds."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_800_000_000_000, 500.0

    def time_ns(self) -> int:
        return self.wall * 1_000_000

    def monotonic(self) -> float:
        return self.steady

    def passes(self, seconds: float) -> None:
        self.wall += round(seconds * 1000)
        self.steady += seconds


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Times:
    made = Times()
    monkeypatch.setattr("streams.retry.time", made)
    monkeypatch.setattr("streams.maintenance.time", made)
    return made


def test_a_clock_that_was_never_compared_is_trusted(times: Times) -> None:
    clock = WallClock()
    assert (clock.trusted_ms(), clock.ahead_ms(), clock.doubt()) == (times.wall, 0, "")


@pytest.mark.parametrize(("ahead", "said"), [(61, "61 s ahead of"), (-61, "61 s behind"), (691_200, "691200 s ahead")])
def test_a_clock_that_disagrees_by_more_than_a_minute_is_not_trusted(times: Times, ahead: int, said: str) -> None:
    clock = WallClock()
    clock.compare(times.wall - ahead * 1_000, times.steady)
    assert said in clock.doubt()
    with pytest.raises(Unavailable, match=said):
        clock.trusted_ms()


@pytest.mark.parametrize("ahead", [-60, 0, 59, 60])
def test_a_minute_is_borne(times: Times, ahead: int) -> None:
    clock = WallClock()
    clock.compare(times.wall - ahead * 1_000, times.steady)
    times.passes(3600.0)
    assert clock.ahead_ms() == ahead * 1_000
    assert clock.trusted_ms() == times.wall


def test_a_clock_that_is_set_wrong_is_noticed_before_the_next_look_and_trusted_again_once_it_is_right(
    times: Times,
) -> None:
    clock = WallClock()
    clock.compare(times.wall, times.steady)
    times.passes(1.0)
    times.wall += 8 * 86_400_000
    with pytest.raises(Unavailable):
        clock.trusted_ms()
    times.wall -= 8 * 86_400_000
    assert clock.trusted_ms() == times.wall


async def test_looks_at_the_witness_are_shown_and_told_once(times: Times) -> None:
    class Witness:
        def __init__(self) -> None:
            self.behind = 0

        async def now_ms(self) -> int:
            times.passes(2.0)
            return times.wall - 1_000 - self.behind

    clock, witness, metrics = WallClock(), Witness(), Metrics()
    with capture_logs() as logs:
        await compare(clock, witness, metrics)
        assert metrics.registry.get_sample_value("rampgate_clock_ahead_seconds") == 0.0, "half the way is taken off"
        witness.behind = 90_000
        await compare(clock, witness, metrics)
        await compare(clock, witness, metrics)
        assert metrics.registry.get_sample_value("rampgate_clock_ahead_seconds") == 90.0
        witness.behind = 0
        await compare(clock, witness, metrics)
    assert [line["event"] for line in logs] == ["clock_doubtful", "clock_agrees"]
