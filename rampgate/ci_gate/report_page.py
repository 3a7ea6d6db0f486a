"""Writes a gate's run as one HTML page that loads nothing: no script, font or picture from elsewhere. Pure.

An inline SVG shows each judge's distribution: bars, with floor and threshold on the same axis.
"""

from __future__ import annotations

from html import escape

from rampgate.ci_gate.report_rows import Distribution, Low, Row, distributions, facts, headline, rows, said
from rampgate.ci_gate.run import GateRun
from rampgate.report.escaped import in_html as text
from rampgate.report.style import POLICY, STYLE
from schemas.judges import ScoreType
from schemas.verdicts import JudgeScore

WIDTH, HEIGHT = 420, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 8, 22, 24
_PLOT_WIDTH, _PLOT_HEIGHT = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM


def drawing(one: Distribution, score: JudgeScore) -> str:
    """The distribution as SVG; its description lists the counts, for readers that show no picture."""
    most = max(one.counts, default=0)
    told = ", ".join(f"{label}: {count}" for label, count in zip(one.labels, one.counts, strict=True) if count)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(f"Scores of {one.judge.id}: {told}")}">',
        f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{_y(0, 1):.1f}" y2="{_y(0, 1):.1f}"/>',
    ]
    if most:
        parts.append(f'<text class="tick" x="{_LEFT - 5}" y="{_y(most, most) + 4:.1f}" text-anchor="end">{most}</text>')
    wide = _PLOT_WIDTH / len(one.counts)
    for number, (label, count) in enumerate(zip(one.labels, one.counts, strict=True)):
        if count:
            top = _y(count, most)
            parts.append(
                f'<rect class="bar" x="{_LEFT + number * wide + 1:.1f}" width="{max(wide - 2, 1):.1f}" y="{top:.1f}" '
                f'height="{_y(0, 1) - top:.1f}"><title>{escape(label)}: {count}</title></rect>'
            )
    parts += _ticks(one, wide)
    if one.judge.score_type is not ScoreType.BOOLEAN:  # there limits are rates, not scores
        parts += _limit(one, "floor", score.floor, HEIGHT) + _limit(one, "threshold", score.threshold, 0)
    if score.score is not None and one.judge.score_type is not ScoreType.BOOLEAN:
        x = _x(one, score.score)
        parts.append(f'<path class="mean" d="M{x:.1f} {_y(0, 1):.1f}l-5 8h10z"><title>mean</title></path>')
    return "".join([*parts, "</svg>"])


def _ticks(one: Distribution, wide: float) -> list[str]:
    y = HEIGHT - 6
    if len(one.labels) <= 11 and one.judge.score_type is not ScoreType.FLOAT:
        return [
            f'<text class="tick" x="{_LEFT + (number + 0.5) * wide:.1f}" y="{y}" text-anchor="middle">{label}</text>'
            for number, label in enumerate(one.labels)
        ]
    low, high = one.judge.score_range
    marks = [low + (high - low) * step / 4 for step in range(5)]
    return [
        f'<text class="tick" x="{_x(one, mark):.1f}" y="{y}" text-anchor="middle">{mark:g}</text>' for mark in marks
    ]


def _limit(one: Distribution, name: str, value: float, side: int) -> list[str]:
    """A limit's line and word: the floor's word to its left, the threshold's to its right, unless the edge is near."""
    x = _x(one, value)
    after = (side == 0 and x < WIDTH - 90) or x < 60
    at, anchor = (x + 4, "start") if after else (x - 4, "end")
    y = _TOP - 10 if name == "threshold" else _TOP + 2
    return [
        f'<line class="{name}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 16}" y2="{_y(0, 1):.1f}"/>',
        f'<text class="{name}" x="{at:.1f}" y="{y}" text-anchor="{anchor}">{name} {value:g}</text>',
    ]


def _x(one: Distribution, value: float) -> float:
    low, high = one.edges[0], one.edges[-1]
    return _LEFT + _PLOT_WIDTH * min(max((value - low) / (high - low), 0.0), 1.0)


def _y(count: float, most: float) -> float:
    return _TOP + _PLOT_HEIGHT * (1 - count / most)


def page(outcome: GateRun) -> str:
    verdict, spread = outcome.verdict, distributions(outcome)
    found = rows(outcome)
    why = "".join(f"<li>{text(said(reason))}</li>" for reason in verdict.reasons)
    accepted = ", ".join(sorted(outcome.wanted.accepted))
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(headline(outcome))}</title><style>{STYLE}</style></head><body><main>",
        f'<h1>{text(verdict.milestone)}: <span class="{verdict.verdict}">{verdict.verdict}</span></h1>',
        f'<p class="dim">{text(facts(outcome))}. Decided {text(outcome.decided_at)}, '
        f"configuration {text(outcome.wanted.registry.config_hash)}.</p>",
        f"<p>Accepted as a baseline shift: {text(accepted)}.</p>" if accepted else "",
        f"<ul>{why}</ul>" if why else "",
        _table(found) if found else "",
        '<div class="cards">',
        *(_card(row, spread[row.judge]) for row in found if row.judge in spread),
        "</div></main></body></html>\n",
    ]
    return "".join(parts)


def _table(found: list[Row]) -> str:
    heads = (
        "", "score", "95 % interval", "threshold", "floor", "baseline", "items", "unscored", "not applicable",
        "asked again", "finds a fall of", "a clean one passes", "standing, due",
    )  # fmt: skip
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(
        f'<tr><td>{text(row.judge)}</td><td class="{row.word}">{row.word}</td><td>{row.shown}</td>'
        f"<td>{row.interval}</td><td>{row.score.threshold:g}</td><td>{row.score.floor:g}</td><td>{row.baseline}</td>"
        f"<td>{row.score.n}</td><td>{row.score.unscored}</td><td>{row.score.not_applicable}</td>"
        f"<td>{row.again}</td><td>{row.finds}</td><td>{row.clean_passes}</td><td>{row.standing}</td></tr>"
        for row in found
    )
    return (
        f'<div class="wide"><table><thead><tr><th>judge</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )  # fmt: skip


def _card(row: Row, one: Distribution) -> str:
    rule = one.judge.rule
    lowest = f"<details><summary>lowest scores</summary>{_lowest(one.lowest)}</details>" if one.lowest else ""
    return (
        f'<section class="card"><h2>{text(row.judge)} <span class="{row.word}">{row.word}</span></h2>'
        f'<p class="dim">{text(rule.description)} {one.judge.classification}, {row.score.enforcement}s</p>'
        f"{drawing(one, row.score)}{lowest}</section>"
    )


def _lowest(found: tuple[Low, ...]) -> str:
    body = "".join(
        f'<tr><td class="left">{text(low.item[:80])}</td><td>{low.score:g}</td>'
        f'<td class="left">{text(low.reason[:300])}</td></tr>'
        for low in found
    )
    return (
        '<table><thead><tr><th>item</th><th>score</th><th class="left">the judge says</th></tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )  # fmt: skip
