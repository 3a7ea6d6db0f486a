"""Says whether a dead letter is open, replayed, resolved by what came later, or not replayable; and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from agents.codec import Decoded, SignalEvent, TraceFacts
from agents.join.batches import Agent
from agents.join.turn import Mark, Signal, Turn, decode_turn
from agents.keys import turn_keys
from agents.live.judging import STAGE
from agents.policy import Policy
from agents.ports import Clock, Store
from schemas.dead_letter_answers import DeadLetterState, StoredDeadLetter
from schemas.dead_letters import CUTS, FIRST_OFFSET
from schemas.outcomes import Cause
from schemas.signals import MergeRule, UserSignal
from schemas.topics import Topics, consumed
from streams.dead_letters.replay_ledger import ReplayLedger

UNSEALED = "our seal is missing: it is older than the key in use, or no worker wrote it"


class Status(NamedTuple):
    """A dead letter's state, and why it is in it."""

    state: DeadLetterState
    why: str = ""


@dataclass(eq=False, repr=False)
class DeadLetterStates:
    """Asks the replay ledger and the turns. `agents`: consumed topic (without prefix) -> its agent, for the codec.

    Without a store, while Redis is out of reach, it says what the dead letter alone tells.
    """

    topics: Topics
    agents: Mapping[str, Agent]
    policy: Policy
    clock: Clock
    store: Store | None
    ledger: ReplayLedger | None

    def __post_init__(self) -> None:
        self._agents = {self.topics[name]: agent for name, agent in self.agents.items()}

    async def of(self, letters: Sequence[StoredDeadLetter]) -> list[Status]:
        """The status of each dead letter, in order. Raises Unavailable."""
        now = self.clock.now_ms()
        out = [refusal(letter, self.topics) for letter in letters]
        asked = [index for index, status in enumerate(out) if status is None]
        decoded = {index: self._decode(letters[index], now) for index in asked}
        response_ids = list({item.response_id for one in decoded.values() if one for item in one.items})
        turns: dict[str, Turn] = {}
        if self.store is not None and response_ids:
            stored = await self.store.read(turn_keys(response_ids))
            turns = {
                response_id: decode_turn(encoded)
                for response_id, encoded in zip(response_ids, stored, strict=True)
                if encoded
            }
        places = [""] * len(asked)
        if self.ledger is not None:
            places = await self.ledger.replayed([letters[index].identity for index in asked])
        for index, place in zip(asked, places, strict=True):
            letter = letters[index]
            out[index] = status_of(letter, self._agents.get(letter.topic), decoded[index], turns, place)
        return [status or Status(DeadLetterState.OPEN) for status in out]

    def _decode(self, letter: StoredDeadLetter, now: int) -> Decoded[Any] | None:
        agent = self._agents.get(letter.topic)
        return agent.decode([letter.record], now, self.policy) if agent is not None else None


def refusal(letter: StoredDeadLetter, topics: Topics) -> Status | None:
    """Why a dead letter can't be replayed whatever the state says; None where it can be."""
    why = ""
    if FIRST_OFFSET in letter.cut:
        why = "it has the bytes of a batch that could not be read, and no record"
    elif letter.cut:
        parts = [name.removeprefix("rampgate.") for name in letter.cut if name in CUTS]
        why = f"it was too large to keep whole ({', '.join(parts)})"
    elif letter.topic == topics["dead-letters"]:
        why = "it came from the dead-letter topic itself"
    elif letter.lost:
        why = "Kafka had dropped the record already; only its key is known"
    elif letter.topic not in {topics[name] for name in consumed()}:
        why = f"{letter.topic or 'no topic'} is none of the topics that are consumed under the prefix {topics.prefix}"
    elif not letter.replay_id:
        why = "its header rampgate.replay-id is missing: it was not written by a worker"
    return Status(DeadLetterState.NOT_REPLAYABLE, why) if why else None


def status_of(
    letter: StoredDeadLetter, agent: Agent | None, decoded: Decoded[Any] | None, turns: Mapping[str, Turn], place: str
) -> Status:
    """The status of a dead letter that can be replayed. `place`: where the ledger says that it was republished."""
    items = decoded.items if decoded else []
    signal = agent.signal if agent is not None else None
    resolutions = [resolution(item, signal, turns.get(item.response_id), letter.cause) for item in items]
    # The turn tells what the join has done; what live judging owes it does not show.
    if letter.stage != STAGE and resolutions and all(resolutions):
        return Status(DeadLetterState.RESOLVED, resolutions[0])
    if place:
        return Status(DeadLetterState.REPLAYED, f"as {place}")
    if decoded and decoded.dropped and not items:
        why = f"it would be filtered now: {decoded.dropped[0].reason.value}"
        return Status(DeadLetterState.NOT_REPLAYABLE, why)
    if decoded and decoded.bad:
        detail = decoded.bad[0].detail
        return Status(DeadLetterState.OPEN, "it would fail again" + ("" if detail == letter.detail else f": {detail}"))
    return Status(DeadLetterState.OPEN, "" if letter.sealed else UNSEALED)


def resolution(
    item: SignalEvent | TraceFacts, declared: UserSignal | None, turn: Turn | None, cause: Cause | None
) -> str:
    """How the turn already has what this event asked for, or something newer; "" where it has neither."""
    if turn is None:
        return ""
    if isinstance(item, TraceFacts):
        # A score that Opik refused for a trace belongs to a reroll found through it, maybe of another turn.
        refused = cause in (Cause.OPIK_REJECTED, Cause.OPIK_UNAVAILABLE)
        known = bool(turn.trace) and (turn.trace == item.trace or turn.time > item.ended)
        return "the turn has its trace" if known and not refused else ""
    now = turn.signal(declared.kind) if declared is not None else None
    if declared is None or now is None:
        return ""
    newer_stands = f"a newer {declared.name} stands"
    if declared.rule is MergeRule.ONCE:
        return resolution_of_same(now, declared.name)
    if item.observed:
        newer = now.value != item.value and now.time + now.asof > item.observed
        return newer_stands if newer else resolution_of_same(now, declared.name) if now.value == item.value else ""
    signal = Signal(item.value, item.time, item.seq, tie=item.tie)
    if signal.same_version(now):
        return resolution_of_same(now, declared.name)
    return "" if signal.newer_than(now) else newer_stands


def resolution_of_same(signal: Signal, name: str) -> str:
    if signal.mark == Mark.DONE:
        return f"the turn's {name} is settled"
    return f"the turn's {name} is withheld until writing is on" if signal.mark == Mark.WITHHELD else ""
