"""A hostile day: rounds of seeded faults under load, and after each the ledger."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.fault.hostile_day.load import Load
from tests.fault.hostile_day.parts import Parts
from tests.fault.hostile_day.schedule import LEADERS, LOSSES, Fault, schedule
from tests.fault.ledger.claims import conservation, false_claims
from tests.fault.ledger.kafka_log import KafkaLog
from tests.fault.ledger.ledger import Found, differences, look

Action = Callable[[], None]
REST_SECONDS = 1.5
"""The ledger is exact at two looks so far apart, or it is not."""
TELL_SECONDS = 20.0
REMEMBER = 4
"""A copy of Redis is kept before every so many faults."""


@dataclass
class Plan:
    """`round_faults` strike before each look at the ledger, and after `rounds_a_stream` rounds the topics begin again,
    since a rebuild reads all of them. A round that is not exact after `patience` seconds of quiet has failed."""

    seed: int
    faults: int
    round_faults: int = 40
    rounds_a_stream: int = 2
    per_second: float = 120.0
    patience: float = 150.0
    nodes: int = 3
    without: tuple[str, ...] = ()
    """Kinds of faults that are left out."""
    say: Callable[[str], None] = print


@dataclass
class Outcome:
    """What a day came to: `wrong` has a line for each difference, with its round's seed."""

    wrong: list[str] = field(default_factory=list)
    struck: Counter[str] = field(default_factory=Counter)
    ended: list[str] = field(default_factory=list)
    records: int = 0


