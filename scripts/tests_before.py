"""Runs tests of docs/gaming.md on an earlier commit, where each must fail: what passes there proves nothing.

    scripts/tests_before.py 400f588               every row whose first cell begins with "32."
    scripts/tests_before.py 400f588 --rows 32.8

The earlier commit is checked out beside the tree, with the tests of now. Exit code 1 if a test passes there.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
THEIRS = "tests/unit/rampgate/suite/suite_commands.py"
"""Starts commands with the options that they had then."""
ROW = re.compile(r"^\| (?P<line>[^|]+) \|.*\| `(?P<file>tests/[^`:]+\.py)::(?P<test>[^`]+)` \|$", re.MULTILINE)


def rows(prefix: str) -> dict[str, list[str]]:
    """The test ids of the page's rows, by what their first cell says."""
    out: dict[str, list[str]] = {}
    for row in ROW.finditer((ROOT / "docs/gaming.md").read_text()):
        if row["line"].startswith(prefix):
            out.setdefault(row["line"], []).append(f"{row['file']}::{row['test']}")
    return out


def outcome(checkout: Path, test: str) -> tuple[bool, str]:
    """Whether a test passes in all its cases, and what the first that does not says."""
    words = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-m", "", test]
    environment = {**os.environ, "PYTHONPATH": str(checkout), "COLUMNS": "200"}
    done = subprocess.run(words, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR", "E  "))]
    return done.returncode == 0, (said or done.stdout.splitlines()[-1:] or [""])[0]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit")
    parser.add_argument("--rows", default="32.", metavar="PREFIX", help="what the first cell of a row begins with")
    asked = parser.parse_args(arguments)
    wanted, proves_nothing = rows(asked.rows), 0
    with TemporaryDirectory(prefix="rampgate-before-") as folder:
        checkout = Path(folder, "before")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(checkout), asked.commit], check=True)
        try:
            shutil.rmtree(checkout / "tests")
            shutil.copytree(ROOT / "tests", checkout / "tests", ignore=shutil.ignore_patterns("__pycache__"))
            subprocess.run(["git", "-C", str(checkout), "checkout", "--quiet", "--", THEIRS], check=True)
            for line, tests in wanted.items():
                for test in tests:
                    passes, said = outcome(checkout, test)
                    proves_nothing += passes
                    print(f"{'PASSES' if passes else 'fails'}: {line}\n    {test}\n    {said[:200]}", flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(checkout)], check=True)
    print(f"{sum(map(len, wanted.values()))} tests, {proves_nothing} of them pass on {asked.commit}")
    return int(proves_nothing > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
