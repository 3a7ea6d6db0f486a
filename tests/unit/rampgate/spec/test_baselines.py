"""Baselines of a spec are files, a version each (AgentCI Step 3.5)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from rampgate.console import Failure
from rampgate.files import locked
from rampgate.spec.baselines import Baselines, kept_trace, trajectories
from schemas.spec_baselines import BaselineFile

TRACE = {"output": "no", "tool_calls": [{"name": "search"}], "usage": {"total_tokens": 7}, "latency_ms": 12.5}


def made(version: str = "v1", agent: str = "rag-agent", **changes: Any) -> BaselineFile:
    return BaselineFile.model_validate(
        {
            "version": version,
            "agent": agent,
            "captured_at": "2026-11-27T04:00:00+00:00",
            "metadata": {
                "model": "m", "spec_hash": f"sha256:{'0' * 64}", "judge_rubric_ids": ["polite_refusal_v1"],
                "precheck_passed": True,
            },
            "queries": {"weather": {"query": "weather?", "correctness": "pass", "trace": TRACE}},
        } | changes
    )  # fmt: skip


@pytest.fixture
def baselines(tmp_path: Path) -> Baselines:
    return Baselines(tmp_path / "baselines", "rag-agent")


# AgentCI Step 3.5 box 1.
def test_a_version_is_read_as_it_was_written(baselines: Baselines) -> None:
    path = baselines.write(made(), replace=False)
    assert path == baselines.folder / "v1.json"
    found = Baselines(baselines.folder, "RAG_agent").named("v1")
    assert found == made()
    (one,) = trajectories(found.queries["weather"])
    assert (one.tools, one.latency_ms, one.llm_calls) == (["search"], 12.5, None)


# AgentCI Step 3.5 box 5.
def test_the_file_has_the_documents_fields(baselines: Baselines) -> None:
    """`{version, agent, captured_at, metadata{model, spec_hash, judge_rubric_ids, precheck_passed}, …}`; ours is what
    answered, the `configuration`."""
    told = json.loads(baselines.write(made(), replace=False).read_text())
    assert list(told) == ["version", "agent", "captured_at", "metadata", "queries"]
    assert list(told["metadata"]) == ["model", "spec_hash", "judge_rubric_ids", "precheck_passed", "configuration"]


# AgentCI Step 3.5 box 1.
def test_a_version_stays_unless_it_is_replaced(baselines: Baselines) -> None:
    baselines.write(made(), replace=False)
    with pytest.raises(Failure, match="--replace"):
        baselines.write(made(), replace=False)
    baselines.write(made(captured_at="later"), replace=True)
    assert Baselines(baselines.folder, "rag-agent").named("v1").captured_at == "later"


def test_of_two_saves_at_once_one_wins(baselines: Baselines) -> None:
    """The other one is refused, and the file is the winner's, whole."""
    begin = Barrier(8)

    def save(number: int) -> str | None:
        begin.wait()
        try:
            baselines.write(made(captured_at=str(number)), replace=False)
        except Failure:
            return None
        return str(number)

    with ThreadPoolExecutor(8) as pool:
        won = [one for one in pool.map(save, range(8)) if one is not None]
    assert len(won) == 1
    assert Baselines(baselines.folder, "rag-agent").named("v1").captured_at == won[0]


def test_nothing_is_saved_while_another_save_is_at_work(baselines: Baselines) -> None:
    baselines.folder.mkdir()
    with locked(baselines.folder), pytest.raises(Failure, match="wait for its end"):
        baselines.write(made(), replace=False)
    assert baselines.versions == []


# AgentCI Step 3.5 box 3.
@pytest.mark.parametrize("version", ["../x", "a/b", "", ".hidden", "/etc/x", "a\nb", "x" * 101, "ü"])
def test_a_version_is_no_path(baselines: Baselines, version: str) -> None:
    with pytest.raises(Failure, match="version: must be"):
        baselines.read(version)


def test_a_link_is_no_version(baselines: Baselines, tmp_path: Path) -> None:
    """What it leads to would be written."""
    baselines.folder.mkdir()
    (baselines.folder / "v1.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(Failure, match="got a link"):
        baselines.write(made(), replace=True)


def test_another_agents_file_is_refused(baselines: Baselines) -> None:
    other = Baselines(baselines.folder, "support-router")
    other.write(made(agent="support-router"), replace=False)
    for use in (lambda: baselines.read("v1"), lambda: baselines.write(made(), replace=True)):
        with pytest.raises(Failure, match=r"agent: must be 'rag-agent'.*got 'support-router'"):
            use()


@pytest.mark.parametrize(
    ("text", "why"),
    [("{", "JSON"), ("{}", "version"), (json.dumps(made("v2").model_dump(mode="json")), "as the file is named")],
)
def test_a_file_that_is_no_baseline_is_refused(baselines: Baselines, text: str, why: str) -> None:
    baselines.folder.mkdir()
    (baselines.folder / "v1.json").write_text(text)
    with pytest.raises(Failure, match=why):
        baselines.read("v1")


def test_a_missing_version_names_those_there_are(baselines: Baselines) -> None:
    assert baselines.read("v9") is None
    baselines.write(made(), replace=False)
    with pytest.raises(Failure, match="those there are: v1"):
        baselines.named("v9")
    assert baselines.versions == ["v1"]


def test_a_trace_keeps_what_a_trajectory_reads() -> None:
    assert kept_trace({**TRACE, "case": {"input": "x"}, "spans": [1]}) == TRACE
