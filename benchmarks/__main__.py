"""`python -m benchmarks [PART...]`: everything, or only some parts. See README.md."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from benchmarks import (
    candidate,
    flat,
    judges,
    latency,
    memory,
    profile,
    registry,
    report,
    restart,
    scaling,
    scores,
    start,
    suites,
    throughput,
    verdicts,
)
from benchmarks.lab import Lab
from benchmarks.options import Options, say

Part = Callable[[Lab, Options, dict[str, Any]], dict[str, Any]]
ALONE: dict[str, Callable[[Options], dict[str, Any]]] = {
    "start": start.run,
    "registry": registry.run,
    "judges": judges.run,
    "candidate": candidate.run,
    "verdicts": verdicts.run,
    "scores": scores.run,
    "suites": suites.run,
    "live": memory.live,
    "flat": flat.run,
}
"""Parts that are measured before the lab of the others is set up."""
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


def measure(chosen: list[str], options: Options) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each part's name and what is to be kept of it."""
    results: dict[str, Any] = {}
    about = report.begin(None, options)
    for part in [name for name in ALONE if name in chosen]:
        say(f"— {part}")
        yield part, {**about, "found": ALONE[part](options)}
    wanted = [name for name in PARTS if name in chosen]
    if not wanted:
        return
    with Lab() as lab:
        about = report.begin(lab, options)
        throughput.prepare(lab, options)
        for part in wanted:
            say(f"— {part}")
            results[part] = {**about, "found": PARTS[part](lab, options, results)}
            yield part, results[part]


def main() -> None:
    known = [*ALONE, *PARTS]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Rampgate, measured.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--rounds", type=int, help="rounds of each contender (default 5)")
    parser.add_argument("--events", type=int, help="thumbs in the topic (default 300,000)")
    parser.add_argument("--only", default=None, metavar="LETTERS", help="contenders, for example ae")
    parser.add_argument("--quick", action="store_true", help="a short run to see that all works")
    parser.add_argument("--write", action="store_true", help="write the tables into README.md too")
    chosen = parser.parse_args()
    for part in chosen.parts:
        if part not in known:
            parser.error(f"no part {part!r}; there are {', '.join(known)}")
    options = Options.quick() if chosen.quick else Options()
    given = {"rounds": chosen.rounds, "events": chosen.events, "letters": chosen.only}
    options = replace(options, **{name: value for name, value in given.items() if value})
    results: dict[str, Any] = {}
    for part, measured in measure(chosen.parts or known, options):
        results[part] = measured
        report.show(part, measured["found"])
        report.save(results, write=chosen.write)


if __name__ == "__main__":
    main()
