"""The demo's pull requests: two that differ from main in configuration alone, each compared with main's run of a suite.

One is blocked, and the part of it that is to blame is named; the other is allowed. They answer by a rule: no model is
asked. Run as a program it prints what came of them, in one process for all.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
from rich.console import Group, RenderableType
from rich.text import Text

from rampgate.console import Failure
from rampgate.local.demo.registry import SHIPPED
from rampgate.local.demo.show import explained
from rampgate.registry.rule_history import NoHistory, git

SUITE: Final = Path("examples/suite")
AUTHOR: Final = ("-c", "user.name=demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgsign=false")
SEED: Final = 20_260_101
SECONDS: Final = 120


@dataclass(frozen=True)
class Pull:
    """What a pull request changes: texts of files of the suite's folder."""

    name: str
    about: str
    changes: tuple[tuple[str, str, str], ...]


TONE: Final = ("suite.yaml", "tone: {value: short}", "tone: {value: warm}")
PULLS: Final = (
    Pull(
        "A", "a shorter prompt and a warmer tone",
        (TONE, ("prompt.md", "Electronics: 14 days.", "Electronics: two weeks.")),
    ),
    Pull("B", "the warmer tone alone", (TONE,)),
)  # fmt: skip


def pull_requests(folder: Path, environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """What came of each, `{name, comparison, changed, blame}`, from a process of its own. Raises Failure."""
    command = [sys.executable, "-m", "rampgate.local.demo.pull_requests", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=SECONDS, check=False)
    if done.returncode:
        raise Failure(f"the demo's pull requests: {done.stderr.decode()[-800:]}")
    found: list[dict[str, Any]] = orjson.loads(done.stdout)
    return found


def held_against_main(folder: Path) -> list[dict[str, Any]]:
    """Run main, then each pull request against it. Raises Failure."""
    from rampgate.command import Context
    from rampgate.suite.blame import blame as blamed
    from rampgate.suite.run_command import run as run_suite

    home, main, store = folder / "suite", folder / "main.jsonl", str(folder / "store.db")
    suite = home / "suite.yaml"
    shutil.copytree(SHIPPED / SUITE, home, ignore=shutil.ignore_patterns(".rampgate", "__pycache__"))
    try:
        for words in (("init", "--quiet", "--initial-branch=main"), ("add", "--all"), ("commit", "-qm", "main")):
            git(home, *AUTHOR, *words)
    except NoHistory as error:
        raise Failure(str(error)) from error

    def ran(out: Path | None, baseline: Path | None) -> dict[str, Any]:
        named = str(baseline) if baseline is not None else None
        return run_suite(Context.of(), suite, out=out, store=store, baseline=named, first_run=baseline is None)

    before, pulls = ran(main, None), []
    for one in PULLS:
        for name in ("suite.yaml", "prompt.md"):
            shutil.copyfile(SHIPPED / SUITE / name, home / name)
        for name, old, new in one.changes:
            (home / name).write_text((home / name).read_text().replace(old, new))
        found = ran(None, main)
        blocked = found["comparison"]["verdict"] == "fail"
        blame = blamed(Context.of(), suite, str(main), "main", store=store) if blocked else None
        changed = sorted(name for name, part in found["parts"].items() if before["parts"].get(name) != part)
        pulls.append({"name": one.name, "comparison": found["comparison"], "changed": changed, "blame": blame})
    return pulls


def shown(found: Sequence[dict[str, Any]]) -> RenderableType:
    """Each pull request with its verdict and why."""
    return explained("Two pull requests, compared with main's run of a suite", Group(*map(_shown, found)))


def _shown(one: dict[str, Any]) -> Text:
    about = next(pull.about for pull in PULLS if pull.name == one["name"])
    comparison, blame = one["comparison"], one["blame"]
    whole = comparison["headline"]
    text = Text.assemble(
        f"Pull request {one['name']}, {about}: ",
        ("blocked", "bold red") if blame is not None else ("allowed", "bold green"),
        f"  ({whole['n']} cases, {comparison['score']} {whole['baseline']:.2f} → {whole['candidate']:.2f})\n",
    )
    for reason in comparison["reasons"]:
        text.append(f"  {reason['message']}\n")
    for flip in comparison["flipped"][:1]:
        sides = (flip[f"{side}_sample"]["output"] for side in ("baseline", "candidate"))
        text.append(f"  {flip['case_id']}: {' | '.join(sides)}\n")
    if blame is not None:
        text.append(f"  blame: {blame['message']}\n")
    return text


if __name__ == "__main__":
    sys.stdout.write(orjson.dumps(held_against_main(Path(sys.argv[1]))).decode())
