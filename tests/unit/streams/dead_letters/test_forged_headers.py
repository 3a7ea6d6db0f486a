"""Our headers count only with our seal: a producer that makes them up neither passes the guard against bad records nor
makes its dead letters unreplayable, and a letter goes only to a topic of ours."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.keys import FOREVER, SEAL_KEY
from agents.ports import Unavailable
from rampgate.commands.dead_letters import agreed_seal, seal_of
from rampgate.console import Failure
from schemas.dead_letter_answers import DeadLetterState, StoredDeadLetter, parse_dead_letter
from schemas.dead_letters import ATTEMPTS, KEYLESS, MAC, REPLAY_ID, DeadLetter, sealed_over
from schemas.outcomes import Cause, Kind
from schemas.seals import Seal
from streams.dead_letters.states import UNSEALED, refusal, status_of
from streams.redis import seal_key
from streams.redis.seal_key import InstallationSeal
from tests.memory_ports import ManualClock, MemoryStore
from tests.unit.agents.builders import NOW, Rec
from tests.unit.agents.join.world import World
from tests.unit.streams.dead_letters.settling import settle

OURS, THEIRS = Seal(b"ours"), Seal(b"theirs")
NAME = "6f6f6a0e-6f2c-5d1e-9a37-2b1f6a0c9d11"
TOPICS = World().topics


def headers(name: str = NAME, attempts: int = 1, mac: bytes | None = None) -> list[tuple[str, bytes]]:
    seal = [(MAC, mac)] if mac is not None else []
    return [*seal, (ATTEMPTS, str(attempts).encode()), (REPLAY_ID, name.encode())]


def stored(seal: Seal, record: Rec) -> Rec:
    """The dead letter of a record, as it lies in its topic."""
    key, value, kept = DeadLetter(record, Cause.MALFORMED, "why", "thumbs.decode", NOW).encode(1_000_000, seal)
    return Rec(value, "rampgate.dead-letters", 0, 0, NOW, key, tuple(kept))


def refused(letter: StoredDeadLetter) -> str:
    status = refusal(letter, TOPICS)
    return status.why if status is not None else ""


@pytest.mark.parametrize(
    "mac", [None, b"", b"0" * 64, THEIRS.of(sealed_over("rampgate.thumbs", b"key", b"{bad", NAME, 1)).encode()]
)
async def test_forged_replay_ids_do_not_pass_the_guard(mac: bytes | None) -> None:
    world = World()
    for number in range(10):
        world.send(Kind.THUMBS, b"{bad", headers=headers(str(uuid.UUID(int=number)), mac=mac))
    (why,) = await settle(world, limit=10)
    assert "10 records in a row" in why
    assert world.letters.letters == []


async def test_copies_of_one_replayed_record_do_not_pass_the_guard() -> None:
    """Who may read the topic can copy a seal, yet only with the record that it belongs to."""
    world = World()
    mac = KEYLESS.of(sealed_over("rampgate.thumbs", b"key", b"{bad", NAME, 1)).encode()
    world.send(Kind.THUMBS, *[b"{bad"] * 11, headers=headers(mac=mac))
    assert len(await settle(world, limit=10)) == 1


@pytest.mark.parametrize("attempts", [4, 999_999])
def test_forged_attempts_leave_a_letter_replayable(attempts: int) -> None:
    letter = parse_dead_letter(stored(OURS, Rec(b"{bad", headers=tuple(headers(attempts=attempts)))), OURS)
    assert (letter.attempts, letter.sealed, refused(letter)) == (1, True, "")
    assert letter.replay_id != NAME, "nor does it take the name of another record"


def test_what_we_replayed_keeps_its_name_and_attempts() -> None:
    first = parse_dead_letter(stored(OURS, Rec(b"{bad", offset=3)), OURS)
    again = Rec(first.record.value, first.topic, 0, 99, NOW, first.record.key, tuple(first.replay_headers))
    second = parse_dead_letter(stored(OURS, again), OURS)
    assert (second.replay_id, second.attempts, second.sealed) == (first.replay_id, 2, True)


def test_a_letter_under_another_key_counts_as_one_that_never_failed_and_stays_replayable() -> None:
    old = stored(THEIRS, Rec(b"{bad"))
    letter = parse_dead_letter(old, OURS)
    assert (letter.attempts, letter.sealed, refused(letter)) == (0, False, "")
    status = status_of(letter, None, None, {}, "")
    assert (status.state, status.why) == (DeadLetterState.OPEN, UNSEALED)
    again = Rec(letter.record.value, letter.topic, 0, 99, NOW, letter.record.key, tuple(letter.replay_headers))
    failed = parse_dead_letter(stored(OURS, again), OURS)
    assert (failed.replay_id, failed.attempts, failed.sealed) == (letter.replay_id, 1, True)


def test_a_letter_of_before_there_were_seals_stays_replayable() -> None:
    record = stored(OURS, Rec(b"{bad"))
    without = Rec(
        record.value, record.topic, headers=tuple(pair for pair in record.headers if pair[0] != MAC), key=record.key
    )
    letter = parse_dead_letter(without, OURS)
    assert (letter.attempts, letter.sealed, refused(letter)) == (0, False, "")


@pytest.mark.parametrize(
    ("topic", "why"),
    [("rampgate.verdicts", "none of the topics"), ("payments", "none of the topics"), ("rampgate.traces", "")],
)
def test_a_letter_that_names_another_topic_loses_its_seal_and_goes_only_to_topics_of_ours(topic: str, why: str) -> None:
    record = stored(OURS, Rec(b"{bad"))
    moved = tuple((name, topic.encode() if name == "rampgate.topic" else held) for name, held in record.headers)
    letter = parse_dead_letter(Rec(record.value, record.topic, headers=moved, key=record.key), OURS)
    assert not letter.sealed
    assert why in refused(letter)
    assert bool(why) == bool(refused(letter))


@given(st.integers(0, 4), st.binary(max_size=20), st.binary(max_size=20))
def test_a_seal_holds_for_one_record_alone(changed: int, one: bytes, other: bytes) -> None:
    def made(value: bytes, seal: Seal = OURS) -> bytes:
        parts: list[Any] = ["t", b"k", b"v", "n", 1]
        parts[changed] = value.hex() if changed in (0, 3) else int.from_bytes(value, "big") if changed == 4 else value
        return seal.of(sealed_over(*parts)).encode()

    same = int.from_bytes(one, "big") == int.from_bytes(other, "big") if changed == 4 else one == other
    assert (made(one) == made(other)) == same
    assert made(one) != made(one, THEIRS)


def test_parts_can_not_be_shifted_into_one_another() -> None:
    assert sealed_over("ab", b"c", b"", "n", 1) != sealed_over("a", b"bc", b"", "n", 1)
    assert sealed_over("a", None, b"", "n", 1) != sealed_over("a", b"", None, "n", 1)


# The key.


async def test_all_processes_get_one_key_and_an_emptied_redis_gets_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal_key, "FRESH_SECONDS", 0.0)
    store = MemoryStore(ManualClock())
    first, second = InstallationSeal(store, None), InstallationSeal(store, None)
    seal = await first()
    assert len(seal.secret) == 32
    assert (await second()) == seal
    store.flush()
    assert (await second()) == seal
    assert store.values[SEAL_KEY.key()] == (seal.secret, FOREVER)
    store.values[SEAL_KEY.key()] = (b"replaced", FOREVER)
    assert (await first()).secret == b"replaced"


async def test_the_key_of_the_settings_needs_no_redis_and_is_not_put_there() -> None:
    store = MemoryStore(ManualClock())
    assert (await InstallationSeal(store, "a secret")()).secret == b"a secret"
    assert store.values == {}
    assert "secret" not in repr(Seal(b"a secret"))


async def test_workers_that_seal_with_two_keys_notice_it_and_those_with_one_do_not() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    first, second, odd = (InstallationSeal(store, key) for key in ("ours", "ours", "theirs"))
    assert [await one.announce(clock.ms) for one in (first, second)] == [False, False]
    assert [await one.announce(clock.ms) for one in (first, second)] == [False, False]
    assert [await one.announce(clock.ms) for one in (odd, first, second)] == [True, True, False]
    assert not any(b"ours" in held or b"theirs" in held for held, _ in store.values.values())


async def test_a_worker_with_a_key_and_one_without_notice_it() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    assert not await InstallationSeal(store, None).announce(clock.ms)
    assert await InstallationSeal(store, "ours").announce(clock.ms)


async def test_after_a_rotation_the_new_key_is_in_use_as_soon_as_a_worker_has_it() -> None:
    """A replay minutes later is one with the right key; with the key of before it is refused."""
    clock = ManualClock()
    store = MemoryStore(clock)
    old, new = InstallationSeal(store, "old"), InstallationSeal(store, "new")
    assert not await old.announce(clock.ms)
    clock.ms += 1_000  # the workers are started again with the new key
    assert await new.announce(clock.ms), "said once: another may still run with the old one"
    assert [await one.differs() for one in (old, new)] == [True, False]
    parts: Any = SimpleNamespace(topics=TOPICS, sealing=InstallationSeal(store, "new"))
    assert (await agreed_seal(parts)).secret == b"new"
    clock.ms += 60_000
    assert not await new.announce(clock.ms), "the old one is gone"


async def test_a_worker_that_has_kept_the_old_key_is_noticed_for_as_long_as_it_runs() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    old, new = InstallationSeal(store, "old"), InstallationSeal(store, "new")
    await old.announce(clock.ms)
    for _ in range(10):
        clock.ms += 60_000
        assert [await new.announce(clock.ms), await old.announce(clock.ms)] == [True, True]


async def test_a_replay_with_another_key_than_the_workers_have_is_refused() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    ours, theirs = InstallationSeal(store, "ours"), InstallationSeal(store, "theirs")
    assert not await theirs.differs(), "no worker is there to differ from"
    await ours.announce(clock.ms)
    assert [await one.differs() for one in (ours, theirs)] == [False, True]
    parts: Any = SimpleNamespace(topics=TOPICS, sealing=theirs)
    with pytest.raises(Failure, match="RAMPGATE_SEAL_KEY"):
        await agreed_seal(parts)
    parts.sealing = ours
    assert (await agreed_seal(parts)).secret == b"ours"


async def test_letters_are_listed_where_the_key_can_not_be_had() -> None:
    async def gone() -> Seal:
        raise Unavailable("NOPERM")

    parts: Any = SimpleNamespace(settings=SimpleNamespace(seal_key=None), sealing=gone)
    assert await seal_of(parts, redis=True) is None
    assert await seal_of(parts, redis=False) is None
