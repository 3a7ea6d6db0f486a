"""Scores many items by many judges, for several gates at once: every task gets an answer, and no error leaves it.

Equal questions are asked once: later ones use the answer that is kept, simultaneous ones share the call that is under
way.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from evalcore import framing
from evalcore.judges.bindings import Unbound
from evalcore.judges.evaluator import Evaluation, NoScore, Prompt, Task
from evalcore.judges.kinds import evaluator_of
from evalcore.judges.llm_judge import cache_key, later_key
from evalcore.registry.judge import Judge, digest
from evalcore.scoring.answers import Judgement, as_it_stands, judgement, settled, unconfirmed, worst
from evalcore.scoring.cache import MemoryScoreCache, RememberedAnswers, ScoreCache
from evalcore.scoring.calls import PASSING, CallFailed, CircuitBreaker, Failure, Model, Spend
from evalcore.scoring.model_caller import CallLimits, GateCalls, ModelCaller
from evalcore.scoring.nonce_key import nonce_key
from evalcore.stopping import heed_cancel

__all__ = ["Judgement", "Scorer", "Scoring"]
log = logging.getLogger(__name__)
T = TypeVar("T")
CHUNK = 400
"""Tasks that are looked up together, in one question to the cache."""
HELD = 1_000_000
"""Characters of items whose prompts wait to be looked up; with more the cache is asked for fewer at once."""
SLICE = 250_000
"""Characters of items that are read before the event loop is free again: some milliseconds. One item may have more."""
EACH = 2_500
"""Characters that could be read while a prompt is made of nothing."""
AHEAD = 64
CACHED = "cached"
ONES_OWN = PASSING | {Failure.OVER_LIMIT, Failure.DOWN}
"""Failures of one gate that another gate may not have."""


@dataclass
class _Flight:
    call: asyncio.Task[Evaluation | CallFailed]
    waiting: int = 0


class Scorer:
    """One for a process: its limits hold for all gates together, which share them fairly. Use it on one event loop.

    `observe` is told of each call's end (`ok` or a Failure) and of each answer that needed none (`cached`). `key` makes
    the nonces around turns; without one it is the environment's, else this process's own. `look` is shown each
    question that is to be asked, with its judge: for counters. With `words` the cache keeps the judges' reasons.
    """

    def __init__(
        self,
        model: Model,
        cache: ScoreCache,
        limits: CallLimits | None = None,
        *,
        observe: Callable[[str], None] = lambda outcome: None,
        now: Callable[[], float] = time.monotonic,
        key: bytes | None = None,
        look: Callable[[Judge, Prompt], None] = lambda judge, asked: None,
        words: bool = False,
    ) -> None:
        self._words = words
        self.each = False
        """Whether each item is a question of its own, whatever its text: equal ones take a call each."""
        self.answered = RememberedAnswers(cache, words=words)
        self._key = nonce_key() if key is None else key
        self.look = look
        self._limits, self._observe = limits or CallLimits(), observe
        self._now, self._caller = now, ModelCaller(model, self._limits, now, observe)
        self._flights: dict[str, _Flight] = {}

    async def score(
        self, gate: str, tasks: Sequence[Task], *, spend: Spend | None = None, within: float | None = None
    ) -> list[Judgement]:
        """Returns judgements in the order of the tasks. What is not scored `within` seconds, or is over the limit of
        `spend`, is unscored and says so: OUT_OF_TIME, or DOWN where the model no longer answered any gate. Raises
        nothing but CancelledError; what was answered by then is kept."""
        async with self.begun(gate, spend) as scoring:
            return await scoring.ended(tasks, within)

    async def ask(self, gate: str, asked: Prompt, read: Callable[[str], T], spend: Spend | None = None) -> T:
        """Returns what `read` makes of the model's reply to a question that is no judge's, within the same limits.
        Nothing is kept. Raises CallFailed; where `read` raises NoScore twice, with SLIP."""
        mark = framing.nonce(self._key, gate, asked.turn)
        return await self._caller.ask(
            GateCalls(gate, spend or Spend(), self.breaker()), replace(asked, nonce=mark), read
        )

    def breaker(self) -> CircuitBreaker:
        """One for a gate."""
        return CircuitBreaker(self._limits.patience, self._now)

    @asynccontextmanager
    async def begun(
        self, gate: str, spend: Spend | None = None, breaker: CircuitBreaker | None = None
    ) -> AsyncIterator[Scoring]:
        """Yields a gate's scoring, which takes tasks until it is ended. What it has under way ends with the context.
        `breaker`: that of a gate with several scorings, so that together they wait once for a model that is down."""
        scoring = Scoring(self, GateCalls(gate, spend or Spend(), breaker or self.breaker()))
        try:
            yield scoring
        finally:
            await scoring.stop()

    def to_blame(self, gate: GateCalls) -> CallFailed | None:
        """Returns why a gate was not done when its time was over; None where the model answers."""
        return self._caller.to_blame(gate)

    def forget(self, cache: ScoreCache | None = None) -> None:
        """Keep no answer of before, nor any in the shared cache: the same questions are asked again, but for what
        `cache` has."""
        self.answered = RememberedAnswers(cache or MemoryScoreCache(), words=self._words)

    async def judge(
        self, gate: GateCalls, task: Task, name: str, asked: Prompt
    ) -> tuple[Evaluation | CallFailed, bool]:
        """Returns the answer to the task whose key is `name`, and whether it came without a call of this gate."""
        while True:
            if (known := self.answered.at_hand(name)) is not None:
                return known, True
            flight, mine = self._flights.get(name), False
            # One that has just ended is dropped a moment later, and a wait for it would be none: no one else would run.
            if flight is None or flight.call.done():
                mine = True
                call = asyncio.create_task(self._fly(gate, task, name, asked))
                flight = self._flights[name] = _Flight(call)
                call.add_done_callback(partial(self._landed, name))
            flight.waiting += 1
            try:
                found = await asyncio.shield(flight.call)
            finally:
                flight.waiting -= 1
                if not flight.waiting and not flight.call.done():
                    self._landed(name, flight.call)
                    flight.call.cancel()
            if mine or not isinstance(found, CallFailed) or found.kind not in ONES_OWN:
                return found, not mine
            # The gate that made the call has spent what it may, or waited as long as it does; this one has not.

    async def _fly(self, gate: GateCalls, task: Task, name: str, asked: Prompt) -> Evaluation | CallFailed:
        try:
            answer = await self._caller.score(gate, task.judge, asked.sealed(self._key, task.judge))
        except CallFailed as failure:
            return failure
        except Exception as error:
            log.exception("judge_call_failed: %s", task.judge.id)
            return CallFailed(Failure.BROKEN, f"{type(error).__name__} while the model was called")
        return await self.answered.keep(name, task, answer)

    def _landed(self, name: str, call: asyncio.Task[Evaluation | CallFailed]) -> None:
        flight = self._flights.get(name)
        if flight is not None and flight.call is call:
            del self._flights[name]

    def source(self, model: str) -> str:
        """Returns where the model of this name is."""
        return self._caller.model.source(model)

    def key_of(self, judge: Judge, asked: Prompt) -> str:
        """Returns the key under which the answer to a question is kept."""
        return cache_key(judge, asked, self.source(asked.model))

    @property
    def at_once(self) -> int:
        return self._limits.at_once

    @property
    def judged_tokens(self) -> int:
        return self._limits.judged_tokens

    def observe(self, outcome: str) -> None:
        self._observe(outcome)


class Scoring:
    """One gate's tasks: one coroutine looks them up and queues what has to be asked, several ask.

    `take` begins with tasks while others are not known yet, such as those about a candidate's later answers. `ended`
    says which tasks the gate has, and gives their judgements: those that were taken before are not asked again.
    """

    def __init__(self, scorer: Scorer, gate: GateCalls) -> None:
        self._scorer, self._gate = scorer, gate
        self._tasks: list[Task] = []
        self._found: list[Judgement | None] = []
        self._places: dict[tuple[str, str, str], int] = {}
        self._new: asyncio.Queue[int | None] = asyncio.Queue()
        self._open: asyncio.Queue[tuple[int, str, Prompt] | None] = asyncio.Queue(AHEAD)
        self._going: asyncio.Task[None] | None = None
        self._workers = 0

    @property
    def in_order(self) -> bool:
        """Tells whether tasks have to be taken in their order: what they may spend is limited, and which items are
        left over must not depend on what came first."""
        return self._gate.spend.limited

    def take(self, tasks: Sequence[Task]) -> None:
        """Begin with these tasks. Returns at once."""
        for task in tasks:
            self._places[_known(task)] = self._place(task)
        if self._going is None:
            self._going = asyncio.create_task(self._all())

    async def ended(self, tasks: Sequence[Task], within: float | None = None) -> list[Judgement]:
        """Returns judgements in the order of the tasks, which are all that the gate has, as `Scorer.score` does."""
        places = [self._taken(task) for task in tasks]
        self._new.put_nowait(None)
        going = self._going or asyncio.create_task(self._all())
        self._going = going
        try:
            async with asyncio.timeout(within):
                await going
        except TimeoutError:
            late = CallFailed(Failure.OUT_OF_TIME, f"not scored within the gate's {within or 0:g} s")
            self._rest(self._scorer.to_blame(self._gate) or late)
        except Exception:
            log.exception("scoring_failed: %s", self._gate.name)
            self._rest(CallFailed(Failure.BROKEN, "scoring failed; the log says how"))
        return [found for place in places if (found := self._found[place]) is not None]

    async def stop(self) -> None:
        """Give up what is under way."""
        if self._going is not None:
            self._going.cancel()
            await asyncio.gather(self._going, return_exceptions=True)

    def _place(self, task: Task) -> int:
        self._tasks.append(task)
        self._found.append(None)
        self._gate.spend.questions += 1
        self._new.put_nowait(len(self._tasks) - 1)
        return len(self._tasks) - 1

    def _taken(self, task: Task) -> int:
        """Returns the place of a task, which it has already where it was taken before with the same content."""
        place = self._places.get(_known(task))
        return place if place is not None and self._tasks[place].source is task.source else self._place(task)

    async def _all(self) -> None:
        async with asyncio.TaskGroup() as group:
            await self._look_up(group)

    def _rest(self, failure: CallFailed) -> None:
        for place, found in enumerate(self._found):
            if found is None:
                self._settle(place, judgement(self._tasks[place], failure))

    async def _chunks(self) -> AsyncIterator[list[int]]:
        """Yields places of tasks as they are taken, until the gate has no more."""
        while (place := await self._new.get()) is not None:
            chunk = [place]
            while len(chunk) < CHUNK and not self._new.empty():
                if (more := self._new.get_nowait()) is None:
                    yield chunk
                    return
                chunk.append(more)
            yield chunk

    async def _look_up(self, group: asyncio.TaskGroup) -> None:
        read = 0
        async for chunk in self._chunks():
            asked, held = dict[int, tuple[str, Prompt]](), 0
            for place in chunk:
                task = self._tasks[place]
                if self._scorer.each:
                    task = self._tasks[place] = replace(task, digest=b"")
                known = self._scorer.answered.of_item(task)
                if known is not None and not unconfirmed(task.judge, known):
                    self._cached(place, known)
                    continue
                if task.judged_tokens != self._scorer.judged_tokens:
                    task = replace(task, judged_tokens=self._scorer.judged_tokens)
                made = evaluate(task)
                if not isinstance(made, Prompt):
                    self._settle(place, judgement(task, made, cached=True))
                    continue
                asked[place] = self._name(task, made), made
                if made.cut or made.more:  # an answer remembered by the item's bytes is of all windows, and says no cut
                    self._tasks[place] = replace(self._tasks[place], digest=b"")
                size = made.read + sum(len(window.turn) for window in made.windows)
                read, held = read + size + EACH, held + size
                if read >= SLICE:
                    read = 0
                    await asyncio.sleep(0)
                if held >= HELD:
                    await self._ask(group, asked)
                    asked, held = {}, 0
            await self._ask(group, asked)
            await asyncio.sleep(0)
        for _ in range(self._workers):
            await self._open.put(None)

    async def _ask(self, group: asyncio.TaskGroup, asked: Mapping[int, tuple[str, Prompt]]) -> None:
        """Look the questions up, by their tasks' places, and queue those to which there is no answer."""
        names = [name for name, _ in asked.values()]
        held = await self._scorer.answered.look_up([self._tasks[place] for place in asked], names)
        heed_cancel()  # else it would wait for tasks that no one takes any more
        for (place, (name, prompt)), answer in zip(asked.items(), held, strict=True):
            judge = self._tasks[place].judge
            known = answer is not None and not unconfirmed(judge, answer)
            if answer is not None and known and not prompt.more:
                self._cached(place, answer, prompt.cut)
                continue
            # More workers than places, so that no place is empty while an answer is read and kept.
            if self._workers < 2 * self._scorer.at_once:
                self._workers += 1
                group.create_task(self._work())
            if not known:
                self._scorer.look(judge, prompt)
            await self._open.put((place, name, prompt))

    async def _work(self) -> None:
        while (queued := await self._open.get()) is not None:
            place, name, asked = queued
            task = self._tasks[place]
            answer, cached = await self._answer(task, name, asked)
            heed_cancel()  # else it would wait for a task that no one queues any more, and hold up who cancelled it
            if asked.more and not isinstance(answer, CallFailed):
                answer, cached = await self._in_windows(task, asked, answer, cached)
            if cached and not isinstance(answer, CallFailed):
                self._cached(place, answer, asked.cut)
            else:
                self._settle(place, judgement(task, answer, cached, asked.cut))

    async def _answer(self, task: Task, name: str, asked: Prompt) -> tuple[Evaluation | CallFailed, bool]:
        """Returns the judge's answer to one question, confirmed where its rule asks for that, and whether it came
        without a call."""
        answer, cached = await self._scorer.judge(self._gate, task, name, asked)
        if isinstance(answer, CallFailed) or not unconfirmed(task.judge, answer):
            return answer, cached
        return await self._confirmed(task, name, asked, answer, cached)

    def _name(self, task: Task, asked: Prompt) -> str:
        """Returns the name under which the answer to a question is kept."""
        name = self._scorer.key_of(task.judge, asked)
        return digest([name, task.item]) if self._scorer.each else name

    async def _in_windows(
        self, task: Task, asked: Prompt, first: Evaluation, cached: bool
    ) -> tuple[Evaluation | CallFailed, bool]:
        """Asks about the other windows of an item until nothing can change what they come to: one has the lowest score
        of all, or has none, which leaves the item unscored."""
        said, dimensioned = [first], bool(task.judge.dimensions)
        for window in asked.more:
            if said[-1].value == task.judge.score_range[0] and not dimensioned:
                break
            key = self._name(task, window)
            if await self._scorer.answered.look_up([task], [key]) == [None]:
                self._scorer.look(task.judge, window)
            answer, known = await self._answer(task, key, window)
            cached = cached and known
            if isinstance(answer, CallFailed):
                return answer, cached
            said.append(answer)
        return worst(task.judge, said), cached

    async def _confirmed(
        self, task: Task, name: str, asked: Prompt, first: Evaluation, cached: bool
    ) -> tuple[Evaluation, bool]:
        """Asks the judge again until its answers settle the item. Each of them is kept under a key of its own and paid
        for like any other. Where one can't be had, the first answer stands: nothing takes it back."""
        said, unmarked = [first], replace(task, digest=b"")  # the item's bytes are the key of its first answer
        while (found := settled(task.judge, said)) is None:
            key = later_key(name, len(said) + 1)
            (held,) = await self._scorer.answered.look_up([unmarked], [key])
            if held is not None:
                self._scorer.observe(CACHED)
                said.append(held)
                continue
            answer, known = await self._scorer.judge(self._gate, unmarked, key, asked)
            cached = cached and known
            if isinstance(answer, CallFailed):
                return as_it_stands(said, answer.message), cached
            said.append(answer)
        return found, cached

    def _cached(self, place: int, answer: Evaluation, cut: bool = False) -> None:
        self._settle(place, judgement(self._tasks[place], answer, True, cut))
        self._scorer.observe(CACHED)

    def _settle(self, place: int, found: Judgement) -> None:
        self._found[place] = found
        self._gate.spend.settle(answered=found.failure is None)


def _known(task: Task) -> tuple[str, str, str]:
    return task.judge.id, task.context, task.item


def evaluate(task: Task) -> Evaluation | Prompt | CallFailed:
    """Returns what the judge's evaluator makes of the item: a score, a prompt or a failure. Never raises."""
    judge = task.judge
    try:
        found = evaluator_of(judge).evaluate(task)
        if isinstance(found, Evaluation) and found.dimensions.keys() != judge.dimensions.keys():
            raise NoScore(f"{judge.id} is not scored in each of its dimensions {', '.join(judge.dimensions)}")
    except (Unbound, NoScore) as error:
        return CallFailed(Failure.UNREADABLE if isinstance(error, Unbound) else Failure.UNBOUND, str(error))
    except Exception as error:
        log.exception("evaluation_failed: %s", judge.id)
        return CallFailed(Failure.BROKEN, f"{type(error).__name__} while {judge.id} evaluated the item")
    return found
