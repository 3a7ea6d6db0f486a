"""Nothing is left behind: no process and no folder, whatever happened to the one who started them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from rampgate.local.services.janitor import JANITOR, make_folder
from rampgate.local.services.process import ChildProcess, ServiceUnavailable
from rampgate.local.services.redis import RedisServer
from rampgate.local.services.stack import Stack

OWNER = """
import json, os, sys, time
from rampgate.local.services.janitor import JANITOR
from rampgate.local.services.stack import Stack
stack = Stack(sys.argv[1])
stack.start()
kafka = stack.kafka
node = kafka.nodes[0] if sys.argv[1] == "real" else kafka
node.pause()  # a stopped process must go too
folders = [str(stack.redis.folder), str(node.folder)]
print(json.dumps({"pids": [*stack.pids, JANITOR.pid], "folders": folders}), flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("kind", ["real", "embedded"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_owner_leaves_no_process_and_no_folder(
    kind: str, number: signal.Signals, request: pytest.FixtureRequest
) -> None:
    if kind == "real":
        request.getfixturevalue("kafka")  # skips, or fails under CI, where it can't be had
    owner = subprocess.Popen([sys.executable, "-c", OWNER, kind], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    with owner.stdout:
        left = json.loads(owner.stdout.readline())
        assert len(left["pids"]) == 3
        assert all(psutil.pid_exists(pid) for pid in left["pids"])
        owner.send_signal(number)
        owner.wait(10)
    _eventually(lambda: not any(_alive(pid) for pid in left["pids"]))
    _eventually(lambda: not any(Path(folder).exists() for folder in left["folders"]))


def test_close_leaves_no_process_and_no_folder(redis_server: RedisServer) -> None:
    with Stack("embedded") as stack:
        pids, folders = stack.pids, [stack.redis.folder, stack.redis.process.folder]
        assert len(pids) == 2
    assert not any(_alive(pid) for pid in pids)
    assert not any(folder.exists() for folder in folders)


def test_children_outlive_the_thread_that_started_them(redis_server: RedisServer) -> None:
    """A stack starts its services in threads that end."""
    server = RedisServer()
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    time.sleep(0.3)
    assert len(server.pids) == 1
    server.close()


def test_a_dead_janitor_is_replaced() -> None:
    first = make_folder()
    assert JANITOR.pid is not None
    os.kill(JANITOR.pid, signal.SIGKILL)
    time.sleep(0.1)
    second = make_folder()
    JANITOR.release(f"folder {second}")
    second.rmdir()
    first.rmdir()
    JANITOR.release(f"folder {first}")


def test_a_process_that_ends_says_so_with_its_last_words(tmp_path: Path) -> None:
    child = ChildProcess(
        "broken", ["sh", "-c", "echo the disk is on fire; exit 3"], tmp_path, remedy="call the brigade"
    )
    child.start()
    with pytest.raises(ServiceUnavailable) as caught:
        child.wait_ready(lambda: False, 10)
    child.stop()
    text = str(caught.value)
    assert caught.value.service == "broken"
    assert "exit code 3" in text
    assert "the disk is on fire" in text
    assert "call the brigade" in text


def test_a_process_that_never_answers_is_given_up_and_ended_although_it_ignores_term(tmp_path: Path) -> None:
    child = ChildProcess("deaf", ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], tmp_path)
    child.start()
    pid = child.pid
    assert pid is not None
    with pytest.raises(ServiceUnavailable, match=r"not ready after 0\.2 s"):
        child.wait_ready(lambda: False, 0.2)
    child.stop(grace=0.3)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _eventually(true: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)
