"""Renders the page at `/`: the state of the stream on one screen. No script, nothing from elsewhere, all escaped."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape

from agents.ports import Unavailable
from rampgate.queries import Queries, reasons_of
from schemas.answers import Conservation, CoverageAnswer, Health
from schemas.outcomes import State

STYLE = """
:root{color-scheme:light dark;--ink:#1c2330;--soft:#5c6675;--line:#dde2ea;--card:#fff;--page:#f4f6f9;--good:#1a7f4b;
--bad:#b42318;--bar:#3b6fd4;--rest:#c9d3e3}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#9aa4b2;--line:#2c3442;--card:#171c25;--page:#0f131a;
--good:#4cc38a;--bad:#ff8a7a;--bar:#6c9bf2;--rest:#2c3442}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:28px 20px 48px}h1{font-size:22px;margin:0}h2{font-size:16px;margin:0 0 2px}
header{display:flex;flex-wrap:wrap;gap:8px 14px;align-items:center;margin-bottom:20px}
p{margin:0 0 12px;color:var(--soft)}section{background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:18px 20px;margin-bottom:18px;overflow-x:auto}table{border-collapse:collapse;width:100%;min-width:560px}
th,td{text-align:right;padding:7px 10px;border-top:1px solid var(--line);font-variant-numeric:tabular-nums;
white-space:nowrap}
th{border-top:0;color:var(--soft);font-weight:500;font-size:13px}th:first-child,td:first-child{text-align:left;
padding-left:0;white-space:normal;overflow-wrap:anywhere;min-width:130px}
td:last-child,th:last-child{padding-right:0}.badge{border:1px solid currentColor;border-radius:99px;
padding:1px 11px;font-size:13px;font-weight:600}.good{color:var(--good)}.bad{color:var(--bad)}.soft{color:var(--soft)}
.bar{display:inline-block;width:110px;height:8px;border-radius:4px;background:var(--rest);
overflow:hidden;vertical-align:middle;margin-right:9px}.bar i{display:block;height:100%;background:var(--bar)}
.pct{display:inline-block;min-width:62px}ul{margin:4px 0 0;padding-left:20px}
nav a{color:inherit;margin-right:14px}
"""


async def render(queries: Queries, ready: Health, *, writing: bool) -> str:
    """The whole page. Where a part is out of reach, its name takes the place of the figures."""
    try:
        figures = coverage_section(await queries.coverage()) + balance_section(await queries.conservation())
    except Unavailable as error:
        figures = f'<section><h2>No figures</h2><p class="bad">{escape(str(error))}</p></section>'
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Rampgate</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta http-equiv="refresh" content="15">'
        f"<style>{STYLE}</style></head><body><main>"
        f"<header><h1>Rampgate</h1>{badge(ready.ok, 'ready', 'not ready')}"
        f"{badge(writing, 'writing scores', 'scores withheld')}"
        f'<span class="soft">{now}, again every 15 s</span></header>'
        f"{health_section(ready)}{figures}"
        "<nav>"
        + "".join(
            f'<a href="{path}">{path}</a>'
            for path in ("/coverage", "/conservation", "/dead-letters", "/metrics", "/readyz")
        )
        + "</nav></main></body></html>"
    )


def badge(good: bool, yes: str, no: str) -> str:
    return f'<span class="badge {"good" if good else "bad"}">{yes if good else no}</span>'


def health_section(ready: Health) -> str:
    if ready.ok:
        return ""
    items = "".join(f"<li>{escape(reason)}</li>" for reason in ready.reasons)
    return f'<section><h2>Not ready</h2><ul class="bad">{items}</ul></section>'


def coverage_section(answer: CoverageAnswer) -> str:
    rows = []
    for row in answer.verticals:
        rate = '<span class="soft">no turns</span>'
        if row.rate is not None:
            share = f"{100 * row.rate:.1f}"
            rate = f'<span class="bar"><i style="width:{share}%"></i></span><span class="pct">{share} %</span>'
        figures = (f"{figure:,}" for figure in (row.both_present, row.missing_signal, row.missing_trace))
        rows.append((escape(row.vertical), *figures, rate))
    head = ("Vertical", "Both present", "Missing signal", "Missing trace", "Coverage")
    return (
        "<section><h2>Join coverage</h2>"
        f"<p>Of the turns with a user signal or a judged trace, the share with a signal and a trace: the last "
        f"{duration(answer.window_seconds)}.</p>"
        f"{table(head, rows)}</section>"
    )


def balance_section(answer: Conservation) -> str:
    head = ("Signal", "Consumed", "Done", "Superseded", "Dead letters", "Parked", "Filtered", "Difference")
    rows = []
    for signal, one in answer.signals.items():
        mark = "good" if one.difference == 0 else "bad"
        figures = (f"{figure:,}" for figure in (one.consumed, *(getattr(one, state) for state in State)))
        rows.append((escape(signal), *figures, f'<b class="{mark}">{one.difference:,}</b>'))
    reasons = "".join(
        f"<li>{escape(signal)}: {records:,} {escape(state.replace('_', ' '))}, {escape(reason.replace('_', ' '))}</li>"
        for signal, state, reason, records in reasons_of(answer)
    )
    reasons += "".join(
        f'<li class="bad">{escape(signal)}: {one.gap:,} offsets lost by Kafka before they were read, in '
        f"{one.gaps:,} gaps</li>"
        for signal, one in answer.signals.items()
        if one.gaps
    )
    return (
        f"<section><h2>Conservation {badge(answer.balanced, 'balanced', 'out of balance')}</h2>"
        f"<p>Every record consumed in the last {duration(answer.window_seconds)} ends in exactly one state.</p>"
        f"{table(head, rows)}{f'<ul>{reasons}</ul>' if reasons else ''}</section>"
    )


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """An HTML table; the cells are HTML already."""
    if not rows:
        return '<p class="soft">Nothing yet.</p>'
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def duration(seconds: int) -> str:
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds % length == 0 and seconds > length:
            return f"{seconds // length} {unit}"
    return f"{seconds:,} seconds"
