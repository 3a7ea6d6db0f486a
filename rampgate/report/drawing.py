"""Draws numbers of a report as inline SVG: differences with their intervals, two sides' spread, how something went on.
Pure.

Each drawing is told in words too, for readers that show none; the tables have all its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, Protocol

from schemas.dead_letters import clean

WIDTH: Final = 640
NAME: Final = 190
ROW: Final = 24
EDGE: Final = 12
TALL: Final = 130
BLOCKS: Final = "▁▂▃▄▅▆▇█"


class Drawing(Protocol):
    def svg(self) -> str: ...


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, None where there is none; `tone` says whether it is good, bad or neither."""

    name: str
    value: float
    ends: tuple[float, float] | None
    tone: str = ""


@dataclass(frozen=True)
class Intervals:
    """Estimates below one another on one axis, with a line at zero."""

    title: str
    rows: Sequence[Estimate]

    def svg(self) -> str:
        ends = [0.0, *(end for row in self.rows for end in (row.value, *(row.ends or ())))]
        low, high = min(ends), max(ends)
        room = (high - low) * 0.05 or 0.5
        low, high = low - room, high + room

        def x(value: float) -> float:
            return float(NAME + (WIDTH - NAME - EDGE) * (value - low) / (high - low))

        tall = ROW * len(self.rows) + ROW
        told = "; ".join(f"{row.name}: {row.value:+.3f}" for row in self.rows)
        parts = [_open(WIDTH, tall, f"{self.title}. {told}")]
        parts.append(f'<line class="axis" x1="{x(0):.1f}" x2="{x(0):.1f}" y1="0" y2="{tall - ROW + 4}"/>')
        for number, row in enumerate(self.rows):
            y = ROW * number + ROW / 2
            parts.append(f'<text class="name" x="0" y="{y + 4:.1f}">{_text(row.name, 26)}</text>')
            if row.ends is not None:
                at = f'x1="{x(row.ends[0]):.1f}" x2="{x(row.ends[1]):.1f}" y1="{y:.1f}" y2="{y:.1f}"'
                parts.append(f'<line class="ends {escape(row.tone)}" {at}/>')
            parts.append(f'<circle class="dot" cx="{x(row.value):.1f}" cy="{y:.1f}" r="4"/>')
        for value, anchor in ((low + room, "start"), (0.0, "middle"), (high - room, "end")):
            if value == 0.0 or abs(x(value) - x(0)) > 60:
                parts.append(_tick(x(value), tall - 6, f"{value:+.3g}" if value else "0", anchor))
        return "".join([*parts, "</svg>"])


