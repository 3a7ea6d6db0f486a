"""Which gates a change triggers (PC5 §5.5): path-based defaults, overrides with justification, sign-off and audit. An
override is what a reviewer of the description sees: a block as such, and a ticked box below it (PC5 §5.5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from evalcore.gates.overrides import AGREED, Block, Plan, PullRequest, Renamed, Ticked, accepted, plan, seen
from evalcore.gates.skips import read_skip
from evalcore.registry.gate_paths import ANYTHING_ELSE, DEFAULT, triggered
from evalcore.yaml.models import read_as
from rampgate.cli import app
from rampgate.console import Failure
from rampgate.overrides import KINDS, Quarter, event_id, report
from schemas.judges import Milestone
from schemas.manifests import GatePathsFile
from tests.root import ROOT
from tests.unit.evalcore.registry.registry_disk import built, rewritten, written
from tests.unit.rampgate.ci_gate.github_api import HEAD, PULL, FakeGitHub, github
from tests.unit.rampgate.registry.git_folders import committed

TODAY = date(2026, 11, 21)
RAMP, FULL = Milestone.PRE_RAMP, Milestone.PRE_FULL
TEMPLATE = (ROOT / ".github" / "pull_request_template.md").read_text()
RULE = "configs/rules/ux_quality.yaml"


def filled(milestones: str = "[pre_ramp]", tick: bool = True, expires: str = "2026-12-23", why: str = "flaky") -> str:
    """The repository's own template, filled in."""
    text = TEMPLATE.replace(
        "milestones: []\njustification:\nexpires:",
        f"milestones: {milestones}\njustification: {why}\nexpires: {expires}",
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


MERGED = replace(PULL, merged_as="c" * 40, merged_at=datetime(2026, 11, 20, 9, 30, tzinfo=UTC))


def asked(labels: list[str], description: str, pull: PullRequest = MERGED) -> Plan:
    return plan([RULE], today=TODAY, pull=replace(pull, labels=tuple(labels), description=description))


def test_an_override_with_label_justification_and_sign_off_skips_its_gate_once_it_is_merged() -> None:
    made = asked(["eval-skip-pre-ramp"], filled())
    assert (made.gates, made.wrong) == ((Milestone.PRE_MERGE, FULL), [])
    (skip,) = made.skipped
    assert (skip["milestone"], skip["approved_by"], skip["justification"]) == (RAMP, "@owner", "flaky")
    waiting = asked(["eval-skip-pre-ramp"], filled(), PULL)
    assert (waiting.gates, waiting.wrong, waiting.skipped) == (tuple(Milestone), [], made.skipped)


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
    made = asked(labels, description)
    assert (made.gates, made.skipped) == (tuple(Milestone), [])
    assert any(why in wrong for wrong in made.wrong), made.wrong


def test_a_block_without_its_label_skips_nothing() -> None:
    assert asked(["bug"], filled()).gates == tuple(Milestone)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    with github() as fake:
        monkeypatch.setenv("RAMPGATE_GITHUB_URL", fake.url)
        monkeypatch.setattr("evalcore.registry.disk.today", lambda: TODAY)
        yield fake


ON_GITHUB = ("--pull-request", "example/agents#12")


LOOSER = """overrides:
- {judge: brevity, milestone: pre_ramp, enforcement: warn, pull_request: '#12', justification: new cards,
   approved_on: 2026-11-20, expires: 2026-12-20}
"""


@pytest.fixture
def merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A repository whose last commit is a merge that adds an exception to enforcement; returns that commit."""
    root = written(
        tmp_path, {"rules/brevity.yaml": "enforcement: {pre_merge: block, pre_ramp: block, pre_full: block}"}
    )
    monkeypatch.chdir(tmp_path)
    committed(tmp_path)
    rewritten(root / "rules" / "brevity.yaml", "pre_ramp: block", "pre_ramp: warn")
    (root / "enforcement-overrides.yaml").write_text(LOOSER)
    return committed(tmp_path)


def planned(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["gate", "plan", "--base", "HEAD^", *ON_GITHUB, *map(str, arguments)])


def test_pc5_5_5_the_push_of_a_merge_alone_brings_its_overrides_to_the_audit(
    host: FakeGitHub, tmp_path: Path, merge: str
) -> None:
    """PC5 §5.2, §5.5: all three kinds, with the reviewers of the merge; nothing of it can be edited any more."""
    audit = tmp_path / "audit.jsonl"
    audit.write_text('{"earlier": true}\n')
    shift = filled().replace(
        "judges: []\njustification:\nexpires:",
        "judges: [brevity]\njustification: new cards\nexpires: 2026-12-20\napproved_by: '@friend'",
    )
    host.says(shift, "eval-skip-pre-ramp", "eval-enforcement-override", "bug")
    for merged_as in (None, "d" * 40):
        if merged_as is not None:
            host.merges(merged_as)
        refused = planned("--audit", audit)
        assert isinstance(refused.exception, Failure)
        assert "is not what the pull request was merged as" in str(refused.exception)
        assert audit.read_text() == '{"earlier": true}\n'
    host.merges(merge)
    result = planned("--audit", audit, "--agent-id", "receipts-agent", "--agent-version", "abc", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["gates"] == ["pre_merge", "pre_full"]
    earlier, *entries = map(json.loads, audit.read_text().splitlines())
    assert earlier == {"earlier": True}
    about = {"repository": "example/agents", "pull_request": "#12", "author": "writer", "head": HEAD}
    assert all(entry.items() >= {**about, "approved_by": "@owner"}.items() for entry in entries)
    assert [entry["kind"] for entry in entries] == ["gate_skip", "baseline_shift", "enforcement"]
    assert [entry.get("judges") for entry in entries] == [None, ["brevity"], ["brevity"]]
    whole = {"event_id": event_id(entries[0]), **entries[0]}
    skip = read_skip(whole)
    assert skip is not None, "what is published is what a rollout's gate reads"
    assert skip.gate == ("pre_ramp", "receipts-agent", "abc")
    assert read_skip({"event_id": event_id(entries[2]), **entries[2]}) is not None
    assert report(entries, Quarter.of("2026-Q4"))["by_kind"] == dict.fromkeys(KINDS, 1)
    definition = ("--agent-id", "receipts-agent")
    assert "both" in str(planned("--audit", audit, *definition).exception)


def test_what_nobody_signed_off_reaches_no_audit(host: FakeGitHub, tmp_path: Path, merge: str) -> None:
    audit = tmp_path / "audit.jsonl"
    host.says(filled(), "eval-skip-pre-ramp")
    host.merges(merge)
    host.pull["latestOpinionatedReviews"]["nodes"] = []
    result = planned("--audit", audit, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["gates"] == ["pre_merge", "pre_ramp", "pre_full"]
    for wrong in ("merged without an approval", "no label eval-enforcement-override"):
        assert wrong in result.stderr
    assert audit.read_text() == ""


def test_an_open_pull_request_is_told_what_its_overrides_lack(host: FakeGitHub, merge: str) -> None:
    host.says(filled(), "eval-skip-pre-ramp", "eval-enforcement-override")
    host.pull["latestOpinionatedReviews"]["nodes"] = []
    waiting = planned("--json")
    assert waiting.exit_code == 0, waiting.output
    told = json.loads(waiting.stdout)
    assert (told["gates"], [one["milestone"] for one in told["skipped"]]) == (
        ["pre_merge", "pre_ramp", "pre_full"], ["pre_ramp"]
    )  # fmt: skip
    assert "from the merge on" in " ".join(planned().stdout.split())
    host.pull["baseRef"] = None
    result = planned("--json")
    assert result.exit_code == 1
    assert len(json.loads(result.stdout)["refused"]) == 3


REGISTRY = built()
TICK = f"- [x] {AGREED}"
MORE = "justification: known\nexpires: 2026-12-01\n"
SHIFT = f"```accept-baseline-shift\njudges: [brevity]\n{MORE}```"
SKIP = f"```eval-skip-justification\nmilestones: [pre_ramp]\n{MORE}```"


def held(text: str) -> tuple[bool, bool]:
    """Whether the shift holds that the text may have, and whether the skip does."""
    pull = replace(PULL, description=text, labels=("eval-skip-pre-ramp",))
    shifts, _ = accepted(pull, REGISTRY, TODAY)
    skips = plan(["configs/rules/x.yaml"], today=TODAY, pull=pull).skipped
    return shifts != [], [one["milestone"] for one in skips] == [Milestone.PRE_RAMP]


SEEN = [
    f"{SKIP}\n\n{SHIFT}\n\n{TICK}\n",
    f"{SKIP}\n{SHIFT}\n{TICK}",
    f"<!-- why --> \n{SKIP}\n<!-- two\n\nlines -->\n{SHIFT}\n\n<!-->\n\n{TICK}\n",
    f"{SKIP}\n\n{SHIFT}\n\nWho agrees:\n\n* done\n  * [X] {AGREED} <!-- or not -->\n\nThanks.",
    f"```yaml\na: '<!--'\n```\n{SKIP}\n\n{SHIFT}\n\nNo `<!--` here.\n\n{TICK}\n- [ ] something else",
    f"~~~eval-skip-justification\nmilestones: [pre_ramp]\n{MORE}~~~\n\n`{SHIFT.replace('```', '````')[1:]}\n\n{TICK}",
]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("text", SEEN)
def test_what_a_reader_sees_holds(text: str, end: str) -> None:
    assert held(text.replace("\n", end)) == (True, True)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_template_holds_once_filled_in_and_ticked(end: str) -> None:
    fields = "justification:\nexpires:\n"
    filled = TEMPLATE.replace(f"milestones: []\n{fields}", f"milestones: [pre_ramp]\n{MORE}")
    filled = filled.replace(f"judges: []\n{fields}", f"judges: [brevity]\n{MORE}")
    assert held(filled.replace("\n", end)) == (False, False)
    assert held(filled.replace("- [ ] The reviewer", "- [x] The reviewer").replace("\n", end)) == (True, True)


BLOCKS = f"{SKIP}\n\n{SHIFT}\n\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{BLOCKS}<!--\n{TICK}\n-->\n",
        f"{BLOCKS}<!-- never closed\n\n{TICK}\n",
        f"{BLOCKS}> <!--\n\n{TICK}\n\n-->",
        f"{BLOCKS}Note: <!-- a\n\n{TICK}\n\n-->\n",
        f"{BLOCKS}```\n{TICK}\n```\n",
        f"{BLOCKS}~~~\n{TICK}\n~~~\n",
        f"{BLOCKS}~~~~\n```\n~~~\n{TICK}\n~~~~\n",
        f"{BLOCKS}- a\n\n  ```\n  {TICK}\n  ```\n",
        f"{BLOCKS}text\n2. a\n   ```\n{TICK}\n   ```\n",
        f"{BLOCKS}* * *\n  ```\n{TICK}\n  ```\n",
        f"{BLOCKS}text\n\n    {TICK}\n",
        f"{BLOCKS}> {TICK}\n",
        f"{BLOCKS}<?\n{TICK}\n?>\n",
        f"{BLOCKS}<div>\n{TICK}\n</div>\n",
        f"{BLOCKS}-[x] {AGREED}\n",
        f"{BLOCKS}- \\[x] {AGREED}\n",
        f"{BLOCKS}- [x] `{AGREED}`\n",
        f"{BLOCKS}- [ ] {AGREED}\n",
        f"{BLOCKS}- [x] {AGREED}, but not this one\n",
        f"{TICK}\n\n{BLOCKS}",
        f"<!--\n{BLOCKS}-->\n\n{TICK}\n",
        f"<!-- never closed\n\n{BLOCKS}{TICK}\n",
        f"~~~\n{BLOCKS}~~~\n\n{TICK}\n",
        f"````\n{BLOCKS}````\n\n{TICK}\n",
        f"<!-- ``` -->\n\n~~~\n{BLOCKS}\n~~~\n{TICK}\n",
        f"{BLOCKS}{SHIFT}\n\n{SKIP}\n\n{TICK}\n",
        f"{BLOCKS[:-5]}\n\n{TICK}\n".replace(SKIP, ""),
    ],
)
def test_what_no_reader_sees_as_an_override_or_a_tick_is_none(text: str) -> None:
    assert held(text) == held(text.replace("\n", "\r\n")) == (False, False)


def test_a_tick_is_for_the_overrides_above_it() -> None:
    assert held(f"{SKIP}\n\n{TICK}\n\n{SHIFT}\n") == (False, True)
    assert held(f"{SHIFT}\n\n{TICK}\n\n{SKIP}\n") == (True, False)


def test_a_hidden_example_is_no_second_block() -> None:
    example = SHIFT.replace("brevity", "helpfulness")
    text = f"<!-- such as\n{example}\n-->\n\n~~~\n{example}\n~~~\n\n{BLOCKS}{TICK}"
    assert held(text) == (True, True)
    (shift,), _ = accepted(replace(PULL, description=text), REGISTRY, TODAY)
    assert shift["judges"] == ("brevity",)


def test_blocks_and_ticks_stand_in_their_order() -> None:
    text = "- [x] one\n\n```a b\nc\n```\n\n- [ ] two\n- [X] *three* <!-- x -->\n  more\n"
    assert seen(text) == [Ticked("one"), Block("a b", "c\n"), Ticked("three")]
    assert seen("") == []
