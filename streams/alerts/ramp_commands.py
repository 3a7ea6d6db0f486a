"""Sends ramp-down commands to PC6, one for each breach (PC5 §5.7; contracts §1).

Their topic is the memory of what was commanded: neither a worker that died after a command nor an emptied Redis leads
to a second one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

import orjson
import structlog

from agents.ports import Unavailable
from evalcore.gates.messages import ramp_command
from evalcore.gates.regression import Response
from schemas.dead_letters import clean
from schemas.settings import KafkaAccess
from streams.kafka.client import Producer
from streams.kafka.reading import pages_now
from streams.kafka.transport import KAFKA_ERRORS
from streams.retry import reason_of

log = structlog.get_logger(__name__)
READ_SECONDS = 10.0
"""A topic that can't be read within this time holds up no command."""
BREACH = "rampgate.breach"
"""Header: the key of the breach that a command answers."""


class RampCommands:
    """The topic of ramp-down commands."""

    def __init__(self, access: KafkaAccess, producer: Producer, topic: str) -> None:
        self._access, self._producer, self._topic = access, producer, topic

    async def send(self, response: Response, since: int, ours: Callable[[], Awaitable[bool]]) -> None:
        """Return once the command is durable, or found on the topic: a command about this key that is younger than
        `since` (ms) answers this breach. Raises Unavailable, also where it is not `ours` to send any more."""
        breach = response.breach
        if await self._sent(breach.key.encode(), since):
            log.info("ramp_down_commanded_before", judge=breach.judge_id, agent=breach.agent_id)
            return
        headers = [(BREACH, breach.key.encode())]
        command = orjson.dumps(ramp_command(response))
        if not await ours():  # a worker that slept since it read the topic; another may have sent it
            raise Unavailable("another worker looks by now")
        await self._producer.send([(self._topic, breach.agent_id.encode(), command, headers)])

    async def _sent(self, key: bytes, since: int) -> bool:
        """True where the topic has the command. Where it can't be read, False: commanding 0 % twice does no harm."""
        try:
            async with (
                asyncio.timeout(READ_SECONDS),
                aclosing(pages_now(self._access, self._topic, since)) as pages,
            ):
                async for records in pages:
                    if any(one.timestamp >= since and dict(one.headers).get(BREACH) == key for one in records):
                        return True
        except (Unavailable, *KAFKA_ERRORS) as error:
            log.warning("ramp_commands_unread", reason=clean(reason_of(error)))
        return False
