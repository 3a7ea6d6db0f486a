"""`rampgate worker` whose codec of thumbs ends the process at one record, as a segmentation fault in a parser would."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agents.codec import Decoded
from agents.policy import Policy
from rampgate.cli import main
from rampgate.wiring import AGENTS
from schemas.dead_letters import Record

DEADLY = b"this record ends the process"
EXIT = 86

SOUND = AGENTS["thumbs"]


def decode(records: Sequence[Record], now: int, policy: Policy) -> Decoded[Any]:
    if any(record.value is not None and DEADLY in record.value for record in records):
        os._exit(EXIT)
    return SOUND.decode(records, now, policy)


if __name__ == "__main__":
    AGENTS["thumbs"] = replace(SOUND, decode=decode)
    main()
