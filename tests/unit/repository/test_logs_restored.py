"""One test's logs are not another's: what a command configures in a test's process ends with that test."""

from __future__ import annotations

import io
import logging

import structlog
from structlog.testing import capture_logs

from rampgate.logs import configure_logs
from tests.logs_restored import logs_restored

log = structlog.get_logger()


def test_what_a_command_configures_is_gone_after_its_test() -> None:
    root, opik = logging.getLogger(), logging.getLogger("opik")
    before = (list(root.handlers), root.level, opik.level, structlog.get_config())
    with logs_restored():
        configure_logs("error", "json")
        assert structlog.get_config() != before[3]
        log.error("kept")
    assert (list(root.handlers), root.level, opik.level, structlog.get_config()) == before


def test_a_logger_used_under_a_command_is_captured_by_the_next_test() -> None:
    with logs_restored():
        configure_logs("info", "json")
        logging.getLogger().handlers[:] = [logging.StreamHandler(io.StringIO())]
        log.info("under the command")
    with capture_logs() as logs:
        log.info("in the next test")
    assert [line["event"] for line in logs] == ["in the next test"]
