"""A suite asks the candidate once for each sample of each case, and never for what is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.ports import Unavailable
from evalcore.gates.golden import CandidateAnswer
from evalcore.scoring.items import Failed
from rampgate.store.sealed import SealedStore
from rampgate.store.sqlite_file import FileShelf
from rampgate.suite.generation import Generated, Generator, Wanted, configuration_of, dollars_of

CASES = [(f"case-{number}", {"input": f"question {number}", "metadata": {"category": "sports"}}) for number in range(4)]


USAGE = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, "cost_usd": 0.5}


class Candidate:
    """Answers with a number of its own each time."""

    def __init__(self, *, fails: bool = False) -> None:
        self.asked: list[str] = []
        self._fails = fails

    async def __call__(self, case: Mapping[str, Any]) -> CandidateAnswer:
        self.asked.append(case["input"])
        number = len(self.asked)
        await asyncio.sleep(0)
        if self._fails:
            return Failed("the candidate answers 500")
        return {"output": f"answer {number}", "tool_calls": [{"name": "search"}], "usage": USAGE, "mood": "odd"}


class Away:
    """A store that can't be used."""

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        raise Unavailable("no store")

    async def put(self, key: str, value: bytes) -> bytes | None:
        raise Unavailable("no store")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SealedStore]:
    held = SealedStore(FileShelf(tmp_path / "suite.db"))
    yield held
    held.close()


def generator(store: SealedStore, candidate: Candidate, prompt: str = "one") -> Generator:
    answers, traces = store.kind("answers", 1 << 20), store.kind("traces", 1 << 20)
    return Generator(configuration_of({"prompt": prompt, "model": "m-1"}), candidate, answers, traces)


def run(of: Generator, samples: int = 3, cases: list[tuple[str, dict[str, Any]]] = CASES) -> list[Generated]:
    wanted = [Wanted(name, sample, case) for sample in range(1, samples + 1) for name, case in cases]

    async def all_of_them() -> list[Generated]:
        kept = await of.kept(wanted)
        return list(await asyncio.gather(*(of.one(*both) for both in zip(wanted, kept, strict=True))))

    return asyncio.run(all_of_them())


def outputs(found: list[Generated]) -> list[Any]:
    return [one.answer["output"] for one in found if not isinstance(one.answer, Failed)]


def test_each_sample_is_an_answer_of_its_own(store: SealedStore) -> None:
    candidate = Candidate()
    found = run(generator(store, candidate))
    assert len(candidate.asked) == 12
    assert len(set(outputs(found))) == 12
    assert [(one.case_id, one.sample) for one in found[:5]] == [
        ("case-0", 1), ("case-1", 1), ("case-2", 1), ("case-3", 1), ("case-0", 2),
    ]  # fmt: skip


def test_a_second_run_asks_nothing_and_finds_the_same(store: SealedStore) -> None:
    first, again = run(generator(store, Candidate())), Candidate()
    second = run(generator(store, again))
    assert again.asked == []
    assert outputs(second) == outputs(first)
    assert all(one.kept for one in second)
    assert [one.trace for one in second] == [one.trace for one in first]


def test_more_samples_ask_for_these_alone(store: SealedStore) -> None:
    run(generator(store, Candidate()))
    more = Candidate()
    run(generator(store, more), samples=5)
    assert len(more.asked) == 8


def test_another_configuration_or_case_is_asked(store: SealedStore) -> None:
    run(generator(store, Candidate()))
    changed, other = Candidate(), Candidate()
    run(generator(store, changed, "two"))
    assert len(changed.asked) == 12
    run(generator(store, other), cases=[("case-0", {"input": "another question", "metadata": {"category": "sports"}})])
    assert len(other.asked) == 3


def test_a_case_under_another_name_is_the_same_case(store: SealedStore) -> None:
    run(generator(store, Candidate()))
    renamed = Candidate()
    run(generator(store, renamed), cases=[("renamed", CASES[0][1])])
    assert renamed.asked == []


def test_a_failure_is_not_kept(store: SealedStore) -> None:
    found = run(generator(store, Candidate(fails=True)))
    assert all(isinstance(one.answer, Failed) for one in found)
    later = Candidate()
    run(generator(store, later))
    assert len(later.asked) == 12


def test_what_an_answer_cost_is_its_own_word_else_its_usage() -> None:
    given = [{"usage": USAGE}, {"usage": USAGE, "cost_usd": 0.25}, {"usage": None}, {}]
    assert [dollars_of(one) for one in given] == [0.5, 0.25, None, None]


def test_a_trace_is_kept_by_the_hash_of_its_content(store: SealedStore) -> None:
    (found, *_) = run(generator(store, Candidate()), samples=1)
    (kept,) = asyncio.run(store.kind("traces", 1 << 20).get_many([str(found.trace)]))
    assert kept is not None
    trace = orjson.loads(kept)
    assert trace["output"] == "answer 1"
    assert trace["case"]["input"] == "question 0"
    assert trace["tool_calls"] == [{"name": "search"}]
    assert trace["usage"] == USAGE
    assert "mood" not in trace


def test_without_a_store_every_case_is_answered_all_the_same() -> None:
    candidate = Candidate()
    found = run(Generator("hash", candidate, Away(), Away()))
    assert len(set(outputs(found))) == 12


def test_a_latency_leaves_out_the_wait_for_a_place() -> None:
    now = 0.0

    async def ask(case: Mapping[str, Any]) -> CandidateAnswer:
        nonlocal now
        await asyncio.sleep(0)
        now += 0.3
        return {"output": "late"}

    found = run(Generator("hash", ask, Away(), Away(), lambda: now, places=asyncio.Semaphore(1)))
    assert [one.latency_ms for one in found] == [300.0] * 12


def test_no_more_cases_are_asked_at_once_than_there_are_places() -> None:
    asked = most = 0

    async def ask(case: Mapping[str, Any]) -> CandidateAnswer:
        nonlocal asked, most
        asked += 1
        most = max(most, asked)
        await asyncio.sleep(0)
        asked -= 1
        return {"output": "yes"}

    run(Generator("hash", ask, Away(), Away(), places=asyncio.Semaphore(2)))
    assert most == 2


class Slow(Away):
    """A store that keeps nothing before it is let go on."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()

    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        return [None] * len(keys)

    async def put(self, key: str, value: bytes) -> bytes | None:
        await self.go_on.wait()
        return None


def test_where_the_store_is_slow_no_more_is_paid_for_than_there_is_room() -> None:
    async def asked_before_and_after() -> tuple[int, int]:
        candidate, slow = Candidate(), Slow()
        of = Generator("c", candidate, slow, slow, room=asyncio.Semaphore(3))
        wanted = [Wanted(f"{number}", 1, {"input": f"{number}"}) for number in range(10)]
        async with asyncio.TaskGroup() as group:
            for one in wanted:
                group.create_task(of.one(one, None))
            for _ in range(50):
                await asyncio.sleep(0)
            before = len(candidate.asked)
            slow.go_on.set()
        return before, len(candidate.asked)

    assert asyncio.run(asked_before_and_after()) == (3, 10)