class Strikes:
    """Does each fault at its time, and ends it at its time; others may begin in between."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._ends: list[tuple[float, int, Action]] = []
        self._number = itertools.count()

    def strike(self, fault: Fault) -> None:
        self._wait(time.monotonic() + fault.after)
        if fault.number % REMEMBER == 0:
            self._parts.remember()
        end = self._begin(fault)
        if end is not None:
            heapq.heappush(self._ends, (time.monotonic() + fault.seconds, next(self._number), end))

    def finish(self) -> None:
        """Wait for the ends of all that were begun."""
        while self._ends:
            self._wait(self._ends[0][0])

    def _wait(self, until: float) -> None:
        while self._ends and self._ends[0][0] <= until:
            at, _, end = heapq.heappop(self._ends)
            time.sleep(max(0.0, at - time.monotonic()))
            end()
        time.sleep(max(0.0, until - time.monotonic()))
        self._parts.supervise()

    def _begin(self, fault: Fault) -> Action | None:
        """What ends it; None where nothing has to."""
        parts = self._parts
        number = parts.victim(fault.whom)
        proxies = {"Redis": parts.redis_proxy, "Opik": parts.opik_proxy}
        proxies["Kafka"] = parts.kafka_proxies[fault.whom % len(parts.kafka_proxies)]
        match fault.kind.split(" ", 1):
            case ["kill", "a worker"]:
                parts.kill(number)
            case ["restart", _]:
                parts.restart(number)
            case ["kill", _]:
                parts.replace_redis(empty=True, away=fault.seconds)
            case ["stop", "Redis"]:
                parts.redis_server.pause()
                return parts.redis_server.resume
            case ["stop", how]:
                parts.pause(number)
                return lambda: parts.kill(number) if "kill" in how else parts.resume(number)
            case ["empty", _]:
                parts.redis_server.resume()
                parts.state.flushall()
            case ["put", _]:
                parts.replace_redis(empty=False)
            case ["change", _]:
                parts.leave(fault.whom % len(parts.kafka.nodes))
                return parts.come_back
            case ["move", _]:
                parts.prefer_leaders()
            case ["cut", whom]:
                proxies[whom].cut()
            case ["delay", whom]:
                proxies[whom].delay(0.05 if whom == "Redis" else 0.3)
                return proxies[whom].heal
            case ["refuse", whom]:
                proxies[whom].refuse()
                return proxies[whom].heal
            case ["Opik", how]:
                parts.late.be("late" if "late" in how else "refuse", fault.late)
                return lambda: parts.late.be("pass")
            case other:
                raise ValueError(f"no such fault: {other}")
        return None


def run(plan: Plan, folder: Path, configs: Path) -> Outcome:
    """Runs it whole, also where a round fails: the next stream begins again."""
    outcome = Outcome()
    plan.say(
        f"seed {plan.seed}: {plan.faults} faults, {plan.round_faults} a round, {plan.per_second:g} records a second"
    )
    without = plan.without if plan.nodes > 2 else (*plan.without, *LEADERS)
    faults = schedule(plan.seed, plan.faults, without)
    with Parts(folder, configs, plan.nodes) as parts:
        rounds = range(-(-plan.faults // plan.round_faults))
        for first in rounds[:: plan.rounds_a_stream]:
            numbers = rounds[first : first + plan.rounds_a_stream]
            _stream(plan, parts, faults, numbers, outcome)
        outcome.ended = parts.ended
    return outcome


def _stream(plan: Plan, parts: Parts, faults: Iterator[Fault], numbers: range, outcome: Outcome) -> None:
    prefix = f"day{plan.seed}-{numbers[0]}."
    parts.new_stream(prefix)
    load = Load(parts.kafka.bootstrap, parts.opik, prefix, plan.seed * 1_000 + numbers[0], plan.per_second)
    log = KafkaLog(parts.kafka.bootstrap, prefix, 4)
    load.start()
    failed = False
    for number in numbers:
        strikes, began = Strikes(parts), time.monotonic()
        load.go()
        kinds = []
        for fault in itertools.islice(faults, plan.round_faults):
            if not failed:
                outcome.struck[fault.kind] += 1
                kinds.append(str(fault))
                strikes.strike(fault)
        if failed:
            plan.say(f"seed {plan.seed}, round {number}: left out, since the stream is not exact")
            continue
        strikes.finish()
        parts.heal()
        load.rest()
        quiet = time.monotonic()
        lossy = not LOSSES.isdisjoint(outcome.struck)
        left, found = _settle(plan, parts, log, load, lossy=lossy)
        if not left:
            load.ask_of_all(number)
            left, found = _settle(plan, parts, log, load, lossy=lossy)
        took = f"{quiet - began:.0f} s of faults, exact after {time.monotonic() - quiet:.1f} s"
        if left:
            failed = True
            outcome.wrong += [f"seed {plan.seed}, round {number}: {line}" for line in left]
            plan.say(f"seed {plan.seed}, round {number}: NOT EXACT, {len(left)} differences; {'; '.join(kinds)}")
            for line in left[:10]:
                plan.say(f"    {line}")
        elif found is not None:
            plan.say(f"seed {plan.seed}, round {number}: exact; {found.summary}; {len(kinds)} faults; {took}")
    load.end()
    outcome.records += load.sent.total()


def _settle(plan: Plan, parts: Parts, log: KafkaLog, load: Load, *, lossy: bool) -> tuple[list[str], Found | None]:
    """What still differs after the plan's patience; nothing once two looks in a row were exact. `lossy`: Redis has lost
    something on this day."""
    began = time.monotonic()
    deadline, told = began + plan.patience, began
    exact, left, found = 0, ["nothing was looked at"], None
    while exact < 2 and time.monotonic() < deadline:
        time.sleep(REST_SECONDS)
        parts.supervise()
        if parts.late.waiting:
            continue
        try:
            found = look(log, parts.prefix, parts.group, parts.opik.url, (), load.sent, load.unsure)
            found = replace(found, drawn_again=lossy)
            left = [*differences(found), *false_claims(found, conservation(parts.url()))]
        except Exception as error:
            left = [f"the ledger can't be read: {type(error).__name__}: {error}"]
        exact = 0 if left else exact + 1
        if left and time.monotonic() > told + TELL_SECONDS:
            told = time.monotonic()
            plan.say(f"    after {told - began:.0f} s {len(left)} differences, such as: {left[0]}")
    return ([] if exact >= 2 else left or ["exact only once"]), found
