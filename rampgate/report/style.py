"""How pages look, and what their policy lets them load: nothing. Pure."""

from __future__ import annotations

STYLE = """
:root{color-scheme:light dark;--ink:#1c2330;--dim:#5b6678;--line:#d7dce4;--paper:#fff;--card:#f6f7f9;--bar:#4a78c2;
--pass:#1a7f37;--warn:#9a6700;--fail:#c2262e}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--dim:#9aa5b8;--line:#384252;--paper:#12161d;--card:#1a2029;
--bar:#7aa2e3;--pass:#4cc26a;--warn:#d9a531;--fail:#ff7b76}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:66rem;margin:2rem auto;
padding:0 1rem}
h1{font-size:1.5rem;margin:0 0 .25rem}h2{font-size:1.05rem;margin:0}
.dim,.tick{color:var(--dim);fill:var(--dim)}.pass{color:var(--pass)}.warn{color:var(--warn)}.fail{color:var(--fail)}
table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);
text-align:right;font-variant-numeric:tabular-nums}th{font-weight:600;color:var(--dim)}
th:first-child,td:first-child,td.left,th.left{text-align:left}td.left{overflow-wrap:anywhere}
.wide{overflow-x:auto}
svg{width:100%;height:auto;display:block}svg text{font:11px system-ui,sans-serif}.bar{fill:var(--bar)}
.axis{stroke:var(--line)}line.threshold{stroke:var(--ink);stroke-dasharray:4 3}text.threshold{fill:var(--ink)}
line.floor{stroke:var(--fail);stroke-dasharray:2 3}text.floor{fill:var(--fail)}line.mean{stroke:var(--dim)}
text.mean{fill:var(--dim)}
h2{margin-top:1.5rem}td.left{min-width:9rem}td.passage,pre{white-space:pre-wrap;overflow-wrap:anywhere}td{vertical-align:top}
pre{background:var(--card);padding:.6rem;max-height:24rem;overflow:auto;font-size:13px}
table.sides{table-layout:fixed}.sides th:first-child{width:8rem}details h2{display:inline}a{color:var(--bar)}
details{margin-top:.5rem}summary{cursor:pointer;color:var(--dim)}ul{padding-left:1.2rem;margin:.5rem 0}
""".strip()
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
