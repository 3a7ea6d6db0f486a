"""`rampgate spec test` on the demos, with the judges' stand-in (AgentCI Step 3, Step 5, Step 6)."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rampgate.local.model.behaviour import Behaviour
from rampgate.local.model.server import Running
from tests.root import ROOT
from tests.unit.rampgate.junit_files import junit_suite
from tests.unit.rampgate.spec.spec_commands import SPEC, change, demo, fix_prompt, layers, ran, refused, told

WEATHER = "What's the weather in Tokyo?"


def line_of(folder: Path, text: str, after: str = "") -> int:
    """The line of the spec that has the text, the first below `after`."""
    lines = (folder / SPEC).read_text().splitlines()
    start = next((number for number, line in enumerate(lines) if after in line), 0)
    return next(number for number, line in enumerate(lines, 1) if number > start and text in line)


# AgentCI Step 5 box 2.
def test_the_broken_agent_passes_with_warnings(rag: Path) -> None:
    """AgentCI Step 5: Correctness PASS, Path WARN (11 tools > max 0), Cost WARN; exit code 0."""
    found = told("test", "--config", SPEC)
    assert layers(found, "weather") == ["pass", "warn", "warn"]
    (weather,) = (one for one in found["results"] if one["id"] == "weather")
    assert "Tool calls: 11 > max 0" in weather["path"]["messages"]
    assert weather["cost"]["details"]["actual"]["total_tokens"] == 4200
    assert found["summary"] == {"total": 3, "passed": 3, "failed": 0, "warnings": 2, "infra": 0}
    assert [one["id"] for one in found["results"]] == ["install", "weather", "load-balancer"]


def test_strict_makes_warnings_fail(rag: Path) -> None:
    assert told("test", "--strict", code=1)["summary"]["failed"] == 0


def test_strict_takes_a_warning_about_the_spec_for_one(rag: Path) -> None:
    (rag / "hello.py").write_text("def answer(case):\n    return 'Hello.'\n")
    (rag / SPEC).write_text("version: 1\nagent: hello\ncandidate: {entry: hello:answer}\nqueries: [{query: Hello?}]\n")
    told("test")
    assert "asserts nothing" in ran("test", "--strict", code=1).stdout


# AgentCI Step 5 box 3.
def test_the_fixed_agent_passes_every_layer(rag: Path) -> None:
    fix_prompt(rag)
    found = told("test", "--strict")
    assert layers(found, "weather") == ["pass", "pass", "pass"]
    assert found["summary"]["warnings"] == 0


# AgentCI Step 3 box 3.
def test_annotations_point_at_the_assertions_own_lines(rag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On GitHub they appear by themselves, on stderr, also beside `--format json`; files are named from the
    repository's root."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = ran("test", "--format", "json")
    assert json.loads(done.stdout)["summary"]["total"] == 3
    line = line_of(rag, "max_tool_calls", after="id: weather")
    assert f"::warning file={SPEC},line={line}::[PATH] {WEATHER}: Tool calls: 11 > max 0" in done.stderr.splitlines()
    (rag / "sub").mkdir()
    (rag / SPEC).rename(rag / "sub" / SPEC)
    change(rag / "sub", "entry: agent:answer", "entry: agent:answer\n  folder: ..", strict=True)
    change(rag / "sub", "  parts:", "  parts:\n    where: {value: sub}")
    for part in ('["*.py"]', "[prompt.md]", '["docs/*.md"]', "[prices.json]"):
        change(rag / "sub", f"{{files: {part}}}", "{value: x}")
    done = ran("test", "--config", f"sub/{SPEC}", "--format", "github")
    assert f"::warning file=sub/{SPEC},line={line + 2}::" not in done.stdout
    assert re.search(rf"^::warning file=sub/{SPEC},line=\d+::\[PATH\]", done.stderr, re.MULTILINE)


# AgentCI Step 3 box 2.
def test_a_forbidden_tool_fails(rag: Path) -> None:
    """Exit code 1, and `[PATH FAIL]`: AgentCI's own `hard_fail` forgets it."""
    change(rag, '"retriever_tool", "rewrite_question"', '"web_search", "rewrite_question"', "agent.py")
    change(rag, '"retriever_tool": {', '"web_search": {"usd_per_call": 0.001}, "retriever_tool": {', "prices.json")
    done = ran("test", "--query", "weather", "--format", "github", code=1)
    line = line_of(rag, "forbidden_tools")
    assert f"::error file={SPEC},line={line}::[PATH FAIL] {WEATHER}: " in done.stderr
    assert "Results: 0/1 passed, 0 warnings, 1 failures" in done.stdout


