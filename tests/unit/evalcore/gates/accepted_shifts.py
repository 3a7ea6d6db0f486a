"""A pull request that asks to accept a baseline shift, by the repository's own template."""

from __future__ import annotations

from tests.root import ROOT

TEMPLATE = (ROOT / ".github" / "pull_request_template.md").read_text()
BLOCKING = {
    "rules/brevity.yaml": "{enforcement: {pre_merge: block}}",
    "rules/refusal.yaml": "{threshold: 0.5, floor: 0.5}",
    "rules/honesty.yaml": "{floor: 0.5}",
}


def filled(judges: str, *, tick: bool = True, expires: str = "2026-12-01") -> str:
    """The repository's own template, filled in."""
    text = TEMPLATE.replace(
        "judges: []\njustification:\nexpires:",
        f"judges: {judges}\njustification: new rubric\nexpires: {expires}",
    )
    assert text != TEMPLATE
    return text.replace("- [ ] The reviewer agrees", "- [x] The reviewer agrees") if tick else text
