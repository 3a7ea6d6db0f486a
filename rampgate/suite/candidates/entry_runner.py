"""Runs a candidate's Python entry point on one case after the other: a program for the candidate's own interpreter.

It is one file of the standard library, for Python 3.8 and later; none of our packages needs to be there, and none can
be imported. Cases come and answers go over a socket, which is its only argument, as frames: four bytes, the length,
highest first, and so much JSON. What the candidate prints goes elsewhere and can't touch them.

The first frame says what to run, `{entry: "module:function", folder, hidden: [package], memory}`; the answer is
`{ready: true}` or `{error}`. Each other frame is one case, the function's one argument; the answer is `{answer}` or
`{error}`, with `last` where the process takes no other case, and `may_pass` where the next try may have an answer.
"""

from __future__ import annotations

import importlib
import json
import os
import socket
import struct
import sys
from functools import lru_cache
from importlib.machinery import PathFinder

# A process starts in 20 ms with these and in 60 with `asyncio`, `inspect`, `traceback` and `typing`; a run starts many.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from typing import Any, BinaryIO

LONGEST_ERROR = 4_000
PASSING = ("RateLimitError", "TimeoutError", "APIConnectionError")
"""How the errors of clients are named whose next call may be answered; none of them need be installed here."""


class Hidden:
    """Finds our packages in the candidate's folder alone: a candidate may have an `agents` of its own."""

    def __init__(self, names: Sequence[str], folder: str) -> None:
        self._names, self._folder = frozenset(names), folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self._names:
            return None
        found = PathFinder.find_spec(name, [self._folder])
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found


def read_frame(stream: BinaryIO) -> Any:
    """Returns what the next frame holds; None where there is no other."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    return json.loads(stream.read(struct.unpack(">I", head)[0]))


def write_frame(stream: BinaryIO, content: dict[str, Any]) -> None:
    body = json.dumps(content, allow_nan=False).encode()
    stream.write(struct.pack(">I", len(body)) + body)
    stream.flush()


def prepare(asked: dict[str, Any]) -> Any:
    """Returns the candidate's function. Raises whatever its import raises."""
    if asked["memory"]:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (asked["memory"], asked["memory"]))
    sys.meta_path.insert(0, Hidden(asked["hidden"], asked["folder"]))
    sys.path.insert(0, asked["folder"])
    module, _, name = asked["entry"].partition(":")
    function: Any = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    if not callable(function):
        raise TypeError(f"{asked['entry']} is not callable")
    return function


def told(error: BaseException) -> str:
    """The error as its last lines tell it."""
    import traceback

    lines = traceback.format_exception(type(error), error, error.__traceback__)
    return "".join(lines)[-LONGEST_ERROR:]


def may_pass(error: BaseException) -> bool:
    """Says whether the next try may have an answer: after a timeout, a lost connection, or a service that answered 429
    or 5xx, as errors of HTTP clients tell by `status_code`."""
    status = getattr(error, "status_code", None)
    passing = isinstance(status, int) and (status == 429 or 500 <= status < 600)
    named = any(kind.__name__.endswith(PASSING) for kind in type(error).__mro__)
    return passing or named or isinstance(error, (TimeoutError, ConnectionError))


@lru_cache(1)
def event_loop() -> Any:
    """Returns the event loop of all cases, which the candidate's own code finds as well."""
    import asyncio

    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    stream: Any = channel.makefile("rwb")
    try:
        function = prepare(read_frame(stream))
        if "asyncio" in sys.modules:
            event_loop()
    except BaseException as error:
        write_frame(stream, {"error": told(error)})
        return
    write_frame(stream, {"ready": True})
    while True:
        case = read_frame(stream)
        if case is None:
            return
        try:
            answer = function(case)
            if not isinstance(answer, (str, dict)):
                import inspect

                if inspect.isawaitable(answer):
                    answer = event_loop().run_until_complete(answer)
            write_frame(stream, {"answer": answer})
        except MemoryError:
            # What else could not be had meanwhile, no one knows: the next case gets a fresh process.
            write_frame(stream, {"error": "MemoryError: the case needs more memory than it may have", "last": True})
            os._exit(1)
        except BaseException as error:
            write_frame(stream, {"error": told(error), "may_pass": may_pass(error)})


if __name__ == "__main__":
    main()
