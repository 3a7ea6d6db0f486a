"""GitHub is asked who approved a pull request (PC5 §5.5); without its word no override holds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from agents.ports import Unauthorized, Unavailable
from evalcore.gates.overrides import PullRequest
from rampgate.ci_gate.github import read_pull_request
from rampgate.console import Failure
from rampgate.overrides import looked_up
from rampgate.settings import SettingsError
from rampgate.settings_sources import load_settings
from streams.retry import Retry
from tests.unit.rampgate.ci_gate.github_api import PULL, FakeGitHub, github


@pytest.fixture
def host() -> Iterator[FakeGitHub]:
    with github() as fake:
        yield fake


def read(host: FakeGitHub, key: str | None = "made-up") -> PullRequest:
    return asyncio.run(read_pull_request(host.url, key, "example/agents", 12, Retry(0.01, 0.01, tries=3)))


def test_the_recorded_answer_says_who_approved_which_commit(host: FakeGitHub) -> None:
    host.says("A description", "bug", "eval-skip-pre-ramp")
    assert read(host) == replace(PULL, description="A description", labels=("bug", "eval-skip-pre-ramp"))
    (asked,) = host.asked
    assert asked["variables"] == {"owner": "example", "name": "agents", "number": 12}
    assert "latestOpinionatedReviews(first: 100, writersOnly: true)" in asked["query"]
    assert host.tokens == ["Bearer made-up"]


@pytest.mark.parametrize("state", ["CHANGES_REQUESTED", "DISMISSED", "COMMENTED", "PENDING"])
def test_only_an_approval_approves(host: FakeGitHub, state: str) -> None:
    host.pull["latestOpinionatedReviews"]["nodes"][1]["state"] = state
    assert read(host).approvals == ()


def test_who_has_left_github_approves_nothing(host: FakeGitHub) -> None:
    host.pull["latestOpinionatedReviews"]["nodes"][1]["author"] = None
    host.pull["author"] = None
    found = read(host)
    assert (found.approvals, found.author) == ((), "")


RULES = {"nodes": [{"parameters": {"reviews": 2, "owners": False}}, {"parameters": {}}, {"parameters": None}]}


@pytest.mark.parametrize(
    ("branch", "required"),
    [
        ({"refUpdateRule": {"reviews": 1, "owners": True}, "rules": None}, (1, True)),
        ({"refUpdateRule": {"reviews": None, "owners": True}, "rules": RULES}, (2, True)),
        ({"refUpdateRule": None, "rules": RULES}, (2, False)),
        ({"refUpdateRule": {"reviews": 0, "owners": None}, "rules": {"nodes": []}}, (0, False)),
        ({"refUpdateRule": None, "rules": None}, (0, False)),
        (None, (0, False)),
    ],
)
def test_pc5_5_5_a_branch_requires_what_its_protection_or_a_ruleset_does(
    host: FakeGitHub, branch: Any, required: tuple[int, bool]
) -> None:
    host.pull["baseRef"] = branch
    found = read(host)
    assert (found.base, found.reviews_required, found.owners_required) == ("main", *required)
    assert (found.merged_as, found.merged_at) == ("", None)
    host.merges("c" * 40)
    assert (read(host).merged_as, read(host).merged_at) == ("c" * 40, datetime(2026, 11, 20, 9, 30, tzinfo=UTC))


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_may_not_read_is_told_at_once(host: FakeGitHub, status: int) -> None:
    host.status = status
    with pytest.raises(Unauthorized, match=f"answers {status}"):
        read(host)
    assert len(host.asked) == 1


@pytest.mark.parametrize(("status", "times"), [(502, 3), (404, 1), (301, 1)])
def test_a_host_that_does_not_answer_says_nothing(host: FakeGitHub, status: int, times: int) -> None:
    host.status = status
    with pytest.raises(Unavailable, match=f"answers {status}"):
        read(host)
    assert len(host.asked) == times


@pytest.mark.parametrize(
    "body",
    [
        {"data": {"repository": None}, "errors": [{"type": "NOT_FOUND", "message": "no such thing"}]},
        {"data": {"repository": {"pullRequest": None}}},
        {"data": {"repository": {"pullRequest": {"headRefOid": "9f2c", "author": 7}}}},
        {"errors": []},
        [],
    ],
)
def test_an_answer_without_the_pull_request_approves_nothing(host: FakeGitHub, body: Any) -> None:
    host.body = body
    with pytest.raises(Unavailable, match="does not tell of pull request 12"):
        read(host)


def test_a_command_asks_the_host_that_the_settings_name(host: FakeGitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMPGATE_GITHUB_URL", host.url)
    monkeypatch.setenv("RAMPGATE_GITHUB_TOKEN", "another")
    assert looked_up("example/agents#12") == PULL
    assert host.tokens == ["Bearer another"]
    assert looked_up(None) is None
    host.status = 403
    with pytest.raises(Failure, match="answers 403"):
        looked_up("example/agents#12")


@pytest.mark.parametrize(
    "named",
    ["example/agents#", "example/agents", "example/agents#https://x/12", "example/agents#1٢", "agents#12", "a/b/c#1"],
)
def test_a_pull_request_is_named_by_repository_and_number(named: str) -> None:
    with pytest.raises(Failure, match="--pull-request: must be OWNER/NAME#NUMBER"):
        looked_up(named)


def test_the_token_is_not_sent_in_the_clear() -> None:
    with pytest.raises(SettingsError, match="in the clear"):
        load_settings({"github_url": "http://github.example/api/graphql", "github_token": "t"})
