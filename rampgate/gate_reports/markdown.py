"""A gate's outcome as Markdown, for a job's summary or a comment. Pure."""

from __future__ import annotations

import html
import re

from rampgate.gate_reports.distributions import distributions
from rampgate.gate_reports.rows import LONGEST, facts, headline, rows, said
from rampgate.gate_run import Outcome
from schemas.dead_letters import clean
from schemas.verdicts import Word

SIGNS = {Word.PASS: "✅", Word.WARN: "⚠️", Word.FAIL: "❌"}
_MARKS = re.compile(r"([\\`*_{}\[\]()#+!|~])")


def markdown(outcome: Outcome) -> str:
    verdict, spread = outcome.verdict, distributions(outcome)
    lines = [f"## {SIGNS[verdict.verdict]} Gate {text(headline(outcome))}", ""]
    found = rows(outcome)
    if found:
        lines += [
            "| judge | | score | threshold | floor | baseline | items | unscored | low to high |",
            "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
        ]
        for row in found:
            score, one = row.score, spread.get(row.judge)
            cells = (
                text(row.judge), f"{SIGNS[row.word]} {row.word}", row.shown, f"{score.threshold:g}",
                f"{score.floor:g}", row.baseline, str(score.n), str(score.unscored), one.drawn if one else "",
            )  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    lines += [f"- {text(said(reason))}" for reason in verdict.reasons]
    if verdict.reasons:
        lines.append("")
    if outcome.wanted.accepted:
        lines += [f"Accepted as a baseline shift: {text(', '.join(sorted(outcome.wanted.accepted)))}.", ""]
    return "\n".join([*lines, f"{text(facts(outcome))}.", ""])


def text(raw: str) -> str:
    """As it stands: it can be no mark-up, no cell's end and nobody's mention."""
    escaped = _MARKS.sub(r"\\\1", html.escape(clean(raw, LONGEST), quote=False))
    return escaped.replace("@", "&#64;")
