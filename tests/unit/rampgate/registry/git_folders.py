"""git in a folder, by an author who is no one."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True, text=True
    ).stdout


def committed(folder: Path, message: str = "a change", branch: str = "main") -> str:
    """Commits all that the folder has, in a repository that is made if there is none; returns the commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "--quiet", f"--initial-branch={branch}")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(folder, "rev-parse", "HEAD").strip()
