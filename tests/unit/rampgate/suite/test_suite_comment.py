"""`suite comment` keeps one comment on a pull request, by a real HTTP call to a stand-in of GitHub's API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evalcore.scoring.bounded_answer import BoundedClient
from rampgate.ci_gate.github import GitHub
from rampgate.cli import app
from rampgate.console import Failure, run
from rampgate.suite.pull_request.comments import Comments
from rampgate.suite.pull_request.marks import Mark, mark_of
from rampgate.suite.pull_request.text import comment_text
from rampgate.suite.pull_request.upkeep import keep_comment
from streams.retry import Retry
from tests.unit.rampgate.checks.report_pages import HOSTILE
from tests.unit.rampgate.checks.score_commands import alone
from tests.unit.rampgate.ci_gate.gate_rig import jsonl
from tests.unit.rampgate.ci_gate.github_api import HEAD, FakeGitHub, github
from tests.unit.rampgate.suite.suite_commands import ran
from tests.unit.rampgate.suite.suite_folders import case, written

OLDER = "0" * 40
MARK = Mark("desk", HEAD, 7, 1)
SHORT = f"{HOSTILE} cc @octocat and @org/team, fixes #12, GH-3 and org/repo#4: see https://evil.test, www.evil.test/x "
LONG = f"![x](https://evil.test/x.png) ```` <img src=x> $\\\\huge{{x}}$ {SHORT}. A sentence ends here. " * 60


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    alone(tmp_path, monkeypatch)
    for name in ("GITHUB_SHA", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"):
        monkeypatch.delenv(name, raising=False)
    with github() as fake:
        monkeypatch.setenv("RAMPGATE_GITHUB_URL", fake.url)
        monkeypatch.setenv("RAMPGATE_GITHUB_TOKEN", "made-up")
        yield fake


def rows(ok: float, output: str, many: int = 4) -> list[dict[str, Any]]:
    return [
        {
            "case_id": f"c{n}", "slices": ["safety"], "sample": 1, "scores": {"ok": ok}, "output": output,
            "reasons": {"ok": output},
        }
        for n in range(many)
    ]  # fmt: skip


def compared(folder: Path, output: str, many: int = 4, **changes: Any) -> dict[str, Any]:
    """The document of a run that is worse than its baseline in all its cases, which all answer `output`."""
    jsonl(folder / "main.jsonl", *rows(1.0, "fine", many))
    jsonl(folder / "branch.jsonl", *rows(0.0, output, many))
    done = CliRunner().invoke(
        app, ["suite", "compare", str(folder / "main.jsonl"), str(folder / "branch.jsonl"), "--json"]
    )
    found = json.loads(done.stdout)
    return {
        "suite": "desk", "agent": "desk", "configuration": "a" * 64, "commit": HEAD, "set": "smoke", "cases": many,
        "samples": 1, "answers": {"failed": 0}, "unscored": 0, "left": None, "canary_plan": None, "comparison": found,
        "baseline": {"label": "main", "commit": OLDER, "age": "3 days"}, "verdict": found["verdict"], **changes,
    }  # fmt: skip


def file_of(folder: Path, told: Mapping[str, Any]) -> Path:
    path = folder / "suite.json"
    path.write_text(json.dumps(told))
    return path


def comment(document: Path, *words: str, number: str = "12") -> dict[str, Any]:
    asked = ["--repository", "example/agents", "--pull-request", number, *words, "--json"]
    done = CliRunner().invoke(app, ["suite", "comment", str(document), *asked])
    if isinstance(done.exception, Failure):
        raise done.exception
    assert done.exit_code == 0, (done.exception, done.output)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_run_that_regressed_is_told_with_why_first_and_the_next_push_edits_it(
    host: FakeGitHub, tmp_path: Path
) -> None:
    document = file_of(tmp_path, compared(tmp_path, "You have 90 days."))
    assert comment(document, "--run", "7")["done"] == "made"
    (body,) = host.comments.bodies()
    hidden, head, *rest = [line for line in body.splitlines() if line]
    assert mark_of(body, "desk") == Mark("desk", HEAD, 7, 0)
    assert hidden.startswith("<!-- ")
    assert head == "## ❌ Suite desk, smoke set: blocked"
    assert rest[0] == "### Why"
    assert "safety\\_regressed" in "\n".join(rest[:6])
    assert "You have 90 days." in body

    pushed = "b" * 40
    host.pull["headRefOid"] = pushed
    found = comment(file_of(tmp_path, compared(tmp_path, "You have 80 days.", commit=pushed)), "--run", "8")
    assert (found["done"], found["url"]) == ("edited", host.comments.rows[0]["url"])
    (body,) = host.comments.bodies()
    assert "80 days" in body
    assert "90 days" not in body
    assert host.comments.done == ["addComment", "updateIssueComment"]


def test_a_strangers_comment_with_the_mark_and_our_own_without_are_left_alone(host: FakeGitHub, tmp_path: Path) -> None:
    document = file_of(tmp_path, compared(tmp_path, "x"))
    host.comments.add("mallory", f"{Mark('desk', HEAD, 999_999, 1)}\n## ✅ all is well")
    host.comments.add("github-actions", "Coverage is 91 %.")
    host.comments.add("github-actions", f"You said:\n> {Mark('desk', HEAD, 999_999, 1)}\n")
    host.comments.add("github-actions", f"{Mark('other', HEAD, 999_999, 1)}\nof another suite")
    before = [dict(row) for row in host.comments.rows]
    assert comment(document, "--run", "7")["done"] == "made"
    assert host.comments.rows[:4] == before
    assert len(host.comments.rows) == 5


def test_it_is_found_behind_hundreds_of_other_comments(host: FakeGitHub, tmp_path: Path) -> None:
    for number in range(230):
        host.comments.add("github-actions" if number % 10 == 0 else "talker", f"comment {number}")
    host.comments.add("github-actions", f"{Mark('desk', OLDER, 3, 1)}\nof an earlier commit")
    assert comment(file_of(tmp_path, compared(tmp_path, "x")), "--run", "7")["done"] == "edited"
    assert len(host.comments.rows) == 231


def test_a_run_of_another_commit_than_the_last_writes_nothing(host: FakeGitHub, tmp_path: Path) -> None:
    """It began before the push, and ends after: its run's number may even be the higher one, when it was repeated."""
    document = file_of(tmp_path, compared(tmp_path, "x", commit=OLDER))
    found = comment(document, "--run", "9")
    assert (found["done"], host.comments.rows) == ("left", [])
    assert f"is at {HEAD[:12]} by now" in found["why"]
    host.comments.add("github-actions", f"{MARK}\nof the last commit")
    assert comment(document, "--run", "9")["done"] == "left"
    assert host.comments.done == []