@dataclass(frozen=True)
class Spread:
    """How many of one or two sides lie in each bin; `edges` are one more than bins. `labels` name the bins where a bin
    is one value. `marks` are lines at a value, as a limit, by name: `threshold`, `floor`, `mean`."""

    title: str
    edges: Sequence[float]
    sides: Sequence[tuple[str, Sequence[int]]]
    labels: Sequence[str] = ()
    marks: Sequence[tuple[str, float]] = ()

    def words(self) -> str:
        """The last side as a text of blocks, higher for more; a dot for an empty bin."""
        counts = self.sides[-1][1]
        most = max(counts, default=0)
        return "".join(BLOCKS[(count * 8 - 1) // most] if count else "·" for count in counts) if most else ""

    def svg(self) -> str:
        most = max((count for _, counts in self.sides for count in counts), default=0) or 1
        wide = (WIDTH - 2 * EDGE - 30) / (len(self.edges) - 1)
        top = max(20, 13 * len(self.marks) + 2)
        bottom = TALL + top
        parts = [_open(WIDTH, bottom + 18, f"{self.title}. {'; '.join(self._told())}")]
        for place, (name, counts) in enumerate(self.sides):
            alone = len(self.sides) == 1
            kind, thin = "other" if place == 0 and not alone else "bar", wide / len(self.sides)
            if not alone:
                parts.append(f'<rect class="{kind}" x="{42 + 130 * place}" y="2" width="10" height="10"/>')
                parts.append(f'<text class="tick" x="{57 + 130 * place}" y="11">{_text(name, 18)}</text>')
            for number, count in enumerate(counts):
                if not count:
                    continue
                height = TALL * count / most
                left = 42 + number * wide + place * thin
                parts.append(
                    f'<rect class="{kind}" x="{left + 1:.1f}" y="{bottom - height:.1f}" width="{max(thin - 1, 1):.1f}" '
                    f'height="{height:.1f}"><title>{_text(name, 18)}, {self._bin(number)}: {count}</title></rect>'
                )
        parts.append(f'<line class="axis" x1="42" x2="{WIDTH - EDGE}" y1="{bottom}" y2="{bottom}"/>')
        parts.append(_tick(36, bottom - TALL + 4, str(most), "end"))
        for number, label in enumerate(self.labels):
            parts.append(_tick(42 + (number + 0.5) * wide, bottom + 14, label, "middle"))
        for number, edge in enumerate(() if self.labels else self.edges):
            if number % max((len(self.edges) - 1) // 5, 1) == 0:
                parts.append(_tick(42 + number * wide, bottom + 14, f"{edge:g}", "middle"))
        parts += self._marks(bottom)
        return "".join([*parts, "</svg>"])

    def _marks(self, bottom: float) -> Iterator[str]:
        """Each line with its word beside it, one below the other, so that near ones can be read."""
        low, high = self.edges[0], self.edges[-1]
        for number, (name, value) in enumerate(self.marks):
            share = min(max((value - low) / (high - low), 0.0), 1.0)
            x, y = 42 + (WIDTH - 2 * EDGE - 30) * share, 10 + 13 * number
            at, anchor = (x - 4, "end") if share > 0.5 else (x + 4, "start")
            yield f'<line class="{escape(name)}" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 9}" y2="{bottom}"/>'
            yield (
                f'<text class="{escape(name)}" x="{at:.1f}" y="{y}" text-anchor="{anchor}">'
                f"{_text(f'{name} {value:g}', 40)}</text>"
            )

    def _told(self) -> Iterator[str]:
        for name, counts in self.sides:
            yield f"{name}: " + ", ".join(f"{self._bin(n)}: {count}" for n, count in enumerate(counts) if count)
        yield from (f"{name}: {value:g}" for name, value in self.marks)

    def _bin(self, number: int) -> str:
        if self.labels:
            return self.labels[number]
        return f"{self.edges[number]:g} to {self.edges[number + 1]:g}"


@dataclass(frozen=True)
class Course:
    """How a number went on, the oldest first; None where it was not there. A value of a table."""

    values: Sequence[float | None]

    def words(self) -> str:
        """The same as a text of blocks."""
        known = [value for value in self.values if value is not None]
        low, high = min(known, default=0.0), max(known, default=0.0)
        most = len(BLOCKS) - 1
        return "".join(
            "·" if value is None else BLOCKS[round((value - low) / (high - low) * most) if high > low else most // 2]
            for value in self.values
        )

    def svg(self) -> str:
        known = [(place, value) for place, value in enumerate(self.values) if value is not None]
        told = ", ".join("none" if value is None else f"{value:.3g}" for value in self.values)
        low, high = (f(value for _, value in known) for f in (min, max)) if known else (0.0, 0.0)
        step = 112 / max(len(self.values) - 1, 1)
        dots = [
            (4 + place * step, 26 - 20 * (value - low) / (high - low) if high > low else 16.0) for place, value in known
        ]
        line = " ".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(dots))
        last = f'<circle class="dot" cx="{dots[-1][0]:.1f}" cy="{dots[-1][1]:.1f}" r="3"/>' if dots else ""
        return f'{_open(120, 32, told)}<path class="line" d="{line}"/>{last}</svg>'


def _open(wide: int, tall: float, told: str) -> str:
    return f'<svg viewBox="0 0 {wide} {tall:g}" role="img" aria-label="{_text(told, 4_000)}">'


def _tick(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text class="tick" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _text(raw: str, most: int) -> str:
    return escape(clean(raw, most))
