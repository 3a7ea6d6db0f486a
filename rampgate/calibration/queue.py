"""Has people score the drawn turns in an annotation queue of Opik, and reads what each of them said.

People's scores stand in Opik under names of their own, `people/<judge>`: under the judge's they would be averaged with
it. Who scores sees the turn in Opik; nothing here reads its texts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from datetime import time as time_of_day
from typing import TypeVar

from agents.ports import Unauthorized, Unavailable
from evalcore.registry.judge import Judge
from rampgate.calibration.folder import DrawnTurn, Rating
from rampgate.calibration.turns import off_scale
from rampgate.console import Failure, run
from rampgate.registry.opik_reading import client_of
from rampgate.settings import Settings
from schemas.calibration_cycle import Cycle, PeoplesQueue
from schemas.judges import ScoreType
from schemas.verticals import Vertical
from streams.opik.client import Refused
from streams.opik.queues import Definition, OpikQueues, Queue, Said
from streams.opik.rules import NoProject, OpikRules

ANNOTATORS = 2
"""People who score each turn: agreement is between them."""
MOST_BUTTONS = 11
"""A scale of so many whole numbers is shown as buttons, which take no number between two."""
RETRY_SECONDS = 60.0
_TRACE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
T = TypeVar("T")


@dataclass(frozen=True)
class PeopleInOpik:
    """One vertical's queue of a round. `drawn` are the lines of the draw by turn."""

    settings: Settings
    owner: Vertical
    judges: Mapping[str, Judge]
    drawn: Mapping[str, DrawnTurn]

    def make(self, cycle: Cycle, draw_hash: str) -> PeoplesQueue:
        """Makes the round's queue, of which there is one however often it is made: its id is that of the draw. Raises
        Failure."""
        traces = {one.trace_id: item for item, one in self.drawn.items()}
        if wrong := [one for one in traces if not _TRACE.fullmatch(one)]:
            raise Failure(
                f"--queue: {traces[wrong[0]][:80]!r} has trace_id {wrong[0][:80]!r}, which is none of Opik's: "
                "draw from Opik, without --turns"
            )
        found = PeoplesQueue(
            id=_id(cycle, draw_hash), name=f"Calibration of {cycle.vertical}, {cycle.round}", project=self.owner.project
        )
        told = f"Score each turn by each judge's rubric, on its scale. Ticket {cycle.ticket}; {ANNOTATORS} people each."

        async def make(queues: OpikQueues, rules: OpikRules) -> None:
            project = await rules.project_id(self.owner.project)
            for name in self._names.values():
                await queues.define(_definition(name))
            definitions = tuple(self._names)
            await queues.make(Queue(found.id, project, found.name, told, definitions, ANNOTATORS), [*traces])

        self._with_opik(make)
        return found

    def ratings(self, queue: PeoplesQueue) -> list[Rating]:
        """What people said in the queue, in the order of turns, judges and people. Raises Failure: for a turn that was
        not drawn, a score off the judge's scale, and two of one person, with item and author."""
        said: list[Said] = []

        async def read(queues: OpikQueues, rules: OpikRules) -> None:
            async for page in queues.said(queue.id, queue.project, frozenset(self._names)):
                said.extend(page)

        self._with_opik(read)
        items = {one.trace_id: item for item, one in self.drawn.items()}
        found: dict[tuple[str, str, str], float] = {}
        for one in said:
            judge = self._names[one.name]
            where = f"Opik, {queue.name}: {items.get(one.trace, one.response or one.trace)[:80]!r}"
            if one.trace not in items:
                raise Failure(f"{where}, scored by {one.author[:80]!r}: was not drawn; take it out of the queue")
            if judge.id not in self.drawn[items[one.trace]].judge_scores:
                continue  # a queue shows all of its names for each of its turns
            if must := off_scale(one.value, judge):
                raise Failure(f"{where}: the score of {one.author[:80]!r} must be {must}, got {one.value:g}")
            key = (items[one.trace], judge.id, one.author)
            if key in found:
                raise Failure(f"{where}: {one.author[:80]!r} scored it for {judge.id} twice: remove one of them")
            found[key] = one.value
        return [Rating(*key, value) for key, value in sorted(found.items())]

    @property
    def _names(self) -> dict[str, Judge]:
        """The judges of the drawn turns by the name of people's scores."""
        asked = {judge for one in self.drawn.values() for judge in one.judge_scores}
        return {f"people/{judge}": self.judges[judge] for judge in sorted(asked)}

    def _with_opik(self, job: Callable[[OpikQueues, OpikRules], Awaitable[T]]) -> T:
        async def work() -> T:
            seconds = min(self.settings.opik_retry_seconds, RETRY_SECONDS)
            async with client_of(self.settings, self.owner) as client:
                return await job(OpikQueues(client, seconds), OpikRules(client, seconds))

        try:
            return run(work)
        except (Unauthorized, Unavailable, Refused, NoProject) as error:
            raise Failure(f"{self.owner.project}: {error}") from error


def lacking(ratings: Sequence[Rating], every: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns the turns and judges that fewer people than `ANNOTATORS` scored."""
    people: dict[tuple[str, str], int] = {}
    for one in ratings:
        people[one.item, one.judge] = people.get((one.item, one.judge), 0) + 1
    return [one for one in every if people.get(one, 0) < ANNOTATORS]


def _definition(judge: Judge) -> Definition:
    low, high = judge.score_range
    told = f"{low:g} to {high:g}, as the rubric of {judge.id} has it"
    name = f"people/{judge.id}"
    if judge.score_type is ScoreType.BOOLEAN:
        return Definition(name, "boolean", {"trueLabel": "true", "falseLabel": "false"}, told)
    if judge.score_type is ScoreType.INTEGER and high - low < MOST_BUTTONS:
        buttons = {str(score): float(score) for score in range(round(low), round(high) + 1)}
        return Definition(name, "categorical", {"categories": buttons}, told)
    return Definition(name, "numerical", {"min": float(low), "max": float(high)}, told)


def _id(cycle: Cycle, draw_hash: str) -> str:
    """A UUID of version 7 that the round's day and draw make, whoever asks and however often."""
    ms = round(datetime.combine(cycle.day, time_of_day(), UTC).timestamp() * 1_000)
    said = hashlib.sha256(f"{cycle.vertical}\0{cycle.round}\0{draw_hash}".encode()).hexdigest()
    digits = f"{ms:012x}7{said[:3]}8{said[3:18]}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
