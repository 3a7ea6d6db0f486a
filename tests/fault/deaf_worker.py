"""`rampgate worker` whose Kafka client fetches no more from SIGUSR1 on, by an error that the client did not expect."""

from __future__ import annotations

import signal
from typing import Any

from rampgate.cli import main
from streams.kafka.transport import LastingFetcher

SOUND = LastingFetcher._get_actions_per_node
told: list[int] = []


def actions(fetcher: LastingFetcher, assignment: Any) -> Any:
    assert not told, "a defect of the client's"
    return SOUND(fetcher, assignment)


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, lambda number, frame: told.append(number))
    LastingFetcher._get_actions_per_node = actions
    main()
