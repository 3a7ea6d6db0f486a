"""The jobs of a run that is split: main's commit and a proposal in folders, a store for who has the keys, and each job
without what another one left but the files that it is given."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from rampgate.suite.runs.only import Side
from tests.unit.rampgate.registry.git_folders import git
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
        for words in (("init", "--quiet", "--initial-branch=main"), ("add", "--all"), ("commit", "-qm", "main")):
            git(folder, *words)
        self.main = git(folder, "rev-parse", "HEAD").strip()
        ran(self.path, "--label", "main", *self.kept)
        shutil.copytree(folder, self.proposed, ignore=shutil.ignore_patterns(".rampgate", ".git"))
        (self.proposed / "prompt.md").write_text("new")
        self.again = root / "again.json"
        self.fresh = {side: root / f"fresh-{side}.jsonl" for side in Side}

    @property
    def kept(self) -> tuple[object, ...]:
        return ("--store", self.root / "kept.db")

    def score(self, *more: object, code: int) -> dict[str, Any]:
        """The verdict on the answers that are there, by the job with the keys."""
        answers = ("--only", "score", "--answers", self.root / "answers.jsonl")
        out = ("--out", self.root / "branch.jsonl", "--commit", "c" * 40)
        return ran(self.path, *answers, *self.kept, *out, "--proposed", self.proposed, *more, code=code)

    def tripped(self, code: int = 1) -> dict[str, Any]:
        """The jobs that answer and score, as they do first."""
        answers = ("--only", "generate", "--answers", self.root / "answers.jsonl")
        ran(self.path, *answers, "--store", self.root / "generate.db", "--proposed", self.proposed)
        return self.score("--again", self.again, code=code)

    def anew(self, side: Side, *more: object) -> dict[str, Any]:
        """The job in which that side answers anew. The baseline's has no proposal."""
        return ran(self.path, *self._anew(side), *more)

    def anew_refused(self, side: Side, *more: object) -> str:
        return refused(self.path, *self._anew(side), *more)

    def confirmed(self, *more: object, code: int) -> dict[str, Any]:
        """The job that has both sides' fresh answers."""
        files = [("--fresh-baseline", self.fresh[Side.BASELINE]), ("--fresh-candidate", self.fresh[Side.CANDIDATE])]
        return self.score(*(word for pair in files for word in pair), *more, code=code)

    def all_jobs(self, code: int) -> dict[str, Any]:
        self.tripped()
        for side in Side:
            self.anew(side)
        return self.confirmed(code=code)

    def rows(self, side: Side) -> Rows:
        return [json.loads(line) for line in self.fresh[side].read_text().splitlines()]

    def rewrite(self, side: Side, rows: Rows) -> None:
        self.fresh[side].write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    def asked(self) -> dict[str, int]:
        """How often each kind of candidate was asked each case."""
        return {log.name: len(log.read_text()) for log in self.state.iterdir() if log.name != "broken"}

    def _anew(self, side: Side) -> tuple[object, ...]:
        proposed = ("--proposed", self.proposed) if side is Side.CANDIDATE else ()
        own = ("--store", self.root / f"again-{side}.db", "--answers", self.fresh[side])
        return ("--only", "generate", "--again", self.again, "--side", side, *own, *proposed)
