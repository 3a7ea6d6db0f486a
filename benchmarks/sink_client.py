"""The harness's side of the stand-in sink, and what the sink itself can take."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from typing import Any

from benchmarks.contenders.job import score
from benchmarks.records import trace_id


class Sink:
    """`url` is what contenders are given as Opik's address."""

    def __init__(self, port: int) -> None:
        self.port, self.url = port, f"http://127.0.0.1:{port}/api"

    def _call(self, method: str, path: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def answers(self) -> bool:
        return "scores" in self._call("GET", "/_bench")

    def reset(self, delay: float, *, keep: bool = False) -> None:
        """A new count from zero. `keep` remembers each call's body and time."""
        self._call("PUT", f"/_bench?delay={delay}&keep={int(keep)}")

    def scores(self) -> int:
        return int(self._call("GET", "/_bench")["scores"])

    def marks(self) -> list[tuple[float, int]]:
        """(when, scores so far), a call each, on the machine's monotonic clock."""
        return [(at, total) for at, total in self._call("GET", "/_bench/marks")]

    def arrivals(self) -> dict[str, float]:
        """When each trace's first thumbs score came in, where bodies were kept."""
        found: dict[str, float] = {}
        for at, ids in self._call("GET", "/_bench/kept"):
            for one in ids:
                found.setdefault(one, at)
        return found

    def wait_for(self, scores: int, timeout: float, alive: Any = lambda: True) -> bool:
        """Whether that many scores came in time; gives up at once when `alive` says so."""
        ends = time.monotonic() + timeout
        while self.scores() < scores:
            if time.monotonic() > ends or not alive():
                return False
            time.sleep(0.1)
        return True


def ceiling(sink: Sink, seconds: float = 2.0, clients: int = 2) -> float:
    """Scores a second the sink takes when it answers at once, from blocking sockets with a body made beforehand."""
    scores = [score(trace_id(i), "receipts-eval", "user_signal_thumbs", -1.0, "user_mobile") for i in range(1_000)]
    body = json.dumps({"scores": scores}, separators=(",", ":")).encode()
    path = "/api/v1/private/traces/feedback-scores"
    request = f"PUT {path} HTTP/1.1\r\nHost: sink\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    sink.reset(0.0)
    ends = time.monotonic() + seconds

    def send() -> None:
        with socket.create_connection(("127.0.0.1", sink.port)) as connection:
            while time.monotonic() < ends:
                connection.sendall(request)
                connection.recv(1_024)

    threads = [threading.Thread(target=send) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sink.scores() / seconds