@pytest.mark.parametrize(("run", "attempt"), [(8, 1), (7, 2)])
def test_an_older_run_of_the_same_commit_leaves_the_newer_ones_comment(
    host: FakeGitHub, tmp_path: Path, run: int, attempt: int
) -> None:
    host.comments.add("github-actions", f"{Mark('desk', HEAD, run, attempt)}\nof the newer run")
    found = comment(file_of(tmp_path, compared(tmp_path, "x")), "--run", "7", "--attempt", "1")
    assert found["done"] == "left"
    assert host.comments.bodies()[0].endswith("of the newer run")


@pytest.mark.parametrize("rival", [6, 8])
@pytest.mark.parametrize("when", ["addComment", "after"])
def test_two_runs_at_once_leave_one_comment_of_the_newer(
    host: FakeGitHub, tmp_path: Path, rival: int, when: str
) -> None:
    """Both find none and make one: the other's stands before ours, or comes right after it."""
    seen: list[str] = []

    def others(name: str) -> None:
        seen.append(name)
        if name == (when if when == "addComment" else "comments") and "rival" not in seen:
            if when == "after" and "addComment" not in seen:
                return
            seen.append("rival")
            host.comments.add("github-actions", f"{Mark('desk', HEAD, rival, 1)}\nof the rival")

    host.comments.before = others
    comment(file_of(tmp_path, compared(tmp_path, "x")), "--run", "7")
    (body,) = host.comments.bodies()
    known = mark_of(body, "desk")
    assert known is not None
    assert known.run == max(rival, 7)
    assert ("of the rival" in body) == (rival == 8)


