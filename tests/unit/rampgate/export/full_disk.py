"""`python -m tests.unit.rampgate.export.full_disk FOLDER`: an export on a disk that is full after so many
bytes of a file, then run to its end where there is room.

Prints a line of JSON for each size: what the export said, what stood there then, and what at the end. The topic, which
is another machine's, has room. The product has no such switch.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.unit.rampgate.export.killed import NEVER, Killer, Topic, ended, export, state

STEP = 160
"""Bytes between two sizes: less than a line, so that lines and notes are cut at many places."""


def limited(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def failed(folder: Path, size: int) -> str:
    """What an export said that had so many bytes for each of its files; empty of one that ended well."""
    if child := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said = folder / "said"
        return said.read_text() if said.exists() else "" if code == 0 else f"exit code {code}"
    code, send = 3, Topic.send

    async def elsewhere(self: Topic, messages: Any) -> None:
        limited(resource.RLIM_INFINITY)
        await send(self, messages)
        limited(size)

    try:
        limited(size)
        with patch.object(Topic, "send", elsewhere):
            asyncio.run(export(folder, Killer(NEVER)))
        code = 0
    except OSError as error:
        limited(resource.RLIM_INFINITY)
        (folder / "said").write_text(str(error.strerror))
    finally:
        os._exit(code)


def main(folder: Path) -> None:
    for size in count(0, STEP):
        place = folder / str(size)
        place.mkdir()
        said = failed(place, size)
        full = state(place)
        again = ended(place, NEVER) if said else 0
        print(json.dumps({"size": size, "said": said, "full": full, "again": again, "end": state(place)}))
        if not said:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
