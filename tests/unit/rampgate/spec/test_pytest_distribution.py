"""`pytest-rampgate`, a distribution of its own: a spec's queries are tests, one run serves all of a session (AgentCI
Step 6: "pytest-xdist compatibility via parametrized test pattern")."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.root import ROOT

DISTRIBUTION = ROOT / "rampgate" / "pytest_specs"
SPEC = "agentci_spec.yaml"
REAL = f"{sys.executable} -m rampgate"
AGENT = """
import pathlib, time

def answer(case):
    with pathlib.Path(__file__).with_name("calls.txt").open("a") as calls:
        calls.write(case["input"].split()[0] + "\\n")
    time.sleep(0.3)
    if case["input"].startswith("away"):
        raise ConnectionError("the model is away")
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "cost_usd": 0.0}
    calls = [{"name": "search", "arguments": {}, "result": "none"}]
    return {"output": "It is sunny.", "tool_calls": calls, "llm_calls": [], "handoffs": [], "usage": usage}
"""
QUERIES = """
version: 1
agent: weather
candidate: {entry: "agent:answer"}
queries:
  - {id: good, query: good weather?, tags: [smoke], correctness: {expected_in_answer: [sunny]}}
  - id: wrong
    query: wrong weather?
    correctness:
      expected_in_answer: [rainy]
  - id: long
    query: long way?
    correctness: {expected_in_answer: [sunny]}
    path:
      max_tool_calls: 0
  - {id: away, query: away?, correctness: {expected_in_answer: [sunny]}}
"""
DOCUMENTS_EXAMPLE = """
import pytest
from pytest_rampgate import load_spec, run_spec

@pytest.fixture
def spec():
    return load_spec("agentci_spec.yaml")

@pytest.mark.parametrize("query_idx", range(32))  # pytest-xdist compatible
def test_support_router(spec, query_idx):
    if query_idx >= len(spec.queries):
        pytest.skip("Query index out of range")
    result = run_spec(spec, query_indices=[query_idx])
    assert not result[0].hard_fail, f"Correctness failed: {result[0].correctness.messages}"
"""
"""As the document has it, but for the name of the package, which is not ours."""
PROGRAM = """
import json, os, sys, time
from pathlib import Path

here = Path(__file__).parent
asked = [one.partition("=")[2] for one in sys.argv if one.startswith("--query=")]
with (here / "runs.txt").open("a") as runs:
    runs.write(f"{sys.argv[2]} {' '.join(asked)}".strip() + "\\n")
told = json.loads((here / "told.json").read_text())
running = here / "running.txt"
if running.exists():
    (here / "two_at_once.txt").touch()
running.touch()
time.sleep(told["sleeps"])
running.unlink()
layer = {"status": "pass", "messages": ["well"], "details": {}}
if sys.argv[2] == "validate":
    queries = [{"id": one, "query": one, "tags": [], "line": 1} for one in told["ids"]]
    answer = {"valid": True, "errors": [], "warnings": [], "agent": "a", "golden_queries": queries}
else:
    layers = {one: layer for one in ("correctness", "path", "cost")}
    answer = {"results": [
        {"id": one, "query": one, "status": told["status"], **layers, "reasons": []}
        for one in asked or told["ids"] if one != told["lost"]
    ]}
print(json.dumps(answer))
"""
"""Stands for the command line where only what the distribution makes of it counts."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the built distribution installs."""
    folder = tmp_path_factory.mktemp("built")
    (wheel,) = WheelBuilder(str(DISTRIBUTION)).build(directory=str(folder), versions=["standard"])
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder / "site")
    return folder / "site"


Ran = Callable[..., tuple[int, str]]