@pytest.mark.parametrize("pushed", [False, True], ids=["same-commit", "next-commit"])
def test_an_older_run_that_writes_over_a_newer_ones_comment_puts_it_back(
    host: FakeGitHub, tmp_path: Path, pushed: bool
) -> None:
    """The newer run begins and ends between this one's last look and its write, which may be late by minutes."""
    row = host.comments.add("github-actions", f"{Mark('desk', HEAD, 5, 1)}\nof the run before")
    newer = Mark("desk", "b" * 40 if pushed else HEAD, 8, 1)
    late = ["updateIssueComment"]

    def others(name: str) -> None:
        if name in late:
            late.remove(name)
            host.pull["headRefOid"] = newer.commit
            host.comments.edit(row, f"{newer}\nof the newer run")

    host.comments.before = others
    found = comment(file_of(tmp_path, compared(tmp_path, "x")), "--run", "7")
    assert host.comments.bodies() == [f"{newer}\nof the newer run"]
    assert (found["done"], found["url"]) == ("left", row["url"])
    assert ("is at bbbbbbbbbbbb by now" if pushed else "a newer run has written") in found["why"]


def test_a_history_that_tells_nothing_keeps_no_comment_from_being_written(host: FakeGitHub, tmp_path: Path) -> None:
    row = host.comments.add("github-actions", f"{Mark('desk', HEAD, 5, 1)}\nof the run before")
    host.comments.texts[row["id"]] = [None, "You said: hello", f"{Mark('other', HEAD, 99, 1)}\nof another suite"]
    assert comment(file_of(tmp_path, compared(tmp_path, "x")), "--run", "7")["done"] == "edited"
    (body,) = host.comments.bodies()
    assert mark_of(body, "desk") == Mark("desk", HEAD, 7, 0)


def test_two_that_take_each_others_comment_away_at_the_same_time_leave_one(host: FakeGitHub, tmp_path: Path) -> None:
    """The other deletes what this run is about to delete."""
    host.comments.add("github-actions", f"{Mark('desk', HEAD, 5, 1)}\nfirst")
    second = host.comments.add("github-actions", f"{Mark('desk', HEAD, 6, 1)}\nsecond")

    def others(name: str) -> None:
        if name == "deleteIssueComment" and second in host.comments.rows:
            host.comments.rows.remove(second)

    host.comments.before = others
    assert comment(file_of(tmp_path, compared(tmp_path, "x")), "--run", "7")["done"] == "edited"
    assert len(host.comments.rows) == 1


def test_a_lost_answer_to_a_made_comment_makes_no_second(host: FakeGitHub) -> None:
    """The call is repeated, and GitHub has carried out both."""
    lost = ["addComment"]

    def others(name: str) -> None:
        if name in lost:
            lost.remove(name)
            host.comments.add("github-actions", f"{MARK}\nbody")

    host.comments.before = others

    async def keeping() -> str:
        async with BoundedClient(1, 20) as client:
            comments = Comments(GitHub(client, host.url, "t", Retry(0.01, 0.01, tries=3)))
            return (await keep_comment(comments, "example/agents", 12, MARK, f"{MARK}\nbody")).done

    run(keeping)
    assert host.comments.bodies() == [f"{MARK}\nbody"]


def test_without_a_token_that_may_write_it_says_so_and_fails_nothing(
    host: FakeGitHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pull request from a fork: the job's summary has the report."""
    document = file_of(tmp_path, compared(tmp_path, "x"))
    host.comments.may_write = False
    found = comment(document)
    assert (found["done"], found["url"]) == ("none", None)
    assert "the job's summary has the report" in found["why"]
    monkeypatch.delenv("RAMPGATE_GITHUB_TOKEN")
    asked = len(host.asked)
    assert comment(document)["done"] == "none"
    assert len(host.asked) == asked, "and nobody is asked"


def test_a_host_that_is_away_is_an_error(host: FakeGitHub, tmp_path: Path) -> None:
    host.status = 404
    with pytest.raises(Failure, match="no comment on example/agents#12: GitHub: answers 404"):
        comment(file_of(tmp_path, compared(tmp_path, "x")))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"commit": ""}, "commit: it names none"),
        ({"verdict": "fine"}, "verdict: Input should be"),
        ({"configuration": None}, "configuration: "),
        ({"baseline": 3}, "is no whole document"),
    ],
)
def test_a_damaged_document_is_refused_by_its_field(
    host: FakeGitHub, tmp_path: Path, change: dict[str, Any], told: str
) -> None:
    with pytest.raises(Failure, match=told):
        comment(file_of(tmp_path, compared(tmp_path, "x", **change)))
    assert host.asked == []


