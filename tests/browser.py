"""A headless Chromium that opens a page of ours, as a reader would: what it shows, and what it asked for."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.giving_up import missing

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 240


@dataclass(frozen=True)
class Opened:
    """`dom`: the document once it was shown; `said`: what the browser had to say, refusals of its policy among it;
    `asked`: addresses it asked for beside the page."""

    dom: str
    said: str
    asked: list[str]


def opened(page: Path, folder: Path, anchor: str = "") -> Opened:
    """Opens the page; `folder` is for what the browser leaves, a picture of the page, `page.png`, among it."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        missing("browser", f"no browser: install one of {', '.join(NAMES)}")
    log = folder / "net.json"
    command = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
        f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--enable-logging=stderr",
        "--window-size=1100,1800", f"--screenshot={folder / 'page.png'}", "--dump-dom", f"{page.as_uri()}{anchor}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    events = json.loads(log.read_text())["events"]
    named = {event.get("params", {}).get("url", "") for event in events}
    # What a page asks for is of its own making; the browser's own errands go to its maker's addresses.
    asked = sorted(url for url in named if url.startswith("http") and "google" not in url and "gvt1" not in url)
    said = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return Opened(done.stdout, said, asked)
