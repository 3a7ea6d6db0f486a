"""Which gates a change triggers (PC5 §5.5): path-based defaults, overrides with justification, sign-off and audit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from agents.ports import Unavailable
from evalcore.gates.planning import Renamed, plan
from evalcore.gates.skips import read_skip
from evalcore.registry.gate_paths import ANYTHING_ELSE, DEFAULT, triggered
from evalcore.yaml.models import read_as
from rampgate.ci_gate.override_log import event_id
from rampgate.cli import app
from rampgate.console import Failure
from rampgate.settings import Settings
from schemas.judges import Milestone
from schemas.manifests import GatePathsFile
from tests.root import ROOT
from tests.unit.rampgate.ci_gate.github_api import HEAD, PULL, FakeGitHub, github

TODAY = date(2026, 11, 21)
RAMP, FULL = Milestone.PRE_RAMP, Milestone.PRE_FULL
TEMPLATE = (ROOT / ".github" / "pull_request_template.md").read_text()
RULE = "configs/rules/ux_quality.yaml"


def filled(milestones: str = "[pre_ramp]", tick: bool = True, expires: str = "2026-12-23", why: str = "flaky") -> str:
    """The repository's own template, filled in."""
    text = TEMPLATE.replace(
        "milestones: []\napproved_by:\njustification:\nexpires:",
        f"milestones: {milestones}\napproved_by: '@owner'\njustification: {why}\nexpires: {expires}",
    )
    box = "- [ ] The reviewer agrees"
    assert box in text
    return text.replace(box, "- [x] The reviewer agrees") if tick else text


@pytest.mark.parametrize(
    ("file", "gates"),
    [
        ("prompts/components/greeting.xml", 3),
        ("prompts/notes.md", 3),
        ("src/consumer_agent/prompts/system.md", 3),
        ("src/consumer_agent/api/prompts/a/b.md", 3),
        ("verticals/receipts/prompts/system.md", 3),
        ("docs/prompts/guide.md", 0),
        ("tests/prompts/data.md", 0),
        ("configs/rules/receipts/ux_quality.yaml", 3),
        ("configs/evaluation_manifest.yaml", 3),
        ("src/consumer_agent/agent/a/b.py", 3),
        ("src/consumer_agent/factory.py", 3),
        ("src/consumer_agent/utils/tools.py", 3),
        ("src/consumer_agent/api/routes.py", 1),
        ("src/consumer_agent/utils/helpers.py", 1),
        ("configs/other.yaml", 1),
        ("tests/unit/test_x.py", 0),
        ("docs/a/b.txt", 0),
        ("README.md", 0),
        ("somewhere/deep/NOTES.md", 0),
        (".github/workflows/ci.yml", 0),
        ("pyproject.toml", 0),
        ("setup.py", 0),
        ("Makefile", 0),
        ("./docs/x", 0),
    ],
)
def test_each_path_of_the_table_triggers_its_gates(file: str, gates: int) -> None:
    assert len(triggered(file).gates) == gates


@pytest.mark.parametrize(
    "file",
    [
        "streams/pipeline.py",
        "configs/verticals/x.yaml",
        "docsy/x",
        "xsetup.py",
        "a.mdx",
        "docs/../configs/rules/x.yaml",
    ],
)
def test_what_the_table_does_not_know_triggers_all_gates(file: str) -> None:
    assert triggered(file).gates == tuple(Milestone)
    assert triggered(file).rule == ANYTHING_ELSE


def test_a_file_that_leaves_a_gated_folder_triggers_that_folders_gates() -> None:
    made = plan([Renamed("prompts/system.md", "docs/system.md")], today=TODAY)
    assert made.gates == tuple(Milestone)
    assert [(one.file, one.rule, one.renamed_to) for one in made.files] == [
        ("prompts/system.md", "prompts/**", "docs/system.md"),
        ("docs/system.md", "docs/**", ""),
    ]


def test_the_shipped_table_is_pc5s() -> None:
    parsed, findings = read_as(GatePathsFile, "gate-paths.yaml", (ROOT / "configs/gate-paths.yaml").read_bytes())
    assert findings == []
    assert parsed is not None
    assert parsed.model == DEFAULT


def test_another_repositorys_layout_is_a_table_of_its_own() -> None:
    table = GatePathsFile.model_validate({
        "paths": [{"gates": ["pre_full", "pre_merge"], "files": ["agents/**/words/*.txt"]},
                  {"gates": [], "files": ["**/notes/**"]}]
    })  # fmt: skip
    merging = (Milestone.PRE_MERGE, FULL)
    for file in ("agents/words/a.txt", "agents/a/words/b.txt", "agents/a/b/words/c.txt"):
        assert triggered(file, table).gates == merging
    for file in ("notes/a", "a/notes/b/c"):
        assert triggered(file, table).gates == ()
    for file in ("agents/words/a/b.txt", "prompts/a.md", "docs/a", "a/b\nnotes/x", "xnotes/a"):
        assert triggered(file, table).gates == tuple(Milestone)


def test_a_change_triggers_what_any_of_its_files_does() -> None:
    assert plan(["README.md", "configs/x.yaml"], today=TODAY).gates == (Milestone.PRE_MERGE,)
    assert plan(["README.md", RULE], today=TODAY).gates == tuple(Milestone)
    assert plan(["README.md"], today=TODAY).gates == ()


def test_an_override_with_label_justification_and_sign_off_skips_its_gate() -> None:
    made = plan([RULE], ["eval-skip-pre-ramp"], filled(), today=TODAY, pull=PULL)
    assert (made.gates, made.wrong) == ((Milestone.PRE_MERGE, FULL), ())
    (skip,) = made.skipped
    assert (skip.milestone, skip.approved_by, skip.justification) == (RAMP, "@owner", "flaky")


