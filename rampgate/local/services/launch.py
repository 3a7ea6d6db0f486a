"""A script, `launch.py OWNER_PID COMMAND...`: asks the kernel to kill it with its owner, then becomes COMMAND.

It is no `preexec_fn`, because Python code between fork and exec can deadlock in a process with threads. It imports the
standard library only, so that `python -I -S` starts it in about 15 ms.
"""

from __future__ import annotations

import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    owner, command = int(arguments[0]), arguments[1:]
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != owner:  # the owner died before the request reached the kernel
            os._exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 - becoming another program is what this script is for
    except OSError as error:
        print(f"can't run {command[0]}: {error.strerror}", file=sys.stderr)
        os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
