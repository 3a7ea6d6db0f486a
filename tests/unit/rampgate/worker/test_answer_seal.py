"""What seals kept answers: a secret that an installation's workers have and Redis has not."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from rampgate.settings import Settings
from rampgate.worker.gates import INPUT, OUTPUT, answer_seal, kept_seal
from schemas.dead_letters import Seal

FIRST, SECOND = "1" * 16, "2" * 16
MODEL = "https://models.example/v1"


@pytest.mark.parametrize("name", ["seal_key", "model_key"])
def test_workers_with_the_same_key_go_by_one_anothers_answers(name: str) -> None:
    one, other, stranger = (
        answer_seal(Settings.model_validate({"model_url": MODEL, name: key})) for key in (FIRST, FIRST, SECOND)
    )
    sealed = one.sealed("question", b"4")
    assert other.opened("question", sealed) == b"4"
    assert other.opened("another question", sealed) is None
    assert stranger.opened("question", sealed) is None


def test_the_seal_key_counts_where_both_are_given() -> None:
    """So that workers with model keys of their own go by one another's answers too."""
    keys = [{"seal_key": "s" * 16, "model_key": key} for key in (FIRST, SECOND)]
    one, other = (answer_seal(Settings.model_validate({"model_url": MODEL, **given})) for given in keys)
    assert other.opened("question", one.sealed("question", b"4")) == b"4"


@pytest.mark.parametrize(("url", "level"), [(MODEL, "warning"), ("http://127.0.0.1:8400/v1", "info")])
def test_without_one_a_worker_trusts_only_its_own_answers_and_says_so(url: str, level: str) -> None:
    with capture_logs() as lines:
        ours, others = (answer_seal(Settings(model_url=url)) for _ in range(2))
    sealed = ours.sealed("question", b"4")
    assert ours.opened("question", sealed) == b"4"
    assert others.opened("question", sealed) is None
    told = [(line["event"], line["log_level"]) for line in lines]
    assert told == [("judge_answers_not_shared", level)] * 2
    assert "RAMPGATE_SEAL_KEY" in lines[0]["remedy"]


async def test_what_gates_keep_and_can_not_ask_for_again_is_opened_after_a_restart_also_without_a_secret() -> None:
    async def installation() -> Seal:
        return Seal(b"of the installation")

    for given in ({}, {"seal_key": FIRST}):
        settings = Settings.model_validate({"model_url": MODEL, **given})
        before, after, others = [
            await kept_seal(settings, installation, purpose)() for purpose in (INPUT, INPUT, OUTPUT)
        ]
        sealed = before.sealed("q:1", b"{}")
        assert after.opened("q:1", sealed) == b"{}"
        assert others.opened("q:1", sealed) is None, "an input is no output"
