"""Reads a round's turns from the vertical's own Opik project: labels and scores of all, texts of the drawn ones.

Whoever reads texts of users is audited before, as an export is (PF-9 FR-12); labels and scores need no record.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.join.turn import Turn
from agents.ports import Unauthorized, Unavailable
from evalcore.registry.judge import Judge
from rampgate.calibration.turns import THUMBS, ScoredTurn
from rampgate.console import Failure, run, user
from rampgate.export.audited import record
from rampgate.export.lines import said
from rampgate.limits.window import PATIENCE_SECONDS, by_name, off_scale, production_turns
from rampgate.progress import Progress
from rampgate.registry.opik_reading import opened
from rampgate.settings import Settings
from rampgate.wiring import producing
from schemas.answers import TurnView
from schemas.calibration_cycle import Window
from schemas.judges import judge_id
from schemas.topics import Topics
from schemas.verticals import Vertical
from streams.opik.traces import facts_of
from streams.queries.audit import Audit
from streams.queries.turn_view import joined
from streams.retry import WallClock


@dataclass
class Read:
    """The turns of a window by response id, without texts. `left_out`: turns and scores that count for nothing, by
    why."""

    turns: dict[str, ScoredTurn] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def sha256(self) -> str:
        """Of what was read, in whatever order it came."""
        found = hashlib.sha256()
        for item, turn in sorted(self.turns.items()):
            said = (item, turn.trace, turn.category, sorted(turn.scores.items()), turn.thumbs)
            found.update(repr(said).encode(errors="surrogatepass"))
        return found.hexdigest()


@dataclass(frozen=True)
class OpikTurns:
    """The turns of one vertical. `judges` are its judges by id."""

    settings: Settings
    owner: Vertical
    judges: Mapping[str, Judge]

    def read(self, window: Window) -> Read:
        """Returns production's turns of the window. Raises Failure where Opik can't be read."""
        found = Read()
        names = by_name(self.judges.values())
        since, until = (round(at.timestamp() * 1_000) for at in (window.since, window.until))

        async def read() -> None:
            async for view in production_turns(self.settings, self.owner, since, until, found.left_out):
                found.turns[view.response_id] = _lean(view, names, found.left_out)

        self._run(read)
        return found

    def whole(self, traces: Mapping[str, str], query: Mapping[str, Any]) -> dict[str, ScoredTurn]:
        """Returns these turns with their texts, by response id; `traces` are the ids of their traces. One that Opik
        does not have is left out, and a text that it does not have is None. Raises Failure: where the read can't be
        audited, too."""
        views, layout = dict[str, TurnView](), self.owner.trace

        async def read() -> None:
            shown_as = Progress(f"reading texts of {self.owner.project}", len(traces), unit="turns")
            async with opened(self.settings, self.owner, retry_seconds=PATIENCE_SECONDS, tells=True) as opik:
                with shown_as as shown:
                    for item, trace_id in traces.items():
                        trace = await opik.get(trace_id)
                        facts = facts_of(trace, self.owner.project) if trace is not None else None
                        if trace is not None and facts is not None and facts.response_id == item:
                            views[item] = joined(item, Turn(), self.owner.project, trace)
                        shown.advance(1)
            topic = Topics(self.settings.topic_prefix, self.settings.audit_topic).audit
            async with producing(self.settings) as producer:
                await record(
                    Audit(producer, topic, WallClock()), [*views],
                    caller=f"cli:{user()}", vertical=self.owner.name, query=dict(query),
                )  # fmt: skip

        if traces:
            self._run(read)
        return {
            item: ScoredTurn(
                item=item, trace=traces[item], category=view.category or "", sub_agent=view.sub_agent or "",
                question=said(view, "question", layout), answer=said(view, "answer", layout), scores={}, thumbs=None,
            )
            for item, view in views.items()
        }  # fmt: skip

    def _run(self, job: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            run(job)
        except (Unauthorized, Unavailable) as error:
            raise Failure(f"{self.owner.project}: {error}; --turns FILE takes turns of a file in its place") from error


def _lean(view: TurnView, names: Mapping[str, Judge], left_out: Counter[str]) -> ScoredTurn:
    scores: dict[str, float] = {}
    for opinion in view.judge_scores:
        judge = names.get(opinion.judge_id) or names.get(judge_id(opinion.judge_id))
        if judge is None or opinion.score is None:
            continue
        if off_scale(judge, opinion.score):
            left_out[f"off the scale of {judge.id}"] += 1
            continue
        scores[judge.id] = opinion.score
    return ScoredTurn(
        item=view.response_id, trace=str(view.trace.get("id") or ""), category=view.category or "",
        sub_agent=view.sub_agent or "", question=None, answer=None, scores=scores,
        thumbs=view.feedback_scores.get(THUMBS),
    )  # fmt: skip
