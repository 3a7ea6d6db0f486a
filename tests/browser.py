"""A headless Chromium that opens a page of ours, as a reader would: what it shows, and what it asked for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.giving_up import missing

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 240
MEASURES = "<script>var e=document.documentElement;e.dataset.wider=e.scrollWidth-e.clientWidth</script>"


@dataclass(frozen=True)
class Opened:
    """`dom`: the document once it was shown; `said`: what the browser had to say, refusals of its policy among it;
    `asked`: addresses it asked for beside the page."""

    dom: str
    said: str
    asked: list[str]


def opened(page: Path, folder: Path, anchor: str = "", width: int = 1100) -> Opened:
    """Opens the page; `folder` is for what the browser leaves, a picture of the page, `page.png`, among it. `width` is
    that of the window, in pixels; 500 is the least that the browser has."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        missing("browser", f"no browser: install one of {', '.join(NAMES)}")
    log = folder / "net.json"
    command = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
        f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--enable-logging=stderr",
        f"--window-size={width},1800", f"--screenshot={folder / 'page.png'}", "--dump-dom", f"{page.as_uri()}{anchor}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    events = json.loads(log.read_text())["events"]
    named = {event.get("params", {}).get("url", "") for event in events}
    # What a page asks for is of its own making; the browser's own errands go to its maker's addresses.
    asked = sorted(url for url in named if url.startswith("http") and "google" not in url and "gvt1" not in url)
    said = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return Opened(done.stdout, said, asked)


def overflow(page: Path, folder: Path, width: int) -> int:
    """Returns by how many pixels a page without scripts of its own is wider than its window: what a reader would have
    to scroll for. A copy of the page measures itself."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text())
    copy = folder / f"measured-{width}.html"
    copy.write_text(text.replace("</body>", f"{MEASURES}</body>"))
    found = re.search(r'data-wider="(-?\d+)"', opened(copy, folder, width=width).dom)
    assert found is not None, "the page did not measure itself"
    return int(found[1])
