"""`python -m benchmarks [PART...]`: everything, or only some parts. See README.md."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks import latency, memory, profile, report, restart, scaling, throughput
from benchmarks.lab import Lab
from benchmarks.options import Options, say

Part = Callable[[Lab, Options, dict[str, Any]], dict[str, Any]]
PARTS: dict[str, Part] = {
    "throughput": lambda lab, options, _: throughput.run(lab, options),
    "profile": lambda lab, options, _: profile.run(lab, options),
    "latency": lambda lab, options, found: latency.run(lab, options, top_rate(found)),
    "scaling": lambda lab, options, _: scaling.run(lab, options),
    "restart": lambda lab, options, _: restart.run(lab, options),
    "memory": lambda lab, options, _: memory.run(lab, options),  # last: it empties our Redis
}


def top_rate(found: dict[str, Any]) -> float | None:
    """Our worker's events a second, where that was measured in this run."""
    ours = found.get("throughput", {}).get("found", {}).get("contenders", {}).get("a")
    return ours["rate"] if ours else None


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Rampgate's worker, measured.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--rounds", type=int, help="rounds of each contender (default 5)")
    parser.add_argument("--events", type=int, help="thumbs in the topic (default 300,000)")
    parser.add_argument("--only", default=None, metavar="LETTERS", help="contenders, for example ae")
    parser.add_argument("--quick", action="store_true", help="a short run to see that all works")
    parser.add_argument("--write", action="store_true", help="write the tables into README.md too")
    chosen = parser.parse_args()
    for part in chosen.parts:
        if part not in PARTS:
            parser.error(f"no part {part!r}; there are {', '.join(PARTS)}")
    options = Options.quick() if chosen.quick else Options()
    given = {"rounds": chosen.rounds, "events": chosen.events, "letters": chosen.only}
    options = replace(options, **{name: value for name, value in given.items() if value})
    results: dict[str, Any] = {}
    with Lab() as lab:
        about = report.begin(lab, options)
        throughput.prepare(lab, options)
        for part in [name for name in PARTS if not chosen.parts or name in chosen.parts]:
            say(f"— {part}")
            found = PARTS[part](lab, options, results)
            results[part] = {**about, "found": found}
            report.show(part, found)
            report.save(results, write=chosen.write)


if __name__ == "__main__":
    main()
