"""Which letters are still to be replayed: not what came right by itself, nor what can't be; the reason is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stream.dead_letters.letter_rig import LetterRig, new_trace_id, now_ms, reroll, thumb, trace
from tests.stream.dead_letters.replay_rig import REROLL, THUMBS, listed, refused_turns


@pytest.fixture(autouse=True)
def _healed(letter_rig: LetterRig) -> Iterator[None]:
    yield
    letter_rig.opik.heal()


def test_a_signal_whose_trace_came_after_all_is_resolved_and_not_sent_again(letter_rig: LetterRig) -> None:
    rid, trace_id = f"late-{now_ms()}", new_trace_id()
    letter_rig.letters_of(letter_rig.put("thumbs", thumb(rid), key=b"item-7"))
    assert listed(letter_rig, "--key", rid)["letters"][0]["state"] == "open"
    letter_rig.put("traces", trace(rid, trace_id), key=rid.encode())
    letter_rig.in_opik(trace_id, rid)
    letter_rig.wait("written without a replay", lambda: letter_rig.held().get((trace_id, THUMBS)) == -1.0)
    (row,) = listed(letter_rig, "--key", rid)["letters"]
    assert (row["state"], row["cause"]) == ("resolved", "missing_trace")
    ran = letter_rig.command("replay", "--key", rid, "--json")
    assert (ran.code, ran.json["replayed"], ran.json["resolved"]) == (0, 0, 1)


def test_a_replayed_signal_looks_for_its_trace_anew(letter_rig: LetterRig) -> None:
    """No event told of the trace, but Opik has it by now."""
    rid, trace_id = f"found-{now_ms()}", new_trace_id()
    letter_rig.letters_of(letter_rig.put("rerolls", reroll(rid), key=rid.encode()))
    letter_rig.in_opik(trace_id, rid)
    assert letter_rig.command("replay", "--key", rid, "--json").json["replayed"] == 1
    letter_rig.wait("the score", lambda: letter_rig.held().get((trace_id, REROLL)) == 1.0)


def test_a_newer_thumb_makes_an_older_letter_moot(letter_rig: LetterRig) -> None:
    (rid, trace_id), *_ = refused_turns(letter_rig, f"moot{now_ms()}", 1)[0].items()
    letter_rig.put("thumbs", thumb(rid, "up", event_id="newer"), key=rid.encode())
    letter_rig.wait("the newer one", lambda: letter_rig.held().get((trace_id, THUMBS)) == 1.0)
    (row,) = listed(letter_rig, "--key", rid, "--topic", "thumbs")["letters"]
    assert (row["state"], row["why"]) == ("resolved", "a newer thumb stands")


def test_what_can_not_be_replayed_is_refused_with_the_reason(letter_rig: LetterRig) -> None:
    """Letters that were cut, that stand for lost records, from this very topic, from unknown ones, from strangers."""
    whole = {"cause": b"malformed", "attempts": b"1", "replay-id": b"6f6f6a0e-6f2c-5d1e-9a37-2b1f6a0c9d11"}
    whole |= {"topic": letter_rig.prefix.encode() + b"thumbs", "partition": b"0", "offset": b"0", "timestamp": b"5"}
    strange: dict[str, dict[str, bytes]] = {
        "too large": whole | {"original-length": b"5000000"},
        "dead-letter topic itself": whole | {"topic": letter_rig.prefix.encode() + b"dead-letters"},
        "none of the topics": whole | {"topic": b"\x1b[31mother"},
        "not written by a worker": {"topic": whole["topic"]},
        "dropped the record already": whole | {"timestamp": b"0"},
    }
    for name, headers in strange.items():
        ours = [("rampgate." + key, value) for key, value in headers.items()]
        value = None if "dropped" in name else name.encode()
        letter_rig.put("dead-letters", value, key=b"strange", headers=ours)
    ran = letter_rig.command("replay", "--key", "strange", "--json")
    assert (ran.code, ran.json["replayed"], ran.json["refused_total"]) == (1, 0, 5)
    for name, row in zip(strange, ran.json["refused"], strict=True):
        assert name in row["why"]
        assert row["state"] == "not replayable"
    text = letter_rig.command("list", "--key", "strange").out + letter_rig.command("replay", "--key", "strange").out
    assert b"\x1b" not in text
    shown = letter_rig.command("show", ran.json["refused"][3]["place"])
    assert b"header rampgate.cause is missing" in b" ".join(shown.out.split())
