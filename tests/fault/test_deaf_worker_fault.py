"""A worker that can read nothing any more ends, so that its supervisor starts one that can; nothing is lost."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tests.fault.oracle import foretell
from tests.fault.rig import Rig, now_ms
from tests.fault.traffic import Mix, Traffic
from tests.fault.worker_process import environment
from tests.fork_server import Forked


def test_a_worker_whose_client_fetches_no_more_ends_and_another_reads_on(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    traffic = Traffic(71, 120, now_ms(), Mix(no_trace=0.0, opik_only=0.0, judged_opik=0.0, garbage=0.0))
    rig.opik.load(traffic)
    half = len(traffic.messages) // 2
    with (rig.folder / "deaf.log").open("ab") as log:
        deaf = Forked(["worker"], environment(rig._settings), log, log, module="tests.fault.deaf_worker")
        try:
            rig.send(traffic.messages[:half])
            rig.wait("the first half is committed", rig.drained, 120, 0.2)
            deaf.send_signal(signal.SIGUSR1)
            rig.send(traffic.messages[half:])
            assert deaf.wait(60) == 2
        finally:
            deaf.kill()
    rig.worker()
    rig.wait("everything settled", rig.drained, 120, 0.2)
    wanted = foretell(traffic).scores
    rig.wait("every score in Opik", lambda: rig.opik.scores({turn.project for turn in traffic.turns}) == wanted, 60)
