"""The rules for trying again, on a clock of its own: by the server's hints, within bounds, never for a refusal."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.ports import Unauthorized
from streams.opik.client import LONGEST_PAUSE, ApiError, OutOfTries, hint, persist, reason

SAID = "score name canary words of a user is not valid"


class Script:
    """A call that gives these answers in turn (the last for ever), a clock that only sleeping moves, and a record."""

    def __init__(self, *answers: Any, took: float = 0.0) -> None:
        self.answers, self.took = list(answers), took
        self.time, self.pauses, self.calls, self.seen = 1_000.0, [], 0, []

    async def call(self) -> Any:
        self.calls += 1
        self.time += self.took
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.time += seconds

    async def run(self, seconds: float) -> Any:
        return await persist(
            self.call, seconds=seconds, observe=self.seen.append, sleep=self.sleep, now=lambda: self.time
        )


def refused(status: int, body: Any = "no", **headers: str) -> ApiError:
    return ApiError(status_code=status, body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


async def test_an_answer_comes_at_once() -> None:
    script = Script("answer")
    assert await script.run(10) == "answer"
    assert (script.pauses, script.seen) == ([], ["ok"])


@pytest.mark.parametrize("status", [400, 402, 404, 409, 413, 422, 501])
async def test_a_refusal_is_not_tried_again(status: int) -> None:
    script = Script(refused(status))
    with pytest.raises(ApiError):
        await script.run(10)
    assert (script.calls, script.seen) == (1, ["rejected"])


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_unauthorized_at_once_and_says_which_setting(status: int) -> None:
    script = Script(refused(status, {"code": status, "message": "the key is not valid"}))
    with pytest.raises(Unauthorized, match=r"the key is not valid.*RAMPGATE_OPIK_API_KEY"):
        await script.run(10)
    assert (script.calls, script.seen) == (1, ["unauthorized"])


@pytest.mark.parametrize(
    "trouble",
    [refused(408), refused(425), refused(429), refused(500), refused(503), httpx.ConnectError("x"), OSError("x")],
)
async def test_what_may_pass_is_tried_again(trouble: Exception) -> None:
    script = Script(trouble, trouble, "answer")
    assert await script.run(60) == "answer"
    assert script.calls == 3
    assert len(script.seen) == 3


async def test_what_is_our_own_mistake_comes_out_as_it_is() -> None:
    with pytest.raises(TypeError):
        await Script(TypeError("a bug")).run(60)


async def test_pauses_without_a_hint_double_up_to_a_limit_and_are_spread() -> None:
    for _ in range(30):
        script = Script(*[refused(503)] * 9, "answer")
        await script.run(1_000)
        for attempt, pause in enumerate(script.pauses):
            base = min(0.2 * 2**attempt, 10.0)
            assert 0.75 * base <= pause <= 1.25 * base
    firsts = set()
    for _ in range(20):
        script = Script(refused(503), "answer")
        await script.run(1_000)
        firsts.add(script.pauses[0])
    assert len(firsts) > 10, "many workers must not come back at the same moment"


async def test_it_gives_up_in_time_and_says_what_came_last() -> None:
    script = Script(refused(500, "first"), refused(503, {"message": "still starting"}))
    with pytest.raises(OutOfTries, match="503: still starting"):
        await script.run(5)
    assert sum(script.pauses) <= 5
    assert script.calls > 3
    assert "ok" not in script.seen


async def test_zero_seconds_is_one_try() -> None:
    script = Script(refused(503))
    with pytest.raises(OutOfTries):
        await script.run(0)
    assert (script.calls, script.pauses) == (1, [])


async def test_the_time_that_calls_take_counts() -> None:
    script = Script(httpx.ReadTimeout("slow"), took=10.0)
    with pytest.raises(OutOfTries, match="ReadTimeout"):
        await script.run(25)
    assert script.calls == 3


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"RateLimit_Reset": "31"}, 31.0),
        ({"X_RateLimit_Reset": "3"}, 3.0),
        ({"Opik_Workspace_Remaining_Limit": "0", "Opik_Workspace_Remaining_Limit_TTL_Millis": "2500"}, 2.5),
        ({"Opik_User_Remaining_Limit": "0", "Opik_User_Remaining_Limit_Ttl_Millis": "999000"}, LONGEST_PAUSE),
        ({"Retry_After": "100000"}, LONGEST_PAUSE),
    ],
)
async def test_a_hint_is_kept_to_the_letter(headers: dict[str, str], pause: float) -> None:
    script = Script(refused(429, **headers), "answer")
    assert await script.run(120) == "answer"
    assert script.pauses == [pause]
    assert script.seen == ["rate_limited", "ok"]


async def test_of_two_empty_buckets_the_later_one_counts_and_a_full_one_does_not() -> None:
    name = "opik-{}-remaining-limit"
    headers = {
        name.format("a"): "0",
        name.format("a") + "-ttl-millis": "2000",
        name.format("b"): "0",
        name.format("b") + "-ttl-millis": "4000",
        name.format("c"): "17",
        name.format("c") + "-ttl-millis": "50000",
    }
    assert hint(headers) == 4.0


@pytest.mark.parametrize("value", ["Wed, 21 Oct 2026 07:28:00 GMT", "", "soon", "-5", "nan", "1e9", "²", "1.2.3"])
def test_a_hint_that_is_no_number_of_seconds_is_none(value: str) -> None:
    assert hint({"Retry-After": value}) == 0.0


@given(
    st.dictionaries(st.text(max_size=40) | st.sampled_from(["Retry-After", "x-remaining-limit-ttl-millis"]), st.text())
)
def test_no_header_can_break_it(headers: dict[str, str]) -> None:
    assert 0.0 <= hint(headers) <= LONGEST_PAUSE


async def test_a_hint_that_ends_after_the_deadline_is_waited_out_once() -> None:
    """Opik's limits are reset by the minute; to give up before would dead-letter batches for a moment's haste."""
    script = Script(refused(429, Retry_After="50"), "answer")
    assert await script.run(10) == "answer"
    script = Script(refused(429, Retry_After="50"))
    with pytest.raises(OutOfTries):
        await script.run(10)
    assert script.pauses == [50.0]
    assert script.time - 1_000.0 <= 10 + LONGEST_PAUSE


async def test_a_cancelled_call_is_not_tried_again() -> None:
    script = Script(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        await script.run(10)
    assert script.calls == 1


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"errors": ["invalid id", "missing name"]}, "invalid id; missing name"),
        ({"code": 400, "message": "bad"}, "bad"),
        ({"other": 1}, "no reason"),
        ("wrong", "wrong"),
        (None, "no reason"),
        ("bad " * 1_000, ("bad " * 50)[:199] + "…"),
    ],
)
def test_opiks_words_are_found_in_any_shape_of_error(body: Any, words: str) -> None:
    assert reason(refused(400, body)) == words


@pytest.mark.parametrize("body", [{"errors": [SAID]}, {"message": SAID}, {SAID: SAID}, SAID, [SAID]])
def test_what_opik_quotes_of_a_request_is_not_shown(body: Any) -> None:
    """Opik names the score, the project or the reason that it refuses; each may hold what a user said."""
    error = refused(400, body)
    for text in (reason(error), str(error), repr(error)):
        assert "canary" not in text
