"""A candidate's Python entry point runs apart: what a case does costs that case alone, and nothing of ours is there."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from evalcore.gates.golden import CandidateAnswer
from evalcore.scoring.items import Failed
from rampgate.suite.candidates.entry_point import RUNNER, EntryPointCandidate
from rampgate.suite.candidates.processes import environment

CANDIDATE = """
import os, signal, sys, time, asyncio, threading

asked = 0

def answer(case):
    global asked
    asked += 1
    said = case["input"]
    if said == "print":
        print("x" * 100_000); sys.stdout.flush(); os.write(1, b"\\x00\\x00\\x00\\x02{}"); os.write(2, b"noise")
    if said == "exit":
        sys.exit(3)
    if said == "die":
        print("about to die"); sys.stdout.flush()
        os.kill(os.getpid(), signal.SIGSEGV)
    if said == "hang":
        while True:
            time.sleep(1)
    if said == "hog":
        held = bytearray(1 << 40)
    if said == "raise":
        raise ValueError("no such tool")
    if said == "not json":
        return {"output": object()}
    if said == "nan":
        return {"output": float("nan")}
    if said == "nothing":
        return None
    if said == "long":
        return "x" * (5 << 20)
    if said == "close":
        os.closerange(3, 65_536); time.sleep(600)
    if said == "die later":
        threading.Timer(0.05, os._exit, (5,)).start()
    return {"output": f"{said}!", "tool_calls": [], "asked": asked}

LOOPS = []

async def answer_later(case):
    await asyncio.sleep(0)
    LOOPS.append(asyncio.get_running_loop())
    return f"{case['input']}, {len(set(LOOPS))} of {len(LOOPS)} loops"

def wait_itself(case):
    return asyncio.get_event_loop().run_until_complete(answer_later(case))

def where(case):
    try:
        __import__(case["input"])
        return "found"
    except ModuleNotFoundError as error:
        return str(error)

def variables(case):
    return " ".join(sorted(os.environ))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "candidate.py").write_text(CANDIDATE)
    return tmp_path


def point(folder: Path, function: str = "answer", **others: Any) -> EntryPointCandidate:
    return EntryPointCandidate(f"candidate:{function}", folder, sys.executable, **others)


@asynccontextmanager
async def opened(candidate: EntryPointCandidate) -> AsyncIterator[EntryPointCandidate]:
    try:
        yield candidate
    finally:
        await candidate.close()


def asked(of: EntryPointCandidate, *inputs: str) -> list[CandidateAnswer]:
    """The answers, one case after the other."""

    async def ask() -> list[CandidateAnswer]:
        async with opened(of) as candidate:
            return [await candidate.answer({"input": said}) for said in inputs]

    return asyncio.run(ask())


def why(answer: CandidateAnswer) -> str:
    assert isinstance(answer, Failed), answer
    return answer.why


def test_it_answers_case_after_case_in_one_process(folder: Path) -> None:
    first, second = asked(point(folder), "one", "two")
    assert first == {"output": "one!", "tool_calls": [], "asked": 1}
    assert second == {"output": "two!", "tool_calls": [], "asked": 2}


@pytest.mark.parametrize("function", ["answer_later", "wait_itself"])
def test_a_text_is_an_answer_and_a_coroutine_is_awaited_in_one_loop_for_all_cases(folder: Path, function: str) -> None:
    answers = asked(point(folder, function), "a", "b")
    assert answers == [{"output": "a, 1 of 1 loops"}, {"output": "b, 1 of 2 loops"}]


def test_a_synchronous_candidate_waits_for_no_import_of_asyncio(tmp_path: Path) -> None:
    (tmp_path / "candidate.py").write_text("import sys\ndef answer(case): return str('asyncio' in sys.modules)")
    assert asked(point(tmp_path), "a") == [{"output": "False"}]


def test_a_dict_that_answers_to_every_name_is_no_coroutine(tmp_path: Path) -> None:
    (tmp_path / "candidate.py").write_text(
        "class Answer(dict):\n    __getattr__ = dict.get\ndef answer(case): return Answer(output='so')"
    )
    assert asked(point(tmp_path), "a") == [{"output": "so"}]


def test_a_coroutine_is_awaited_where_the_candidate_imports_no_asyncio(tmp_path: Path) -> None:
    (tmp_path / "candidate.py").write_text("async def answer(case): return case['input']")
    assert asked(point(tmp_path), "a") == [{"output": "a"}]