def test_a_wrong_answer_fails_at_its_term(rag: Path) -> None:
    change(rag, '["pip install"]', '["pip install", "conda"]')
    done = ran("test", "--tags", "smoke", "--format", "github", code=1)
    assert "[CORRECTNESS FAIL] How do I install AgentCI?: Expected 'conda' not found in answer" in done.stderr


# AgentCI Step 3 box 2.
def test_a_judge_that_is_away_is_no_pass(rag: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """`[INFRA]`, exit code 2."""
    monkeypatch.delenv("RAMPGATE_MODEL_URL")
    done = ran("test", "--format", "github", code=2)
    assert "[INFRA]" in done.stderr
    assert "Results: 0/3 passed, 0 warnings, 0 failures, 3 undecided [INFRA]" in done.stdout


def test_a_crash_is_the_agents_failure(dev: Path) -> None:
    change(dev, 'task, _, code = case["input"]', 'task, _, code = case["nothing"]', "agent.py")
    found = told("test", "--tags", "smoke", code=1)
    assert found["summary"] == {"total": 2, "passed": 0, "failed": 2, "warnings": 0, "infra": 0}


# AgentCI Step 6 box 4.
def test_what_may_pass_is_tried_three_times(dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that gives no answer in time: two further tries, then `[INFRA]` and exit code 2."""
    monkeypatch.setattr("rampgate.spec.run.WAITS", (0.01, 0.01))
    change(dev, "  entry: agent:answer", "  entry: agent:answer\n  seconds: 0.2")
    change(dev, "def answer(case):", "def answer(case):\n    open('log', 'a').write('x')\n    import time\n"
           "    time.sleep(5)", "agent.py")  # fmt: skip
    found = told("test", "--query", "clean", code=2)
    assert (dev / "log").read_text() == "xxx"
    assert found["summary"]["infra"] == 1
    assert "0.2 s" in found["results"][0]["infra"]


# AgentCI Step 6 box 4.
@pytest.mark.parametrize(
    ("raised", "infra"),
    [
        ("TimeoutError('slow')", True),
        ("ConnectionResetError('away')", True),
        ("type('APIError', (Exception,), {'status_code': 429})('busy')", True),
        ("type('APIError', (Exception,), {'status_code': 503})('away')", True),
        ("type('RateLimitError', (Exception,), {})('busy')", True),
        ("type('APIError', (Exception,), {'status_code': 400})('wrong')", False),
        ("KeyError('x')", False),
    ],
)
def test_what_may_pass_is_infra_and_a_crash_fails(
    dev: Path, raised: str, infra: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timeouts, 429 and 5xx are [INFRA] after three tries; all else is the agent's failure at once."""
    monkeypatch.setattr("rampgate.spec.run.WAITS", (0.01, 0.01))
    change(
        dev, "def answer(case):", f"def answer(case):\n    open('log', 'a').write('x')\n    raise {raised}", "agent.py"
    )
    found = told("test", "--query", "clean", code=2 if infra else 1)
    assert (dev / "log").read_text() == ("xxx" if infra else "x")
    assert (found["summary"]["infra"], found["summary"]["failed"]) == (int(infra), int(not infra))


@pytest.mark.parametrize(("code", "infra"), [(75, True), (1, False)])
def test_a_command_says_by_its_exit_code_what_may_pass(
    dev: Path, code: int, infra: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rampgate.spec.run.WAITS", (0.01, 0.01))
    change(dev, "  entry: agent:answer", f'  command: [sh, -c, "echo x >> log; exit {code}"]')
    assert told("test", "--query", "clean", code=2 if infra else 1)["summary"]["infra"] == int(infra)
    assert (dev / "log").read_text() == ("x\nx\nx\n" if infra else "x\n")


def test_latency_is_the_answers_alone(dev: Path) -> None:
    """Neither the start of the agent's process nor the wait for a place is in it."""
    change(dev, "import ast\n", "import ast\nimport time\n\ntime.sleep(1)\n", "agent.py")
    found = told("test", "--workers", "2")
    latencies = [one["cost"]["details"]["actual"]["latency_ms"] for one in found["results"]]
    assert len(latencies) == 7
    assert max(latencies) < 900


# AgentCI Step 3 box 1, Step 6 box 2.
def test_formats(dev: Path) -> None:
    """`--format console | github | json | junit | prometheus | html`."""
    console = ran("test", "--format", "console").stdout
    assert console.splitlines()[-1] == "Results: 7/7 passed, 0 warnings, 0 failures"
    assert ran("test", "--format", "github").stdout == console
    assert json.loads(ran("test", "--format", "json").stdout) == told("test")
    assert len(junit_suite(ran("test", "--format", "junit").stdout)) == 8
    assert "<html" in ran("test", "--format", "html").stdout
    families = {one.name for one in text_string_to_metric_families(ran("test", "--format", "prometheus").stdout)}
    assert "agentci_correctness_pass" in families
    assert "both name what stdout has" in refused("test", "--format", "html", "--json")
    done = ran("test", "--format", "yaml", code=2)
    assert "yaml" in done.stderr


def test_a_report_goes_to_files_too(dev: Path) -> None:
    ran("test", "--report", "page.html", "--report", "junit.xml", "--report", "github")
    assert "Spec dev-agent" in (dev / "page.html").read_text()
    assert len(junit_suite((dev / "junit.xml").read_bytes())) == 8


# AgentCI Step 1 box 3.
def test_no_selected_query_is_no_pass(dev: Path) -> None:
    assert "no query has it; those there are: edge-case" in refused("test", "--tags", "smok")
    assert "names no tag" in refused("test", "--tags", " ,")
    assert "no query of the spec has this id or text" in refused("test", "--query", "nothing")
    assert "no query is selected" in refused("test", "--query", "eval", "--tags", "outline")


# AgentCI Step 1 box 3, Step 1 box 4.
def test_tags_and_queries_select(dev: Path) -> None:
    assert {one["id"] for one in told("test", "--tags", "smoke,outline")["results"]} == {
        "unused-import", "eval", "outline",
    }  # fmt: skip
    found = told("test", "--query", "deploy:\nprint('hello')\n")
    assert [one["id"] for one in found["results"]] == ["unknown-task"]


def test_repeats_pass_if_all_do(dev: Path) -> None:
    change(dev, "def answer(case):", "import os\nCOUNT = []\n\ndef answer(case):\n    COUNT.append(1)\n"
           "    if case['input'].startswith('outline') and not os.path.exists('seen'):\n"
           "        open('seen', 'w')\n        return 'nothing'", "agent.py")  # fmt: skip
    found = told("test", "--repeat", "3", "--workers", "1", code=1)
    (outline,) = (one for one in found["results"] if one["id"] == "outline")
    assert (outline["status"], outline["answers"], outline["passes"]) == ("fail", 3, 2)
    assert [one["k"] for one in found["summary"]["pass_hat"]] == [1, 2, 3]
    assert found["summary"]["pass_hat"][0]["pass"] == pytest.approx((6 + 2 / 3) / 7, abs=1e-3)
    assert found["summary"]["pass_hat"][2]["pass"] == pytest.approx(6 / 7, abs=1e-3)


def test_another_agents_spec_is_refused(dev: Path) -> None:
    assert "must be 'dev-agent'" in refused("test", "--config", SPEC, "--agent", "rag-agent")
    assert told("test", "--agent", "Dev_Agent")["agent"] == "dev-agent"


def test_an_agents_spec_is_found_in_a_folder_below(dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(dev.parent)
    assert told("test", "--agent", "dev-agent", "--tags", "smoke")["summary"]["passed"] == 2
    assert "none is; give --config" in refused("test", "--agent", "other")


# AgentCI Step 2.5 box 3.
def test_a_sample_of_the_queries_has_an_ensemble(rag: Path, model: Running) -> None:
    """`--sample-ensemble`: a share of 0 asks one model, 1 asks all that the spec names, whatever `enabled` says."""
    fix_prompt(rag)
    models = "claude-sonnet-4-5-20250929, gpt-4o-mini, gemini-2.5-flash"
    change(rag, "  temperature: 0\n", f"  temperature: 0\n  ensemble: {{enabled: false, models: [{models}]}}\n")
    (one,) = told("test", "--query", "weather", "--sample-ensemble", "0")["results"]
    assert "individual_verdicts" not in one["correctness"]["details"]["llm_judge"][0]
    (all_of_them,) = told("test", "--query", "weather", "--sample-ensemble", "1")["results"]
    (judge,) = all_of_them["correctness"]["details"]["llm_judge"]
    assert [vote["model"] for vote in judge["individual_verdicts"]] == models.split(", ")
    assert ran("test", "--sample-ensemble", "1.1", code=2).stdout == ""


# AgentCI Step 6 box 3.
@pytest.mark.parametrize(("said", "most"), [((), 4), (("--workers", "2"), 2), (("--workers", "1"), 1)])
def test_so_many_are_asked_at_once_as_workers_says(dev: Path, said: tuple[str, ...], most: int) -> None:
    change(dev, "def answer(case):", "import os\nimport time\n\ndef answer(case):\n"
           "    name = f'at-{os.getpid()}-{time.monotonic_ns()}'\n    open(name, 'w').close()\n    time.sleep(0.2)\n"
           "    with open('log', 'a') as log:\n"
           "        log.write(f\"{sum(one.startswith('at-') for one in os.listdir())}\\n\")\n"
           "    os.remove(name)\n    return work(case)\n\n\ndef work(case):", "agent.py")  # fmt: skip
    told("test", *said)
    assert max(map(int, (dev / "log").read_text().split())) == most


@pytest.mark.parametrize("status", [429, 503])
def test_a_judge_that_fails_is_infra(rag: Path, model: Running, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAMPGATE_MODEL_PATIENCE_SECONDS", "0.2")
    fix_prompt(rag)
    model.model.tell(Behaviour(status=status))
    try:
        found = told("test", "--query", "weather", code=2)
    finally:
        model.model.tell(None)
    assert found["summary"]["infra"] == 1


def test_a_runs_report_has_the_specs_own_warnings(rag: Path) -> None:
    """A threshold that no score misses can't fail: `spec validate` warns of it, and so does a run, at its line."""
    fix_prompt(rag)
    change(rag, "          threshold: 0.7", "          threshold: 0.1")
    done = ran("test", "--query", "install", "--format", "github")
    line = line_of(rag, "threshold: 0.1")
    assert f"::warning file={SPEC},line={line}," in done.stderr
    assert any(f"{SPEC}:{line}:" in note for note in told("test", "--query", "install")["notes"])


# AgentCI Step 6 box 1.
def test_the_router_passes_all_32_queries(tmp_path: Path, model: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """AgentCI Step 6: every route, compared with its shipped baseline; no layer warns."""
    with demo("support-router", tmp_path, model, monkeypatch) as folder:
        shutil.copytree(ROOT / "examples" / "support-router" / "baselines", folder / "baselines")
        found = told("test", "--strict")
        assert found["summary"] == {"total": 32, "passed": 32, "failed": 0, "warnings": 0, "infra": 0}
        change(folder, '"ShippingAgent": {', '"Shipping_Agent_2": {', "routes.json")
        lost = told("test", "--tags", "shipping")["summary"]
        assert lost["warnings"] == lost["total"] == 4
