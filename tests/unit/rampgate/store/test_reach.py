"""A store that nobody answered at is left alone for a while, and then asked again."""

from __future__ import annotations

import pytest

from agents.ports import Unavailable
from rampgate.store.s3_objects import AWAY_SECONDS, Reach


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_it_is_asked_again_when_the_time_is_over() -> None:
    clock = Clock()
    reach = Reach("redis://here", clock)
    reach.check()
    assert str(reach.lost("no answer")) == "the store redis://here can't be used: no answer"
    clock.now += AWAY_SECONDS - 0.1
    with pytest.raises(Unavailable, match="no answer"):
        reach.check()
    clock.now += 0.2
    reach.check()


def test_another_loss_begins_the_time_anew() -> None:
    clock = Clock()
    reach = Reach("redis://here", clock)
    reach.lost("no answer")
    clock.now += AWAY_SECONDS
    reach.lost("none again")
    clock.now += AWAY_SECONDS - 0.1
    with pytest.raises(Unavailable, match="none again"):
        reach.check()
