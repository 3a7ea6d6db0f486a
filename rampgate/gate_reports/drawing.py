"""A judge's distribution as an inline SVG: bars, with floor and threshold where they lie on the same axis. Pure."""

from __future__ import annotations

from html import escape

from rampgate.gate_reports.distributions import Distribution
from schemas.judges import ScoreType
from schemas.verdicts import JudgeScore

WIDTH, HEIGHT = 420, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 8, 22, 24
_PLOT_WIDTH, _PLOT_HEIGHT = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM


def drawing(one: Distribution, score: JudgeScore) -> str:
    """A reader that shows no picture has the counts in its description."""
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
    """Floor's word stands left of its line, the threshold's right of it, unless the edge is near."""
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