@pytest.mark.parametrize(
    ("labels", "description", "why"),
    [
        (["eval-skip-pre-ramp"], "", "one block"),
        (["eval-skip-pre-ramp"], TEMPLATE, "is empty"),
        (["eval-skip-pre-ramp"], filled(tick=False), "reviewer's agreement"),
        (["eval-skip-pre-ramp"], filled(expires="2026-11-20"), "expired"),
        (["eval-skip-pre-ramp"], filled(expires="soon"), "no day"),
        (["eval-skip-pre-ramp"], filled(expires="2099-12-31"), "92 days at most"),
        (["eval-skip-pre-ramp"], filled(why="''"), "justification is empty"),
        (["eval-skip-pre-ramp"], filled("[pre_full]"), "does not name pre_ramp"),
        (["eval-skip-pre-ramp"], filled() + filled(), "it has 2"),
        (["eval-skip-pre-ramp"], filled("[pre_ramp"), "YAML"),
        (["eval-skip-pre-merge"], filled("[pre_merge]"), "no such override"),
    ],
)
def test_an_override_that_lacks_something_skips_nothing_and_says_what(
    labels: list[str], description: str, why: str
) -> None:
    made = plan([RULE], labels, description, today=TODAY, pull=PULL)
    assert (made.gates, made.skipped) == (tuple(Milestone), ())
    assert any(why in wrong for wrong in made.wrong), made.wrong


def test_a_block_without_its_label_skips_nothing() -> None:
    assert plan([RULE], ["bug"], filled(), today=TODAY, pull=PULL).gates == tuple(Milestone)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    with github() as fake:
        monkeypatch.setenv("RAMPGATE_GITHUB_URL", fake.url)
        monkeypatch.setattr("evalcore.registry.disk.today", lambda: TODAY)
        yield fake


ON_GITHUB = ("--repository", "example/agents", "--pull-request", "12")


def planned(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["gate", "plan", "--changed", RULE, "README.md", *map(str, arguments)])


def test_the_command_appends_to_the_audit_and_never_rewrites_it(host: FakeGitHub, tmp_path: Path) -> None:
    audit = tmp_path / "audit.jsonl"
    audit.write_text('{"earlier": true}\n')
    host.says(filled(), "eval-skip-pre-ramp", "bug")
    result = planned(*ON_GITHUB, "--audit", audit, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["gates"] == ["pre_merge", "pre_full"]
    earlier, entry = map(json.loads, audit.read_text().splitlines())
    assert earlier == {"earlier": True}
    about = {"repository": "example/agents", "pull_request": "#12", "author": "writer", "head": HEAD}
    assert entry.items() >= {**about, "milestone": "pre_ramp", "approved_by": "@owner"}.items()


def test_without_an_audit_no_override_holds(host: FakeGitHub) -> None:
    host.says(filled(), "eval-skip-pre-ramp")
    result = planned(*ON_GITHUB)
    assert isinstance(result.exception, Failure)
    assert "--audit" in str(result.exception)


def test_an_override_that_the_central_log_can_not_take_does_not_hold(
    host: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []

    async def taken(settings: Settings, entries: Any) -> None:
        if settings.kafka != "127.0.0.1:7":
            raise Unavailable("Kafka: out of reach")
        sent.extend(entries)

    monkeypatch.setattr("rampgate.cli.jobs.overrides.override_audit.publish", taken)
    host.says(filled(), "eval-skip-pre-ramp")
    asked = (*ON_GITHUB, "--audit", tmp_path / "audit.jsonl", "--publish", "--json")
    refused = planned(*asked)
    assert isinstance(refused.exception, Failure)
    assert "no override holds" in str(refused.exception)
    assert refused.stdout == ""
    assert planned(*asked, "--kafka", "127.0.0.1:7").exit_code == 0
    assert [(one["kind"], one["milestone"], one["head"]) for one in sent] == [("gate_skip", "pre_ramp", HEAD)]
    assert "agent_id" not in sent.pop(), "it is about CI alone"
    definition = ("--agent-id", "receipts-agent", "--agent-version", "abc")
    assert planned(*asked, "--kafka", "127.0.0.1:7", *definition).exit_code == 0
    skip = read_skip({"event_id": event_id(sent[0]), **sent[0]})
    assert skip is not None, "what is published is what a rollout's gate reads"
    assert skip.gate == ("pre_ramp", "receipts-agent", "abc")
    assert "both" in str(planned(*asked, *definition[:2]).exception)


def test_what_the_command_line_says_of_a_pull_request_overrides_nothing(tmp_path: Path) -> None:
    """Labels and description of an event, or of whoever writes the command, are nobody's approval."""
    description, audit = tmp_path / "pr.md", tmp_path / "audit.jsonl"
    description.write_text(filled())
    said = ("--label", "eval-skip-pre-ramp", "--description", description)
    result = planned(*said, "--audit", audit, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["gates"] == ["pre_merge", "pre_ramp", "pre_full"]
    assert "nobody was asked who approved it" in result.stderr
    assert not audit.exists()
    assert "leave --description" in str(planned(*said, *ON_GITHUB).exception)


def test_a_refused_override_ends_with_1_and_its_gate_runs() -> None:
    result = CliRunner().invoke(app, ["gate", "plan", "--changed", RULE, "--label", "eval-skip-pre-full", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["gates"] == ["pre_merge", "pre_ramp", "pre_full"]
