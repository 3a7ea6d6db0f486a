"""The jobs of a run that is split: main's commit and a proposal in folders, a store for who has the keys, and each job
without what another one left but the files that it is given."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from schemas.checks.suite_again import Side
from tests.unit.rampgate.registry.git_folders import committed, git
from tests.unit.rampgate.suite.suite_branches import CANDIDATE, agent, two_slices
from tests.unit.rampgate.suite.suite_commands import ran, refused
from tests.unit.rampgate.suite.suite_folders import written

Rows = list[dict[str, Any]]


class SplitJobs:
    """`rule` says when a case that falls is good: `kind` is old or new, `number` how often that kind was asked it."""

    def __init__(self, root: Path, folder: Path, rule: str, cases: Rows | None = None, **changes: Any) -> None:
        self.root, self.folder, self.state = root, folder, root / "state"
        self.proposed = root / "proposed"
        self.state.mkdir()
        given = {"candidate": CANDIDATE, "samples": 2, **changes}
        self.path = written(folder, cases or two_slices(6), **given)
        (folder / "prompt.md").write_text("old")
        (folder / "agent.py").write_text(agent(self.state, rule))
        (folder / ".gitignore").write_text(".rampgate/\n__pycache__/\n")
        self.main = committed(folder)
        ran(self.path, "--label", "main", *self.kept)
        shutil.copytree(folder, self.proposed, ignore=shutil.ignore_patterns(".rampgate", ".git"))
        (self.proposed / "prompt.md").write_text("new")
        self.checkout = root / "checkout"
        git(root, "clone", "--quiet", folder, self.checkout)
        self.again = root / "branch-again.json"
        self.fresh = {side: root / f"fresh-{side}.jsonl" for side in Side}

    @property
    def kept(self) -> tuple[object, ...]:
        return ("--store", self.root / "kept.db")

    def score(self, *more: object, code: int) -> dict[str, Any]:
        """The verdict on the answers that are there, by the job with the keys."""
        return ran(*self._score(more), code=code)

    def tripped(self, code: int = 1) -> dict[str, Any]:
        """The jobs that answer and score, as they do first."""
        answers = ("--generate", self.root / "answers.jsonl", "--store", self.root / "generate.db")
        ran(self.path, *answers, "--proposed", self.proposed)
        return self.score(code=code)

    def answered(self, side: Side) -> dict[str, Any]:
        """The job in which that side answers again. The baseline's has its own checkout, and no proposal."""
        return ran(*self._anew(side))

    def answers_refused(self, side: Side) -> str:
        return refused(*self._anew(side))

    def confirmed(self, code: int) -> dict[str, Any]:
        """The job that has both sides' fresh answers, in whatever order."""
        return self.score(*self._fresh, code=code)

    def confirmed_refused(self) -> str:
        return refused(*self._score(self._fresh))

    def all_jobs(self, code: int) -> dict[str, Any]:
        self.tripped()
        for side in Side:
            self.answered(side)
        return self.confirmed(code=code)

    def rows(self, side: Side) -> Rows:
        return [json.loads(line) for line in self.fresh[side].read_text().splitlines()]

    def rewrite(self, side: Side, rows: Rows) -> None:
        self.fresh[side].write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def asked(self) -> dict[str, int]:
        """How often each kind of candidate was asked each case."""
        return {log.name: len(log.read_text()) for log in self.state.iterdir() if log.name != "broken"}

    def _anew(self, side: Side) -> tuple[Any, ...]:
        proposed = ("--proposed", self.proposed) if side is Side.CANDIDATE else ()
        path = self.path if side is Side.CANDIDATE else self.checkout / self.path.name
        own = ("--store", self.root / f"again-{side}.db", "--cases", self.again)
        return (path, "--generate", self.fresh[side], *own, *proposed)

    @property
    def _fresh(self) -> tuple[object, ...]:
        there = (file for file in reversed(self.fresh.values()) if file.exists())
        return tuple(word for file in there for word in ("--score", file))

    def _score(self, more: tuple[object, ...]) -> tuple[Any, ...]:
        answers = ("--score", self.root / "answers.jsonl", "--out", self.root / "branch.jsonl")
        return (self.path, *answers, *self.kept, "--proposed", self.proposed, *more)