def test_what_it_prints_breaks_no_answer(folder: Path) -> None:
    first, second = asked(point(folder), "print", "two")
    assert first == {"output": "print!", "tool_calls": [], "asked": 1}
    assert second == {"output": "two!", "tool_calls": [], "asked": 2}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("raise", "ValueError: no such tool"),
        ("exit", "SystemExit: 3"),
        ("not json", "not JSON serializable"),
        ("nan", "Out of range float"),
        ("nothing", "has no output"),
    ],
)
def test_an_error_costs_its_case_alone(folder: Path, said: str, told: str) -> None:
    failed, other = asked(point(folder), said, "two")
    assert told in why(failed)
    assert other == {"output": "two!", "tool_calls": [], "asked": 2}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("die", "was ended by SIGSEGV; it printed last:\nabout to die"),
        ("hang", "no answer in 1 s"),
        ("hog", "more memory than it may have"),
        ("long", "more than 4 MB"),
        ("close", "the candidate failed"),
    ],
)
def test_a_lost_process_costs_its_case_alone_and_the_next_has_a_fresh_one(folder: Path, said: str, told: str) -> None:
    before, failed, other = asked(point(folder, seconds=1.0 if said == "hang" else 60.0), "one", said, "two")
    assert before == {"output": "one!", "tool_calls": [], "asked": 1}
    assert told in why(failed)
    assert other == {"output": "two!", "tool_calls": [], "asked": 1}


def test_a_process_that_ends_between_two_cases_costs_none(folder: Path) -> None:
    async def ask() -> list[CandidateAnswer]:
        async with opened(point(folder)) as candidate:
            first = await candidate.answer({"input": "die later"})
            (waiting,) = candidate.waiting
            await asyncio.to_thread(waiting.wait)
            return [first, await candidate.answer({"input": "two"})]

    assert asyncio.run(ask())[1] == {"output": "two!", "tool_calls": [], "asked": 1}


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("candidate:missing", "has no attribute 'missing'"),
        ("nowhere:answer", "No module named 'nowhere'"),
        ("candidate:asked", "is not callable"),
    ],
)
def test_one_that_does_not_start_says_why(folder: Path, entry: str, told: str) -> None:
    (answer,) = asked(EntryPointCandidate(entry, folder, sys.executable), "one")
    assert "does not start" in why(answer)
    assert told in why(answer)


def test_an_interpreter_that_is_not_there_is_told(folder: Path) -> None:
    (answer,) = asked(EntryPointCandidate("candidate:answer", folder, str(folder / "python")), "one")
    assert "does not start" in why(answer)


def test_none_of_our_packages_can_be_imported(folder: Path) -> None:
    names = ("schemas", "evalcore", "agents", "streams", "rampgate", "agents.ports")
    answers = asked(point(folder, "where"), *names)
    assert answers == [{"output": f"No module named {name.partition('.')[0]!r}"} for name in names]


def test_a_package_of_the_candidates_own_with_one_of_our_names_can(folder: Path) -> None:
    (folder / "agents").mkdir()
    (folder / "agents" / "__init__.py").write_text("")
    (folder / "agents" / "planner.py").write_text("")
    assert asked(point(folder, "where"), "agents.planner") == [{"output": "found"}]


def test_it_gets_the_variables_that_are_named_and_no_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMPGATE_MODEL_KEY", "secret")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("SHOP_URL", "http://shop")
    (answer,) = asked(point(folder, "variables", variables=("SHOP_URL",)), "")
    assert not isinstance(answer, Failed)
    names = answer["output"].split()
    assert "SHOP_URL" in names
    assert "PATH" in names
    assert not {"RAMPGATE_MODEL_KEY", "OPENAI_API_KEY"} & set(names)


def test_one_of_our_settings_is_given_to_nobody() -> None:
    with pytest.raises(ValueError, match="RAMPGATE_MODEL_KEY: a candidate gets none of our settings"):
        environment(["RAMPGATE_MODEL_KEY"])


def test_no_more_processes_are_started_than_answer_at_once_and_none_is_left(folder: Path) -> None:
    async def ask() -> tuple[set[int], list[CandidateAnswer]]:
        answers = list[CandidateAnswer]()
        async with opened(point(folder)) as candidate:
            for number in range(0, 8, 2):
                both = (candidate.answer({"input": f"{one}"}) for one in (number, number + 1))
                answers += await asyncio.gather(*both)
            return {one.pid for one in candidate.waiting}, answers

    pids, answers = asyncio.run(ask())
    assert len(pids) == 2
    assert sorted(str(one["output"]) for one in answers if not isinstance(one, Failed)) == [f"{n}!" for n in range(8)]
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_one_who_stops_waiting_leaves_no_process(folder: Path) -> None:
    async def ask(then: Callable[[EntryPointCandidate], Coroutine[Any, Any, Any]]) -> None:
        async with opened(point(folder)) as candidate:
            await candidate.answer({"input": "one"})
            (process,) = candidate.waiting
            await then(candidate)
            assert process.returncode is not None

    async def stopped(candidate: EntryPointCandidate) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(candidate.answer({"input": "hang"}), 0.5)

    asyncio.run(ask(stopped))


def test_the_program_needs_the_standard_library_alone() -> None:
    command = [sys.executable, "-I", "-S", str(RUNNER), "0"]
    found = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True)
    assert "OSError" in found.stderr  # its imports are behind it: /dev/null is no socket