def test_a_file_that_is_none_and_a_number_that_is_none_are_refused(host: FakeGitHub, tmp_path: Path) -> None:
    (tmp_path / "suite.json").write_text('{"suite": ')
    with pytest.raises(Failure, match="is no JSON"):
        comment(tmp_path / "suite.json")
    with pytest.raises(Failure, match="can't be read"):
        comment(tmp_path / "none.json")
    with pytest.raises(Failure, match="--pull-request"):
        comment(tmp_path / "suite.json", number="https://x/12")


@pytest.mark.parametrize("output", [SHORT, LONG, "😀@a " * 20_000], ids=["short", "long", "emoji"])
def test_no_text_of_an_answer_mentions_links_loads_or_makes_it_too_long(tmp_path: Path, output: str) -> None:
    """GitHub looks for mentions, issues and addresses in what was rendered, where escapes are gone: so a space without
    width stands behind each."""
    text = comment_text(compared(tmp_path, output, many=60), MARK)
    assert len(text.encode("utf-16-le")) // 2 < 65_536
    seen = re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text.partition("\n")[2])  # as rendered
    for name, character in (("&#64;", "@"), ("&#36;", "$"), ("&#8203;", "\u200b"), ("&amp;", "&")):
        seen = seen.replace(name, character)
    assert not re.search(r"@[\w-]|#\d|GH-\d|\w://|www\.", seen)
    assert "$" not in text
    assert not re.search(r"<(?!br>)|(?<!\\)[`!\[~]", text.partition("\n")[2])
    for table in text.split("\n\n"):
        bars = [re.sub(r"\\.", "", row).count("|") for row in table.splitlines() if row.startswith("| ")]
        assert len(set(bars)) <= 1, "no text ends a cell"


def test_what_is_cut_ends_with_a_sentence_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    told = compared(tmp_path, "A whole sentence stands here. " * 2_000, many=60)
    text = comment_text(told, MARK)
    assert re.search(r"stands here\. … \\\([\d,]+ characters more", text)
    assert not re.search(r"(?<!here\.) …", text)
    assert f"{len(told['comparison']['flipped']) - 3} more cases that fell" in text
    assert "the report in the job's summary has all" in text
    tight = comment_text(told, MARK, longest=2_000)
    assert len(tight) <= 2_000
    assert tight.splitlines()[1] == "## ❌ Suite desk, smoke set: blocked"
    assert "- This run" in tight, "sections that are left out are named"


def test_what_kept_a_run_from_passing_stands_first_though_its_comparison_passes(tmp_path: Path) -> None:
    left = {"why": "over --max-cost 3", "answers": 4, "scores": 5}
    told = compared(tmp_path, "x", verdict="incomplete", left=left)
    head, _, rest = comment_text(told, MARK).partition("\n")[2].partition("\n")
    assert head == "## ❌ Suite desk, smoke set: incomplete, which is no pass"
    assert rest.index("over --max-cost 3") < rest.index("### Why\n")
    assert rest.count("over --max-cost 3") == 1, "and once"


def test_a_first_run_says_that_it_is_held_against_nothing(host: FakeGitHub, tmp_path: Path) -> None:
    """By the document that `suite run` itself writes."""
    path = written(tmp_path / "suite", [case(number) for number in range(3)])
    ran(path, "--report", tmp_path / "suite.json", "--commit", HEAD)
    comment(tmp_path / "suite.json")
    (body,) = host.comments.bodies()
    assert body.splitlines()[1] == "## ✅ Suite desk, full set: compared with nothing"
    assert "held against nothing" in body
    assert "0 of 6 answers failed" in body


def test_a_run_that_passed_tells_its_canary_plan_and_what_judges_say_of_pairs(host: FakeGitHub, tmp_path: Path) -> None:
    path = written(tmp_path / "suite")
    ran(path, "--label", "main")
    pairs = {"wins": 3, "ties": 1, "losses": 0, "unanswered": 0, "position_bias": 0.25, "calls": 8}
    told = ran(path) | {"pairwise": {"helpfulness": pairs}}
    assert told["canary_plan"]
    text = comment_text(told, MARK)
    assert "each pair in both orders" in text
    assert re.search(r"helpfulness *\\?\| *3 *\| *1 *\| *0 *\| *0 *\| *25", text), text
    assert "Canary plan" in text