@pytest.fixture
def ran(installed: Path, tmp_path: Path) -> Ran:
    """Runs pytest in a process of its own, in `tmp_path`, with the distribution alone beside pytest and xdist."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / SPEC).write_text(QUERIES)

    def run(*arguments: str, command: str = f"{sys.executable} program.py") -> tuple[int, str]:
        environment = environment_of(installed, tmp_path) | {"PYTEST_RAMPGATE_COMMAND": command}
        plugins = ("-p", "pytest_rampgate", "-p", "xdist", "-p", "no:cacheprovider")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *plugins, "-rA", *arguments],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return run


def environment_of(installed: Path, folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GITHUB_"))}
    (folder / "tmp").mkdir(exist_ok=True)
    path = os.pathsep.join(map(str, (installed, ROOT)))
    return kept | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "TMPDIR": str(folder / "tmp")}


def write_program(folder: Path, *ids: str, status: str = "pass", lost: str = "", sleeps: float = 0) -> None:

    told = {"ids": ids, "status": status, "lost": lost, "sleeps": sleeps}
    (folder / "program.py").write_text(PROGRAM)
    (folder / "told.json").write_text(json.dumps(told))


def runs(folder: Path) -> list[str]:
    return (folder / "runs.txt").read_text().splitlines()


def counts(output: str) -> dict[str, int]:
    """How many tests passed, failed and so on, by pytest's last line."""
    return {word.rstrip("s"): int(many) for many, word in re.findall(r"(\d+) ([a-z]+)", output.splitlines()[-1])}


def test_the_distribution_is_one_module_that_needs_pytest_alone(installed: Path) -> None:
    files = {str(path.relative_to(installed)) for path in installed.rglob("*") if path.is_file()}
    assert {name for name in files if ".dist-info" not in name} == {"pytest_rampgate.py"}
    (metadata,) = installed.glob("*.dist-info/METADATA")
    needs = [line for line in metadata.read_text().splitlines() if line.startswith("Requires-Dist: ")]
    assert needs == ["Requires-Dist: pytest>=8"]
    build = [tomllib.loads((at / "pyproject.toml").read_text())["build-system"] for at in (DISTRIBUTION, ROOT)]
    assert build[0] == build[1], "one build backend, of one version"
    ours = r"^\s*(?:from|import) (?:schemas|evalcore|agents|streams|rampgate)\b"
    assert not re.search(ours, (installed / "pytest_rampgate.py").read_text(), re.MULTILINE)


def test_our_own_wheel_does_not_have_it() -> None:
    wheel = WheelBuilder(str(ROOT))
    names = [one.distribution_path for one in wheel.recurse_included_files()]
    assert "rampgate/command.py" in names
    assert [name for name in names if "pytest_specs" in name] == []


# AgentCI Step 1 box 1, Step 6 box 5.
def test_four_workers_share_one_run_of_the_command_line(ran: Ran, tmp_path: Path) -> None:
    """With the spec's own tests and the document's example side by side, every query is asked once: but for the one
    whose model is away, which is tried three times."""
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "test_with_agentci.py").write_text(DOCUMENTS_EXAMPLE)
    code, output = ran("-n", "4", command=REAL)
    assert code == 1, output
    asked = (tmp_path / "calls.txt").read_text().split()
    assert sorted(asked) == ["away?"] * 3 + ["good", "long", "wrong"], output
    # the spec's: passed good and long, failed wrong, error away; the example's, too, but for an undecided one, which
    # fails where it is looked at
    assert counts(output) == {"failed": 3, "passed": 4, "skipped": 28, "warning": 29, "error": 1}, output
    assert f"ERROR {SPEC}::away" in output
    assert f"FAILED {SPEC}::wrong" in output
    assert re.search(rf"{SPEC}:10: \[CORRECTNESS FAIL\] wrong weather\?: .*rainy", output), output
    assert re.search(rf"{SPEC}:15: SpecWarning: \[PATH\] long way\?", output), output
    assert "[INFRA]" in output
    assert "the model is away" in output
    assert "queries of the spec: 4; this skipped test asked none: is one lost?" in output
    assert list((tmp_path / "tmp").glob("pytest-rampgate-*")) == [], "the session's folder is removed"


# AgentCI Step 6 box 5.
@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_only_selected_queries_are_asked(ran: Ran, tmp_path: Path, workers: tuple[str, ...]) -> None:
    write_program(tmp_path, "a", "b", "c")
    (tmp_path / "test_example.py").write_text(DOCUMENTS_EXAMPLE)
    code, output = ran(*workers, f"{SPEC}::a", f"{SPEC}::c", "test_example.py::test_support_router[1]")
    assert (code, counts(output)["passed"]) == (0, 3), output
    assert sorted(runs(tmp_path)) == ["test a c", "test b", "validate"]


