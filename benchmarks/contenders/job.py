"""What all contenders but our worker share: the one script call and the request body. Plain dicts, no checks.

A turn is a hash `turn:<response_id>` with `trace` and `project`, put there before the run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

KAFKA = os.environ.get("BENCH_KAFKA", "")
TOPIC = os.environ.get("BENCH_TOPIC", "")
GROUP = os.environ.get("BENCH_GROUP", "")
REDIS = os.environ.get("BENCH_REDIS", "")
URL = os.environ.get("BENCH_SINK", "") + "/v1/private/traces/feedback-scores"
HEADERS = {"Content-Type": "application/json"}
BATCH = 1_000
CALLS_IN_FLIGHT = 8
VALUES = {"up": 1, "down": -1, None: 0}

# One call for a batch: look each turn's trace up and store the signal beside it.
SCRIPT = """
local out = {}
local pairs = cjson.decode(ARGV[1])
for i = 1, #pairs, 2 do
  local key = 'turn:' .. pairs[i]
  local found = redis.call('HMGET', key, 'trace', 'project')
  redis.call('HSET', key, 'thumbs', pairs[i + 1])
  out[i], out[i + 1] = found[1], found[2]
end
return out
"""


def script_argument(events: Iterable[dict[str, Any]]) -> bytes:
    return orjson.dumps([part for event in events for part in (event["response_id"], VALUES[event["value"]])])


def bodies(events: Sequence[dict[str, Any]], found: Sequence[bytes]) -> list[bytes]:
    """Request bodies of at most 1,000 scores, two scores for each event whose trace is known."""
    scores: list[dict[str, Any]] = []
    for at, event in enumerate(events):
        trace = found[2 * at]
        if trace:
            one, project = trace.decode(), found[2 * at + 1].decode()
            value = float(VALUES[event["value"]])
            scores += (
                score(one, project, "user_signal_thumbs", value, "user_mobile"),
                score(one, project, "user_signal_reroll", 0.0, "user_mobile"),
            )
    return [orjson.dumps({"scores": scores[at : at + BATCH]}) for at in range(0, len(scores), BATCH)]


def score(trace: str, project: str, name: str, value: float, label: str) -> dict[str, Any]:
    return {"id": trace, "project_name": project, "name": name, "value": value, "source": "sdk", "reason": label}
