"""GitHub's `gh` as the action's scripts call it: a stand-in that answers from a folder of this test's.

The folder has `runs.json` (a workflow's runs), `pulls.json` (of a commit), `events.json` (a pull request's), `may.json`
(who may do what), `pull.json` (its last commit and its comments) and `artifacts/RUN/NAME/`. What a call asks for by
`--jq` is answered by jq.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.unit.rampgate.ci_gate.github_api import HEAD

PROGRAM = r"""#!PYTHON
import json, pathlib, re, shutil, subprocess, sys

state, words = pathlib.Path("STATE"), sys.argv[1:]


def read(name):
    return json.loads((state / name).read_text())


def named(option):
    return words[words.index(option) + 1]


if words[:2] == ["run", "download"]:
    shutil.copytree(state / "artifacts" / words[2] / named("--name"), named("--dir"), dirs_exist_ok=True)
    raise SystemExit
if words[:2] == ["api", "graphql"]:
    pull = read("pull.json")
    told = {"headRefOid": pull["head"], "comments": {"nodes": pull["comments"]}}
    told = {"data": {"repository": {"pullRequest": told}}}
    sys.exit(subprocess.run(["jq", "-r", named("--jq")], input=json.dumps(told), text=True).returncode)
if "/comments" in next(word for word in words if word.startswith("repos/")):
    pull = read("pull.json")
    if not pull["may_write"]:
        sys.exit("gh: Resource not accessible by integration (HTTP 403)")
    body = pathlib.Path(named("-F").removeprefix("body=@")).read_text()
    place = words[words.index("--method") + 2]
    if named("--method") == "POST":
        numbers = [one["databaseId"] for one in pull["comments"]]
        pull["comments"].append({"databaseId": max(numbers, default=0) + 1, "viewerDidAuthor": True, "body": body})
    else:
        (one,) = (one for one in pull["comments"] if place.endswith(f"/issues/comments/{one['databaseId']}"))
        one["body"] = body
    (state / "pull.json").write_text(json.dumps(pull))
    raise SystemExit
asked = dict(word.partition("=")[::2] for before, word in zip(words, words[1:]) if before == "-f")
path = next(word for word in words if word.startswith("repos/"))
if re.search(r"/actions/workflows/[^/]+/runs$", path):
    if not (state / "runs.json").exists():
        sys.exit("gh: Not Found (HTTP 404)")
    wanted = {"head_branch": asked["branch"], "event": asked["event"], "conclusion": asked["status"]}
    found = [one for one in read("runs.json") if all(one[name] == value for name, value in wanted.items())]
    told = {"workflow_runs": found[::-1][: int(asked["per_page"])]}
elif run := re.search(r"/actions/runs/(\d+)/artifacts$", path):
    there = (state / "artifacts" / run[1] / asked["name"]).is_dir()
    told = {"artifacts": [{"id": 1, "expired": False}] if there else []}
elif commit := re.search(r"/commits/([0-9a-f]{40})/pulls$", path):
    told = read("pulls.json").get(commit[1], [])
elif "/events" in path:
    told = read("events.json")
elif who := re.search(r"/collaborators/([^/]+)/permission$", path):
    told = {"permission": read("may.json").get(who[1], "read")}
else:
    sys.exit(f"gh: {path} (HTTP 500)")
sys.exit(subprocess.run(["jq", "-r", named("--jq")], input=json.dumps(told), text=True).returncode)
"""


class GhProgram:
    """What `gh` says. `binaries` go before others on a step's PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.binaries = folder, folder / "bin"
        self.binaries.mkdir(parents=True)
        program = self.binaries / "gh"
        program.write_text(PROGRAM.replace("PYTHON", sys.executable).replace("STATE", str(folder)))
        program.chmod(0o755)
        self.write("runs", [])
        self.write("events", [])
        self.write("pulls", {})
        self.write("may", {"maintainer": "write"})
        self.pull(may_write=True, comments=[])

    def pull(self, **changes: Any) -> dict[str, Any]:
        """Changes what is known of the pull request: `head`, `may_write`, `comments`; returns all of it."""
        file = self.folder / "pull.json"
        told: dict[str, Any] = {"head": HEAD, **(json.loads(file.read_text()) if file.exists() else {}), **changes}
        self.write("pull", told)
        return told

    def comments(self) -> list[str]:
        return [one["body"] for one in self.pull()["comments"]]

    def write(self, name: str, told: Any) -> None:
        (self.folder / f"{name}.json").write_text(json.dumps(told))

    def ran(self, store: Path, event: str = "push", branch: str = "main", conclusion: str = "success") -> Path:
        """Notes a run that left this store as its artifact; returns the artifact's file."""
        runs = json.loads((self.folder / "runs.json").read_text())
        number = len(runs) + 1
        about = {"id": number, "created_at": f"2026-11-{number:02}T10:00:00Z", "event": event}
        self.write("runs", [*runs, {**about, "head_branch": branch, "conclusion": conclusion}])
        folder = self.folder / "artifacts" / str(number) / "suite-store"
        folder.mkdir(parents=True)
        shutil.copyfile(store, folder / "store.db")
        return folder / "store.db"