def test_a_query_without_a_result_is_an_error(ran: Ran, tmp_path: Path) -> None:
    write_program(tmp_path, "a", "b", lost="b")
    code, output = ran()
    assert (code, counts(output)) == (1, {"passed": 1, "error": 1}), output
    assert "the run has no result of the query b" in output


@pytest.mark.parametrize("status", ["infra", "unheard-of"])
def test_what_is_undecided_never_passes(ran: Ran, tmp_path: Path, status: str) -> None:
    write_program(tmp_path, "a", status=status)
    (tmp_path / "test_example.py").write_text(DOCUMENTS_EXAMPLE.replace("range(32)", "[0]"))
    code, output = ran()
    assert (code, counts(output)) == (1, {"failed": 1, "error": 1}), output


@pytest.mark.parametrize("place", ["print(json", "# the end"])
def test_a_program_that_fails_is_an_error_of_every_query_and_called_once(ran: Ran, tmp_path: Path, place: str) -> None:
    """Before it answers, and after it answered that all is well."""
    write_program(tmp_path, "a", "b")
    fails = f'if sys.argv[2] == "test": sys.exit("out of memory")\n{place}'
    (tmp_path / "program.py").write_text(f"{PROGRAM}# the end\n".replace(place, fails))
    code, output = ran()
    assert (code, counts(output)) == (1, {"error": 2}), output
    assert "ended with exit code 1: out of memory" in output
    assert runs(tmp_path) == ["validate", "test"]


def test_an_invalid_spec_and_a_missing_program_collect_nothing(ran: Ran, tmp_path: Path) -> None:
    (tmp_path / SPEC).write_text(QUERIES.replace("max_tool_calls: 0", "max_tool_calls: -1"))
    code, output = ran(command=REAL)
    assert code == 2, output
    assert re.search(rf"{SPEC}:15: queries\[2\]\.path\.max_tool_calls: must be at least 0", output), output
    code, output = ran(command="/no/such/program")
    assert code == 2
    assert "name its program in rampgate_command" in output


def test_no_selected_query_is_no_pass(ran: Ran, tmp_path: Path) -> None:
    write_program(tmp_path, "a")
    code, output = ran("-k", "no-such-query")
    assert code == 5, output
    text = "from pytest_rampgate import *\nfrom pytest_rampgate import load_spec, run_spec\n"
    (tmp_path / "test_none.py").write_text(f"{text}def test_none(): run_spec(load_spec('{SPEC}'), [])\n")
    code, output = ran("test_none.py")
    assert (code, "no query is selected" in output) == (1, True), output


def test_a_lost_query_can_fail(ran: Ran, tmp_path: Path) -> None:
    """`range(2)` with skip, over a spec that has one query left."""
    write_program(tmp_path, "a")
    (tmp_path / "test_example.py").write_text(DOCUMENTS_EXAMPLE.replace("32", "2"))
    code, output = ran("test_example.py", "-W", "error::pytest_rampgate.LostQuery")
    found = counts(output)
    assert (code, found["failed"], found["passed"]) == (1, 1, 1), output


def test_a_later_session_asks_again(ran: Ran, tmp_path: Path) -> None:
    write_program(tmp_path, "a")
    assert ran()[0] == 0
    write_program(tmp_path, "a", status="fail")
    assert ran()[0] == 1


def test_a_worker_that_dies_lets_another_one_run(installed: Path, tmp_path: Path) -> None:
    """It waits for the dead one's program, so that two never run at once; a half-written file is not read."""
    write_program(tmp_path, "a", sleeps=2)
    code = textwrap.dedent(f"""
        import pytest_rampgate
        from pathlib import Path
        pytest_rampgate._session = pytest_rampgate._Session(Path("shared"), "{sys.executable} program.py")
        print(pytest_rampgate.load_spec("{SPEC}").queries[0].id)
    """)
    (tmp_path / SPEC).write_text(QUERIES)
    environment = environment_of(installed, tmp_path)
    first = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environment)
    while not (tmp_path / "running.txt").exists():
        assert first.poll() is None
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    (lock,) = (tmp_path / "shared").glob("*.lock")
    lock.with_suffix(".part").write_text('{"code": 0, "out": "{')
    told = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, env=environment, text=True)
    assert (told, runs(tmp_path)) == ("a\n", ["validate", "validate"])
    assert not (tmp_path / "two_at_once.txt").exists()
