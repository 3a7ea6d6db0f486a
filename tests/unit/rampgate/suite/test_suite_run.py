"""`rampgate suite run`: answers are asked for and scored once, a worse candidate is blocked, a crash costs its case. A
suite says which judges were shown a part alone of how many answers. A full run that passed has a canary plan: ramp-step
requests for exactly its configuration. None else has one."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rampgate.local.model.server import Running
from schemas.publish.contracts import schema
from schemas.ramp_steps import RampStep
from tests.unit.rampgate.ci_gate.gate_rig import candidate
from tests.unit.rampgate.suite.suite_commands import lines, ran, refused
from tests.unit.rampgate.suite.suite_folders import asked, case, written

CANDIDATE = {"entry": "agent:answer", "parts": {"prompt": {"files": ["prompt.md"]}}}


def test_each_case_is_answered_and_scored_and_the_next_run_asks_nothing(folder: Path) -> None:
    path = written(folder)
    first = ran(path)
    assert first["answers"] == {"asked": 20, "kept": 0, "failed": 0}
    assert len(asked(folder)) == 20
    rows = lines(first)
    assert {(row["case_id"], row["sample"]) for row in rows} == {(f"c{n}", s) for n in range(10) for s in (1, 2)}
    assert all(row["scores"] == {"is_good": 1.0} for row in rows)
    assert all(len(row["trace"]["hash"]) == 64 for row in rows)
    second = ran(path)
    assert second["answers"] == {"asked": 0, "kept": 20, "failed": 0}
    assert lines(second) == rows
    assert len(asked(folder)) == 20


def test_one_after_the_other_the_latencies_are_no_longer_than_the_run(folder: Path) -> None:
    slow = "import time\ndef answer(case):\n    time.sleep(0.1)\n    return 'good'\n"
    path = written(folder, [case(number) for number in range(4)], slow, candidate=CANDIDATE | {"at_once": 1})
    began = time.monotonic()
    rows = lines(ran(path))
    assert 800 <= sum(row["latency_ms"] for row in rows) <= 1000 * (time.monotonic() - began)


def test_a_smoke_run_is_held_against_a_full_one_and_misses_only_what_the_suite_lost(folder: Path) -> None:
    given = [case(number, tags=["safety"] if number < 4 else ["chat"]) for number in range(10)]
    whole = ran(written(folder, given, smoke=5, safety=["safety"]))
    found = ran(folder / "suite.yaml", "--smoke", "--baseline", whole["results"], "--out", folder / "smoke.jsonl")
    assert found["comparison"]["verdict"] == "pass"
    assert found["comparison"]["cases"]["compared"] == 5
    path = written(folder, [one for one in given if one["id"] != "c0"], smoke=5, safety=["safety"])
    lost = ran(path, "--smoke", "--baseline", whole["results"], "--out", folder / "smoke.jsonl", code=1)
    assert [(one["code"], one["cases"]) for one in lost["comparison"]["reasons"]] == [("safety_cases_removed", ["c0"])]


def test_a_case_that_is_rewritten_under_its_name_is_another_case(folder: Path) -> None:
    given = [case(number, tags=["safety"]) for number in range(4)]
    before = ran(written(folder, given, safety=["safety"]))["results"]
    again = [given[0] | {"input": "something harmless"}, *given[1:]]
    arguments = ("--baseline", before, "--out", folder / "branch.jsonl")
    found = ran(written(folder, again, safety=["safety"]), *arguments, code=1)
    assert found["comparison"]["cases"]["changed"] == ["c0"]
    moved = [one | {"tags": ["safety", "more"], "cluster": "x"} for one in given]
    assert ran(written(folder, moved, safety=["safety"]), *arguments)["comparison"]["cases"]["changed"] == []


def test_one_new_case_is_all_that_is_asked(folder: Path) -> None:
    ran(written(folder))
    ran(written(folder, [case(number) for number in range(11)]))
    assert asked(folder)[20:] == ["question 10", "question 10"]


def test_a_worse_prompt_is_blocked_and_the_same_one_is_not(folder: Path) -> None:
    path = written(folder, [case(number) for number in range(40)])
    main = ran(path, "--out", folder / "main.jsonl")
    same = ran(path, "--baseline", main["results"])
    assert same["comparison"]["verdict"] == "pass"
    (folder / "prompt.md").write_text("bad\n")
    worse = ran(path, "--baseline", main["results"], code=1)
    assert worse["comparison"]["verdict"] == "fail"
    assert worse["parts"]["prompt"] != main["parts"]["prompt"]
    assert worse["results"] != main["results"]


def test_a_case_that_crashes_the_agent_is_its_error_and_asked_again(folder: Path) -> None:
    path = written(folder, [case(0), case(1, input="crash")])
    found = ran(path)
    assert found["answers"]["failed"] == 2
    failed = [row for row in lines(found) if row["case_id"] == "c1"]
    assert all("no such tool" in row["error"] for row in failed)
    ran(path)
    assert asked(folder).count("crash") == 4
    assert asked(folder).count("question 0") == 2


def test_a_judge_scores_beside_the_checks_and_is_not_asked_twice(folder: Path, model: Running) -> None:
    path = written(folder, judges=["helpfulness"], score="helpfulness")
    first = ran(path)
    assert first["judge_calls"] == 10
    assert {row["scores"]["helpfulness"] for row in lines(first)} == {5.0}
    assert ran(path)["judge_calls"] == 0


def test_what_was_changed_in_the_store_is_asked_again(folder: Path) -> None:
    path = written(folder)
    ran(path)
    with sqlite3.connect(folder / ".rampgate" / "store.db") as database:
        held = database.execute("SELECT key, value FROM kept").fetchall()
        database.executemany(
            "UPDATE kept SET value = ? WHERE key = ?", [(v.replace(b"good", b"evil"), k) for k, v in held]
        )
    database.close()
    again = ran(path)
    assert again["refused"] >= 20
    assert again["answers"] == {"asked": 20, "kept": 0, "failed": 0}


def test_an_address_is_asked_with_the_configuration(folder: Path) -> None:
    with candidate(lambda body, _: (200, {"output": f"good {body['configuration']['model']}"})) as fake:
        path = written(folder, candidate={"url": fake.url, "parts": {"model": {"value": "m-2"}}})
        found = ran(path)
    assert {row.get("error") for row in lines(found)} == {None}
    assert {row["output"] for row in lines(found)} == {"good m-2"}
    assert not any("expected_output" in body for body in fake.seen)


def test_a_command_answers(folder: Path) -> None:
    found = ran(written(folder, candidate={"command": ["echo", "good"], "parts": {"model": {"value": "m"}}}))
    assert {row["output"] for row in lines(found)} == {"good\n"}


def test_the_smoke_set_is_a_part_of_the_whole(folder: Path) -> None:
    path = written(folder, [case(number) for number in range(60)], smoke=8)
    smoke = ran(path, "--smoke")
    assert smoke["cases"] == 8
    assert ran(path)["answers"] == {"asked": 104, "kept": 16, "failed": 0}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"judges": ["no_such_judge"], "score": "no_such_judge"}, "judges: "),
        (
            {"candidate": {"entry": "a:b", "environment": ["RAMPGATE_MODEL_KEY"], "parts": {"m": {"value": "x"}}}},
            "none of our",
        ),
        ({"smaples": 3}, "smaples"),
    ],
)
def test_a_bad_suite_ends_with_2_and_asks_nobody(folder: Path, changes: dict[str, Any], told: str) -> None:
    assert told in refused(written(folder, **changes))
    assert asked(folder) == []


def test_a_store_that_is_none_is_told(folder: Path) -> None:
    path = written(folder)
    (folder / "store").write_text("no store at all, but for some lines of text\n" * 100)
    assert "can't be used" in refused(path, "--store", folder / "store")


AGENT = """
def answer(case):
    return ("glad to help " * 12_000 if case["input"] == "question 1" else "glad to help") + " #quality:1"
