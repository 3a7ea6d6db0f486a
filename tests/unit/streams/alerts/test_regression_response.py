"""A regression's response carried out against a local server, a file and a producer's twin (PC5 §5.7)."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from structlog.testing import capture_logs

from agents.ports import Unavailable
from evalcore.gates.messages import HEADER, log_line, ramp_command
from evalcore.gates.regression import Response, Step
from evalcore.scoring.http_client import HttpClient
from streams.alerts.notifiers import Address, grafana
from streams.alerts.regression_response import TITLE, Channels, Responder, TrendLog
from streams.alerts.regression_watch import Ours, PendingResponse, Regressions
from tests.unit.agents.builders import NOW
from tests.unit.evalcore.gates.regression_cases import bad, good, only, seen
from tests.unit.streams.alerts.notifier_rig import Server, notifier


@dataclass
class Commands:
    """Stands for the topic of commands."""

    sent: list[dict[str, Any]] = field(default_factory=list)
    away: bool = False

    async def send(self, response: Response, since: int, ours: Ours) -> None:
        if self.away:
            raise Unavailable("Kafka producer")
        self.sent.append(ramp_command(response))


@dataclass
class Triage:
    """Stands for the topic of triage items."""

    opened: list[tuple[str, int]] = field(default_factory=list)
    away: bool = False
    broken: bool = False

    async def open(self, response: Response, since: int) -> None:
        if self.away:
            raise Unavailable("Kafka producer")
        if self.broken:
            raise ZeroDivisionError
        self.opened.append((response.breach.judge_id, since))


@dataclass
class Rig:
    server: Server
    commands: Commands
    triage: Triage
    file: Path
    responder: Responder

    async def carry_out(self, response: Response) -> tuple[Step, ...]:
        """The steps that are left."""
        return (await taken(self.responder, pending_response(response))).left

    def paths(self) -> list[str]:
        return [path for path, _, _ in self.server.taken]

    def rows(self) -> list[str]:
        return self.file.read_text().split(HEADER)[1].splitlines()


def pending_response(response: Response) -> PendingResponse:
    return PendingResponse(response, response.steps, NOW, NOW)


async def ours() -> bool:
    return True


async def taken(responder: Responder, pending: PendingResponse) -> PendingResponse:
    """Each step that is left taken in its order, and struck off where it is done."""
    for step in pending.left:
        if await responder.carry_out(pending, step, ours):
            pending = replace(pending, left=tuple(one for one in pending.left if one is not step))
    return pending


@pytest.fixture
async def rig(server: Server, client: HttpClient, tmp_path: Path) -> Rig:
    url, commands, triage, file = server.url, Commands(), Triage(), tmp_path / "docs" / "post-deploy-regressions.md"
    channels = Channels("routing", Address(url + "/slack"), grafana(url, "t"), Address(url + "/v2/enqueue"))
    topic: Any = commands
    items: Any = triage
    responder = Responder(topic, notifier(client), channels, TrendLog(file), items)
    return Rig(server, commands, triage, file, responder)


async def test_a_safety_breach_sends_one_command_to_zero_and_one_page_and_is_logged(rig: Rig) -> None:
    first = seen(bad("refusal"))
    assert await rig.carry_out(only(first)) == ()
    (command,) = rig.commands.sent
    assert (command["agent_id"], command["to_percent"]) == ("assistant", 0)
    assert rig.paths() == ["/v2/enqueue"]
    assert len(rig.rows()) == 1
    assert await rig.carry_out(only(seen(good("refusal"), known=first))) == ()
    assert [body["event_action"] for _, _, body in rig.server.taken] == ["trigger", "resolve"]
    assert len(rig.commands.sent) == 1, "no one is ramped up again by itself"
    assert len(rig.rows()) == 2


async def test_a_quality_breach_goes_to_slack_and_grafana_and_the_log_and_ramps_nothing_down(rig: Rig) -> None:
    assert await rig.carry_out(only(seen(bad("helpfulness")))) == ()
    assert rig.paths() == ["/slack", "/api/annotations"]
    assert rig.commands.sent == []
    assert "triage" in rig.rows()[0]
    assert "2026-11-22T03:00" in rig.rows()[0]


async def test_pc5_5_7_a_quality_breach_opens_a_triage_item_and_a_safety_breach_none(rig: Rig) -> None:
    assert await rig.carry_out(only(seen(bad("helpfulness")))) == ()
    assert await rig.carry_out(only(seen(bad("refusal")))) == ()
    assert rig.triage.opened == [("helpfulness", NOW)]


async def test_a_triage_item_that_could_not_be_written_is_left_and_the_rest_is_done(rig: Rig) -> None:
    rig.triage.away = True
    assert await rig.carry_out(only(seen(bad("helpfulness")))) == (Step.TRIAGE,)
    assert rig.paths() == ["/slack", "/api/annotations"]
    assert len(rig.rows()) == 1


async def test_a_step_with_a_defect_is_left_and_takes_no_other_with_it(rig: Rig) -> None:
    rig.triage.broken = True
    assert await rig.carry_out(only(seen(bad("helpfulness")))) == (Step.TRIAGE,)
    assert rig.paths() == ["/slack", "/api/annotations"]
    assert len(rig.rows()) == 1


async def test_where_ramping_is_off_the_page_alone_goes_out(rig: Rig) -> None:
    assert await rig.carry_out(only(seen(bad("refusal"), ramping=False))) == ()
    assert rig.commands.sent == []
    assert rig.paths() == ["/v2/enqueue"]
    assert "manual_ramp_down" in rig.rows()[0]


async def test_no_step_is_hindered_by_one_that_fails_and_that_one_alone_is_left(rig: Rig) -> None:
    rig.commands.away = True
    assert await rig.carry_out(only(seen(bad("refusal")))) == (Step.RAMP_DOWN,)
    assert rig.paths() == ["/v2/enqueue"]
    rig.server.statuses = [500] * 3
    left = await taken(rig.responder, pending_response(only(seen(bad("helpfulness")))))
    assert left.left == (Step.MESSAGE,)
    assert len(rig.rows()) == 2
    rig.server.taken.clear()
    assert (await taken(rig.responder, left)).left == ()
    assert rig.paths() == ["/slack"]
    assert "Triage is due" in rig.server.taken[0][2]["text"], "it says what the whole response is"
    assert len(rig.rows()) == 2


async def test_what_is_not_configured_is_said_once_and_the_rest_is_done(rig: Rig, client: HttpClient) -> None:
    topic: Any = rig.commands
    items: Any = rig.triage
    bare = Responder(topic, notifier(client), Channels(), TrendLog(rig.file), items)
    with capture_logs() as logs:
        for judge in ("refusal", "helpfulness"):
            assert (await taken(bare, pending_response(only(seen(bad(judge)))))).left == ()
    assert [line["step"] for line in logs if line["log_level"] == "error"] == ["page", "message", "annotation"]
    assert rig.server.taken == []
    assert len(rig.rows()) == 2


@pytest.mark.parametrize("why", ["sent", "failed", "given up", "off"])
async def test_a_page_says_that_an_agent_is_being_ramped_down_only_where_a_command_went_out(rig: Rig, why: str) -> None:
    """Else it asks for it by hand, and so does the row of the trend log."""
    rig.commands.away = why == "failed"
    response = only(seen(bad("refusal"), ramping=why != "off"))
    if why == "given up":
        known = Regressions(pending=[PendingResponse(response, response.steps, NOW, NOW)])
        known.strike(known.pending[0], Step.RAMP_DOWN, done=False)
        (pending,) = known.pending
        assert Step.RAMP_DOWN not in pending.left
    else:
        pending = pending_response(response)
    await taken(rig.responder, pending)
    ((_, _, paged),) = rig.server.taken
    summary = paged["payload"]["summary"]
    assert ("is being ramped down" in summary) is bool(rig.commands.sent) is (why == "sent")
    assert ("by hand" in summary) is (why != "sent")
    assert ("manual_ramp_down" in rig.rows()[0]) is (why != "sent")


async def test_a_page_that_is_late_says_what_has_become_of_the_command_since(rig: Rig) -> None:
    rig.commands.away = True
    rig.server.statuses = [400]
    left = await taken(rig.responder, pending_response(only(seen(bad("refusal")))))
    assert left.left == (Step.RAMP_DOWN, Step.PAGE)
    rig.commands.away = False
    await taken(rig.responder, left)
    summaries = [body["payload"]["summary"] for _, _, body in rig.server.taken]
    assert ["is being ramped down" in summary for summary in summaries] == [False, True]


def test_the_trend_log_is_appended_to_and_never_rewritten(tmp_path: Path) -> None:
    file = tmp_path / "regressions.md"
    file.write_text("what an operator wrote\n")
    TrendLog(file).append(only(seen(bad("refusal"))))
    TrendLog(file).append(only(seen(bad("helpfulness"))))
    lines = file.read_text().splitlines()
    assert lines[0] == "what an operator wrote"
    assert len(lines) == 3


def test_pc5_5_7_of_rows_that_begin_a_trend_log_together_none_is_lost(tmp_path: Path) -> None:
    """The judges of one bad version are below their floors at one look."""
    rows = [only(seen(bad(judge))) for judge in ("refusal", "helpfulness")] * 4
    for number in range(40):
        file, together = tmp_path / f"{number}.md", Barrier(len(rows))

        def append(response: Response, file: Path = file, together: Barrier = together) -> None:
            together.wait()
            TrendLog(file).append(response)

        with ThreadPoolExecutor(len(rows)) as threads:
            list(threads.map(append, rows))
        text = file.read_text()
        assert text.startswith(TITLE + HEADER)
        assert sorted(text.removeprefix(TITLE + HEADER).splitlines()) == sorted(log_line(row).strip() for row in rows)


@pytest.mark.parametrize(
    "place", ["file/log.md", "folder", "dangling", "closed/log.md", "closed/new/log.md", "own/closed"]
)
def test_pc5_5_7_a_trend_log_that_can_not_be_written_is_known_before_the_first_row(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "closed").mkdir()
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "closed").touch()
    (tmp_path / "dangling").symlink_to("nowhere/at/all")
    may = os.access
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "closed" and may(path, mode))  # root may
    assert "can't be written" in str(TrendLog(tmp_path / place).refusal())
    for fine in ("file", "folder/log.md", "new/folder/log.md"):
        assert TrendLog(tmp_path / fine).refusal() is None
    assert not (tmp_path / "new").exists()
