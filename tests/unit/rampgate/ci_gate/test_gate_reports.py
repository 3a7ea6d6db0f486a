"""A gate's outcome in the forms that CI shows, with the score distributions drawn (PC5 §5.5)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evalcore.gates.golden import CandidateAnswer, Failed, GoldenSet
from evalcore.judges.evaluator import Prompt
from evalcore.scoring.cache import MemoryScoreCache
from evalcore.scoring.calls import Reply
from evalcore.scoring.runner import Scorer
from rampgate.ci_gate.report_files import Reports
from rampgate.ci_gate.report_page import page
from rampgate.ci_gate.report_rows import distributions
from rampgate.ci_gate.report_texts import commands, junit, markdown
from rampgate.ci_gate.run import GateRequest, GateRun, run
from rampgate.console import Failure
from tests.unit.evalcore.registry.registry_disk import built
from tests.unit.evalcore.registry.registry_files import TODAY
from tests.unit.rampgate.ci_gate.gate_rig import ITEMS, answer, item
from tests.unit.rampgate.junit_files import junit_suite

HOSTILE = "<script>alert(1)</script> | [x](http://evil) @team \x1b[31m ::error::x"
REGISTRY = built({"evaluation_manifest.yaml": f"{{dataset: {{items: {ITEMS}}}}}"})


class Model:
    def source(self, model: str) -> str:
        return "test"

    def __init__(self, says: Callable[[str, str], Any]) -> None:
        self.says = says

    async def complete(self, asked: Prompt) -> Reply:
        kinds = [one["type"] for one in asked.schema["properties"]["score"]["anyOf"]]
        kind = next(kind for kind in ("boolean", "integer", "number") if kind in kinds)
        return Reply(json.dumps({"score": self.says(kind, asked.output), "reason": HOSTILE}))


def mixed(kind: str, output: str) -> Any:
    number = int(re.findall(r"so (\d+)", output)[0])
    return {"boolean": True, "integer": 2 + number % 4, "number": 1.0}[kind]


async def outcome(says: Callable[[str, str], Any] = mixed, failed: int = 0) -> GateRun:
    items = [{**item(n), "metadata": {**item(n)["metadata"], "id": f"<i{n}>"}} for n in range(ITEMS)]
    answers: dict[str, CandidateAnswer] = {
        f"<i{n}>": answer(n) if n >= failed else Failed(HOSTILE) for n in range(ITEMS)
    }

    async def dataset() -> GoldenSet:
        return GoldenSet(items, HOSTILE)

    return await run(GateRequest(REGISTRY, TODAY), dataset, lambda _: answers, Scorer(Model(says), MemoryScoreCache()))


async def test_scores_are_counted_in_the_bins_of_their_scale() -> None:
    found = distributions(await outcome(failed=1))
    whole = found["helpfulness"]
    assert (whole.labels, whole.counts) == (("1", "2", "3", "4", "5"), (0, 4, 5, 5, 5))
    assert (whole.unscored, whole.lowest[0].score, whole.drawn) == (1, 2.0, "·▇███")
    assert (found["honesty"].labels, found["honesty"].counts) == (("false", "true"), (0, ITEMS - 1))
    assert found["refusal"].counts == (*[0] * 19, ITEMS - 1)


async def test_junit_has_a_test_for_each_judge_and_a_failure_for_what_blocks() -> None:
    suite = junit_suite(junit(await outcome()))
    assert {case.get("name") for case in suite} >= {"helpfulness", "brevity", "refusal", "honesty"}
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("5", "0", "0")
    assert "below_threshold" in (suite.findtext("testcase[@name='helpfulness']/system-out") or "")
    dishonest = await outcome(lambda kind, _: {"boolean": False, "integer": 5, "number": 1.0}[kind])
    bad = junit_suite(junit(dishonest))
    failure = bad.find("testcase[@name='honesty']/failure")
    assert failure is not None
    assert (failure.get("type"), bad.get("failures")) == ("floor_breach", "1")
    unknown = junit_suite(junit(await outcome(failed=ITEMS)))
    assert unknown.get("errors") == "4"


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "onload", "onclick")]


async def test_the_page_draws_a_distribution_for_each_judge_and_needs_nothing_else() -> None:
    made = await outcome(failed=1)
    text, spread, seen = page(made), distributions(made), Seen()
    seen.feed(text)
    assert seen.tags.count("svg") == 4
    assert seen.tags.count("rect") == sum(bool(count) for one in spread.values() for count in one.counts)
    assert not {"script", "link", "img", "iframe"} & set(seen.tags)
    assert seen.links == []
    assert "url(" not in text
    assert "default-src 'none'" in text
    assert "threshold 4" in text
    assert "\x1b" not in text


async def test_markdown_shows_text_from_outside_as_text() -> None:
    text = markdown(await outcome(failed=ITEMS))
    assert "<script>" not in text
    assert "@team" not in text
    assert "](http" not in text
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(table) == 2 + 4
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {11}
    assert "▇███" in markdown(await outcome(failed=1))


async def test_annotations_begin_no_command_of_their_own() -> None:
    found = commands(await outcome(failed=ITEMS))
    assert all("\n" not in line and "\r" not in line for line in found)
    assert {line.split(" ", 1)[0] for line in found} == {"::error", "::notice"}


async def test_reports_are_files_and_the_summary_is_appended(tmp_path: Path) -> None:
    made = await outcome()
    files = Reports(*(tmp_path / name for name in ("j.xml", "s.md", "p.html", "m.prom")))
    files.check()
    files.write(made)
    files.write(made)
    assert (tmp_path / "s.md").read_text().count("## ") == 2
    assert (tmp_path / "p.html").read_text().count("<!doctype html>") == 1
    metrics = (tmp_path / "m.prom").read_text()
    assert 'eval_gate_fired_total{milestone="pre_merge"} 1.0' in metrics
    assert 'eval_gate_verdict_total{milestone="pre_merge",verdict="warn"} 1.0' in metrics
    scored = float(sum(distributions(made)["helpfulness"].counts))
    assert scored > 1
    assert f'eval_judge_score_distribution_count{{judge_id="helpfulness",milestone="pre_merge"}} {scored}' in metrics
    with pytest.raises(Failure, match="--html"):
        Reports(html=tmp_path / "no" / "p.html").check()
