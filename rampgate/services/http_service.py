"""A server of Rampgate's own as a child process: a module that takes `--port` and answers a probe."""

from __future__ import annotations

import http.client
from typing import ClassVar

from rampgate.services.ports import release_port, reserve_port
from rampgate.services.service import Service


class HttpService(Service):
    """Works once `GET probe` is answered with 200."""

    probe: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.port = reserve_port()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1.0)
        try:
            connection.request("GET", self.probe)
            return connection.getresponse().status == 200
        except http.client.HTTPException:
            return False
        finally:
            connection.close()

    def _release(self) -> None:
        release_port(self.port)