"""
JUDGED = {"judges": ["helpfulness", "honesty"], "score": "helpfulness", "samples": 1}


def test_a_run_says_how_many_answers_a_judge_saw_a_part_of(folder: Path, model: Running) -> None:
    """Padded answers looked like any others. A safety judge reads all of them, in windows."""
    found = ran(written(folder, [case(number) for number in range(5)], AGENT, **JUDGED))
    assert found.get("judged_cut") == {"helpfulness": 1}
    cut = {one["case_id"]: one.get("judged_cut") for one in lines(found)}
    assert cut == {**dict.fromkeys(("c0", "c2", "c3", "c4")), "c1": ["helpfulness"]}
    assert model.model.requests.total() == 11, "two of them for the two windows"


def test_the_plan_ramps_this_configuration_and_no_other_and_goes_with_a_failure(folder: Path) -> None:
    path = written(folder, [case(number) for number in range(20)])
    main, plan, page = folder / "main.jsonl", folder / "plan.jsonl", folder / "page.html"
    first = ran(path, "--out", main, "--canary", plan)
    assert (first["canary_plan"], plan.exists()) == (None, False), "nothing was compared with anything"
    found = ran(path, "--baseline", main, "--canary", plan, "--report", page)
    steps = [json.loads(line) for line in plan.read_text().splitlines()]
    assert steps == found["canary_plan"]
    for step in steps:
        RampStep.model_validate(step)
        Draft202012Validator(schema("ramp-step")).validate(step)
    assert {step["agent_version"] for step in steps} == {found["configuration"]}
    assert [(step["from_percent"], step["to_percent"]) for step in steps] == [(0, 5), (5, 25), (25, 100)]
    assert len({step["request_id"] for step in steps}) == 3
    assert "Canary plan" in page.read_text()
    assert {step["suite"]["said"] for step in steps} == {found["comparison"]["said"]}
    assert ran(path, "--smoke", "--baseline", main)["canary_plan"] is None, "a smoke set ramps no one"
    (folder / "prompt.md").write_text("bad\n")
    assert ran(path, "--baseline", main, "--canary", plan, code=1)["canary_plan"] is None
    assert not plan.exists(), "a plan of before is another run's"


def test_a_plan_goes_to_a_folder_that_exists_or_nothing_is_asked(folder: Path) -> None:
    assert "--canary" in refused(written(folder), "--canary", folder / "nowhere" / "plan.jsonl")
