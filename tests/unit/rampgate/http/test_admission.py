"""Who may ask over HTTP: by which Host, from which page, with whose token; and what may be read without a record."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from agents.join.turn import Turn, encode_turn
from rampgate.http.routes import Side, make_app
from rampgate.http.server import listen
from rampgate.settings import Settings, SettingsError
from schemas.answers import Health
from streams.metrics import Metrics
from tests.unit.rampgate.http.http_world import TRACE, World

GOOD = Health(ok=True, reasons=[], checks={})
READS = ("/", "/metrics", "/coverage", "/conservation", "/turns/r1", "/dead-letters", "/nothing-here")
SAID = "canary words of a user"


class Refreshed:
    """Stands for the registry: counts how often it was refreshed."""

    def __init__(self) -> None:
        self.asked = 0

    async def refresh(self, by: str) -> Any:
        self.asked += 1
        raise AssertionError("reached")


async def status(side: Side, path: str, method: str = "GET", **headers: str) -> int:
    async with TestClient(TestServer(make_app(side))) as client:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return (await client.request(method, path, headers=given)).status


def side(**more: Any) -> Side:
    return Side(Metrics(), lambda: GOOD, lambda: GOOD, **more)


@pytest.mark.parametrize(
    "host", ["rebound.example", "rebound.example:8350", "localhost.example", "10.0.0.7", "[2001:db8::1]:1", "", "a b"]
)
async def test_a_host_that_is_unknown_is_misdirected(host: str) -> None:
    """A page whose name was made to lead here (DNS rebinding) can read nothing."""
    for path in READS:
        assert await status(World().side(), path, Host=host) == 421, path


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8350", "127.0.0.1", "127.0.0.1:1", "[::1]:8350", "localhost."]
)
async def test_loopback_is_always_one_of_our_names(host: str) -> None:
    assert await status(side(), "/metrics", Host=host) == 200


async def test_a_configured_name_is_ours_and_a_probe_may_have_any() -> None:
    named = side(hosts=Settings(http_hosts="Worker, rampgate.example ,").hosts)
    assert await status(named, "/metrics", Host="worker:8350") == 200
    assert await status(named, "/metrics", Host="rampgate.example") == 200
    assert await status(named, "/metrics", Host="worker.example") == 421
    for probe in ("/livez", "/readyz"):
        assert await status(named, probe, Host="10.1.2.3:8350") == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"},
        {"Sec_Fetch_Site": "same-origin", "Origin": "https://elsewhere.example"},
    ],
)
async def test_another_site_s_page_can_not_refresh_the_registry(headers: dict[str, str]) -> None:
    registry: Any = Refreshed()
    assert await status(side(registry=registry), "/refresh", "POST", **headers) == 403
    assert registry.asked == 0


async def test_our_own_page_and_a_program_can_refresh_the_registry() -> None:
    registry: Any = Refreshed()
    served = side(registry=registry, hosts=frozenset({"rampgate.example"}))
    ours = {"Host": "localhost:8350", "Origin": "http://localhost:8350", "Sec_Fetch_Site": "same-origin"}
    for headers in ({}, ours, {"Origin": "https://rampgate.example"}):
        assert await status(served, "/refresh", "POST", **headers) == 500
    assert registry.asked == 3


async def test_a_link_from_elsewhere_may_be_followed_but_leaves_no_audit_record() -> None:
    world = World()
    followed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert await status(world.side(), "/", **followed) == 200
    assert await status(world.side(), "/coverage", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors") == 403
    assert await status(world.side(), "/turns/r1?purpose=eval", **followed) == 403
    assert world.producer.messages == []


class WordyTraces:
    """Opik with one trace, in which words of the user stand wherever they can."""

    async def get(self, trace_id: str) -> dict[str, Any] | None:
        judged = {"name": "response_quality", "value": 0.5, "reason": SAID, "source": "sdk"}
        thumbs = {"name": "user_signal_thumbs", "value": -1.0, "reason": SAID, "source": "sdk"}
        return {
            "id": trace_id,
            "project_name": "p",
            "start_time": "2026-05-26T12:00:00Z",
            "name": SAID,
            "input": {"messages": [SAID]},
            "output": SAID,
            "metadata": {"vertical": "receipts", "frames": [SAID], "note": {SAID: SAID}},
            "tags": [SAID],
            "error_info": {"message": SAID},
            "comments": [{"text": SAID}],
            "thread_id": "s1",
            "feedback_scores": [judged, thumbs],
        }

    async def find(self, since_ms: Any) -> dict[str, Any]:
        return {}


@pytest.fixture
async def wordy() -> World:
    world = World()
    wordy_traces: Any = WordyTraces()
    world.queries._parts.opik.traces = wordy_traces
    turn = Turn(trace=uuid.UUID(TRACE).bytes, project="p", time=world.clock.now_ms())
    world.store.values["t2:r1"] = (encode_turn(turn), world.clock.now_ms() + 1000)
    return world


@pytest.mark.parametrize("query", ["", "?purpose=feedback", "?purpose="])
async def test_a_read_without_a_record_has_scores_and_no_words(wordy: World, query: str) -> None:
    async with TestClient(TestServer(make_app(wordy.side()))) as client:
        answer = await client.get(f"/turns/r1{query}")
        assert answer.status == 200
        text, view = await answer.text(), await answer.json()
    assert "canary" not in text
    assert view["feedback_scores"] == {"user_signal_thumbs": -1.0}
    assert [(judge["judge_id"], judge["score"]) for judge in view["judge_scores"]] == [("response_quality", 0.5)]
    assert (view["trace"]["id"], view["vertical"]) == (TRACE, "receipts")
    assert wordy.producer.messages == []


async def test_a_read_for_evaluation_has_the_words_and_a_record(wordy: World) -> None:
    async with TestClient(TestServer(make_app(wordy.side()))) as client:
        view = await (await client.get("/turns/r1?purpose=eval")).json()
    assert (view["trace"]["output"], view["frames"], view["judge_scores"][0]["reason"]) == (SAID, [SAID], SAID)
    assert len(wordy.producer.messages) == 1


async def test_the_audit_knows_a_caller_by_its_token(wordy: World, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("jade of-jade\ncuration of-curation\n")
    callers = Settings(tokens_file=file).callers()
    served = Side(wordy.metrics, lambda: GOOD, lambda: GOOD, "shared", wordy.queries, callers=callers)
    async with TestClient(TestServer(make_app(served))) as client:

        async def caller(token: str | None, **headers: str) -> str:
            bearer = {"Authorization": f"Bearer {token}"} if token else {}
            answer = await client.get("/turns/r1?purpose=eval", headers=headers | bearer)
            assert answer.status == 200
            return str(wordy.producer.messages[-1][1].decode())

        assert await caller("of-jade") == "jade@127.0.0.1"
        assert await caller("of-curation", **{"Rampgate-Caller": "jade@10.0.0.1"}) == (
            "curation says jade_10.0.0.1@127.0.0.1"
        )
        assert await caller("shared", **{"Rampgate-Caller": "jade"}) == "shared-token says jade@127.0.0.1"
        password = base64.b64encode(b"anyone:of-jade").decode()
        assert await caller(None, Authorization=f"Basic {password}") == "jade@127.0.0.1"
        assert (await client.get("/turns/r1", headers={"Authorization": "Bearer of-nobody"})).status == 401


@pytest.mark.parametrize("text", ["jade", "jade a b", "ja/de canary", "a canary\nb canary", ""])
def test_a_tokens_file_that_can_not_be_used_is_told_without_its_tokens(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    with pytest.raises(SettingsError, match="tokens_file") as refused:
        Settings(tokens_file=file).callers()
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize("http", ["0.0.0.0:0", "[::]:0", "worker.example:0"])
async def test_beyond_this_machine_it_does_not_start_without_a_token(http: str) -> None:
    with pytest.raises(SettingsError, match="reached from other machines"):
        await listen(Settings(http=http), side())


async def test_beyond_this_machine_it_starts_with_any_token(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("jade of-jade")
    for settings, served in (
        (Settings(http="0.0.0.0:0"), side(token="t")),
        (Settings(http="0.0.0.0:0", tokens_file=file), side()),
        (Settings(http="127.0.0.2:0"), side()),
    ):
        await (await listen(settings, served)).close()
