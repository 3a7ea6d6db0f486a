"""Hands what a gate found of a live agent version to the workers, who respond to it as to live scores (PC5 §5.7)."""

from __future__ import annotations

import sys
import uuid
from datetime import UTC, datetime
from functools import partial

from agents.ports import Unavailable
from evalcore.evaluations import evaluation_of, lines_of, strangers
from evalcore.gates.gate import Gate
from evalcore.gates.regression import look
from evalcore.registry.registry import Registry
from evalcore.scoring.answers import NotApplicable
from rampgate.ci_gate.run import GateRun
from rampgate.console import Failure, run, user
from rampgate.settings import Settings
from rampgate.wiring import producing
from rampgate.worker.live_judging import watch_limits
from schemas.checks import evaluation
from schemas.checks.evaluation import Evaluation, Origin
from schemas.dead_letters import clean
from schemas.topics import Topics

ASKED = (Origin.AD_HOC, Origin.SCHEDULED)


def origin_of(word: str) -> Origin:
    """The origin that `--respond` names. Raises Failure."""
    if word not in ASKED:
        raise Failure(f"--respond: {clean(word, 40)!r} is none of {', '.join(ASKED)}")
    return Origin(word)


def refuse_strangers(gate: Gate, agent: tuple[str, str]) -> None:
    """Raise Failure where a trace is of another agent version than the one named: it says nothing of this one."""
    others = strangers(gate.items, agent)
    if others:
        raise Failure(f"--agent-version: {others} of {len(gate.items)} traces are not of {clean(' '.join(agent), 200)}")


def respond(settings: Settings, outcome: GateRun, origin: Origin, agent: tuple[str, str]) -> None:
    """Hand the outcome over and say on stderr what follows. Raises Failure, also where nothing was judged, or too much
    for a worker's memory."""
    wanted, now = outcome.wanted, datetime.now(UTC)
    answers = sum(not isinstance(one.answer, NotApplicable) for one in outcome.scored.judgements)
    if answers > evaluation.MOST_ANSWERS:
        raise Failure(
            f"--respond: {answers:,} answers, of which workers take {evaluation.MOST_ANSWERS:,}: "
            "nothing was handed over; ask about fewer traces, or in parts"
        )
    made = evaluation_of(outcome.scored, wanted.vertical, origin, agent, str(uuid.uuid4()), user(), now)
    if not made.judges:
        raise Failure("--respond: nothing was judged, so there is nothing to respond to")
    try:
        run(partial(hand_over, settings, made))
    except Unavailable as error:
        raise Failure(f"--respond: the evaluation is not on its topic: {error}") from error
    sys.stderr.write(
        f"rampgate: evaluation {made.event_id} is with the workers: {foretold(settings, wanted.registry, made)}\n"
    )


async def hand_over(settings: Settings, made: Evaluation) -> None:
    """Send the record, and return once it is durable. Raises Unavailable."""
    topic = Topics(settings.topic_prefix, settings.audit_topic)["evaluations"]
    async with producing(settings) as producer:
        await producer.send([(topic, made.agent_id.encode(), made.model_dump_json().encode(), ())])


def foretold(settings: Settings, registry: Registry, made: Evaluation) -> str:
    """What follows if no such breach is open, and the settings here are the workers'."""
    limits = watch_limits(settings)
    lines, _ = lines_of(made, registry)
    found = look(lines, {}, limits, made.at, whole=False).responses
    told = [f"{one.breach.judge_id}: {', '.join(one.steps)}" for one in found]
    few = sum(len(line.answers.values) < limits.minimum for line in lines)
    told = told or ["no judge is below its floor"]
    told += [f"{few} judges have fewer than {limits.minimum} scores, of which nothing follows"] if few else []
    return clean("; ".join(told), 2_000)
