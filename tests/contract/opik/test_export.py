"""`rampgate export` against a local Opik (PF-9 FR-12): what stands in its lines, in what order, and who may have them.

On real Kafka: `tests/stream/test_export_audit.py`.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import orjson
import pytest

from rampgate.export import command, verification, writing
from rampgate.export.command import Options, export_turns
from rampgate.export.writing import Written
from rampgate.local.opik.server import start
from rampgate.settings_sources import load_settings
from tests.contract.opik.scripted_opik import ScriptedOpik, trace_id_at
from tests.contract.opik.sync_rig import Rig
from tests.contract.opik.traces_rig import MINUTE, iso, now
from tests.memory_ports import AuditSink
from tests.unit.rampgate.cli.registry_copies import Ran, copied

DOWN = "feedback_scores.user_signal_thumbs < 0"
AWKWARD = "one\u2028two\u2029\x85\x1b[31m\x00 \U0001f600 three\r\nfour"


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> AuditSink:
    made = AuditSink()
    monkeypatch.setattr(command, "Producer", lambda access: made)
    return made


@pytest.fixture
async def rig(tmp_path: Path, opik: ScriptedOpik, monkeypatch: pytest.MonkeyPatch, sink: AuditSink) -> Rig:
    monkeypatch.setattr("rampgate.logs.configure_logs", lambda level, form: None)
    monkeypatch.setenv("RAMPGATE_OPIK_LOOKUPS_PER_MINUTE", "60000")
    return Rig(copied(tmp_path), opik)


async def add(
    rig: Rig, response_id: str, ago: int, thumbs: float | None = -1.0, said: Any = "hi", answer: Any = None,
    **metadata: Any,
) -> str:  # fmt: skip
    """A turn that began so many minutes ago, which repeats what was said unless `answer` differs; returns its trace's
    id."""
    project, at = metadata.pop("project", "receipts-eval"), now() - ago * MINUTE
    labels = {"response_id": response_id, "vertical": "receipts", "sub_agent": "scan", "prompt_version": 7}
    trace = {"id": trace_id_at(at), "project_name": project, "name": "turn", "start_time": iso(at)}
    texts = {"input": {"q": said}, "output": said if answer is None else answer, **metadata.pop("texts", {})}
    await rig.opik.add_traces(trace | {"end_time": iso(at + 5), "metadata": {**labels, **metadata}, **texts})
    if thumbs is not None:
        await rig.opik.add_score(str(trace["id"]), "user_signal_thumbs", thumbs, project)
    return str(trace["id"])


async def export(rig: Rig, *flags: str, where: str = DOWN, vertical: str = "receipts", **environment: str) -> Ran:
    return await rig.run("export", "--where", where, "--vertical", vertical, *flags, **environment)


def lines(content: str) -> list[dict[str, Any]]:
    return [json.loads(one) for one in content.split("\n")[:-1]]


async def test_pf9_fr12_ac12_each_turn_that_matches_is_a_line_with_texts_and_all_scores(
    rig: Rig, sink: AuditSink
) -> None:
    trace_id = await add(rig, "down", 5, said="where is it?", category="tips")
    await rig.opik.add_score(trace_id, "tone", 2, "receipts-eval")
    await rig.opik.add_score(trace_id, "helpfulness", 4, "receipts-eval")
    await rig.opik.add_score(trace_id, "user_signal_reroll", 1, "receipts-eval")
    await add(rig, "up", 4, thumbs=1.0)
    await add(rig, "silent", 3, thumbs=None)
    ran = await export(rig)
    assert ran.code == 0, ran.err
    (found,) = lines(ran.out)
    assert found.pop("timestamp").startswith("20")
    assert found == {
        "trace_id": trace_id,
        "response_id": "down",
        "vertical": "receipts",
        "sub_agent": "scan",
        "prompt_version": "7",
        "category": "tips",
        "user_query": '{"q": "where is it?"}',
        "agent_response": "where is it?",
        "judge_scores": {"helpfulness": 4.0, "tone": 2.0},
        "feedback_scores": {"user_signal_reroll": 1.0, "user_signal_thumbs": -1.0},
    }
    (record,) = sink.pages
    assert (record["purpose"], record["vertical"], record["count"]) == ("eval", "receipts", 1)
    assert record["caller"].startswith("cli:")
    assert record["query"]["where"] == "feedback_scores.user_signal_thumbs < 0.0"


MESSAGES = {"messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": "where is it?"}]}
ANSWER = {
    "messages": [{"role": "assistant", "content": [{"type": "text", "text": "in your wallet"}]}],
    "usage": {"n": 3},
}


async def texts_of(rig: Rig) -> list[tuple[str, str]]:
    ran = await export(rig)
    assert ran.code == 0, ran.err
    return [(one["user_query"], one["agent_response"]) for one in lines(ran.out)]


async def test_pf9_fr12_ac12_a_line_has_the_texts_that_judges_read_and_whole_json_where_there_is_none(rig: Rig) -> None:
    """By the path that the online binding names: the vertical's own where it states one, and a trace with more around
    the text than judges read."""
    await add(rig, "messages", 5, texts={"input": MESSAGES, "output": ANSWER})
    await add(rig, "other", 4, texts={"input": {"asked": {"words": "when?"}}, "output": {"reply": [1]}})
    assert await texts_of(rig) == [
        ('{"asked": {"words": "when?"}}', '{"reply": [1]}'),
        ("where is it?", "in your wallet"),
    ]
    file = rig.configs / "verticals" / "receipts.yaml"
    file.write_text(file.read_text() + "\ntrace: {question: input.asked.words, answer: output.reply}\n")
    assert await texts_of(rig) == [
        ("when?", "[1]"),
        (json.dumps(MESSAGES), json.dumps(ANSWER)),
    ]


async def test_nothing_of_other_verticals_sub_agents_and_times_is_exported(rig: Rig) -> None:
    await add(rig, "mine", 5)
    await add(rig, "other-sub-agent", 5, sub_agent="chat")
    await add(rig, "old", 3 * 24 * 60)
    await add(rig, "theirs", 5, vertical="rewards_assistant")
    await add(rig, "elsewhere", 5, project="consumer-agent")
    ran = await export(rig, "--sub-agent", "scan", "--since", "1d")
    assert [one["response_id"] for one in lines(ran.out)] == ["mine"]


async def test_audit_counts_and_hashes_equal_the_export_page_by_page(
    rig: Rig, sink: AuditSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PF-9 FR-12: PS-5's sink captures the access."""
    monkeypatch.setattr("streams.opik.traces.WHOLE_PAGE", 3)
    for number in range(8):
        await add(rig, f"r-{number}", 20 - number)
    file = tmp_path / "out.jsonl"
    ran = await export(rig, "--output", str(file), "--json")
    assert ran.code == 0, ran.err
    ids = [one["response_id"] for one in lines(file.read_text())]
    assert ids == [f"r-{number}" for number in range(7, -1, -1)]
    assert [record["count"] for record in sink.pages] == [3, 3, 2]
    for number, record in enumerate(sink.pages):
        page = sorted(ids[3 * number : 3 * number + 3])
        assert record["response_ids_sha256"] == hashlib.sha256("\n".join(page).encode()).hexdigest()
    assert (ran.json["lines"], ran.json["pages"], ran.json["limit_reached"]) == (8, 3, False)
    assert ran.json["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    limited = await export(rig, "--limit", "4")
    assert [one["response_id"] for one in lines(limited.out)] == ids[:4]
    assert [record["count"] for record in sink.pages[3:]] == [3, 1]
    assert "there may be more" in limited.err


async def test_pf9_ac12_without_audit_there_is_no_line(
    rig: Rig, sink: AuditSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.opik.traces.WHOLE_PAGE", 2)
    for number in range(5):
        await add(rig, f"r-{number}", 20 - number)
    sink.failing_after = 1
    ran = await export(rig)
    assert (ran.code, "can't be audited" in ran.err) == (2, True)
    assert [one["response_id"] for one in lines(ran.out)] == ["r-4", "r-3"], "what is audited, and no more"


async def test_pf9_ac12_an_export_that_failed_goes_on_with_the_same_command_and_its_records_are_of_one_export(
    rig: Rig, sink: AuditSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the window of the one that failed: turns that came since are none of its."""
    monkeypatch.setattr("streams.opik.traces.WHOLE_PAGE", 2)
    for number in range(5):
        await add(rig, f"r-{number}", 20 - number)
    file = tmp_path / "out.jsonl"
    sink.failing_after = 1
    failed = await export(rig, "--output", str(file))
    assert (failed.code, "can't be audited" in failed.err, file.exists()) == (2, True, False)
    sink.failing_after = None
    await add(rig, "since-then", 0)
    ran = await export(rig, "--output", str(file), "--json")
    assert (ran.code, "goes on with 1 pages of lines" in ran.err) == (0, True), ran.err
    found = lines(file.read_text())
    assert [one["response_id"] for one in found] == ["r-4", "r-3", "r-2", "r-1", "r-0"]
    assert (ran.json["lines"], ran.json["pages"]) == (5, 3)
    assert ran.json["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert [record["count"] for record in sink.pages] == [2, 2, 1]
    assert [record["query"]["page"] for record in sink.pages] == [1, 2, 3]
    assert {record["query"]["export"] for record in sink.pages} == {ran.json["export"]}
    assert len({record["query"]["until"] for record in sink.pages}) == 1
    assert [one.name for one in tmp_path.iterdir() if "jsonl" in one.name] == ["out.jsonl"]


async def test_an_export_that_failed_begins_again_where_the_vertical_states_another_layout(
    rig: Rig, sink: AuditSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.opik.traces.WHOLE_PAGE", 2)
    for number in range(3):
        await add(rig, f"r-{number}", 20 - number)
    file, vertical = tmp_path / "out.jsonl", rig.configs / "verticals" / "receipts.yaml"
    sink.failing_after = 1
    assert (await export(rig, "--output", str(file))).code == 2
    sink.failing_after = None
    vertical.write_text(vertical.read_text() + "\ntrace: {question: input.q}\n")
    ran = await export(rig, "--output", str(file))
    assert (ran.code, "goes on" in ran.err) == (0, False), ran.err
    assert [one["user_query"] for one in lines(file.read_text())] == ["hi"] * 3


SEARCH = {"path": "traces/search"}


@pytest.mark.parametrize(
    "fault", [{"status": 429, "headers": {"Retry-After": "1"}}, {"status": 503}, {"drop": True}], ids=str
)
async def test_an_opik_that_fails_for_a_moment_in_the_middle_costs_no_line_and_doubles_none(
    rig: Rig, sink: AuditSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any]
) -> None:
    monkeypatch.setattr("streams.opik.traces.WHOLE_PAGE", 2)
    for number in range(6):
        await add(rig, f"r-{number}", 20 - number)
    await rig.opik.fault(match=SEARCH, times=2)  # the look without texts and the first page
    await rig.opik.fault(match=SEARCH, times=1, **fault)
    file = tmp_path / "out.jsonl"
    ran = await export(rig, "--output", str(file), RAMPGATE_OPIK_RETRY_SECONDS="60")
    assert ran.code == 0, ran.err
    assert [one["response_id"] for one in lines(file.read_text())] == [f"r-{number}" for number in range(5, -1, -1)]
    assert [record["count"] for record in sink.pages] == [2, 2, 2]


async def test_an_opik_that_fails_for_good_in_the_middle_leaves_a_beginning(
    rig: Rig, sink: AuditSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.opik.traces.WHOLE_PAGE", 2)
    for number in range(6):
        await add(rig, f"r-{number}", 20 - number)
    await rig.opik.fault(match=SEARCH, times=3)
    await rig.opik.fault(match=SEARCH, status=503)
    file = tmp_path / "out.jsonl"
    ran = await export(rig, "--output", str(file))
    assert (ran.code, "503" in ran.err, file.exists()) == (2, True, False), ran.err
    assert [record["count"] for record in sink.pages] == [2, 2]
    await rig.opik.heal()
    assert (await export(rig, "--output", str(file))).code == 0
    assert [one["response_id"] for one in lines(file.read_text())] == [f"r-{number}" for number in range(5, -1, -1)]
    assert [record["query"]["page"] for record in sink.pages] == [1, 2, 3]


async def test_a_response_that_another_trace_answers_meanwhile_is_a_line_once(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late trace of it that began earlier stands on a page that is yet to come."""
    monkeypatch.setattr("streams.opik.traces.WHOLE_PAGE", 1)
    for number in range(3):
        await add(rig, f"r-{number}", 20 - number)
    real, loop = Written.add, asyncio.get_running_loop()

    async def added_to(self: Written, page: Any, **named: Any) -> None:
        await real(self, page, **named)
        if self.pages == 1:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(add(rig, "r-2", 30), loop))

    monkeypatch.setattr(Written, "add", added_to)
    file = tmp_path / "out.jsonl"
    assert (await export(rig, "--output", str(file))).code == 0
    assert [one["response_id"] for one in lines(file.read_text())] == ["r-2", "r-1", "r-0"]


async def test_texts_survive_whatever_stands_in_them(rig: Rig, tmp_path: Path) -> None:
    await add(rig, "text", 5, said=AWKWARD)
    file = tmp_path / "out.jsonl"
    assert (await export(rig, "--output", str(file))).code == 0
    content = file.read_text()
    assert len(content.splitlines()) == 1
    (found,) = lines(content)
    assert found["agent_response"] == AWKWARD


async def test_bad_input_ends_with_2_and_what_to_do(rig: Rig, sink: AuditSink, tmp_path: Path) -> None:
    await add(rig, "r", 5)
    bad = {
        "--where: column 1": await export(rig, where="thumbs < 0"),
        "receipts": await export(rig, vertical="reciepts"),
        "--since": await export(rig, "--since", "yesterday"),
        "not in the past": await export(rig, "--since", "2999-01-01"),
        "--output FILE": await export(rig, "--json"),
        "can't be written": await export(rig, "--output", str(tmp_path / "no" / "file")),
        "Opik": await export(rig, RAMPGATE_OPIK="http://127.0.0.1:9"),
    }
    for told, ran in bad.items():
        assert (ran.code, ran.out, told in ran.err) == (2, "", True), ran.err


async def test_an_output_that_is_a_folder_is_refused_before_anything_is_read(rig: Rig, tmp_path: Path) -> None:
    await add(rig, "r", 5)
    before = await rig.opik.requests()
    ran = await export(rig, "--output", str(tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert f"--output {tmp_path}: is a folder; name a file in it" in ran.err
    assert await rig.opik.requests() == before


@pytest.mark.filterwarnings("ignore:BasicAuth is deprecated")
async def test_who_waits_for_opik_learns_at_once_for_what_and_how_long(rig: Rig, tmp_path: Path) -> None:
    """Each page that is asked for again says so once, however often it is; what it comes to stays the same."""
    await add(rig, "r", 5)
    await rig.opik.fault(match=SEARCH, times=3, status=503)
    file = tmp_path / "out.jsonl"
    ran = await export(rig, "--output", str(file), RAMPGATE_OPIK_RETRY_SECONDS="50")
    assert (ran.code, len(lines(file.read_text()))) == (0, 1), ran.err
    told = [line for line in ran.err.splitlines() if line.startswith("waiting for Opik at ")]
    assert len(told) == 1, ran.err
    assert told[0].startswith(f"waiting for Opik at {rig.opik.url}, up to 50 s: 503")
    nobody = await export(rig, RAMPGATE_OPIK="http://reader:secret@127.0.0.1:9", RAMPGATE_OPIK_RETRY_SECONDS="1")
    assert nobody.code == 2
    assert "waiting for Opik at http://reader:***@127.0.0.1:9, up to 1 s: ConnectError" in nobody.err
    assert "secret" not in nobody.err


async def test_a_full_disk_ends_the_command_with_what_to_do_and_it_goes_on(
    rig: Rig, sink: AuditSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is there before the lines; of the page the last record counts."""

    def full(found: object) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    await add(rig, "r", 5)
    file = tmp_path / "out.jsonl"
    with monkeypatch.context() as patched:
        patched.setattr(writing, "encoded", full)
        ran = await export(rig, "--output", str(file))
    assert (ran.code, ran.out, [one.name for one in tmp_path.iterdir() if "jsonl" in one.name]) == (2, "", [])
    assert "out.jsonl: can't be written: No space left on device; once it can, the same command goes on" in ran.err
    assert len(sink.pages) == 1
    assert (await export(rig, "--output", str(file))).code == 0
    assert [one["response_id"] for one in lines(file.read_text())] == ["r"]
    assert [record["query"]["page"] for record in sink.pages] == [1, 1]


async def test_a_vertical_is_read_with_its_own_key_alone(rig: Rig, sink: AuditSink) -> None:
    await add(rig, "r", 5)
    file = rig.configs / "verticals" / "receipts.yaml"
    file.write_text(file.read_text() + f"\napi_key_file: {rig.configs / 'no-such-key'}\n")
    ran = await export(rig, RAMPGATE_OPIK_API_KEY="the operator's")
    assert (ran.code, ran.out, "api_key_file of receipts" in ran.err) == (2, "", True)
    assert sink.pages == []


@pytest.fixture
async def guarded(tmp_path: Path, sink: AuditSink, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    """An Opik that wants the operator's key."""
    monkeypatch.setattr("rampgate.logs.configure_logs", lambda level, form: None)
    running = await start(api_key="the operator's")
    headers = {"Authorization": "the operator's", "Comet-Workspace": "default"}
    async with httpx.AsyncClient(timeout=20, headers=headers) as http:
        yield Rig(copied(tmp_path), ScriptedOpik(running.url, http))
    await running.close()


async def test_a_key_that_opik_refuses_is_told_with_the_vertical_and_its_file(guarded: Rig, sink: AuditSink) -> None:
    """Such as another vertical's: nothing is read with the operator's instead."""
    await add(guarded, "r", 5)
    assert (await export(guarded, RAMPGATE_OPIK_API_KEY="the operator's")).code == 0
    file, secret = guarded.configs / "verticals" / "receipts.yaml", guarded.configs / "receipts.key"
    file.write_text(f"{file.read_text()}\napi_key_file: {secret}\n")
    secret.write_text("another vertical's\n")
    sink.records.clear()
    ran = await export(guarded, RAMPGATE_OPIK_API_KEY="the operator's")
    assert (ran.code, ran.out, sink.pages) == (2, "", [])
    assert all(word in ran.err for word in ("vertical receipts", "receipts-eval", "api_key_file in", "receipts.yaml"))
    assert "another vertical's" not in ran.err


async def test_a_reader_that_goes_away_ends_the_export_quietly(
    rig: Rig, sink: AuditSink, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`rampgate export … | head`: one page is on record that nobody read, and none is read after it."""
    monkeypatch.setattr("streams.opik.traces.WHOLE_PAGE", 2)
    for number in range(6):
        await add(rig, f"r-{number}", 20 - number)
    settings = load_settings({"configs": rig.configs, "opik": rig.opik.url})
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr("sys.stdout", pipe)
        options = Options(DOWN, "receipts", None, "7d", None, None)
        assert await asyncio.to_thread(lambda: asyncio.run(export_turns(settings, options))) is None
        monkeypatch.undo()
    assert capsys.readouterr().err == ""
    assert [record["count"] for record in sink.pages] == [2]


SEALED = {"RAMPGATE_SEAL_KEY": "a key of this installation"}


@pytest.fixture
async def down(rig: Rig, sink: AuditSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of five lines in three pages, whose audit stands on the topic that `--verify` reads."""
    monkeypatch.setattr("streams.opik.traces.WHOLE_PAGE", 2)

    async def records(access: Any, topic: str) -> AsyncIterator[SimpleNamespace]:
        for one in sink.records:
            yield SimpleNamespace(value=orjson.dumps(one))

    monkeypatch.setattr(verification, "records_now", records)
    for number in range(5):
        await add(rig, f"r-{number}", 60 - number)
    file = tmp_path / "down.jsonl"
    ran = await rig.run("export", "--where", DOWN, "--vertical", "receipts", "--output", str(file), **SEALED)
    assert ran.code == 0, ran.err
    return file


async def verified(rig: Rig, file: Path) -> tuple[int, dict[str, Any]]:
    ran = await rig.run("export", "--verify", str(file), "--json", **SEALED)
    return ran.code, ran.json


async def test_the_last_record_has_the_pages_and_the_bytes_and_the_file_is_verified(
    rig: Rig, sink: AuditSink, down: Path
) -> None:
    *pages, end = sink.records
    sha256 = hashlib.sha256(down.read_bytes()).hexdigest()
    assert (end["query"]["pages"], end["query"]["lines"], end["query"]["sha256"]) == (len(pages), 5, sha256)
    assert len(pages) > 1
    code, told = await verified(rig, down)
    assert (code, told["holds"], told["export"], told["pages"]) == (0, True, end["query"]["export"], len(pages))
    ran = await rig.run("export", "--verify", str(down))
    assert (ran.code, "RAMPGATE_SEAL_KEY" in ran.err) == (2, True)


@pytest.mark.parametrize("change", ["last page", "first page", "end", "count", "another's key", "cut file"])
async def test_an_audit_or_a_file_that_lacks_something_is_not_verified(
    rig: Rig, sink: AuditSink, down: Path, change: str
) -> None:
    if change == "last page":
        del sink.records[-2]
    elif change == "first page":
        del sink.records[0]
    elif change == "end":
        del sink.records[-1]
    elif change == "count":
        sink.records[1]["count"] += 1
    elif change == "another's key":
        sink.records[-1]["query"]["hmac"] = "0" * 64
    else:
        down.write_bytes(b"".join(down.read_bytes().splitlines(keepends=True)[:-2]))
    code, told = await verified(rig, down)
    assert (code, told["holds"], bool(told["reason"])) == (1, False, True)


async def test_two_exports_on_one_topic_are_two_chains(rig: Rig, sink: AuditSink, down: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.jsonl"
    ran = await rig.run("export", "--where", DOWN, "--vertical", "receipts", "--output", str(again), **SEALED)
    assert ran.code == 0, ran.err
    assert [one["query"]["previous"] for one in sink.records].count("") == 2
    assert (await verified(rig, down))[0] == (await verified(rig, again))[0] == 0
